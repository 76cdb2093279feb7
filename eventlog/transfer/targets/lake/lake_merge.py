"""The net effect of changes on one table, as one commit of it: a merge by the key, or all rows anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from eventlog.core.change import ABSENT
from eventlog.transfer.targets.lake.lake_place import LakeCommit, RowChanges
from eventlog.transfer.targets.lake.lake_tables import LakeTable
from eventlog.transfer.targets.lake.lake_types import array_of, cells_in
from eventlog.transfer.targets.tables.cells import Cells
from eventlog.transfer.targets.tables.net_effect import COUNTED, NetEffect
from eventlog.transfer.targets.tables.table import RowKey, Step


class TableEffect:
    """The net effect of steps on a table in one version of it."""

    def __init__(self, table: LakeTable, steps: Sequence[Step], *, insert: bool) -> None:
        self._table = table
        self._target = table.target
        self._net, self.absent = self._settled(steps, insert=insert)
        self.unmet = self._net.unmet
        self._effects = [effect for effect in self._net.effects.values() if effect.write or effect.deletion]
        self._fill_moved()

    @property
    def is_nothing(self) -> bool:
        """Return whether the table stays as it is."""
        return not self._effects and not self._net.is_emptied

    def commit(self, commit: LakeCommit) -> int:
        """Commit the effect, and return the version."""
        if self._net.is_emptied and not self._keeps_deleted:
            self._effects = [effect for effect in self._effects if effect.write]
            columns = zip(self._target.columns, self._table.types, self._columns, strict=True)
            rows = pa.table({name: array_of(of, cells) for name, of, cells in columns})
            return self._table.snapshot.replace(rows, commit)
        return self._table.snapshot.merge(self._changes(), commit)

    @property
    def _keeps_deleted(self) -> bool:
        return self._table.snapshot.keeps_deleted

    def _settled(self, steps: Sequence[Step], *, insert: bool) -> tuple[NetEffect, int]:
        """Return the net effect, and how many of the rows that it deletes were not there."""
        net = NetEffect(steps, insert=insert)
        counted = [effect.key for effect in net.effects.values() if effect.deletion == COUNTED]
        missing = self._missing({*net.keys_to_check, *counted})
        if not net.is_settled(missing.intersection(net.keys_to_check)):
            net = NetEffect(steps, missing, insert=insert)
        counted = [effect.key for effect in net.effects.values() if effect.deletion == COUNTED]
        return net, net.absent + len(missing.intersection(counted))

    def _missing(self, keys: set[RowKey]) -> set[RowKey]:
        return keys - self._current(keys, ()).keys() if keys else set()

    def _current(self, keys: Iterable[RowKey], places: Sequence[int]) -> dict[RowKey, Cells]:
        """Return the cells at some places of the rows with these keys."""
        key_set, key = set(keys), self._target.key
        names, types = self._target.columns, self._table.types
        values = zip(key, map(set, zip(*key_set, strict=True)), strict=True)
        within = {names[place]: array_of(types[place], list(cells)) for place, cells in values}
        rows = self._table.snapshot.rows([names[place] for place in (*key, *places)], within)
        columns = [cells_in(types[at], rows.column(n)) for n, at in enumerate((*key, *places))]
        by_row = zip(*columns, strict=True)
        return {cells[: len(key)]: cells[len(key) :] for cells in by_row if cells[: len(key)] in key_set}

    def _fill_moved(self) -> None:
        """Give rows that took another key what no change supplied, as the table has it."""
        moved = {effect.before: effect for effect in self._effects if effect.before is not None}
        if not moved:
            return
        absent = {n for effect in moved.values() for n, cell in enumerate(effect.cells) if cell is ABSENT}
        places = sorted(absent)
        current = self._current(moved, places)
        for key, effect in moved.items():
            before = dict(zip(places, current[key], strict=True))
            effect.cells = [before[n] if cell is ABSENT else cell for n, cell in enumerate(effect.cells)]

    @cached_property
    def _columns(self) -> Sequence[Sequence[Any]]:
        """The cells of the effects, column by column; a row that is gone has its key."""
        rows = [effect.cells or self._target.key_row(effect.key) for effect in self._effects]
        return list(zip(*rows, strict=True)) or [()] * len(self._target.columns)

    @cached_property
    def _supplied(self) -> Sequence[int]:
        """The places outside the key of columns that a change supplies, or that lose their value."""
        everything = self._keeps_deleted or any(e.deletion and e.write for e in self._effects)
        return [
            place
            for place, cells in enumerate(self._columns)
            if place not in self._target.key and (everything or any(cell is not ABSENT for cell in cells))
        ]

    def _changes(self) -> RowChanges:
        """Return what is done to rows: their cells, whether each is supplied, and what happens."""
        effects, types, columns = self._effects, self._table.types, self._columns
        rows = {"w": pa.array([effect.write for effect in effects], pa.string())}
        replaced = [self._net.is_emptied or bool(effect.deletion) for effect in effects]
        for place in (*self._target.key, *self._supplied):
            rows[f"c{place}"] = array_of(types[place], columns[place])
        for place in self._supplied:
            pairs = zip(replaced, columns[place], strict=True)
            supplied = [is_replaced or cell is not ABSENT for is_replaced, cell in pairs]
            rows[f"s{place}"] = pa.array(supplied, pa.bool_())
        names = self._target.columns
        key = {place: names[place] for place in self._target.key}
        supplied_names = {place: names[place] for place in self._supplied}
        return RowChanges(pa.table(rows), key, supplied_names, self._net.is_emptied)
