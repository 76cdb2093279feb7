"""A table of the target as changes see it: which cells a change gives its row, and by which key.

Changes are read in blocks, those of one table with the same columns together, column by column.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import itemgetter
from shlex import quote
from types import NoneType
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Absent, Change, Op, Side
from eventlog.core.errors import EventlogError, NotExpressible
from eventlog.core.tables import Table
from eventlog.transfer.targets.tables.cells import Cell, Cells, ToCell, ToColumn
from eventlog.transfer.targets.tables.outcomes import NoColumn, NoKnownKey

RowKey = tuple[Cell, ...]


class RowAction(enum.Enum):
    """The kind of effect on one row."""

    WRITE = "the row is there, with these values"
    UPDATE = "the row, which is there, takes these values"
    DELETE = "the row is gone"

    __hash__ = object.__hash__  # an Enum's own is written in Python


class RowChange(NamedTuple):
    """The effect of one change on one row."""

    action: RowAction
    target: TableTarget
    key: RowKey
    cells: Cells  # by the goal's columns; ABSENT for what was not supplied
    change: Change


class Truncation(NamedTuple):
    """Every row of a table is gone."""

    target: TableTarget
    change: Change


class KeyChange(NamedTuple):
    """A row takes another key and keeps the values that the change does not supply."""

    target: TableTarget
    key_before: RowKey
    key: RowKey
    cells: Cells
    change: Change


Step = RowChange | Truncation | KeyChange


@dataclass(frozen=True, eq=False)
class TableTarget:
    """A table of the target."""

    table: Table  # from the target's catalogue, without computed columns
    name: str  # quoted, with its schema
    to_cells: tuple[ToCell, ...]  # of each column
    to_columns: tuple[ToColumn, ...]  # of each column, for many values at once
    defaults: frozenset[int] = frozenset()  # columns that take more than null where nothing is supplied
    source: Table | None = None  # the tables file's, or what else describes the source
    lenient: bool = False  # columns that the target lacks are left out of changes
    computed: Table | None = None  # the columns that the target computes itself; changes of them are ignored

    def __str__(self) -> str:
        return str(self.table)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.columns)

    @cached_property
    def key(self) -> tuple[int, ...]:
        """The places of the key's columns."""
        return tuple(self.columns.index(name) for name in self.table.key)

    def key_row(self, key: RowKey) -> Cells:
        """Return the cells of a row that has no more than its key."""
        cells: list[Cell | Absent] = [ABSENT] * len(self.columns)
        for place, cell in zip(self.key, key, strict=True):
            cells[place] = cell
        return cells

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.columns)}

    @cached_property
    def complete_places(self) -> frozenset[int]:
        """The columns of a complete row: those of the source, where they are known."""
        if self.source is None or not self.source.columns:
            return frozenset(range(len(self.columns)))
        source_columns = (self.table.column(name) for name in self.source.columns)
        return frozenset(self.places[column.name] for column in source_columns if column is not None)

    @cached_property
    def _layouts(self) -> dict[tuple[str, ...], FieldLayout]:
        return {}

    def missing_columns(self, block: Block) -> tuple[str, ...]:
        """Return the columns that changes supply and the target does not have."""
        if block.op in (Op.DELETE, Op.TRUNCATE) or self.lenient:
            return ()
        return self.layout_of(block.names).unknown

    def layout_of(self, names: tuple[str, ...]) -> FieldLayout:
        """Return the positions of fields of these names in rows."""
        layout = self._layouts.get(names)
        if layout is None:
            if len(self._layouts) > _LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[names] = self._make_layout(names)
        return layout

    def _make_layout(self, names: Sequence[str]) -> FieldLayout:
        columns = [self.table.column(name) for name in names]
        places = tuple(None if column is None else self.places[column.name] for column in columns)
        keyed = tuple((number, place) for number, place in enumerate(places) if place in self.key)
        missing = (name for name, place in zip(names, places, strict=True) if place is None)
        computed = self.computed
        unknown = dict.fromkeys(name for name in missing if computed is None or computed.column(name) is None)
        return FieldLayout(places, keyed, tuple(unknown))


class FieldLayout(NamedTuple):
    """The positions of the fields of changes in the rows of a table."""

    places: tuple[int | None, ...]  # of each; None where the table has no such column
    keyed: tuple[tuple[int, int], ...]  # the fields that are columns of the key, with their places
    unknown: tuple[str, ...]


