"""A table of the target as changes see it: which cells a change gives its row, and by which key.

`TableTarget.steps` reads one change. `row_changes_of` reads a block, the changes of one table with the same
columns, column by column, with the same result. It leaves changes that need a closer look to `steps`: a key
that changes or is missing, an unusual value, a column that the table lacks.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import itemgetter
from types import NoneType
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Absent, Change, Op, Side, Value
from eventlog.core.errors import EventlogError, NotExpressible
from eventlog.core.tables import Table
from eventlog.targets.tables.cells import Cell, Cells, ToCell, ToColumn
from eventlog.targets.tables.outcomes import NoColumn, NoKnownKey

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
    defaults: frozenset[int] = frozenset()  # columns that take more than null where nothing is supplied
    source: Table | None = None  # the tables file's, or what else describes the source
    lenient: bool = False  # columns that the target lacks are left out of changes
    to_columns: tuple[ToColumn, ...] = ()  # of each column, for many values at once
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

    @cached_property
    def _keys(self) -> dict[tuple[str, ...], Sequence[int | None]]:
        return {}

    def missing_columns(self, change: Change) -> tuple[str, ...]:
        """Return the columns that a change supplies and the target does not have."""
        if change.op in (Op.DELETE, Op.TRUNCATE) or self.lenient:
            return ()
        return self.layout_of(tuple([field[0] for field in change.fields])).unknown

    def steps(self, change: Change) -> tuple[Step, ...]:
        """Return what a change does, step by step; raise an EventlogError if it is impossible."""
        if change.op is Op.TRUNCATE:
            return (Truncation(self, change),)
        if change.raw is not None:
            raise NotExpressible("its row images could not be decoded")
        layout = self.layout_of(tuple([field[0] for field in change.fields]))
        key = self._key_of(change, layout)
        if change.op is Op.DELETE:
            return (RowChange(RowAction.DELETE, self, key, (), change),)
        if layout.unknown and not self.lenient:
            raise NoColumn(str(self), ", ".join(layout.unknown))
        cells = self._cells(change, layout)
        for place, cell in zip(self.key, key, strict=True):
            cells[place] = cell
        if change.op is not Op.UPDATE:
            return (RowChange(RowAction.WRITE, self, key, cells, change),)
        complete = ABSENT not in cells or all(cells[place] is not ABSENT for place in self.complete_places)
        key_before = self._old_key(key, change, layout)
        if key_before == key:
            return (RowChange(RowAction.WRITE if complete else RowAction.UPDATE, self, key, cells, change),)
        if not complete:
            return (KeyChange(self, key_before, key, cells, change),)
        return RowChange(RowAction.DELETE, self, key_before, (), change), RowChange(
            RowAction.WRITE, self, key, cells, change
        )

    def _cells(self, change: Change, layout: FieldLayout) -> list[Cell | Absent]:
        cells: list[Cell | Absent] = [ABSENT] * len(self.to_cells)
        try:
            for (place, to_cell), (_, _, after) in zip(layout.entries, change.fields, strict=True):
                if after is not ABSENT and to_cell is not None:
                    cell = to_cell(after)
                    if change.op is not Op.UPDATE and cells[place] not in (ABSENT, cell):
                        raise NotExpressible("a column holds one value, and the change has several")
                    cells[place] = cell
        except EventlogError as fault:
            raise NotExpressible(f"{self.columns[place]}: {fault}") from None
        return cells

    def _cell(self, place: int, to_cell: ToCell, value: Value) -> Cell:
        try:
            return to_cell(value)
        except EventlogError as fault:
            raise NotExpressible(f"{self.columns[place]}: {fault}") from None

    def _key_of(self, change: Change, layout: FieldLayout) -> RowKey:
        """Return the cells of the target's key, from the change's key or else from its fields."""
        if not self.key:
            raise NoKnownKey(str(self))
        places = self.key_places(tuple([name for name, _ in change.key]))
        values_by_place: dict[int | None, Side] = {
            place: value for place, (_, value) in zip(places, change.key, strict=True)
        }
        for number, place in layout.keyed:
            if place not in values_by_place:
                _, before, after = change.fields[number]
                values_by_place[place] = before if after is ABSENT else after
        key_cells = []
        for place in self.key:
            value = values_by_place.get(place, ABSENT)
            cell = None if value is ABSENT else self._cell(place, self.to_cells[place], value)
            if cell is None:
                raise NotExpressible(f"it has no value for {self.columns[place]}, a key column of {self}")
            key_cells.append(cell)
        return tuple(key_cells)

    def key_places(self, names: tuple[str, ...]) -> Sequence[int | None]:
        """Return the columns of these names, as far as there are such."""
        places = self._keys.get(names)
        if places is None:
            columns = [self.table.column(name) for name in names]
            places = self._keys[names] = [None if c is None else self.places[c.name] for c in columns]
        return places

    def _old_key(self, key: RowKey, change: Change, layout: FieldLayout) -> RowKey:
        """Return the key before the change, from old values among the fields."""
        values = [(place, change.fields[number][1]) for number, place in layout.keyed]
        if all(before is ABSENT or before is None for _, before in values):
            return key
        cells_by_place = dict(zip(self.key, key, strict=True))
        for place, before in values:
            if before is not ABSENT and before is not None:
                cells_by_place[place] = self._cell(place, self.to_cells[place], before)
        return tuple(cells_by_place.values())

    def layout_of(self, names: tuple[str, ...]) -> FieldLayout:
        """Return the positions of fields of these names in rows."""
        layout = self._layouts.get(names)
        if layout is None:
            if len(self._layouts) > _LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[names] = self._make_layout(names)
        return layout

    def _make_layout(self, names: Sequence[str]) -> FieldLayout:
        entries: list[tuple[int, ToCell | None]] = []
        unknown: dict[str, None] = {}
        for name in names:
            column = self.table.column(name)
            place = None if column is None else self.places[column.name]
            entries.append((0, None) if place is None else (place, self.to_cells[place]))
            if column is None and (self.computed is None or self.computed.column(name) is None):
                unknown[name] = None
        keyed = [(n, e[0]) for n, e in enumerate(entries) if e[1] is not None and e[0] in self.key]
        return FieldLayout(tuple(entries), tuple(keyed), tuple(unknown))


class FieldLayout(NamedTuple):
    """The positions of the fields of changes in the rows of a table."""

    entries: tuple[tuple[int, ToCell | None], ...]  # the place of each, and what makes its cell
    keyed: tuple[tuple[int, int], ...]  # the fields that are columns of the key, with their places
    unknown: tuple[str, ...]


_LAYOUTS = 1_000  # that are kept, whatever changes hold


NEW = frozenset((Op.INSERT, Op.SNAPSHOT))  # changes that make a row
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


def row_changes_of(target: TableTarget, block: Block) -> Sequence[RowChange | None]:
    """Return what each change of a block does; None for those that `TableTarget.steps` handles."""
    return (
        _Reading(target, block).row_changes()
        if can_read_by_column(target, block)
        else [None] * len(block.changes)
    )


def new_rows(target: TableTarget, block: Block) -> Sequence[Cells] | None:
    """Return the columns of the rows that a block makes; None unless each of its changes makes a
    whole one.
    """
    if block.op not in NEW or not can_read_by_column(target, block):
        return None
    reading = _Reading(target, block)
    columns = reading.columns(reading.keys())
    complete_places = all(Absent not in set(map(type, cells)) for cells in columns)
    return columns if complete_places and not reading.row_wise else None


def can_read_by_column(target: TableTarget, block: Block) -> bool:
    """Return whether the changes of a block can be read by column."""
    layout = target.layout_of(block.names)
    places = [place for place, to_cell in layout.entries if to_cell is not None]
    if block.op is Op.TRUNCATE or not (target.to_columns and target.key) or len(set(places)) < len(places):
        return False
    return not layout.unknown or target.lenient or block.op is Op.DELETE


class _Reading:
    """One block on its way to row_changes."""

    def __init__(self, target: TableTarget, block: Block) -> None:
        self._goal = target
        self._block = block
        self._layout = target.layout_of(block.names)
        self._fields = list(zip(*[change.fields for change in block.changes], strict=True))
        self.row_wise = {n for n, change in enumerate(block.changes) if change.raw is not None}

    def row_changes(self) -> Sequence[RowChange | None]:
        """Return what each change does."""
        block, target = self._block, self._goal
        keys = self.keys()
        actions: Iterable[RowAction] = repeat(RowAction.DELETE)
        rows: Iterable[Cells] = repeat(())
        if block.op is not Op.DELETE:
            columns = self.columns(keys)
            rows = zip(*columns, strict=True)
            actions = self._actions(columns, keys)
        act_fields = zip(actions, repeat(target), zip(*keys.values(), strict=True), rows, block.changes)
        row_changes: list[RowChange | None] = list(map(RowChange._make, act_fields))
        for number in self.row_wise:
            row_changes[number] = None
        return row_changes

    def keys(self) -> dict[int, Cells]:
        """Return the columns of the key, by their places."""
        return {place: self._key_column(place) for place in self._goal.key}

    def columns(self, keys: dict[int, Cells]) -> Sequence[Cells]:
        """Return the columns of the rows."""
        supplied = self._supplied() | keys
        absent_cells = [ABSENT] * len(self._block.changes)
        return [supplied.get(place, absent_cells) for place in range(len(self._goal.columns))]

    def _cells(self, place: int, values: Sequence[Side]) -> Cells:
        """Return the cells of a column; changes whose value it refuses are others' to answer."""
        plain = self._goal.to_columns[place](values)
        if plain is not None:
            return plain
        to_cell = self._goal.to_cells[place]
        cells: list[Cell | Absent] = []
        for number, value in enumerate(values):
            try:
                cells.append(value if isinstance(value, Absent) else to_cell(value))
            except EventlogError:
                self.row_wise.add(number)
                cells.append(None)
        return cells

    def _key_column(self, place: int) -> Cells:
        """Return the cells of a column of the key, from the changes' keys or else from their fields."""
        block = self._block
        numbers_by_place = {at: number for number, at in enumerate(self._goal.key_places(block.key_names))}
        number = numbers_by_place.get(place)
        if number is not None:
            values = [change.key[number][1] for change in block.changes]
        else:
            field = next((n for n, at in self._layout.keyed if at == place), None)
            if field is None:
                self.row_wise.update(range(len(block.changes)))
                return [None] * len(block.changes)
            values = [before if after is ABSENT else after for _, before, after in self._fields[field]]
        cells = self._cells(place, values)
        if not _NO_VALUE.isdisjoint(map(type, cells)):
            self.row_wise.update(n for n, cell in enumerate(cells) if cell is None or cell is ABSENT)
        return cells

    def _supplied(self) -> dict[int, Cells]:
        """Return the cells that fields supply, by their places."""
        return {
            place: self._cells(place, list(map(_AFTER, fields)))
            for (place, to_cell), fields in zip(self._layout.entries, self._fields, strict=True)
            if to_cell is not None
        }

    def _actions(self, columns: Sequence[Cells], keys: dict[int, Cells]) -> Iterable[RowAction]:
        if self._block.op is not Op.UPDATE:
            return repeat(RowAction.WRITE)
        self._exclude_key_changes(keys)
        sparse = [cells for n in self._goal.complete_places if Absent in set(map(type, cells := columns[n]))]
        if not sparse:
            return repeat(RowAction.WRITE)
        return [
            RowAction.UPDATE if ABSENT in cells else RowAction.WRITE for cells in zip(*sparse, strict=True)
        ]

    def _exclude_key_changes(self, keys: dict[int, Cells]) -> None:
        """Leave changes of a key to `TableTarget.steps`."""
        for number, place in self._layout.keyed:
            befores = list(map(_BEFORE, self._fields[number]))
            if set(map(type, befores)) <= _NO_VALUE:
                continue
            cells_before = self._cells(place, befores)
            for n, (cell, key) in enumerate(zip(cells_before, keys[place], strict=True)):
                if cell != key and cell is not ABSENT and befores[n] is not None:
                    self.row_wise.add(n)
