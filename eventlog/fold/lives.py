"""Rules 1 to 3: within one life of an object, query-back rows supersede their counterparts.

A life is the rows between two deletes; the delete itself is never superseded. The rows alone decide: a query-
back without effect still supersedes. Rows of a column that the query-back does not read are kept, because
nothing else would contain their values.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.fold.understand import Step

_ROW_EVENTS = (5, 6)
_FIELD_EVENTS = (7, 8)


def remaining(life: Sequence[Step]) -> Sequence[Step]:
    """Return the steps of a life that nothing supersedes, in the order of their places."""
    if len(life) == 1 or all(step.type < 5 for step in life):
        return life
    if any(step.type in _ROW_EVENTS for step in life):
        read = [step for step in life if not step.unread]
        return sorted((_spokesman(read, _ROW_EVENTS, read[0]), *(step for step in life if step.unread)))
    return _by_column(life)


def _by_column(life: Sequence[Step]) -> list[Step]:
    columns: dict[str, list[Step]] = {}
    for step in life:
        columns.setdefault(step.column, []).append(step)
    steps = []
    for rows in columns.values():
        asking = next((step for step in rows if step.type in _FIELD_EVENTS), None)
        steps += rows if asking is None else [_spokesman(rows, _FIELD_EVENTS, asking)]
    return sorted(steps)


def _spokesman(rows: Sequence[Step], types: tuple[int, int], first: Step) -> Step:
    """Return the insert among the query-back rows, else the first update, in the place of `first`."""
    insert, update = types
    winner = next((s for s in rows if s.type == insert), None) or next(s for s in rows if s.type == update)
    swallowed = tuple(step.entry.record_id for step in rows if step is not winner)
    return winner._replace(place=first.place, swallowed=swallowed)