_LAYOUTS = 1_000  # that are kept, whatever changes hold


_NEW = frozenset((Op.INSERT, Op.SNAPSHOT))  # changes that make a row
_NO_VALUE = frozenset((NoneType, Absent))


class Block(NamedTuple):
    """A block of changes of one kind, of one table, with the same columns."""

    op: Op
    key_names: tuple[str, ...]
    names: tuple[str, ...]
    numbers: list[int]  # of the changes, among all
    changes: list[Change]


def blocks_of(changes: Iterable[Change]) -> list[Block]:
    """Return changes as blocks, in the order of the first change of each."""
    blocks: dict[tuple[Any, ...], Block] = {}
    shape: tuple[Any, ...] = ()
    for number, change in enumerate(changes):
        op, schema, table, key, fields = change[:5]
        change_shape = op, schema, table, tuple(map(_FIRST, key)), tuple(map(_FIRST, fields))
        if change_shape != shape:
            shape = change_shape
            block = blocks.get(shape) or blocks.setdefault(shape, Block(op, *shape[3:], [], []))
            add_number, add = block.numbers.append, block.changes.append
        add_number(number)
        add(change)
    return list(blocks.values())


_FIRST, _BEFORE, _AFTER = itemgetter(0), itemgetter(1), itemgetter(2)


