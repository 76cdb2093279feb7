"""The net effect of steps on a table is what they do to it one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Op
from eventlog.transfer.targets.tables.net_effect import COUNTED, NetEffect
from eventlog.transfer.targets.tables.table import (
    KeyChange,
    RowAction,
    RowChange,
    Step,
    TableTarget,
    Truncation,
)
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

TABLE = tablesfile.read('[tables.t]\nkey = ["k"]\ncolumns = { k = "integer", a = "text", b = "text" }\n')
TARGET = TableTarget(TABLE.get("t"), "t", (), ())
DEFAULT = "default"
Rows = dict[Any, list[Any]]


def write(key: int, a: Any = "w", b: Any = ABSENT) -> RowChange:
    return RowChange(RowAction.WRITE, TARGET, (key,), [key, a, b], Change(Op.INSERT, None, "t"))


def update(key: int, a: Any = ABSENT, b: Any = ABSENT) -> RowChange:
    return RowChange(RowAction.UPDATE, TARGET, (key,), [key, a, b], Change(Op.UPDATE, None, "t"))


def delete(key: int, op: Op = Op.DELETE) -> RowChange:
    return RowChange(RowAction.DELETE, TARGET, (key,), (), Change(op, None, "t"))


def move(key_before: int, key: int, a: Any = ABSENT, b: Any = ABSENT) -> KeyChange:
    return KeyChange(TARGET, (key_before,), (key,), [key, a, b], Change(Op.UPDATE, None, "t"))


TRUNCATION = Truncation(TARGET, Change(Op.TRUNCATE, None, "t"))


class OneByOne:
    """A table that takes each step in its turn: the reference."""

    def __init__(self, rows: Rows, *, insert: bool) -> None:
        self.rows = {key: list(cells) for key, cells in rows.items()}
        self.unmet: list[int] = []  # the ids of changes
        self.absent = 0
        self._insert = insert

    def take(self, steps: Iterable[Step]) -> OneByOne:
        for step in steps:
            if isinstance(step, Truncation):
                self.rows.clear()
            elif isinstance(step, KeyChange):
                self._move(step)
            elif step.action is RowAction.DELETE:
                self.absent += self.rows.pop(step.key, None) is None and step.change.op is Op.DELETE
            elif step.action is RowAction.WRITE or self._insert or step.key in self.rows:
                self._put(step)
            else:
                self.unmet.append(id(step.change))
        return self

    def _move(self, step: KeyChange) -> None:
        if step.key_before in self.rows:
            self.rows[step.key] = self.rows.pop(step.key_before)
        elif not self._insert:
            self.unmet.append(id(step.change))
            return
        self._put(step)

    def _put(self, step: RowChange | KeyChange) -> None:
        row = self.rows.setdefault(step.key, [DEFAULT] * 3)
        self.rows[step.key] = merged(row, step.cells)


def merged(row: Iterable[Any], cells: Iterable[Any]) -> list[Any]:
    return [value if cell is ABSENT else cell for value, cell in zip(row, cells, strict=True)]


def written(net: NetEffect, rows: Rows) -> Rows:
    """Return the rows of a table that takes a net effect as a lake does: all at once."""
    befores = {effect.key: rows[effect.before] for effect in net.effects.values() if effect.before}
    deleted = {effect.key for effect in net.effects.values() if effect.deletion}
    rows_after = {} if net.is_emptied else {key: row for key, row in rows.items() if key not in deleted}
    for key, effect in net.effects.items():
        if effect.write == "u":
            rows_after[key] = merged(rows_after[key], effect.cells)
        elif effect.write:
            row = befores.get(key) or rows_after.get(key, [DEFAULT] * 3)
            rows_after[key] = merged(row, effect.cells)
    return rows_after


def settled(steps: list[Step], rows: Rows, *, insert: bool) -> NetEffect:
    """Return the net effect on a table whose rows are looked up once."""
    net = NetEffect(steps, insert=insert)
    missing = {key for key in net.keys_to_check if key not in rows}
    return net if net.is_settled(missing) else NetEffect(steps, missing, insert=insert)


_KEYS = st.integers(0, 4)
_CELLS = st.one_of(st.just(ABSENT), st.integers(10, 99))


@st.composite
def _steps(draw: Any) -> list[Step]:
    """Draw what one change does."""
    key, key_before, a, b = draw(_KEYS), draw(_KEYS), draw(_CELLS), draw(_CELLS)
    kind = draw(st.sampled_from(("write", "update", "delete", "move", "move", "whole move", "truncate")))
    if kind == "truncate":
        return [TRUNCATION] if draw(st.integers(0, 3)) == 0 else []
    if key == key_before and "move" in kind:
        return []
    steps: dict[str, list[Step]] = {
        "write": [write(key, draw(st.integers(10, 99)), b)],
        "update": [update(key, a, b)],
        "delete": [delete(key)],
        "move": [move(key_before, key, a, b)],
        "whole move": [delete(key_before, Op.UPDATE), update(key, 0, b)._replace(action=RowAction.WRITE)],
    }
    return steps[kind]


@example([[move(0, 1), move(1, 2), update(2, 9), update(1, 8)]], {1: "x"}, True)  # the first row is missing
@example([[write(0)], [move(0, 1)]], {}, False)  # a row that is written before it moves may be new
@settings(max_examples=drawn(500))
@given(st.lists(_steps(), max_size=12), st.dictionaries(_KEYS, st.integers(100, 999)), st.booleans())
def test_any_steps_together_do_what_they_do_one_by_one(
    drawn_steps: list[list[Step]], rows_there: dict[int, Any], insert: bool
) -> None:
    steps = [step for steps_of_change in drawn_steps for step in steps_of_change]
    rows: Rows = {(key,): [key, value, value] for key, value in rows_there.items()}
    expected = OneByOne(rows, insert=insert).take(steps)
    net = settled(steps, rows, insert=insert)
    counted = [effect.key for effect in net.effects.values() if effect.deletion == COUNTED]
    assert written(net, rows) == expected.rows
    assert [id(change) for change in net.unmet] == expected.unmet
    assert net.absent + sum(key not in rows for key in counted) == expected.absent


def test_keys_that_are_swapped_are_read_where_the_rows_were() -> None:
    net = NetEffect([move(1, 9), move(2, 1), move(9, 2, a="x"), move(3, 4)])
    befores = {effect.key: effect.before for effect in net.effects.values() if effect.write}
    assert befores == {(1,): (2,), (2,): (1,), (4,): (3,)}
    assert set(net.keys_to_check) == {(1,), (2,), (3,), (4,), (9,)}


def test_a_row_that_is_supplied_whole_or_comes_back_is_not_read() -> None:
    net = NetEffect([move(1, 2, a="x", b="y"), write(3, b="z"), move(3, 4), move(5, 6), move(6, 5, a="x")])
    assert [effect.key for effect in net.effects.values() if effect.before] == []
    assert net.effects[(5,)].deletion == ""


def test_only_a_missing_row_that_an_update_needs_has_the_steps_folded_again() -> None:
    net = NetEffect([move(1, 2), write(3), delete(4)])
    assert net.is_settled([(2,)])
    assert not net.is_settled([(1,)])
    assert (3,) not in net.keys_to_check
    assert (4,) not in net.keys_to_check
