"""Events of many batches leave in order, and no more of them are held than fit."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.by_column import merge_order
from eventlog.convert.by_column.merge_order import EventMerge

pytestmark = pytest.mark.quick

LENGTHS = st.sampled_from((0, 1, 3, 10, 40, 300))


@given(
    events=st.lists(st.tuples(st.integers(0, 5), LENGTHS), max_size=40),
    room=st.integers(1, 200),
    most=st.integers(1, 20),
)
def test_events_leave_in_order_as_many_together_as_fit(
    events: list[tuple[int, int]], room: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each event has the number of its batch, and a length; its place is where it stands in the list."""
    monkeypatch.setattr(merge_order, "_BYTES", room)
    monkeypatch.setattr(merge_order, "_AT_ONCE", most)
    with closing(EventMerge()) as taken:
        for batch in range(6):
            mine = [(place, "x" * length) for place, (of, length) in enumerate(events) if of == batch]
            places = np.array([place for place, _ in mine], np.int64)
            taken.add(pa.array([text for _, text in mine], pa.string()), places, places)
        told = [some.texts.to_pylist() for some in taken.in_order()]
    assert [len(text) for some in told for text in some] == [length for _, length in events]
    batches = max(1, len({batch for batch, _ in events}))
    for some in told:
        assert len(some) <= max(most, batches)
        assert sum(map(len, some)) <= max(room, batches) + max(map(len, some))
