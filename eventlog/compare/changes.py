"""The differences of two states as changes of the one model, in the order in which they leave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eventlog.compare.meeting import Difference
from eventlog.compare.memory import MEMORY
from eventlog.compare.ordering import Order, Phase, Ranks
from eventlog.compare.rows import Cells
from eventlog.core import tablekey, values
from eventlog.core.change import ABSENT, Change, Field, Op, Side, one_or_many
from eventlog.core.errors import EventlogError, InvalidValue, Refused, WrongRow
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Kind


class _Part(NamedTuple):
    """A difference with the number of its table."""

    table: int
    before: Cells | None
    after: Cells | None


def in_order(
    tables: Tables, found: Iterable[tuple[Table, Difference]], memory: int = MEMORY
) -> Iterator[tuple[Table, Difference]]:
    """The differences in the order in which they leave; a new object of a circle of references comes first
    without them, then with them."""
    numbered = {str(table): number for number, table in enumerate(tables)}
    known = list(tables)
    order: Order[_Part] = Order(tables, memory)
    for table, one in found:
        for phase, step in steps(order.ranks, table, one):
            order.add(phase, table, step.key, _Part(numbered[str(table)], step.before, step.after))
    for _, key, part in order:
        yield known[part.table], Difference(key, part.before, part.after)


def steps(ranks: Ranks, table: Table, one: Difference) -> Iterator[tuple[Phase, Difference]]:
    """What a difference is told as, and when."""
    if one.after is None:
        yield Phase.GONE, one
    elif one.before is not None:
        yield Phase.CHANGED, one
    else:
        circular = [ranks.circular(table, column) for column in table.data]
        first = tuple(None if late else text for late, text in zip(circular, one.after, strict=True))
        yield Phase.NEW, one._replace(after=first)
        if first != one.after:
            yield Phase.CHANGED, one._replace(before=first)


def changes(found: Iterable[tuple[Table, Difference]]) -> Iterator[Change | Refused]:
    """The changes that these differences are, numbered; none where values are the same in other texts."""
    position = 0
    for table, one in found:
        try:
            change = change_of(table, one)
        except EventlogError as fault:
            yield Refused(f"{table} {one.key}", str(fault))
            continue
        if change is not None:
            position += 1
            yield change._replace(position=str(position))


def change_of(table: Table, one: Difference) -> Change | None:
    """The change that a difference is; None where all values are the same."""
    key = table.load_pairs(tablekey.read(one.key))
    old, new = _sides(table, one.before), _sides(table, one.after)
    both = one.before is not None and one.after is not None
    told = [_field(c, *sides, both=both) for c, *sides in zip(table.data, old, new, strict=True)]
    if both and all(field.before == field.after for field in told):
        return None
    op = Op.INSERT if one.before is None else Op.DELETE if one.after is None else Op.UPDATE
    sides = (one.before is None, one.after is None)
    keyed = [Field(name, *(ABSENT if absent else value for absent in sides)) for name, value in key]
    return Change(op, table.schema, table.name, key, (*keyed, *told))


def _sides(table: Table, cells: Cells | None) -> list[Side]:
    if cells is None:
        return [ABSENT] * len(table.data)
    return [load(column, text) for column, text in zip(table.data, cells, strict=True)]


def load(column: Column, text: str | None) -> Side:
    """The value of a column's text; of an attribute of many values, a list of texts, all of them."""
    try:
        if text is None:
            return None
        if column.multivalued:
            return one_or_many(tuple(column.load(one) for one in json.loads(text)))
        return column.load(text)
    except EventlogError as fault:
        raise WrongRow(f"{column.name}: {fault}") from fault


def _field(column: Column, before: Side, after: Side, *, both: bool) -> Field:
    """What a column held and holds: the same where only the digits of its numbers are written otherwise."""
    return Field(column.name, after if both and _same(column, before, after) else before, after)


def _same(column: Column, before: Side, after: Side) -> bool:
    if column.number is None or not isinstance(before, str) or not isinstance(after, str):
        return before == after
    try:
        return values.read_number(column.number, before) == values.read_number(column.number, after)
    except InvalidValue:  # such as NaN where numbers are compared by their digits
        return before == after


def same_text(column: Column, before: str | None, after: str | None) -> bool:
    """Whether two texts mean the same value; one that means none is like no other."""
    if before == after:
        return True
    if column.kind is Kind.STRING and column.number is None and not column.multivalued:
        return False
    try:
        return _same(column, load(column, before), load(column, after))
    except WrongRow:
        return False
