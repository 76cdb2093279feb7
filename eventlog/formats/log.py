"""The `log` format: rows of an event log, as entries and from changes."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventlog.core import values
from eventlog.core.change import (
    ABSENT,
    Change,
    Field,
    Op,
    Side,
    check_decoded,
    position_text,
    row_events,
    scalars,
)
from eventlog.core.entry import COLUMNS, DEFAULTED, Cell, Entry, read_entry, read_event_time, read_integer
from eventlog.core.errors import EventlogError, Misuse, NotExpressible, Refused, WrongRow
from eventlog.core.formats import (
    Format,
    Row,
    Shape,
    Sheet,
    SheetColumn,
    SheetRow,
    Source,
    check_cells,
    listed_columns,
)
from eventlog.core.grouped_warnings import unchanged_updates
from eventlog.core.shared_settings import insert_query_back_setting, now_setting
from eventlog.core.tables import Table, Tables
from eventlog.formats.neutral import refuse

SHEET = Sheet(
    "eventlog",
    tuple(SheetColumn(name, "int" if name in ("record_id", "event_type") else "text") for name in COLUMNS),
)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The settings of logs in files."""

    insert_query_back: str = insert_query_back_setting()
    now: str | None = now_setting()


def read(sources: Iterable[Source[Row]], tables: Tables, settings: LogSettings) -> Iterator[Change | Refused]:
    """Refuse to read: rows of a log are no changes by themselves."""
    raise NotExpressible("rows of a log must be folded: that is what pickup does")


def read_entries(source: Source[Row], now: str) -> Iterator[tuple[Row, Entry] | Refused]:
    """Yield the entries of a source's rows, each with the row it came from; raise Misuse if a column is
    missing.
    """
    at_places, cells = places(source.columns, source.name), default_cells(now)
    for row in source.records:
        if isinstance(row, Refused):
            yield row
            continue
        try:
            yield row, entry_of(row, at_places, cells)
        except EventlogError as fault:
            yield source.refuse(row, str(fault))


def default_cells(now: str) -> list[str | None]:
    """Return the cells of a row of a log without any of the ten columns."""
    return [{"status": "N", "event_time": now}.get(column) for column in COLUMNS]


def entry_of(row: Row, at_places: Sequence[int | None], defaults: Sequence[str | None]) -> Entry:
    """Return the entry of a row whose columns are at these places; raise WrongRow if it is none."""
    cells = [
        default if at is None else _cell(name, row.cells[at])
        for name, at, default in zip(COLUMNS, at_places, defaults, strict=True)
    ]
    return read_entry(cells)


def write(changes: Iterable[Change], tables: Tables, settings: LogSettings) -> Iterator[SheetRow | Refused]:
    """Yield the rows of types 1 to 4 whose documents have the same effect, numbered from 1."""
    now = values.read_moment(values.Kind.TIMESTAMP, settings.now or "1970-01-01 00:00:00").iso
    last = 0
    tally = unchanged_updates()
    for change in changes:
        try:
            time = read_event_time(change.time or now).replace("T", " ")
            check_decoded(change)
            parts = [row for event in row_events(change) for row in _rows(event, tables, settings)]
            rows = [
                (number, "N", kind, time, change.user, name, key, column, old_value, new_value)
                for number, (name, key, kind, column, old_value, new_value) in enumerate(parts, last + 1)
            ]
            for row in rows:
                check_cells(SHEET.columns, row)
        except EventlogError as fault:
            yield refuse(change, fault)
            continue
        if not rows and change.op is Op.UPDATE:
            tally.add(change.table, position_text(change), None)
        last += len(rows)
        for row in rows:
            yield SheetRow(SHEET, row)
    yield from tally.warnings()


def places(columns: Sequence[str], name: str) -> list[int | None]:
    """Return the positions of the ten columns of a log, by name; table_name may have the name `table`."""
    names = [column.lower() for column in columns]
    if "table_name" not in names and "table" in names:
        names[names.index("table")] = "table_name"
    if missing := [column for column in COLUMNS if column not in names and column not in DEFAULTED]:
        raise Misuse(f"{name}: the log lacks the column {missing[0]}; it has {listed_columns(names)}")
    return [_place(columns, names, column, name) if column in names else None for column in COLUMNS]


def _place(columns: Sequence[str], names: Sequence[str], column: str, name: str) -> int:
    """Return the position of a column of a log: under exactly its name, else under the only similar one."""
    matches = [at for at, matching_name in enumerate(names) if matching_name == column]
    exact = [at for at in matches if columns[at] == column]
    if len(exact or matches) > 1:
        columns_alike = ", ".join(columns[at] for at in matches)
        raise Misuse(
            f"{name}: more than one of its columns may be {column}: {columns_alike}; leave one of them"
        )
    return (exact or matches)[0]


