"""The steps of many changes at once, by column, with the same result as `TableTarget.steps` for each.

A block is the changes of one table with the same columns. Changes that need a closer look are handled one by
one: a key that changes or is missing, an unusual value, a column that the table lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from types import NoneType
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Absent, Change, Op, Side
from eventlog.core.errors import EventlogError
from eventlog.targets.tables.cells import Cell, Cells
from eventlog.targets.tables.table_target import Act, RowAction, TableTarget

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


def acts_of(target: TableTarget, block: Block) -> Sequence[Act | None]:
    """Return what each change of a block does; None for those that `TableTarget.steps` handles."""
    return (
        _Reading(target, block).acts() if can_read_by_column(target, block) else [None] * len(block.changes)
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
    """One block on its way to acts."""

    def __init__(self, target: TableTarget, block: Block) -> None:
        self._goal = target
        self._block = block
        self._layout = target.layout_of(block.names)
        self._fields = list(zip(*[change.fields for change in block.changes], strict=True))
        self.row_wise = {n for n, change in enumerate(block.changes) if change.raw is not None}

    def acts(self) -> Sequence[Act | None]:
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
        acts: list[Act | None] = list(map(Act._make, act_fields))
        for number in self.row_wise:
            acts[number] = None
        return acts

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
