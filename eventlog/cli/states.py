"""The two states that `eventlog compare` is given, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from eventlog.compare.files import files_of, read_file
from eventlog.compare.kept_state import KeptState
from eventlog.compare.lines import DifferenceLine, differences, in_order
from eventlog.compare.segments import TableSide, differing_rows
from eventlog.compare.tables import TableSnapshot, at_hand, snapshot
from eventlog.core.errors import InvalidTables, Misuse, Refused
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import Advance, check_inputs
from eventlog.files.limits import Limits
from eventlog.publisher.published import among
from eventlog.sql.connect import connect

Found = tuple[Tables, Iterator[str | Refused]]  # the tables, and what changed as lines of `changes`, in order
Batches = Callable[[], Iterator[pa.RecordBatch]]
Rows = Batches | TableSide
Sides = Callable[[], tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]]  # the old rows, the new ones


class NoKeys(Misuse):
    """which columns are the key? Name a tables file that has them with --tables"""


def here(
    stack: ExitStack, sides: Sequence[GivenState], known: Tables | None, keep: str | None, memory: int
) -> Found:
    """Yield the differences between two sides that this process reads."""
    pairs = _pairs(known, *sides)
    model = Tables(among([one for one, *_ in pairs]), known.dialect if known else None)
    both: list[tuple[Table, Sides]] = (
        [(table, partial(_sides, before, after)) for table, before, after in pairs]
        if keep is None
        else [stack.enter_context(_keeping(keep, pairs))]
    )
    return model, in_order(model, _differences(model, both, sides, memory), memory)


def begins(old: str, keep: str | None) -> bool:
    """Return whether A is the file that will be kept and does not exist yet, so that it is empty."""
    return keep is not None and Path(old).absolute() == Path(keep).absolute() and not Path(old).exists()


@contextmanager
def _keeping(name: str, pairs: Sequence[tuple[Table, Rows, Rows]]) -> Iterator[tuple[Table, Sides]]:
    """The one pair of sides, the new one's rows being kept, so that all of them are read."""
    if len(pairs) > 1:
        raise Misuse("--keep: a file holds the rows of one table, and several are compared")
    ((table, old, new),) = pairs
    with KeptState(name, table) as kept:
        yield table, lambda: (_all(old), kept.passing(_all(new)))


def _sides(old: Rows, new: Rows) -> tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """Return the rows of both sides; of two tables in databases those that can differ."""
    if isinstance(old, TableSide) and isinstance(new, TableSide):
        return differing_rows(old, new)
    return _all(old), _all(new)


def _all(rows: Rows) -> Iterator[pa.RecordBatch]:
    return rows.rows() if isinstance(rows, TableSide) else rows()


class GivenState:
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
        begins: bool,
    ) -> None:
        self.name = name
        self._container = container
        self._limits = limits
        self._advance = advance
        self._only = table
        self._snapshot: TableSnapshot | None = None
        self.begins = begins  # nothing is there yet
        if begins:
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
        if self.begins:
            return {table: lambda: iter(()) for table in tables}
        if self._snapshot is None:
            found = files_of(self.name, tables, self._only)
            return {table: self._reading(table, file) for table, file in found.items()}
        (table,) = (tables.get(self._only),) if self._only else _only(tables, self.name)
        connection = self._snapshot.connection
        own, readable = (at_hand(connection, self.name, one) for one in (None, table))
        self._snapshot.add(readable)
        return {table: TableSide(connection, table, readable, own.table)}

    def end(self) -> None:
        """Raise TablesChanged if DDL changed the table while it was read."""
        if self._snapshot is not None:
            self._snapshot.end()

    def _reading(self, table: Table, file: str) -> Batches:
        return lambda: read_file(table, file, self._container, self._advance, self._limits)


def _only(tables: Tables, name: str) -> tuple[Table]:
    """Return the table that a name means."""
    found = tables.find(name) or tables.find(name.rpartition(".")[2])
    if found is None and len(tables) == 1:
        (found,) = tables
    if found is None:
        raise Misuse(f"{name}: which table of the tables file is that? Give --rows-of TABLE")
    return (found,)


def _pairs(known: Tables | None, old: GivenState, new: GivenState) -> list[tuple[Table, Rows, Rows]]:
    """Return each table with both of its sides; a folder that lacks a table's file is an error."""
    if known is None:
        own = new.of_catalogue or old.of_catalogue
        if own is None:
            raise NoKeys
        known = Tables([own])
    after = new.batches(known)
    before = old.batches(Tables(after) if old.begins else known)
    for one, other, side in ((before, after, new), (after, before, old)):
        for table in one.keys() - other.keys():
            raise Misuse(f"{side.name} has no rows of {table}")
    for table in after:
        if not table.key:
            raise InvalidTables(f"table {table} has no key: its rows cannot be distinguished")
    return [(table, before[table], after[table]) for table in after]


def _differences(
    model: Tables, pairs: Iterable[tuple[Table, Sides]], states: Sequence[GivenState], memory: int
) -> Iterator[tuple[Table, DifferenceLine]]:
    for table, sides in pairs:
        own = model.get(str(table))
        for line in differences(model, own, *sides(), memory):
            yield own, line
    for state in states:
        state.end()
