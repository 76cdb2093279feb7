"""Items come back in the order of their keys, from memory and from disk."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.files.sorting import Sorter

pytestmark = pytest.mark.quick


@given(st.lists(st.integers(), max_size=30), st.integers(0, 10))
def test_what_memory_does_not_hold_comes_back_sorted(items: list[int], memory: int) -> None:
    sorter: Sorter[int] = Sorter(lambda item: item, lambda item: 1, memory)
    with closing(sorter):
        for item in items:
            sorter.add(item)
        assert list(sorter.peek()) == list(sorter.peek()) == sorted(items)
