"""Items come back in the order of their keys, from memory and from disk."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.files.stores import SortedItems

pytestmark = pytest.mark.quick


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=30),
    st.sampled_from((1, 40_000)),  # one block on disk holds all items, or two
    st.integers(0, 10),
)
def test_what_memory_does_not_hold_comes_back_sorted(
    items: list[tuple[int, int]], size: int, memory: int
) -> None:
    with closing(
        SortedItems[tuple[int, int]](lambda item: item[0], lambda item: size, memory * size)
    ) as runs:
        for item in items:
            runs.add(item)
        expected = sorted(items, key=lambda item: item[0])
        assert list(runs.in_order()) == list(runs.in_order()) == expected
