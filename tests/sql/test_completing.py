"""What completes a pick-up, by column, is what somebody finds who walks along the rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.sql.log.inserts import CLOSING, Bounds, Ends
from eventlog.sql.log.whole_inserts import Completed, Outline, Room, WholeInserts
from tests.tiers import drawn

pytestmark = pytest.mark.quick


class Row(NamedTuple):
    """A row of the log."""

    id: int
    kind: int
    object: int
    size: int


INSERTS = frozenset((1,))
KINDS = (0, *(1,) * 9, 2, 4, 7, 9)
FAR = np.array([7, -(1 << 63), 3, 0, (1 << 63) - 1], np.int64)  # the names of objects further on


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Draw pending rows, ids ascending."""
    reported = st.tuples(st.sampled_from(KINDS), st.integers(0, len(FAR) - 1), st.integers(0, 9))
    return [
        Row(3 * place + 5, *row)
        for place, row in enumerate(draw(st.lists(reported, min_size=1, max_size=60)))
    ]


def fitting(rows: Sequence[Row], octets: int) -> int:
    """Return how many of the first rows have no more bytes than that."""
    return sum(total <= octets for total in accumulate(row.size for row in rows))


def is_open(rows: Sequence[Row]) -> bool:
    """Return whether an object's last relevant row is of an insert."""
    reported = [row.kind for row in rows if row.kind in INSERTS or row.kind in CLOSING]
    return bool(reported) and reported[-1] in INSERTS


def rest_of(name: int, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of an object's insert before what ends it."""
    own = []
    for row in rows:
        if row.object == name and row.kind in INSERTS:
            own.append(row)
        elif row.object == name and row.kind in CLOSING:
            break
    return own


def walked(rows: list[Row], limit: int, room: Room) -> Completed:
    """Return what completes the first rows, one by one."""
    picked, near = rows[:limit], rows[limit : 2 * limit]
    names = list(dict.fromkeys(row.object for row in picked))
    along = [row for row in near if row.object in names]
    along = along[: fitting(along, room.octets)]
    together = [*picked, *along]
    stay, cut = names, False
    taken: list[Row] = []
    for place, name in enumerate(names):
        if not is_open([row for row in together if row.object == name]):
            continue
        rest = rest_of(name, [row for row in rows[limit:] if row not in along])
        most = min(room.bounds.rows, fitting([*taken, *rest], room.bounds.octets)) - len(taken)
        if most < len(rest):
            cut = place == 0
            stay = names[: max(1, place)]
            taken += rest[:most] if cut else []
            break
        taken += rest
    more = sorted(row.id for row in [*along, *taken] if row.object in stay)
    kept = [row.object in stay for row in picked]
    left = [row.id for row in picked if row.object not in stay]
    return Completed(np.array(kept), more, left[0] - 1 if left else picked[-1].id, cut)


def seen(rows: Sequence[Row]) -> Outline:
    """Return those rows by column."""
    return Outline(*(np.array([row[column] for row in rows], np.int64) for column in range(3)))


@settings(max_examples=drawn(400))
@given(
    logs(),
    st.integers(1, 6),
    st.integers(1, 9),
    st.sampled_from((1, 10, 1000)),
    st.builds(Bounds, st.sampled_from((1, 3, 1000)), st.sampled_from((1, 20, 1000))),
)
def test_a_pick_up_is_completed_as_if_its_rows_were_walked_along(
    rows: list[Row], limit: int, chunk: int, octets: int, bounds: Bounds
) -> None:
    limit = min(limit, len(rows))
    room = Room(octets, INSERTS, bounds)
    sizes = {row.id: row.size for row in rows}
    completing = WholeInserts(room, Ends(), lambda ids: [sizes[number] for number in ids])
    picked, near, far = seen(rows[:limit]), seen(rows[limit : 2 * limit]), rows[2 * limit :]
    further = (seen(far[at : at + chunk]).renamed(FAR) for at in range(0, len(far), chunk))
    kept, more, reach, cut = completing.complete(picked, near, lambda: FAR, further)
    wanted = walked(rows, limit, room)
    assert (kept.tolist(), more, reach, cut) == (wanted.kept.tolist(), *wanted[1:])
