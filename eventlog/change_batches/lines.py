"""The lines of a batch of changes: a frame for each, and what its fields add.

What a field adds depends on the operation, its column and the states of its sides, never on a value. So it is
learned once from the plain writer, and filled in for all changes together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches.batch import OPS, BatchTable, ChangeBatch, Sides, SideState
from eventlog.change_batches.values import Texts
from eventlog.core.change import ABSENT, Field, Op
from eventlog.core.change import Side as ModelSide
from eventlog.fold.by_column.vectors import Flags, Ints

BEFORE, AFTER = "\ue001", "\ue002"  # marks in place of values: of private use, so no writer changes them
Pieces = list[pa.Array | str]
_MOST_LEARNED = 1 << 14  # a table of 1024 columns has some eight for each


class Constants(NamedTuple):
    """The parts that a field adds: constant texts, and the values between them that are written."""

    before: str = ""
    writes_old: bool = False
    between: str = ""
    writes_new: bool = False
    after: str = ""


NOTHING = Constants()


class LineForm(Protocol):
    """The form of lines, learned from a plain writer."""

    def __hash__(self) -> int:
        """Return the number of this form, under which the parts of its fields are remembered."""

    @property
    def separator(self) -> str:
        """The text between the fields of a change."""

    def constants(self, op: Op, field: Field) -> Constants | None:
        """Return what a field adds whose values are marks; None if the plain writer must write it."""

    def texts(self, place: int, values: pa.Array) -> Texts:
        """Return the texts of a column's values as lines hold them, and which of them are odd."""

    def may_lack_fields(self, op: Op) -> bool:
        """Return whether a change of this operation has a line if no field adds anything."""

    def frame(self, batch: ChangeBatch, body: Pieces) -> Texts:
        """Return the whole lines around these bodies, and which of them are odd."""


MakeForm = Callable[[BatchTable], LineForm | None]  # None: each change is written by itself


class _Places(NamedTuple):
    """The constants of a column in each change."""

    codes: Ints
    constants: list[Constants]

    def flags(self, name: str) -> Flags:
        return np.array([bool(getattr(constants, name)) for constants in self.constants])[self.codes]

    def pieces(self, name: str) -> Pieces:
        texts = [getattr(constants, name) for constants in self.constants]
        return [pa.array(texts, pa.string()).take(pa.array(self.codes))] if any(texts) else []


def write(batch: ChangeBatch, form: LineForm) -> Texts:
    """Return the line of each change, and which changes the plain writer must write."""
    odd = np.zeros(len(batch.ops), np.bool_)
    adds = np.zeros(len(batch.ops), np.bool_)
    body: Pieces = []
    for place, sides in enumerate(batch.columns):
        places, is_odd = _learn(batch, form, place, adds)
        odd |= is_odd
        adds |= places.codes > 0
        body += places.pieces("before")
        for writes, at, then in (
            ("writes_old", sides.old_at, "between"),
            ("writes_new", sides.new_at, "after"),
        ):
            used = places.flags(writes)
            if used.any():
                texts, is_odd = _values(form, place, sides, at, used)
                odd |= is_odd
                body.append(texts)
            body += places.pieces(then)
    may_be_empty = np.array([form.may_lack_fields(op) for op in OPS])[batch.ops]
    lines, is_odd = form.frame(batch, body)
    return Texts(lines, odd | is_odd | ~(adds | may_be_empty))


def _learn(batch: ChangeBatch, form: LineForm, place: int, adds: Flags) -> tuple[_Places, Flags]:
    """Return the constants of a column in each change, and the changes for which there are none.

    The first constants are nothing; `adds` are the changes to which columns before have added something.
    """
    sides, name = batch.columns[place], batch.table.columns[place]
    cases = (((batch.ops * 3 + sides.had) * 3 + sides.has) * 2 + sides.same) * 2 + adds
    used = np.flatnonzero(np.bincount(cases))
    number = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.int64)
    constants, odd_cases = [NOTHING], np.zeros(len(number), np.bool_)
    for case in used.tolist():
        had, has = SideState(case // 12 % 3), SideState(case // 4 % 3)
        field = Field(name, _mark(had, BEFORE), _mark(has, BEFORE if case // 2 % 2 else AFTER))
        learned = NOTHING if field[1:] == (ABSENT, ABSENT) else _constants(form, OPS[case // 36], field)
        odd_cases[case] = learned is None
        if learned is not None and learned != NOTHING:
            number[case] = len(constants)
            separator = form.separator if case % 2 else ""
            constants.append(learned._replace(before=separator + learned.before))
    return _Places(number[cases], constants), odd_cases[cases]


@lru_cache(_MOST_LEARNED)
def _constants(form: LineForm, op: Op, field: Field) -> Constants | None:
    """Return what a field adds; a wide table has few rows in a batch, so its next batches ask again."""
    return form.constants(op, field)


def _mark(state: SideState, mark: str) -> ModelSide:
    return (ABSENT, None, mark)[state]


def _values(form: LineForm, place: int, sides: Sides, at: Ints, used: Flags) -> tuple[pa.Array, Flags]:
    """Return the text of a side in the changes that write it, and which of them are odd."""
    rows = np.flatnonzero(used)
    odd = np.zeros(len(used), np.bool_)
    if 2 * len(rows) < len(used):
        few, odd[rows] = form.texts(place, sides.values.take(pa.array(at[rows])))
        return few.take(pa.array(np.cumsum(used) - 1, mask=~used)), odd
    texts, is_odd = form.texts(place, sides.values)
    odd[rows] = is_odd[at[rows]]
    return texts.take(pa.array(at, mask=~used)), odd


def split(text: str) -> Constants | None:
    """Return the parts of a text with marks; None if a mark is twice, or the second is before the first."""
    before, has_old, following = text.partition(BEFORE)
    between, has_new, after = (following if has_old else text).partition(AFTER)
    if BEFORE in following or AFTER in after or (AFTER in before and has_old):
        return None
    if has_old:
        return Constants(before, True, between, bool(has_new), after)
    return Constants(between, False, "", bool(has_new), after)


def join(*pieces: pa.Array | str) -> pa.Array:
    """Return the texts of pieces; a null is nothing."""
    return pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement="")


def replace_at(texts: pa.Array, at: Ints, replacements: Sequence[str | None]) -> pa.Array:
    """Return the texts with others at these positions."""
    if not len(at):
        return texts
    is_replaced = np.zeros(len(texts), np.bool_)
    is_replaced[at] = True
    return pc.replace_with_mask(texts, pa.array(is_replaced), pa.array(replacements, pa.string()))
