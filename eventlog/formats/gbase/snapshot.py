"""The rows of a captured table before its stream, and the position in the log that joins the two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, cast

from eventlog.core.change import ABSENT, Change, Facts, Field, Op, Scalar, Value
from eventlog.core.errors import EventlogError, Refused
from eventlog.formats.gbase.catalogue import CapturableTable, CapturedColumn
from eventlog.formats.gbase.gbase_settings import Lock
from eventlog.formats.gbase.session import Connection, ServerError, run
from eventlog.formats.gbase.session import rows as fetched

FIRST_RECORD: Final = 0x18  # in the first page of a log; its head has so many bytes
_LOG: Final = 32  # a sequence is the number of a log and, in its low bits, a place in it
_PAGE: Final = 12


class CapturedDatabase(Connection, Protocol):
    """A connection with transactions, to the database of captured tables."""

    def commit(self) -> object: ...
    def close(self) -> object: ...


class ServerMoment(NamedTuple):
    """A moment of the server: the sequence up to which its log is on disk, and the seconds since 1970."""

    sequence: int
    seconds: int


def lowest_open_log(connection: Connection) -> int | None:
    """Return the log in which the oldest open transaction began; None where none is open."""
    query = "select min(tx_logbeg) from sysmaster:systrans where tx_logbeg > 0"
    return _number(connection, query)


def current_log(connection: Connection) -> int | None:
    """Return the log that is being written."""
    return _number(connection, "select uniqid from sysmaster:syslogs where is_current = 1")


def oldest_log(connection: Connection) -> int | None:
    """Return the oldest log that is on disk."""
    return _number(connection, "select min(uniqid) from sysmaster:syslogs where uniqid > 0")


def start_of_log(log: int) -> int:
    """Return the sequence of the first record of a log."""
    return log << _LOG | FIRST_RECORD


def log_of(sequence: int) -> int:
    """Return the log in which a sequence is."""
    return sequence >> _LOG


def server_moment(connection: Connection, owner: str) -> ServerMoment:
    """Return this moment; its sequence is 0 if sysmaster cannot be read."""
    try:
        logs = [*fetched(connection, "select uniqid, used from sysmaster:syslogs where is_current = 1")]
    except ServerError:
        logs = []
    log, page = (int(str(cell)) for cell in logs[0]) if logs else (0, 0)
    clock = f"select dbinfo('utc_current') from {owner}.systables where tabid = 1"  # noqa: S608 - a vendor's
    seconds = _number(connection, clock)
    return ServerMoment(log << _LOG | page << _PAGE, seconds or 0)


def _number(connection: Connection, query: str) -> int | None:
    for (number,) in fetched(connection, query):
        return None if number is None else int(str(number))
    return None


def share_lock(connection: Connection, table: CapturableTable) -> None:
    """Lock the table against changes until the transaction ends, after waiting for present writers."""
    run(connection, "set lock mode to wait 60")
    run(connection, f"lock table {_table_reference(table)} in share mode")


def read_table(
    connection: CapturedDatabase,
    table: CapturableTable,
    lock: Lock,
    number: int,
    name: tuple[str | None, str],
    owner: str,
) -> Iterator[Change | Refused | ServerMoment]:
    """Yield the rows of a table, and last the moment when all were read."""
    schema, table_name = name
    if lock is Lock.SHARE:
        share_lock(connection, table)
    else:
        run(connection, "set isolation to repeatable read")
    before = server_moment(connection, owner)
    facts: Facts = (("number", number),)
    keys = [at for at, column in enumerate(table.columns) if column.name in table.key]
    keys.sort(key=lambda at: table.key.index(table.columns[at].name))
    columns = ", ".join(map(_select_item, table.columns))
    query = f"select {columns} from {_table_reference(table)}"  # noqa: S608 - names that `catalogue` has checked
    for count, row in enumerate(fetched(connection, query), 1):
        try:
            values = [_value(column, cell) for column, cell in zip(table.columns, row, strict=True)]
        except EventlogError as fault:
            yield Refused(f"{table.table}: row {count}", str(fault))
            continue
        fields = tuple(Field(c.name, ABSENT, v) for c, v in zip(table.columns, values, strict=True))
        key = tuple((table.columns[at].name, values[at]) for at in keys)
        yield Change(Op.SNAPSHOT, schema, table_name, key, fields, str(before.sequence), extra=facts)
    after = server_moment(connection, owner)
    connection.commit()
    yield after


def _table_reference(table: CapturableTable) -> str:
    return f'"{table.table.owner}".{table.table.name}'


_AS_TEXT: Final = ("datetime", "interval")


def _select_item(column: CapturedColumn) -> str:
    """Return a column as text where the driver's form of it would depend on its settings."""
    if column.declared == "date":
        return f"to_char({column.name}, '%Y-%m-%d')"
    if column.declared.startswith(_AS_TEXT):
        return f"cast({column.name} as lvarchar(64))"
    return column.name


def _value(column: CapturedColumn, cell: object) -> Value:
    """Return the value as the stream would contain it: written as the stream writes it, and read again."""
    plain = cell is None or isinstance(cell, bool | int | float | str | bytes)
    value: Scalar | None = cast("Scalar | None", cell) if plain else str(cell)
    if isinstance(value, str) and column.declared.startswith(_AS_TEXT):
        value = value.strip()
        if column.declared.startswith("datetime year"):
            value = value.replace(" ", "T", 1)
    elif column.declared == "boolean" and value is not None:
        value = value in (True, "t", "T", "true")
    elif isinstance(value, float | int) and column.declared.startswith(("decimal", "money")):
        value = str(value)
    return column.type.load(column.type.dump(value))
