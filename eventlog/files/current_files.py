"""Current rows from files: what query-back events read where no database is at hand."""

from __future__ import annotations

import datetime as dt
import pickle
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from eventlog.core import tablekey, values
from eventlog.core.change import Change, Op
from eventlog.core.errors import (
    EventlogError,
    InvalidDocument,
    InvalidTables,
    Misuse,
    Refused,
    UnknownTable,
    similar,
)
from eventlog.core.formats import Cell, Row, Shape, Source, listed_columns
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import container_of, open_input, source_in
from eventlog.files.limits import LIMITS, Limits
from eventlog.fold import CurrentOrError, CurrentRow, QueryKey, query_key


class CurrentFiles:
    """The rows of some tables, by their keys, on disk beyond what memory holds."""

    def __init__(self) -> None:
        self.tables: set[Table] = set()
        self._rows = sqlite3.connect("", isolation_level=None)  # a private file that sqlite removes itself
        self._rows.execute("pragma journal_mode = off")
        self._rows.execute("create table current (table_name text, object text, table_key text, cells blob)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rows.close()

    def load(self, table: Table, file_name: str, limits: Limits) -> None:
        """Take the rows of a table from a file; the error names what the file lacks."""
        if not Path(file_name).is_file():
            raise Misuse(f"--current {table}: no file {file_name}")
        form = container_of(file_name, Shape.ROWS)
        try:
            with open_input(file_name) as file:
                source = source_in(file, file_name, Shape.ROWS, form, limits)
                self.add(table, source)
        except (OSError, EOFError, zlib.error) as fault:
            why = fault.strerror if isinstance(fault, OSError) and fault.strerror else fault
            raise InvalidDocument(f"{file_name}: {why}") from None

    def lookup(self, table: Table, key: QueryKey) -> CurrentOrError:
        """Return the rows of one key."""
        row_key = (str(table), repr(key))
        rows = self._rows.execute("select cells from current where table_name = ? and object = ?", row_key)
        return [pickle.loads(cells) for (cells,) in rows]  # noqa: S301 - written by this class

    def deletes(self, table: Table, truncate: Change) -> Iterator[Change]:
        """Yield the deletes of all rows of a table, in place of a truncate."""
        rows = self._rows.execute(
            "select distinct table_key from current where table_name = ?", (str(table),)
        )
        for number, (table_key,) in enumerate(rows, 1):
            position = None if truncate.position is None else f"{truncate.position}.{number}"
            key = table.load_key(table_key)
            yield truncate._replace(op=Op.DELETE, key=key, fields=(), position=position)

    def add(self, table: Table, source: Source[Row]) -> None:
        """Take the rows of a table from a source; the error names what it lacks."""
        current_rows = read_current(table, source)
        self._rows.execute("begin")
        self._rows.executemany(
            "insert into current values (?, ?, ?, ?)",
            ((str(table), repr(row.key), row.table_key, pickle.dumps(row.cells)) for row in current_rows),
        )
        self._rows.execute("create index if not exists by_object on current (table_name, object)")
        self._rows.execute("commit")
        self.tables.add(table)


def load_current(tables: Tables, files: Iterable[tuple[str, str]], limits: Limits = LIMITS) -> CurrentFiles:
    """Return the current rows of files, each with the name of its table."""
    with ExitStack() as stack:
        current = stack.enter_context(CurrentFiles())
        for table_name, file_name in files:
            try:
                table = keyed(tables, table_name)
            except UnknownTable:
                hint = similar(table_name, map(str, tables)) or " in the tables file"
                raise Misuse(f"--current {table_name}: there is no such table{hint}") from None
            current.load(table, file_name, limits)
        stack.pop_all()
    return current


def keyed(tables: Tables, name: str) -> Table:
    """Return the table of that name, whose rows can be found by their keys."""
    table = tables.get(name)
    if not table.key:
        raise InvalidTables(f"table {table} has no key: its current rows cannot be found by one")
    return table


def cell_text(cell: Cell) -> str | None:
    """Return a cell of any container as a log would hold it."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bytes):
        return values.dump_base64(cell)
    if isinstance(cell, dt.datetime):
        return (cell.astimezone(dt.UTC) if cell.tzinfo else cell).replace(tzinfo=None).isoformat(" ")
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return format(cell, "f") if isinstance(cell, Decimal) else str(cell)


def cell_texts(source: Source[Row], row: Row, places: Sequence[int]) -> tuple[str | None, ...]:
    """Return the texts of these cells of a row in a file; raise InvalidTables if one is no single text."""
    cells = [row.cells[at] for at in places]
    if any(isinstance(cell, list | dict) for cell in cells):
        raise InvalidTables(f"{source.at(row.where)}: a cell is a list or an object, not text")
    return tuple(map(cell_text, cells))


class KeyedRow(NamedTuple):
    """A current row, with the key that it is asked for by and the table_key that names it."""

    key: QueryKey
    table_key: str
    cells: CurrentRow


def read_current(table: Table, source: Source[Row]) -> Iterator[KeyedRow]:
    """Yield the current rows of a source; one that cannot be read spoils it, for its object would
    seem gone.
    """
    key_cells, data_cells = places_of(table, source)
    for row in source.records:
        if isinstance(row, Refused):
            raise InvalidTables(f"{row.where}: {row.reason}: the current rows cannot be read")
        texts = zip(table.key, cell_texts(source, row, key_cells), strict=True)
        pairs = tuple((name, text) for name, text in texts if text is not None)
        try:
            key = query_key(table, pairs)
        except EventlogError as fault:
            raise InvalidTables(f"{source.at(row.where)}: {fault}") from fault
        yield KeyedRow(key, tablekey.write(pairs), cell_texts(source, row, data_cells))


def places_of(table: Table, source: Source[Row]) -> tuple[Sequence[int], ...]:
    """Return where a source has the columns of the key, and the columns whose values are read."""
    data_names = [column.name for column in table.data]
    return tuple([_column(source, table, name) for name in names] for names in (table.key, data_names))


def _column(source: Source[Row], table: Table, name: str) -> int:
    folded = [column.lower() for column in source.columns]
    if name in source.columns:
        return source.columns.index(name)
    if folded.count(name.lower()) == 1:
        return folded.index(name.lower())
    raise InvalidTables(
        f"{source.name} lacks column {name} of table {table}; it has {listed_columns(source.columns)}"
    )
