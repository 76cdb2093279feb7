"""The net effect of many changes on one table, in a database or in a lake.

For each column of a row counts the last value that was supplied since the last delete. A row that took
another key keeps what no change supplied; the table has it under the key before the changes. So swaps and
chains of keys need no order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from eventlog.core.change import ABSENT, Change, Op
from eventlog.transfer.targets.tables.cells import Cells
from eventlog.transfer.targets.tables.table import KeyChange, RowAction, RowChange, RowKey, Step

COUNTED, SILENT = "d", "f"  # how a row is deleted: counted as missing if it was not there, or not
_UNTOUCHED = "?"  # by the steps so far


class RowEffect:
    """The effect on the row of one key: the row that was there is deleted, then one is written or changed."""

    __slots__ = ("cells", "deletion", "key", "origin", "requires_row", "write")

    def __init__(self, key: RowKey, origin: RowKey | None, write: str) -> None:
        self.key = key
        self.origin = origin  # the key that the row had before; None for a new row
        self.write = write  # "w": the row is there; "u": the one that was there is changed; "": there is none
        self.cells: Cells = ()
        self.deletion = ""
        self.requires_row = False  # the effect is another one if the table lacks the row

    @property
    def before(self) -> RowKey | None:
        """The key under which the table has the cells that a moved row was not supplied with."""
        is_sparse = self.origin is not None and self.origin != self.key and ABSENT in self.cells
        return self.origin if is_sparse else None

    @property
    def is_checked(self) -> bool:
        """Return whether it may matter that the table lacks the row."""
        return self.requires_row or self.deletion == SILENT

    def put(self, cells: Cells, write: str, origin: RowKey | None) -> None:
        """Put a row under this key."""
        self.cells, self.write, self.origin = cells, write, origin

    def delete(self, deletion: str = SILENT) -> None:
        """Delete the row of this key."""
        self.cells, self.write, self.deletion = (), "", self.deletion or deletion


class NetEffect:
    """The net effect of steps on one table: rows are deleted, the table is emptied, rows are written.

    The table lacks the rows of the keys `missing`. With `insert`, an update of a missing row makes it.
    """

    def __init__(
        self, steps: Iterable[Step], missing: Collection[RowKey] = (), *, insert: bool = False
    ) -> None:
        self.is_emptied = False
        self.effects: dict[RowKey, RowEffect] = {}
        self.unmet: list[Change] = []  # updates of rows that are not there
        self.absent = 0  # deletes of rows that are not there, without those that are COUNTED
        self._missing = missing
        self._insert = insert
        for step in steps:
            if isinstance(step, RowChange):
                self._change(step)
            elif isinstance(step, KeyChange):
                self._move(step)
            else:
                self._empty()

    @property
    def keys_to_check(self) -> Sequence[RowKey]:
        """The keys whose rows the table may lack."""
        return [effect.key for effect in self.effects.values() if effect.is_checked]

    def is_settled(self, missing: Iterable[RowKey]) -> bool:
        """Return whether the effect is the same if the table lacks these of the keys to check."""
        return not any(self.effects[key].requires_row for key in missing)

    def _change(self, step: RowChange) -> None:
        action, _, key, cells, change = step
        effect = self.effects.get(key) or self._effect(key)
        if not effect.write:
            self._change_missing(step, effect)
        elif action is RowAction.DELETE:
            is_counted = effect.write == _UNTOUCHED and change.op is Op.DELETE
            effect.delete(COUNTED if is_counted else SILENT)
        else:
            if effect.write == _UNTOUCHED:
                effect.write = "w" if action is RowAction.WRITE else "u"
                effect.requires_row = action is RowAction.UPDATE
            effect.cells = _merged(effect.cells, cells) if effect.cells else cells

    def _change_missing(self, step: RowChange, effect: RowEffect) -> None:
        if step.action is RowAction.DELETE:
            self.absent += step.change.op is Op.DELETE
        elif step.action is RowAction.WRITE or self._insert:
            effect.put(step.cells, "w", None)
        else:
            self.unmet.append(step.change)

    def _move(self, step: KeyChange) -> None:
        effect = self._effect(step.key_before)
        if effect.write:
            effect.requires_row |= effect.write == _UNTOUCHED
            self._move_row(effect, step)
        elif self._insert:
            self._change(RowChange(RowAction.WRITE, step.target, step.key, step.cells, step.change))
        else:
            self.unmet.append(step.change)

    def _move_row(self, effect: RowEffect, step: KeyChange) -> None:
        """Give a row another key; the row that has this key is deleted."""
        origin, cells = effect.origin, _merged(effect.cells or step.cells, step.cells)
        effect.delete()
        moved = self._effect(step.key)
        moved.delete()
        moved.put(cells, "w", origin)
        if origin == step.key:  # it is back, and was never deleted
            moved.deletion = ""
        if moved.before is not None:
            self.effects[moved.before].requires_row = True

    def _empty(self) -> None:
        self.is_emptied = True
        for effect in self.effects.values():
            effect.put((), "", None)

    def _effect(self, key: RowKey) -> RowEffect:
        effect = self.effects.get(key)
        if effect is None:
            is_missing = self.is_emptied or key in self._missing
            effect = RowEffect(key, None, "") if is_missing else RowEffect(key, key, _UNTOUCHED)
            self.effects[key] = effect
        return effect


def _merged(cells: Cells, new_cells: Cells) -> Cells:
    """Return cells with what a later change supplies."""
    pairs = zip(cells, new_cells, strict=True)
    return [cell if new_cell is ABSENT else new_cell for cell, new_cell in pairs]
