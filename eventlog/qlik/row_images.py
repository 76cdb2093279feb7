"""A change as the two rows that it makes of its table: one before, one after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventlog.core.change import ABSENT, Change, Op, Side
from eventlog.core.errors import NotExpressible, WrongRow
from eventlog.qlik.row_plans import alike
from eventlog.qlik.structure import Structure


def sides(structure: Structure, change: Change) -> tuple[Sequence[Side], Sequence[Side]]:
    """Return the columns of a structure before and after a change; the key fills in missing ones.

    A column that an update names several times had the first value before it and has the last one after it.
    """
    if change.fields and len(change.fields) == len(structure.columns):
        names, befores, afters = zip(*change.fields, strict=True)
        if names == structure.names and (change.op is not Op.UPDATE or ABSENT not in befores):
            return befores, afters
    before: list[Side] = [ABSENT] * len(structure.columns)
    after: list[Side] = before.copy()
    index = structure.index
    for name, value in change.key_before if change.op in (Op.UPDATE, Op.DELETE) else ():
        before[_place(index, name, structure)] = value
    for name, value in change.key if change.op is not Op.DELETE else ():
        after[_place(index, name, structure)] = value
    met: set[str] = set()
    for name, old, new in change.fields:
        place = _place(index, name, structure)
        if name in met and change.op is not Op.UPDATE:
            raise NotExpressible(f"column {name}: several values have no place in a row of Replicate")
        if old is not ABSENT and name not in met:
            before[place] = old
        if new is not ABSENT:
            after[place] = new
        met.add(name)
    return before, after


def _place(index: dict[str, int], name: str, structure: Structure) -> int:
    place = index.get(name)
    if place is None:
        raise WrongRow(f"table {structure} has no column {name!r}: name it in the tables file")
    return place


def differing(
    before: Sequence[Side], after: Sequence[Side], image: Sequence[Any], row: Sequence[Any]
) -> list[int]:
    """Return the places of the captured columns whose written values differ; 1, 1.0 and true do."""
    both_rows = enumerate(zip(image, row, strict=True))
    places = [i for i, (old, new) in both_rows if not alike(old, new)]
    if ABSENT not in before and ABSENT not in after:
        return places
    found = set(places)
    both = enumerate(zip(before, after, strict=True))
    return [i for i, (b, a) in both if a is not ABSENT and (b is ABSENT or i in found)]
