"""What is recorded of a batch is read back as it was, in however few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.change import Change, Op
from eventlog.core.tables import Tables
from eventlog.core.text_digest import digest
from eventlog.fold import Event
from eventlog.fold.event_table import EventTable, RecordedFacts, WrittenEvent
from eventlog.publisher.batches import documents_of, record_batch
from eventlog.publisher.states import ENDS, GOOD, LETTERS, EventEnd, end_of
from eventlog.sql.log.log_record import (
    RecordedBatch,
    RecordedEvent,
    record_rows,
    still_to_go,
    write_backlog,
)
from eventlog.xds.answers import Level, Status

pytestmark = pytest.mark.quick

CHANGE = Change(Op.UPDATE, None, "usr", (), ())

NEIGHBOURS = st.tuples(st.integers(1, 2**63 - 99), st.integers(1, 40)).map(
    lambda first_and_count: range(first_and_count[0], sum(first_and_count))
)
ROWS = st.lists(NEIGHBOURS, max_size=8).map(
    lambda ranges: [row for neighbours in ranges for row in neighbours]
)


@given(ROWS)
def test_rows_are_those_that_were_recorded(rows: list[int]) -> None:
    content = write_backlog(np.array(rows, np.int64))
    assert list(RecordedBatch(1, 1, None, content).backlog_rows() or ()) == rows
    recorded = record_rows(np.array(rows, np.int64))
    assert sum(len(value) for value in recorded.values() if isinstance(value, list)) <= max(1, len(rows))


def test_the_rows_of_a_change_that_was_cut_are_recorded_once() -> None:
    rows = tuple(range(1, 2_001, 2))
    events = plain_events(("b", "idu=2", (2, 4), [9]), ("a", "idu=1", rows, range(1, 41)))
    documents = [*documents_of(events, [0, 1]), *documents_of(events, list(range(1, 42)))]
    assert [document.name for document in documents[:3]] == ["2-4", "1-1999", "1.2-1999"]
    content = record_batch(documents, lambda run_id: GOOD)
    assert len(content) < 40 * 54 + 5 * len(rows)
    documents_on_record = RecordedBatch(1, 1, None, content).documents()
    recorded = [event for _, of_document in documents_on_record for event in of_document]
    text = digest(b"<modify/>")
    assert recorded[0] == RecordedEvent("b", (2, 4), 7, digest=text)
    parts = [RecordedEvent("a", rows, 7, part, part < 40, digest=text) for part in range(1, 41)]
    assert recorded[1:] == parts


def plain_events(*events: tuple[str, str, tuple[int, ...], Sequence[int]]) -> EventTable:
    """Return events with these ids, objects, rows and parts, all cut after seven values."""
    written = [
        WrittenEvent(
            Event(CHANGE, name, ("", rows[0], part), ("usr", key), rows, part, len(parts)),
            "<modify/>",
            "modify",
        )
        for name, key, rows, parts in events
        for part in range(1, len(parts) + 1)
    ]
    table = EventTable.from_plain(written, "eventlog", Tables([]), ("", ""), 7)
    return replace(table, recorded=[RecordedFacts(each.event.event_id, 7, 0) for each in written])


@given(st.integers(0, 4), st.integers(1, 4))
def test_of_a_change_that_was_cut_goes_what_is_behind_the_last_part_that_is_out(out: int, last: int) -> None:
    """Send what follows the last part that is out; of five parts some are out, and some were recorded."""
    events = [RecordedEvent("a", (1, 3), 7, part, part < 5) for part in range(1, 6)][:last]
    documents = [(str(event.part), [event]) for event in events]
    unsent = still_to_go(documents, {str(part) for part in range(1, out + 1)})
    assert [event.part for event in unsent] == [min(out, last) + 1]
    assert still_to_go([("5", [RecordedEvent("a", (1, 3), 7, 5)])], {"5"}) == []


def test_every_answer_has_an_end_and_every_end_a_letter() -> None:
    assert set(ENDS) == set(Level)
    finishing = {level for level, ends in ENDS.items() if EventEnd.FINISHED in ends}
    assert set(LETTERS) == finishing == set(Level) - {Level.RETRY}


@pytest.mark.parametrize("worst", Level)
def test_the_last_answer_and_the_worst_one_decide(worst: Level) -> None:
    """A part that comes again brings the whole event again, unless an earlier part has failed."""
    for level in Level:
        status = Status(max(level, worst))
        expected = EventEnd.RETRY if status.level is Level.RETRY else EventEnd.FINISHED
        assert end_of(Status(level), Status(worst), further_parts=False) == (expected, status)
        more = EventEnd.UNFINISHED if level in (Level.SUCCESS, Level.WARNING, Level.ERROR) else expected
        assert end_of(Status(level), Status(worst), further_parts=True) == (more, status)
