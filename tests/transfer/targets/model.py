"""The rows of tables after changes, change by change: the reference for every target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from eventlog.core.change import ABSENT, Change, Field, Op

COLUMNS = ("idu", "fname", "lname", "n")
Row = dict[str, Any]


class Model:
    """One table. An update that lacks columns needs its row; refused changes are kept."""

    def __init__(self, missing_rows: str = "refuse") -> None:
        self.rows: dict[Any, Row] = {}
        self.refused: list[Change] = []
        self._missing_rows = missing_rows

    def apply(self, changes: Iterable[Change]) -> Model:
        for change in changes:
            self._apply(change)
        return self

    def _apply(self, change: Change) -> None:
        if change.op is Op.TRUNCATE:
            self.rows.clear()
            return
        (key,) = (value for _, value in change.key)
        (key_before,) = (value for _, value in change.key_before)
        reported = {"idu": key} | change.after
        if change.op is Op.DELETE:
            self.rows.pop(key, None)
        elif change.op is not Op.UPDATE:
            self.rows[key] = self.rows.get(key, dict.fromkeys(COLUMNS)) | reported
        elif set(reported) == set(COLUMNS) or key_before in self.rows:
            row = self.rows.pop(key_before, dict.fromkeys(COLUMNS))
            self.rows[key] = row | reported
        elif self._missing_rows == "insert":
            self.rows[key] = self.rows.get(key, dict.fromkeys(COLUMNS)) | reported
        elif self._missing_rows == "refuse":
            self.refused.append(change)


def changed(op: Op, key: int, key_before: int | None = None, **after: Any) -> Change:
    """Return a change of the table usr."""
    fields = [Field(column, ABSENT, value) for column, value in after.items()]
    if op is not Op.DELETE:
        fields.insert(0, Field("idu", ABSENT if key_before is None else key_before, key))
    return Change(op, "indirect", "usr", (("idu", key),), tuple(fields))


_KEYS = st.integers(0, 3)
_SIDES = st.one_of(st.none(), st.sampled_from(("", "a", "b ", "c\\N\t", "é\r\n", "'")))
_VALUES = st.fixed_dictionaries(
    {"fname": _SIDES, "lname": _SIDES, "n": st.one_of(st.none(), st.integers(-9, 9))}
)
_PARTS = st.fixed_dictionaries({}, optional={"fname": _SIDES, "lname": _SIDES, "n": st.integers(-9, 9)})


@st.composite
def change(draw: Any) -> Change:
    """Draw any change: complete or not, of an existing or a missing row."""
    op = draw(st.sampled_from((Op.INSERT, Op.UPDATE, Op.UPDATE, Op.DELETE, Op.SNAPSHOT)))
    if op is Op.DELETE:
        return changed(op, draw(_KEYS))
    after = draw(st.one_of(_VALUES, _PARTS))
    key_before = draw(st.one_of(st.none(), _KEYS)) if op is Op.UPDATE else None
    return changed(op, draw(_KEYS), key_before, **after)


@st.composite
def transactions(draw: Any) -> list[Change]:
    """Draw changes in transactions, with positions."""
    changes = draw(st.lists(change(), min_size=1, max_size=14))
    if draw(st.integers(0, 7)) == 0:
        changes.insert(draw(st.integers(0, len(changes))), Change(Op.TRUNCATE, "indirect", "usr"))
    ends = draw(st.lists(st.booleans(), min_size=len(changes), max_size=len(changes)))
    number = 0
    reported = []
    for place, (row_change, ends_transaction) in enumerate(zip(changes, ends, strict=True)):
        reported.append(row_change._replace(position=f"{place:035}", transaction=f"t{number}"))
        number += ends_transaction
    return reported
