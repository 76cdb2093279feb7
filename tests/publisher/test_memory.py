"""What is remembered of a batch is read back as it was, in however few words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.publisher.batches import (
    EventsDraft,
    OutgoingEvent,
    RecordedEvent,
    read_memory,
    remember_rows,
    remembered_rows,
    still_to_go,
    write_memory,
)
from eventlog.publisher.tally import GOOD

pytestmark = pytest.mark.quick

NEIGHBOURS = st.tuples(st.integers(1, 2**63 - 99), st.integers(1, 40)).map(
    lambda first_and_count: range(first_and_count[0], sum(first_and_count))
)
ROWS = st.lists(NEIGHBOURS, max_size=8).map(
    lambda ranges: [row for neighbours in ranges for row in neighbours]
)


@given(ROWS)
def test_rows_are_those_that_were_reported(rows: list[int]) -> None:
    reported = json.loads(json.dumps(remember_rows(np.array(rows, np.int64))))
    assert list(remembered_rows(reported)) == rows
    assert sum(map(len, reported.values())) <= max(1, len(rows))


def test_the_rows_of_a_change_that_was_cut_are_reported_once() -> None:
    rows = tuple(range(1, 2_001, 2))
    parts = [
        OutgoingEvent(f"a.{part}", "a", ("usr", "idu=1"), rows, "<modify/>", 7, part, 40)
        for part in range(1, 41)
    ]
    other = OutgoingEvent("b", "b", ("usr", "idu=2"), (2, 4), "<delete/>", 9)
    drafts = [EventsDraft("2-4", (other,)), *(EventsDraft(f"1.{part.part}-1999", (part,)) for part in parts)]
    content = write_memory(drafts, lambda run_id: GOOD)
    assert len(content) < 40 * 40 + 5 * len(rows)
    facts = [fact for _, found in read_memory(content) for fact in found]
    assert facts[0] == RecordedEvent("b", (2, 4), 9)
    assert facts[1:] == [RecordedEvent("a", rows, 7, part, part < 40) for part in range(1, 41)]


@given(st.integers(0, 4), st.integers(1, 4))
def test_of_a_change_that_was_cut_goes_what_is_behind_the_last_part_that_is_out(out: int, last: int) -> None:
    """Send what follows the last part that is out; of five parts some are out, and some were remembered."""
    facts = [RecordedEvent("a", (1, 3), 7, part, part < 5) for part in range(1, 6)][:last]
    documents = [(str(fact.part), [fact]) for fact in facts]
    left = still_to_go(documents, {str(part) for part in range(1, out + 1)})
    assert [fact.part for fact in left] == [min(out, last) + 1]
    assert still_to_go([("5", [RecordedEvent("a", (1, 3), 7, 5)])], {"5"}) == []
