"""Batches come back in order, and no more of their rows are together than fit."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.files.arrow_stores import KeyedBatches, SortedBatches

pytestmark = pytest.mark.quick

LENGTHS = st.sampled_from((0, 1, 3, 10, 40, 300))
FORM = pa.schema([("place", pa.int64()), ("text", pa.large_string())])


@given(
    rows=st.lists(st.tuples(st.integers(0, 5), LENGTHS), max_size=40),
    room=st.integers(1, 200),
    most=st.integers(1, 20),
)
def test_rows_come_in_order_as_many_together_as_fit(
    rows: list[tuple[int, int]], room: int, most: int
) -> None:
    """Return rows in order; each has the number of its batch and a length, and its place in the list."""
    with closing(SortedBatches(FORM)) as batches:
        for batch in range(6):
            mine = [(place, "x" * length) for place, (of, length) in enumerate(rows) if of == batch]
            places, texts = ([one[at] for one in mine] for at in (0, 1))
            batches.add(pa.record_batch([places, texts], schema=FORM))
        found = [some.to_pylist() for some in batches.in_order(most, room)]
    assert [(row["place"], len(row["text"])) for some in found for row in some] == [
        (place, length) for place, (_, length) in enumerate(rows)
    ]
    count = max(1, len({batch for batch, _ in rows}))
    for some in found:
        assert len(some) <= max(most, count)
        sizes = [len(row["text"]) for row in some]
        assert sum(sizes) <= max(room, count) + max(sizes)


@given(st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=6), st.integers(1, 9))
def test_rows_of_numbers_come_in_order(batches: list[list[int]], most: int) -> None:
    form = pa.schema([("key", pa.int64()), ("batch", pa.int64())])
    with closing(SortedBatches(form)) as store:
        for number, keys in enumerate(batches):
            store.add(pa.record_batch([sorted(keys), [number] * len(keys)], schema=form))
        found = [row for some in store.in_order(most) for row in some.to_pylist()]
    assert [row["key"] for row in found] == sorted(key for keys in batches for key in keys)
    for number, keys in enumerate(batches):
        assert [row["key"] for row in found if row["batch"] == number] == sorted(keys)


def test_batches_come_back_by_part_with_their_slices_alone() -> None:
    form = pa.schema([("n", pa.int64()), ("text", pa.string())])
    rows = pa.record_batch([range(100), [f"text {n}" for n in range(100)]], schema=form)
    with closing(KeyedBatches(form)) as store:
        for start in range(0, 100, 10):
            store.add(start % 3, rows.slice(start, 10))
        found = [one for part in range(3) for one in store.batches(part)]
        assert sorted(pa.Table.from_batches(found).column("n").to_pylist()) == list(range(100))
        assert all(one.slice(3, 2).equals(rows.slice(one.column(0)[3].as_py(), 2)) for one in found)
