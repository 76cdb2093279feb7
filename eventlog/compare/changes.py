"""The difference of two states of an object as a change of the one model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from eventlog.compare.rows import RowTexts
from eventlog.core import tablekey, values
from eventlog.core.change import ABSENT, Change, Field, Key, Op, Side, one_or_many
from eventlog.core.errors import EventlogError, InvalidValue, WrongRow
from eventlog.core.tables import Column, Table
from eventlog.core.values import Kind

Sides = Sequence[Side]  # of the columns outside the key


class Difference(NamedTuple):
    """An object that is not the same on both sides; None for the side that has none."""

    key: str
    before: RowTexts | None
    after: RowTexts | None


def change_of(table: Table, difference: Difference) -> Change | None:
    """Return the change that a difference is; None where all values are the same."""
    key = table.load_pairs(tablekey.read(difference.key))
    old_values, new_values = _sides(table, difference.before), _sides(table, difference.after)
    if old_values is not None and new_values is not None:
        cells = zip(table.data, old_values, new_values, strict=True)
        old_values = [after if _same(column, before, after) else before for column, before, after in cells]
        if old_values == new_values:
            return None
    return build_change(table, key, old_values, new_values)


def build_change(table: Table, key: Key, old_values: Sides | None, new_values: Sides | None) -> Change:
    """Return the change of an object that had and has these values, None for the side that has no object."""
    op = Op.INSERT if old_values is None else Op.DELETE if new_values is None else Op.UPDATE
    keyed = [
        Field(name, *(ABSENT if side is None else value for side in (old_values, new_values)))
        for name, value in key
    ]
    absent = [ABSENT] * len(table.data)
    sides = (absent if side is None else side for side in (old_values, new_values))
    cells = zip(table.data, *sides, strict=True)
    fields = [Field(column.name, before, after) for column, before, after in cells]
    return Change(op, table.schema, table.name, key, (*keyed, *fields))


def _sides(table: Table, cells: RowTexts | None) -> Sides | None:
    if cells is None:
        return None
    return [load(column, text) for column, text in zip(table.data, cells, strict=True)]


def load(column: Column, text: str | None) -> Side:
    """Return the value of a column's text; of an attribute of many values, a list of texts, all of them."""
    try:
        if text is None:
            return None
        if column.multivalued:
            return one_or_many(tuple(column.load(value_text) for value_text in json.loads(text)))
        return column.load(text)
    except EventlogError as fault:
        raise WrongRow(f"{column.name}: {fault}") from fault


def _same(column: Column, before: Side, after: Side) -> bool:
    """Return whether two values are equal, also if a number is written with other digits."""
    if column.number is None or not isinstance(before, str) or not isinstance(after, str):
        return before == after
    try:
        return values.read_number(column.number, before) == values.read_number(column.number, after)
    except InvalidValue:  # such as NaN where numbers are compared by their digits
        return before == after


def same_text(column: Column, before: str | None, after: str | None) -> bool:
    """Return whether two texts mean the same value; a text without a legal value equals no other."""
    if before == after:
        return True
    if column.kind is Kind.STRING and column.number is None and not column.multivalued:
        return False
    try:
        return _same(column, load(column, before), load(column, after))
    except WrongRow:
        return False
