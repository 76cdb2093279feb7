"""Many changes of one row as one effect: for each column the last value that was supplied.

A row that is deleted and inserted again is replaced. Whether a change meets a row is known from the batch
itself, or else from the target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from eventlog.core.change import ABSENT, Op
from eventlog.targets.tables.cells import Cells
from eventlog.targets.tables.table_target import Act, RowAction, RowKey, TableTarget

COUNTED, SILENT = "d", "f"  # how a row leaves: counted as missing if it was not there, or not
NOTHING = "-"  # that a written row lacks; an empty text is null in Oracle, and equals nothing


class Effect:
    """The effect of a batch on one row: it is deleted first, then written or changed."""

    __slots__ = ("act", "cells", "deletion", "key", "requires_row", "write")

    def __init__(self, act: Act) -> None:
        action = act.action
        self.act = act  # the first one
        self.key = act.key
        self.cells: Cells = act.cells
        self.deletion = (
            "" if action is not RowAction.DELETE else COUNTED if act.change.op is Op.DELETE else SILENT
        )
        self.write = _WRITES[action]  # "w": the row is there afterwards; "u": it is changed if it is there
        self.requires_row = action is RowAction.UPDATE  # the first change is refused if the row is not there


_WRITES = {RowAction.WRITE: "w", RowAction.UPDATE: "u", RowAction.DELETE: ""}


class Reduced(NamedTuple):
    """The effects of a batch on one table, by key, and the changes that meet no row."""

    effects: dict[RowKey, Effect]
    unmet: list[Act]  # updates of rows that are not there
    absent: int  # deletes of rows that are not there


def reduce(acts: Iterable[Act], missing: Collection[RowKey] = (), *, insert: bool = False) -> Reduced:
    """Return the effects of acts on one table.

    `missing` are keys that the target lacks before the acts. With `insert`, an update of a missing row makes
    it.
    """
    reduced = Reduced({}, [], 0)
    effects, unmet, absent = reduced.effects, reduced.unmet, 0
    for act in acts:
        action, key = act.action, act.key
        effect = effects.get(key)
        if effect is None:
            if key not in missing:
                effects[key] = Effect(act)
                continue
            there = False
        else:
            there = effect.write != ""
        if action is RowAction.WRITE or (action is RowAction.UPDATE and not there and insert):
            if effect is None:
                effects[key] = Effect(act._replace(action=RowAction.WRITE))
            elif there:
                _merge(effect, act)
                effect.write = "w"
            else:
                effect.cells, effect.write = act.cells, "w"
        elif not there:
            if action is RowAction.UPDATE:
                unmet.append(act)
            else:
                absent += act.change.op is Op.DELETE
        elif action is RowAction.UPDATE:
            assert effect is not None
            _merge(effect, act)
        else:
            assert effect is not None
            effect.cells, effect.write, effect.deletion = (), "", effect.deletion or SILENT
    return reduced._replace(absent=absent)


def _merge(effect: Effect, act: Act) -> None:
    pairs = zip(effect.cells, act.cells, strict=True)
    effect.cells = [cell if new_cell is ABSENT else new_cell for cell, new_cell in pairs]


def acts_by_table(acts: Iterable[Act]) -> dict[TableTarget, list[Act]]:
    """Return the acts of each table, the tables in the order in which they come."""
    acts_of: dict[TableTarget, list[Act]] = {}
    for act in acts:
        acts_of.setdefault(act.target, []).append(act)
    return acts_of
