"""The two states that `eventlog compare` is given, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from eventlog.compare.files import StateFile, files_of, read_file
from eventlog.compare.lines import DifferenceLines, differences, in_order
from eventlog.compare.segments import TableSide, differing_rows
from eventlog.compare.table_snapshot import TableSnapshot, at_hand, snapshot
from eventlog.core.errors import InvalidTables, Misuse, Refused
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import Advance, check_inputs
from eventlog.files.limits import Limits
from eventlog.opening.published import among
from eventlog.sql.connect import connect

TableDifferences = tuple[Tables, Iterator[str | Refused]]  # sorted lines of `changes`
Batches = Callable[[], Iterator[pa.RecordBatch]]
Rows = Batches | TableSide
RowsOfSides = tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]
ReadSides = Callable[[], RowsOfSides]


class NoKeys(Misuse):
    """which columns are the key? State them in a tables file"""


def compare_sides(
    stack: ExitStack, sides: Sequence[Side], tables: Tables | None, keep: str | None, memory: int
) -> TableDifferences:
    """Return the tables, and the differences between their sides."""
    pairs = _pairs(tables, *sides)
    model = Tables(among([table for table, *_ in pairs]), tables.dialect if tables else None)
    readers: list[tuple[Table, ReadSides]] = (
        [(table, partial(_rows_of_sides, before, after)) for table, before, after in pairs]
        if keep is None
        else [stack.enter_context(_keeping(keep, pairs))]
    )
    return model, in_order(model, _differences(model, readers, sides, memory), memory)


def starts_empty(before: str, keep: str | None) -> bool:
    """Return whether A is the file that will be kept and does not exist yet, so that it is empty."""
    return keep is not None and Path(before).absolute() == Path(keep).absolute() and not Path(before).exists()


@contextmanager
def _keeping(name: str, pairs: Sequence[tuple[Table, Rows, Rows]]) -> Iterator[tuple[Table, ReadSides]]:
    """Return the pair of sides; all rows of the second are read, because they are kept."""
    if len(pairs) > 1:
        raise Misuse("--keep: a file holds the rows of one table, and several are compared")
    ((table, before, after),) = pairs
    with StateFile(name, table) as state_file:
        yield table, lambda: (_all(before), state_file.write_through(_all(after)))


def _rows_of_sides(before: Rows, after: Rows) -> RowsOfSides:
    """Return the rows of both sides; of two tables in databases those that can differ."""
    if isinstance(before, TableSide) and isinstance(after, TableSide):
        return differing_rows(before, after)
    return _all(before), _all(after)


def _all(rows: Rows) -> Iterator[pa.RecordBatch]:
    return rows.rows() if isinstance(rows, TableSide) else rows()


class Side:
    """One of the two states."""

    def __init__(
        self,
        name: str,
        url: str | None,
        container: str | None,
        limits: Limits,
        advance: Advance,
        stack: ExitStack,
        table: str | None,
        *,
        is_empty: bool,
    ) -> None:
        self.name = name
        self._container = container
        self._limits = limits
        self._advance = advance
        self._table_name = table
        self._snapshot: TableSnapshot | None = None
        self.is_empty = is_empty
        if is_empty:
            return
        if not Path(name).exists():
            if url is None:
                raise Misuse(f"{name}: no such file; if it is a table, give its database with --url")
            self._snapshot = stack.enter_context(snapshot(connect(url)))
        elif not Path(name).is_dir():
            check_inputs([name])

    @property
    def of_catalogue(self) -> Table | None:
        """The table as the catalogue describes it, None where the side is in files."""
        return None if self._snapshot is None else at_hand(self._snapshot.connection, self.name).table

    def batches(self, tables: Tables) -> Mapping[Table, Rows]:
        """Return a reader for the rows of each table of the side."""
        if self.is_empty:
            return {table: lambda: iter(()) for table in tables}
        if self._snapshot is None:
            files = files_of(self.name, tables, self._table_name)
            return {table: self._reading(table, file) for table, file in files.items()}
        (table,) = (tables.get(self._table_name),) if self._table_name else _table_named(tables, self.name)
        connection = self._snapshot.connection
        catalogued = at_hand(connection, self.name, None)
        readable = at_hand(connection, self.name, table)
        self._snapshot.add(readable)
        return {table: TableSide(connection, table, readable, catalogued.table)}

    def end(self) -> None:
        """Raise TablesChanged if DDL changed the table while it was read."""
        if self._snapshot is not None:
            self._snapshot.end()

    def _reading(self, table: Table, file: str) -> Batches:
        return lambda: read_file(table, file, self._container, self._advance, self._limits)


def _table_named(tables: Tables, name: str) -> tuple[Table]:
    """Return the table that a name means."""
    table = tables.find(name) or tables.find(name.rpartition(".")[2])
    if table is None and len(tables) == 1:
        (table,) = tables
    if table is None:
        raise Misuse(f"{name}: which table of the tables file is that? Give --table TABLE")
    return (table,)


def _pairs(tables: Tables | None, before_side: Side, after_side: Side) -> list[tuple[Table, Rows, Rows]]:
    """Return each table with both of its sides; a folder that lacks a table's file is an error."""
    if tables is None:
        catalogue_table = after_side.of_catalogue or before_side.of_catalogue
        if catalogue_table is None:
            raise NoKeys
        tables = Tables([catalogue_table])
    after = after_side.batches(tables)
    before = before_side.batches(Tables(after) if before_side.is_empty else tables)
    for side, missing_tables in (
        (after_side, before.keys() - after.keys()),
        (before_side, after.keys() - before.keys()),
    ):
        for table in missing_tables:
            raise Misuse(f"{side.name} has no rows of {table}")
    for table in after:
        if not table.key:
            raise InvalidTables(f"table {table} has no key: its rows cannot be distinguished")
    return [(table, before[table], after[table]) for table in after]


def _differences(
    model: Tables, pairs: Iterable[tuple[Table, ReadSides]], states: Sequence[Side], memory: int
) -> Iterator[tuple[Table, DifferenceLines]]:
    for table, sides in pairs:
        published_table = model.get(str(table))
        for line in differences(model, published_table, *sides(), memory):
            yield published_table, line
    for state in states:
        state.end()
