"""LINTER's queue in a database table, or a copy of it. It is only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Table, Tables
from eventlog.formats.linter import attributes
from eventlog.formats.linter.changes import QueueReader
from eventlog.formats.linter.columns import QueueRow, QueueRowReader
from eventlog.formats.linter.operations import ENDS
from eventlog.formats.linter.queue_progress import START, QueueState, dump_state, load_state
from eventlog.transfer.sources.sql_cells import at_one_moment

_FETCH: Final = 1000
_IDENTITY: Final = ("OPER_DATE", "DBNODE", "TRANSACT_ID", "SYSLOG_ADDR", "TYP")
Columns = dict[str, sa.ColumnElement[Any]]


class QueueRest(NamedTuple):
    """The rows of a queue that a state leaves to be read."""

    source: Source[Row]
    past: tuple[QueueRow, ...] = ()  # rows before its start, which were read earlier; without their data


def rows(connection: sa.Connection, table: str, since: QueueState = START) -> QueueRest:
    """Return the rows of a table, or `schema.table`, after a state.

    They are in the journal's order. A journal file is used again from its first address on: rows with an
    address before the start and a later date are new, and come last.
    """
    queue = _reflect(connection, table)
    before = _before(queue, since)
    if before is None:
        return QueueRest(_source(connection, table, queue, _in_order(queue)))
    past: list[QueueRow] = []
    reused: list[QueueRow] = []
    for part in _rows_before(connection, queue, before):
        (past if since.is_past(part) else reused).append(part)
    queries = [_in_order(queue).where(~before)]
    if addresses := [part.syslog_addr for part in reused if part.syslog_addr is not None]:
        within = queue["SYSLOG_ADDR"].between(min(addresses), max(addresses))
        queries.append(_in_order(queue).where(before & within))
    return QueueRest(_source(connection, table, queue, *queries), tuple(past))


def described(connection: sa.Connection, table: str = "DISPATCH_ATTRS") -> list[Table]:
    """Return the replicated tables with their record layouts, from DISPATCH_ATTRS."""
    columns = _reflect(connection, table)
    missing = [name for name in attributes.COLUMNS if name not in columns]
    if missing:
        raise Misuse(f"{table} has no column {', '.join(missing)}")
    query = sa.select(*(columns[name] for name in attributes.COLUMNS))
    cells = connection.execute(query)
    return attributes.read_attributes(attributes.read_attribute(tuple(row)) for row in cells)


def _in_order(queue: Columns) -> sa.Select[Any]:
    """Return the rows by their addresses, those that have none last, wherever a database sorts nulls.

    Without addresses the rows are sorted by their dates, and an end comes after the operations of its date.
    """
    order: list[sa.ColumnElement[Any]] = []
    if "SYSLOG_ADDR" in queue:
        order = [sa.case((queue["SYSLOG_ADDR"].is_(None), 1), else_=0), queue["SYSLOG_ADDR"]]
    elif "TYP" in queue:
        order = [*([queue["OPER_DATE"]] if "OPER_DATE" in queue else []), _is_end(queue["TYP"])]
    if "EXTDATA" in queue:
        order.append(queue["EXTDATA"])
    return sa.select(*queue.values()).order_by(*order)


def _is_end(typ: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """Return 1 for the end of a transaction, also if the numbers of a copied queue are texts."""
    return sa.case((sa.cast(typ, sa.String(12)).in_([str(int(end)) for end in ENDS]), 1), else_=0)


def _before(queue: Columns, since: QueueState) -> sa.ColumnElement[bool] | None:
    """Return the condition of rows whose address is before the start of their database, if there is one."""
    starts = [
        sa.and_(_is_of(queue, node), queue["SYSLOG_ADDR"] < progress.start.address)
        for node, progress in since.nodes.items()
        if progress.start is not None and "SYSLOG_ADDR" in queue
    ]
    return sa.case((sa.or_(*starts), 1), else_=0) == 1 if starts else None  # never null


def _is_of(queue: Columns, node: str) -> sa.ColumnElement[bool]:
    return sa.func.rtrim(queue["DBNODE"]) == node if "DBNODE" in queue else sa.true()


def _rows_before(
    connection: sa.Connection, queue: Columns, before: sa.ColumnElement[bool]
) -> Iterator[QueueRow]:
    """Yield the rows before the start, without their data.

    This query is the first: what is in the journal before a row that it finds is found by the later ones.
    """
    names = [name for name in _IDENTITY if name in queue]
    reader = QueueRowReader(names)
    for row in _fetch(connection, sa.select(*(queue[name] for name in names)).where(before)):
        part, faults = reader.read(row.cells)
        if not faults:
            yield part


def _source(connection: sa.Connection, table: str, queue: Columns, *queries: sa.Select[Any]) -> Source[Row]:
    return Source(table, table.rpartition(".")[2], tuple(queue), _fetch(connection, *queries))


def _fetch(connection: sa.Connection, *queries: sa.Select[Any]) -> Iterator[Row]:
    where = 0
    for query in queries:
        for row in connection.execution_options(stream_results=True, yield_per=_FETCH).execute(query):
            where += 1
            yield Row(where, tuple(row))


def _reflect(connection: sa.Connection, name: str) -> Columns:
    """Return the columns of a table by their names in upper case, in its order."""
    schema, _, bare = name.rpartition(".")
    try:
        reflected = sa.inspect(connection).get_columns(bare, schema or None)
    except sa.exc.NoSuchTableError:
        raise Misuse(f"there is no table {name}") from None
    table = sa.table(bare, *(sa.column(column["name"]) for column in reflected), schema=schema or None)
    columns: Columns = {}
    for column in table.columns:
        first_column = columns.setdefault(column.name.upper(), column)
        if first_column is not column:
            raise Misuse(
                f"{name} has the columns {first_column.name} and {column.name}, which are one name here"
            )
    return columns


class StoredQueue:
    """One reading of a queue, after a position."""

    ended, over = False, None  # more may come, and no error ended it: each round opens it anew

    def __init__(
        self, connect: Callable[[], sa.Engine], tables: Tables, reading: Any, name: str, position: Any
    ) -> None:
        self._since = START if position is None else load_state(position)
        self._connect = connect
        self._name = name
        self._reader = QueueReader(tables, reading, self._since)

    @property
    def position(self) -> Callable[[], Any]:
        """Return a function for the position after what was taken."""
        mark = self._reader.mark()
        return lambda: dump_state(mark())

    def close(self) -> None:
        """Do nothing, because nothing is open between rounds."""

    def answers(self, growing: bool) -> Iterator[Change | Refused]:
        """Yield the changes of the rows after the position."""
        with at_one_moment(self._connect()) as connection:
            unread = rows(connection, self._name, self._since)
            self._reader.pass_over(unread.past)
            yield from self._reader.read(unread.source)
