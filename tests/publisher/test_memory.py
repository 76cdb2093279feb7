"""What is remembered of a batch is read back as it was, in however few words."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventlog.publisher.batches import read_memory, remember_rows, remembered_rows

NEIGHBOURS = st.tuples(st.integers(1, 2**63 - 99), st.integers(1, 40)).map(
    lambda found: range(found[0], found[0] + found[1])
)
ROWS = st.lists(NEIGHBOURS, max_size=8).map(lambda found: [row for some in found for row in some])


@given(ROWS)
def test_rows_are_those_that_were_told(rows: list[int]) -> None:
    told = json.loads(json.dumps(remember_rows(np.array(rows, np.int64))))
    assert list(remembered_rows(told)) == rows
    assert sum(map(len, told.values())) <= max(1, len(rows))


def test_neighbours_are_told_by_their_ends() -> None:
    assert remember_rows(np.arange(5, 25)) == {"ranges": [5, 20]}
    assert remember_rows(np.array([*range(100, 120), *range(5, 25)])) == {"ranges": [100, 20, 5, 20]}
    assert remember_rows(np.array([3, 1, 2, 9])) == {"rows": [3, 1, 2, 9]}


def test_what_an_earlier_version_remembered_is_read() -> None:
    before = {"log": "eventlog", "sizes": [1, 2], "rows": [7, 8, 9]}
    ((name, facts),) = read_memory(json.dumps([["7-9", before]]))
    assert (name, [fact.settles for fact in facts]) == ("7-9", [(7,), (8, 9)])
    assert facts == read_memory(json.dumps([["7-9", [before]]]))[0][1]
