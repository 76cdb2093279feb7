"""Many changes of one row as one effect: for each column the last value that was supplied.

A row that is deleted and inserted again is replaced. Whether the row of a change exists is known from the
batch itself, or else from the target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from eventlog.core.change import ABSENT, Op
from eventlog.transfer.targets.tables.cells import Cells
from eventlog.transfer.targets.tables.table import RowAction, RowChange, RowKey, TableTarget

COUNTED, SILENT = "d", "f"  # how a row leaves: counted as missing if it was not there, or not
NOTHING = "-"  # that a written row lacks; an empty text is null in Oracle, and equals nothing


class Effect:
    """The effect of a batch on one row: it is deleted first, then written or changed."""

    __slots__ = ("cells", "deletion", "key", "requires_row", "write")

    def __init__(self, row_change: RowChange) -> None:
        action = row_change.action
        self.key = row_change.key
        self.cells: Cells = row_change.cells
        self.deletion = "" if action is not RowAction.DELETE else _deletion(row_change)
        self.write = _WRITES[action]  # "w": the row is there afterwards; "u": it is changed if it is there
        self.requires_row = action is RowAction.UPDATE  # the first change is refused if the row is not there


def _deletion(row_change: RowChange) -> str:
    return COUNTED if row_change.change.op is Op.DELETE else SILENT


_WRITES = {RowAction.WRITE: "w", RowAction.UPDATE: "u", RowAction.DELETE: ""}


class Reduced(NamedTuple):
    """The effects of a batch on one table, by key, and the changes whose row is missing."""

    effects: dict[RowKey, Effect]
    unmet: list[RowChange]  # updates of rows that are not there
    absent: int  # deletes of rows that are not there


def reduce(
    row_changes: Iterable[RowChange], missing: Collection[RowKey] = (), *, insert: bool = False
) -> Reduced:
    """Return the effects of changes on one table.

    `missing` are keys that the target lacks before them. With `insert`, an update of a missing row makes it.
    """
    reduced = Reduced({}, [], 0)
    effects, unmet, absent = reduced.effects, reduced.unmet, 0
    for row_change in row_changes:
        action, key = row_change.action, row_change.key
        effect = effects.get(key)
        if effect is None and key not in missing:
            effects[key] = Effect(row_change)
        elif effect is None or not effect.write:  # there is no such row
            if action is RowAction.WRITE or (action is RowAction.UPDATE and insert):
                if effect is None:
                    effects[key] = Effect(row_change._replace(action=RowAction.WRITE))
                else:
                    effect.cells, effect.write = row_change.cells, "w"
            elif action is RowAction.UPDATE:
                unmet.append(row_change)
            else:
                absent += row_change.change.op is Op.DELETE
        elif action is RowAction.DELETE:
            effect.cells, effect.write, effect.deletion = (), "", effect.deletion or SILENT
        else:
            _merge(effect, row_change)
            if action is RowAction.WRITE:
                effect.write = "w"
    return reduced._replace(absent=absent)


def _merge(effect: Effect, row_change: RowChange) -> None:
    pairs = zip(effect.cells, row_change.cells, strict=True)
    effect.cells = [cell if new_cell is ABSENT else new_cell for cell, new_cell in pairs]


def changes_by_table(row_changes: Iterable[RowChange]) -> dict[TableTarget, list[RowChange]]:
    """Return the row_changes of each table, the tables in the order in which they come."""
    row_changes_of: dict[TableTarget, list[RowChange]] = {}
    for row_change in row_changes:
        row_changes_of.setdefault(row_change.target, []).append(row_change)
    return row_changes_of