def _cell(name: str, cell: Any) -> Cell:
    """Return a cell of any container as a text or number; raise WrongRow if it is neither."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int) or (name in _NUMBERS and isinstance(cell, float | decimal.Decimal)):
        return cell
    if isinstance(cell, float):
        return str(read_integer(cell)) if math.isfinite(cell) else values.non_finite(cell)
    if isinstance(cell, decimal.Decimal):
        return format(cell, "f")
    if isinstance(cell, dt.datetime):
        return (cell.astimezone(dt.UTC) if cell.tzinfo else cell).replace(tzinfo=None).isoformat(" ")
    for kind, type_name in _NO_TEXTS.items():
        if isinstance(cell, kind):
            raise WrongRow(f"{name} is {type_name}, not text")
    return str(cell)


_NUMBERS = frozenset(("record_id", "event_type"))
_NO_TEXTS = {bytes | bytearray | memoryview: "binary", list | tuple: "a list", Mapping: "an object"}

LogRow = tuple[str, str, int, str | None, str | None, str | None]


def _rows(change: Change, tables: Tables, settings: LogSettings) -> Iterator[LogRow]:
    write_rows = _WRITERS.get(change.op)
    if write_rows is None:
        raise NotExpressible(f"a log has no row for {change.op}; --expand-truncate makes deletes of its rows")
    table = tables.of(change.schema, change.table) or Table(
        change.schema, change.table, {}, _key_names(change)
    )
    key = change.fact("table_key")
    if not isinstance(key, str):
        if not change.key:
            raise NotExpressible(
                f"the key of table {change.table} is not known; "
                f"{tables.how_to_state_key(change.schema, change.table)}"
            )
        key = table.dump_key(change.key)
    name = _table_name(change, tables)
    as_update = change.current and change.fields and settings.insert_query_back == "modify"
    for event_type, column, old_value, new_value in (_updates if as_update else write_rows)(change, table):
        yield name, key, event_type, column, old_value, new_value


def _key_names(change: Change) -> tuple[str, ...]:
    return tuple(name for name, _ in change.key)


def _table_name(change: Change, tables: Tables) -> str:
    """Return the name of the table in rows: with the schema only if the bare name would not find it."""
    try:
        table = tables.find(change.table)
    except EventlogError:
        table = None
    if table is not None and table.schema == change.schema:
        return change.table
    return change.table if change.schema is None else f"{change.schema}.{change.table}"


FieldRow = tuple[int, str | None, str | None, str | None]


def _inserts(change: Change, table: Table) -> Iterator[FieldRow]:
    rows = [
        (1, field.column, None, text)
        for field in _data(change.fields, table)
        for text in _texts(field.after, field.column, table) or [None]
    ]
    if not rows:
        column = next((c.name for c in table.data), None)
        if column is None:
            raise NotExpressible(
                f"without values only the key of {table} is available; state its columns in the tables file"
            )
        rows = [(1, column, None, None)]
    yield from rows


def _updates(change: Change, table: Table) -> Iterator[FieldRow]:
    fields = list(_data(change.fields, table))
    if fields and all(field.after is ABSENT for field in fields):
        raise NotExpressible("what the row held after the update was not captured")
    for field in fields:
        if field.after is not ABSENT and field.before != field.after:
            yield from _update(field, table)


def _update(field: Field, table: Table) -> Iterator[FieldRow]:
    """Yield the rows of one field.

    Of several values all old ones precede all new ones, because a value may be on both sides.
    """
    old_texts, new_texts = (_texts(side, field.column, table) for side in (field.before, field.after))
    if field.before is ABSENT:
        yield 3, field.column, None, new_texts[0] if new_texts else None
        new_texts = new_texts[1:]
    elif len(old_texts) == len(new_texts) == 1:
        yield 2, field.column, old_texts[0], new_texts[0]
        return
    for text in old_texts:
        yield 2, field.column, text, None
    for text in new_texts:
        yield 2, field.column, None, text


def _deletes(change: Change, table: Table) -> Iterator[FieldRow]:
    yield 4, None, None, None


def _data(fields: Iterable[Field], table: Table) -> Iterator[Field]:
    return (field for field in fields if field.column not in table.key)


def _texts(side: Side, column: str, table: Table) -> list[str | None]:
    return [table.dump(column, value) for value in scalars(side)]


_WRITERS: dict[Op, Callable[[Change, Table], Iterator[FieldRow]]] = {
    Op.INSERT: _inserts,
    Op.UPDATE: _updates,
    Op.DELETE: _deletes,
}


FORMAT: Format = Format(
    "log", Shape.ROWS, LogSettings, read, write, folded=True, sheet=SHEET, writes_utc=True
)