class BlockReading:
    """The changes of a block as effects on rows of their table; `faults` has why some are impossible."""

    def __init__(self, target: TableTarget, block: Block) -> None:
        self.target = target
        self.block = block
        self.faults: dict[int, EventlogError] = {}  # by the place in the block; the first counts
        self._layout = target.layout_of(block.names)
        self._fields = list(zip(*[change.fields for change in block.changes], strict=True))
        self._keys: dict[int, Cells] = {}  # the columns of the key, by their places
        self._keys_before: dict[int, Cells] = {}  # before the changes, if any changes the key
        self._columns: Sequence[Cells] = ()  # of the rows
        if block.op is not Op.TRUNCATE:
            self._read()

    @property
    def is_possible(self) -> bool:
        """Return whether any of the changes is possible."""
        return len(self.faults) < len(self.block.changes)

    def new_rows(self) -> Sequence[Cells] | None:
        """Return the columns of the rows that a block makes; None unless each change makes a whole one."""
        if self.block.op not in _NEW or self.faults:
            return None
        is_whole = all(Absent not in set(map(type, cells)) for cells in self._columns)
        return self._columns if is_whole else None

    def steps(self) -> list[Sequence[Step]]:
        """Return what each change does, step by step; nothing if it is impossible."""
        if self.block.op is Op.TRUNCATE:
            return [(Truncation(self.target, change),) for change in self.block.changes]
        if not self.is_possible:
            return [()] * len(self.block.changes)
        row_changes = self._row_changes()
        steps: list[Sequence[Step]] = [(row_change,) for row_change in row_changes]
        for number, key_before in enumerate(zip(*self._keys_before.values(), strict=True)):
            if key_before != row_changes[number].key:
                steps[number] = _moved(row_changes[number], key_before)
        for number in self.faults:
            steps[number] = ()
        return steps

    def _row_changes(self) -> list[RowChange]:
        actions: Iterable[RowAction] = repeat(RowAction.DELETE)
        rows: Iterable[Cells] = repeat(())
        if self.block.op is not Op.DELETE:
            actions, rows = self._actions(), zip(*self._columns, strict=True)
        keys = zip(*self._keys.values(), strict=True)
        return list(map(RowChange._make, zip(actions, repeat(self.target), keys, rows, self.block.changes)))

    def _actions(self) -> Iterable[RowAction]:
        if self.block.op is not Op.UPDATE:
            return repeat(RowAction.WRITE)
        columns = [self._columns[place] for place in self.target.complete_places]
        sparse = [cells for cells in columns if Absent in set(map(type, cells))]
        if not sparse:
            return repeat(RowAction.WRITE)
        return [
            RowAction.UPDATE if ABSENT in cells else RowAction.WRITE for cells in zip(*sparse, strict=True)
        ]

    def _read(self) -> None:
        """Read the key, then the cells, then the key before."""
        target, block = self.target, self.block
        for number, change in enumerate(block.changes):
            if change.raw is not None:
                self._refuse(number, "its row images could not be decoded")
        if not target.key:
            self._refuse_all(NoKnownKey(target, quote(str(target))))
            return
        self._keys = {place: self._key_column(place) for place in target.key}
        if block.op is Op.DELETE:
            return
        if missing := target.missing_columns(block):
            self._refuse_all(NoColumn(str(target), ", ".join(missing)))
            return
        supplied, absent_cells = self._supplied() | self._keys, [ABSENT] * len(block.changes)
        self._columns = [supplied.get(place, absent_cells) for place in range(len(target.columns))]
        if block.op is Op.UPDATE:
            self._read_keys_before()

    def _refuse(self, number: int, why: str) -> None:
        self.faults.setdefault(number, NotExpressible(why))

    def _refuse_all(self, fault: EventlogError) -> None:
        self.faults = dict.fromkeys(range(len(self.block.changes)), fault) | self.faults

    def _key_column(self, place: int) -> Cells:
        """Return the cells of a column of the key, from the changes' keys or else from their fields."""
        changes = self.block.changes
        key_places = self.target.layout_of(self.block.key_names).places
        in_keys = {at: number for number, at in enumerate(key_places)}.get(place)
        in_fields = next((number for number, at in self._layout.keyed if at == place), None)
        values: Sequence[Side] = [ABSENT] * len(changes)
        if in_keys is not None:
            values = [change.key[in_keys][1] for change in changes]
        elif in_fields is not None:
            values = [before if after is ABSENT else after for _, before, after in self._fields[in_fields]]
        cells = self._cells(place, values)
        if not _NO_VALUE.isdisjoint(map(type, cells)):
            why = f"it has no value for {self.target.columns[place]}, a key column of {self.target}"
            for number, cell in enumerate(cells):
                if cell is None or cell is ABSENT:
                    self._refuse(number, why)
        return cells

    def _supplied(self) -> dict[int, Cells]:
        """Return the cells that fields supply, by their places."""
        supplied: dict[int, Cells] = {}
        for place, fields in zip(self._layout.places, self._fields, strict=True):
            if place is not None:
                cells = self._cells(place, list(map(_AFTER, fields)))
                supplied[place] = self._joined(place, supplied[place], cells) if place in supplied else cells
        return supplied

    def _joined(self, place: int, first_cells: Cells, cells: Cells) -> Cells:
        """Return the cells of a column that changes supply twice: the last; a new row takes but one."""
        if self.block.op is not Op.UPDATE:
            for number, (first_cell, cell) in enumerate(zip(first_cells, cells, strict=True)):
                if cell is not ABSENT and first_cell not in (ABSENT, cell):
                    several = "a column holds one value, and the change has several"
                    self._refuse(number, f"{self.target.columns[place]}: {several}")
        pairs = zip(first_cells, cells, strict=True)
        return [first_cell if cell is ABSENT else cell for first_cell, cell in pairs]

    def _read_keys_before(self) -> None:
        """Read the key before the changes, from old values among the fields."""
        for number, place in self._layout.keyed:
            befores = list(map(_BEFORE, self._fields[number]))
            if set(map(type, befores)) <= _NO_VALUE:
                continue
            self._keys_before = self._keys_before or dict(self._keys)
            trios = zip(befores, self._cells(place, befores), self._keys_before[place], strict=True)
            self._keys_before[place] = [
                key if before is None or before is ABSENT else cell for before, cell, key in trios
            ]

    def _cells(self, place: int, values: Sequence[Side]) -> Cells:
        """Return the cells of a column; a change whose value it refuses is impossible."""
        plain = self.target.to_columns[place](values)
        if plain is not None:
            return plain
        to_cell = self.target.to_cells[place]
        cells: list[Cell | Absent] = []
        for number, value in enumerate(values):
            try:
                cells.append(value if isinstance(value, Absent) else to_cell(value))
            except EventlogError as fault:
                self._refuse(number, f"{self.target.columns[place]}: {fault}")
                cells.append(None)
        return cells


def _moved(row_change: RowChange, key_before: RowKey) -> Sequence[Step]:
    action, target, key, cells, change = row_change
    if action is RowAction.UPDATE:
        return (KeyChange(target, key_before, key, cells, change),)
    return RowChange(RowAction.DELETE, target, key_before, (), change), row_change
