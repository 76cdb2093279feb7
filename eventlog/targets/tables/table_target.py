"""A table of the target as changes see it: which cells a change gives its row, and by which key."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from eventlog.core.change import ABSENT, Absent, Change, Op, Side, Value
from eventlog.core.errors import EventlogError, NotExpressible
from eventlog.core.tables import Table
from eventlog.targets.tables.cell_columns import ToColumn
from eventlog.targets.tables.cells import Cell, Cells, ToCell
from eventlog.targets.tables.errors import NoColumn, NoKnownKey

RowKey = tuple[Cell, ...]


class RowAction(enum.Enum):
    """The kind of effect on one row."""

    WRITE = "the row is there, with these values"
    UPDATE = "the row, which is there, takes these values"
    DELETE = "the row is gone"

    __hash__ = object.__hash__  # an Enum's own is written in Python


class Act(NamedTuple):
    """The effect of one change on one row."""

    action: RowAction
    target: TableTarget
    key: RowKey
    cells: Cells  # by the goal's columns; ABSENT for what was not supplied
    change: Change


class Emptied(NamedTuple):
    """Every row of a table is gone."""

    target: TableTarget
    change: Change


class Moved(NamedTuple):
    """A row takes another key and keeps the values that the change does not supply."""

    target: TableTarget
    key_before: RowKey
    key: RowKey
    cells: Cells
    change: Change


Step = Act | Emptied | Moved


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
            return (Emptied(self, change),)
        if change.raw is not None:
            raise NotExpressible("its row images could not be decoded")
        layout = self.layout_of(tuple([field[0] for field in change.fields]))
        key = self._key_of(change, layout)
        if change.op is Op.DELETE:
            return (Act(RowAction.DELETE, self, key, (), change),)
        if layout.unknown and not self.lenient:
            raise NoColumn(str(self), ", ".join(layout.unknown))
        cells = self._cells(change, layout)
        for place, cell in zip(self.key, key, strict=True):
            cells[place] = cell
        if change.op is not Op.UPDATE:
            return (Act(RowAction.WRITE, self, key, cells, change),)
        complete = ABSENT not in cells or all(cells[place] is not ABSENT for place in self.complete_places)
        key_before = self._old_key(key, change, layout)
        if key_before == key:
            return (Act(RowAction.WRITE if complete else RowAction.UPDATE, self, key, cells, change),)
        if not complete:
            return (Moved(self, key_before, key, cells, change),)
        return Act(RowAction.DELETE, self, key_before, (), change), Act(
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
