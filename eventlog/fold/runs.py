"""Rule 4: what remains of a life becomes changes; consecutive rows of one operation are one change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from eventlog.core.change import ABSENT, Field, Op, Scalar, one_or_many, scalars
from eventlog.fold.understand import Step

Fields = Sequence[Field]


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
    gathered: dict[str, list[Scalar]] = {}
    for field in fields:
        gathered.setdefault(field.column, []).extend(scalars(field.after))
    return [Field(column, ABSENT, one_or_many(tuple(values))) for column, values in gathered.items()]


def cut(fields: Fields, op: Op, most: int) -> list[Fields]:
    """Return the fields in parts of at most so many values removed or added.

    What goes on after a cut only adds the values that are left: before is null in it.
    """
    if 2 * len(fields) <= most and not any([tuple in (type(f.before), type(f.after)) for f in fields]):  # noqa: C419
        return [fields]
    pieces = [piece for field in fields for piece in pieces_of(field, op)]
    if len(pieces) <= most:
        return [fields]
    return [joined(pieces[at : at + most], at == 0 and op is Op.INSERT) for at in range(0, len(pieces), most)]


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


def joined(pieces: Sequence[Piece], insert: bool) -> Fields:
    """Return the fields of one part: the neighbouring pieces of one field are one again."""
    return [_field(list(group), insert) for _, group in groupby(pieces, key=lambda piece: id(piece.field))]


def _field(pieces: Sequence[Piece], insert: bool) -> Field:
    absent = insert or any(piece.side == "all" for piece in pieces)
    before, after = (
        one_or_many(tuple(p.value for p in pieces if p.side == side and p.value is not None))
        for side in ("before", "after")
    )
    return Field(pieces[0].field.column, ABSENT if absent else before, after)
