"""The rest of cut inserts is what somebody finds who walks along the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.sql.log import by_column
from eventlog.sql.log.by_column import RowHeaders, rest_of_inserts
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

INSERTS = frozenset((1,))
ROWS = st.lists(
    st.tuples(st.sampled_from((0, *(1,) * 9, 2, 4, 7, 9)), st.integers(0, 4)), min_size=1, max_size=60
)


class Sizes:
    """A log whose rows have ten bytes each."""

    def sizes(self, ids: Sequence[int]) -> list[int]:
        return [10] * len(ids)


def walked(rows: Sequence[tuple[int, int]], picked: int) -> list[int]:
    """Return the places of the rows that complete the inserts of the first rows."""
    is_open: set[int] = set()
    places = []
    for place, (kind, name) in enumerate(rows):
        if kind in INSERTS and place < picked:
            is_open.add(name)
        elif kind in INSERTS and name in is_open:
            places.append(place)
        elif 2 <= kind <= 8:
            is_open.discard(name)
    return places


def completed(rows: Sequence[tuple[int, int]], picked: int) -> list[int]:
    ids = np.arange(len(rows), dtype=np.int64) * 3 + 5
    kinds, objects = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    outline = RowHeaders(ids, kinds, objects)
    completed_ids = rest_of_inserts(cast("Any", Sizes()), outline, picked, INSERTS)
    return [(number - 5) // 3 for number in completed_ids]


@settings(max_examples=drawn(300))
@given(ROWS, st.integers(1, 60))
def test_the_rest_is_that_of_a_walk(rows: list[tuple[int, int]], picked: int) -> None:
    assert completed(rows, picked) == walked(rows, picked)


def test_it_has_no_more_than_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_column, "MAX_BYTES", 25)
    assert completed([(1, 1)] * 9, 2) == [2, 3]
