"""What a query-back says, once the current row of its object is known."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.change import ABSENT, Field, Side, one_or_many, scalars
from eventlog.errors import EventlogError, WrongRow
from eventlog.fold.understand import Object, Step
from eventlog.tables import Column

CurrentRow = Sequence[str | None]  # texts in the order of table.data
Answer = Sequence[CurrentRow] | EventlogError  # no rows: the object is gone; an error: it cannot be told


def current_fields(of: Object, step: Step, answer: Answer) -> tuple[Field, ...] | None:
    """The fields that a query-back step brings; None if its object is gone."""
    if isinstance(answer, EventlogError):
        raise answer
    if not answer:
        return None
    columns = of.table.data
    if step.type in (5, 6):
        wanted = range(len(columns))
    else:
        at = next(i for i, column in enumerate(columns) if column.name == step.column)
        wanted = range(at, at + 1)
    if len(answer) > 1 and not any(column.multivalued for column in columns):
        raise WrongRow(f"{len(answer)} rows of {of.table} have this key, and no column is multi-valued")
    return tuple(
        Field(columns[at].name, ABSENT, _side(of, columns[at], [row[at] for row in answer])) for at in wanted
    )


def _side(of: Object, column: Column, texts: Sequence[str | None]) -> Side:
    load = of.reader.loader(column.kind)
    try:
        found = tuple(load(text) for text in dict.fromkeys(texts))
    except EventlogError as fault:
        raise WrongRow(f"column {column.name}: {fault}") from fault
    if len(found) > 1 and not column.multivalued:
        raise WrongRow(f"column {column.name} has {len(found)} values, and is not multi-valued")
    return one_or_many(tuple(scalar for value in found for scalar in scalars(value)))
