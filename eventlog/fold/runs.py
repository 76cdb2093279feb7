"""Rules 1 to 4: what query-backs supersede in a life, their content, and the changes that rows become."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from eventlog.core.change import ABSENT, Field, Op, Scalar, Side, one_or_many, scalars
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.tables import Column
from eventlog.fold.understand import Loader, NamedObject, Step

Fields = Sequence[Field]
CurrentRow = Sequence[str | None]  # texts in the order of table.data
CurrentOrError = Sequence[CurrentRow] | EventlogError  # no rows: the object is gone; an error: it is unknown
_new = tuple.__new__  # a third of the cost of a named tuple's constructor
_ROW_EVENTS = (5, 6)
_FIELD_EVENTS = (7, 8)


def remaining(life: Sequence[Step]) -> Sequence[Step]:
    """Return the steps of a life that nothing supersedes, in the order of their places."""
    if len(life) == 1 or all(step.type < 5 for step in life):
        return life
    if any(step.type in _ROW_EVENTS for step in life):
        queried_columns = {step.column for step in life if step.type in _FIELD_EVENTS}
        read = [step for step in life if not step.unread or step.column in queried_columns]
        winner = _winning_query_back(read, _ROW_EVENTS, read[0])
        unread = [step for step in life if step.unread and step.column not in queried_columns]
        return sorted((winner, *unread))
    return _by_column(life)


def _by_column(life: Sequence[Step]) -> list[Step]:
    columns: dict[str, list[Step]] = {}
    for step in life:
        columns.setdefault(step.column, []).append(step)
    steps = []
    for rows in columns.values():
        asking = next((step for step in rows if step.type in _FIELD_EVENTS), None)
        steps += rows if asking is None else [_winning_query_back(rows, _FIELD_EVENTS, asking)]
    return sorted(steps)


def _winning_query_back(rows: Sequence[Step], types: tuple[int, int], first: Step) -> Step:
    """Return the insert among the query-back rows, else the first update, in the place of `first`."""
    insert, update = types
    winner = next((s for s in rows if s.type == insert), None) or next(s for s in rows if s.type == update)
    superseded = tuple(step.entry.record_id for step in rows if step is not winner)
    return winner._replace(place=first.place, superseded=superseded)


def runs(steps: Iterable[Step]) -> Iterator[Sequence[Step]]:
    """Yield the consecutive steps of the same operation."""
    run: list[Step] = []
    for step in steps:
        if run and run[0].op is not step.op:
            yield run
            run = []
        run.append(step)
    if run:
        yield run


def run_fields(run: Sequence[Step]) -> Fields:
    """Return the fields of a run in row order; what an insert repeats are the values of one attribute."""
    fields = run[0].fields if len(run) == 1 else [field for step in run for field in step.fields]
    if run[0].op is not Op.INSERT or len({field.column for field in fields}) == len(fields):
        return fields
    values_by_column: dict[str, list[Scalar]] = {}
    for field in fields:
        values_by_column.setdefault(field.column, []).extend(scalars(field.after))
    return [Field(column, ABSENT, one_or_many(tuple(values))) for column, values in values_by_column.items()]


def cut(fields: Fields, op: Op, max_changes: int) -> list[Fields]:
    """Return the fields in parts of at most so many values removed or added.

    A part after a cut only adds values: before is null in it.
    """
    if 2 * len(fields) <= max_changes and not any([tuple in (type(f.before), type(f.after)) for f in fields]):  # noqa: C419
        return [fields]
    pieces = [piece for field in fields for piece in pieces_of(field, op)]
    if len(pieces) <= max_changes:
        return [fields]
    starts = range(0, len(pieces), max_changes)
    return [join_pieces(pieces[at : at + max_changes], at == 0 and op is Op.INSERT) for at in starts]


class Piece(NamedTuple):
    """One value of a field that goes or comes; a removal of all that is there has no value."""

    field: Field
    side: str
    value: Scalar | None


def pieces_of(field: Field, op: Op) -> Iterator[Piece]:
    if op is not Op.INSERT and field.before is ABSENT:
        yield Piece(field, "all", None)
    for value in scalars(field.before):
        yield Piece(field, "before", value)
    for value in scalars(field.after):
        yield Piece(field, "after", value)


def join_pieces(pieces: Sequence[Piece], insert: bool) -> Fields:
    """Return the fields of one part: the neighbouring pieces of one field are one again."""
    return [_field(list(group), insert) for _, group in groupby(pieces, key=lambda piece: id(piece.field))]


def _field(pieces: Sequence[Piece], insert: bool) -> Field:
    absent = insert or any(piece.side == "all" for piece in pieces)
    before, after = (
        one_or_many(tuple(p.value for p in pieces if p.side == side and p.value is not None))
        for side in ("before", "after")
    )
    return Field(pieces[0].field.column, ABSENT if absent else before, after)


def current_fields(of: NamedObject, step: Step, answer: CurrentOrError) -> tuple[Field, ...] | None:
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
