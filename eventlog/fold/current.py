"""The content of a query-back, once the current row of its object is known."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.core.change import ABSENT, Field, Side, one_or_many, scalars
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.tables import Column
from eventlog.fold.understand import Loader, NamedObject, Step

CurrentRow = Sequence[str | None]  # texts in the order of table.data
Answer = Sequence[CurrentRow] | EventlogError  # no rows: the object is gone; an error: it is unknown
_new = tuple.__new__  # a third of the cost of a named tuple's constructor


def current_fields(of: NamedObject, step: Step, answer: Answer) -> tuple[Field, ...] | None:
    """Return the fields that a query-back step brings, or None if its object is gone."""
    if isinstance(answer, EventlogError):
        raise answer
    if not answer:
        return None
    columns = of.reader.data
    if step.type not in (5, 6):
        at = next(at for at, (column, _) in enumerate(columns) if column.name == step.column)
        answer, columns = [row[at : at + 1] for row in answer], columns[at : at + 1]
    if len(answer) == 1:
        return _fields(columns, answer[0])
    if not any(column.multivalued for column in of.table.data):
        raise WrongRow(f"{len(answer)} rows of {of.table} have this key, and no column is multi-valued")
    cells = zip(columns, *answer, strict=False)
    return tuple(Field(column.name, ABSENT, _side(column, load, texts)) for (column, load), *texts in cells)


def _fields(columns: Sequence[tuple[Column, Loader]], texts: CurrentRow) -> tuple[Field, ...]:
    """Return the fields of the one row that there is."""
    fields = []
    for (column, load), text in zip(columns, texts, strict=True):
        try:
            fields.append(_new(Field, (column.name, ABSENT, load(text))))
        except EventlogError as fault:
            raise WrongRow(f"column {column.name}: {fault}") from fault
    return tuple(fields)


def _side(column: Column, load: Loader, texts: Sequence[str | None]) -> Side:
    """Return the values of a column in all the rows, each once."""
    try:
        loaded = tuple(load(text) for text in dict.fromkeys(texts))
    except EventlogError as fault:
        raise WrongRow(f"column {column.name}: {fault}") from fault
    if len(loaded) > 1 and not column.multivalued:
        raise WrongRow(f"column {column.name} has {len(loaded)} values, and is not multi-valued")
    return one_or_many(tuple(scalar for value in loaded for scalar in scalars(value)))
