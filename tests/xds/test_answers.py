"""What a receiver's answer means for each event."""

from __future__ import annotations

import pytest

from eventlog.core.errors import InvalidDocument
from eventlog.xds.answers import Level, Status, match, read, write

pytestmark = pytest.mark.quick


def answer(*statuses: str) -> bytes:
    return f'<nds dtdversion="2.0"><output>{"".join(statuses)}</output></nds>'.encode()


def levels(reply: bytes, *event_ids: str) -> dict[str, str]:
    matched = match(event_ids, read(reply))
    return {event_id: status.level.name.lower() for event_id, status in matched.statuses.items()}


def test_an_event_that_is_not_mentioned_is_a_success() -> None:
    assert levels(answer('<status level="error" event-id="a"/>'), "a", "b") == {"a": "error", "b": "success"}
    assert levels(answer(), "a") == {"a": "success"}


def test_a_status_without_event_id_holds_for_events_without_one_of_their_own() -> None:
    reply = answer('<status level="warning"/>', '<status level="success" event-id="a"/>')
    assert levels(reply, "a", "b") == {"a": "success", "b": "warning"}


@pytest.mark.parametrize("blank", ["", " ", "&#10;"])
def test_a_blank_event_id_names_no_event(blank: str) -> None:
    """Apply it to the whole document; as an unknown event its error would be lost."""
    assert levels(answer(f'<status level="error" event-id="{blank}"/>'), "a") == {"a": "error"}


@pytest.mark.parametrize(
    ("one", "other"), [("fatal", "error"), ("error", "retry"), ("retry", "warning"), ("warning", "success")]
)
def test_of_several_statuses_the_worst_holds(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        reply = answer(f'<status level="{first}" event-id="a"/>', f'<status level="{second}" event-id="a"/>')
        assert levels(reply, "a") == {"a": one}


QUERY = '<query event-id="q" class-name="usr"/>'


def test_a_query_without_a_status_is_a_retry() -> None:
    for reply in (f"<nds><input>{QUERY}</input></nds>", f"<nds><output>{QUERY}</output></nds>"):
        assert levels(reply.encode(), "a", "b") == {"a": "retry", "b": "retry"}


def test_a_query_next_to_statuses_is_ignored_with_a_warning() -> None:
    warnings: list[str] = []
    reply = answer('<status level="error" event-id="a"/>', QUERY)
    assert [status.level for status in read(reply, warn=warnings.append)] == [Level.ERROR]
    assert ["query" in warning for warning in warnings] == [True]


def test_a_status_of_an_unknown_event_is_reported() -> None:
    matched = match(["a"], read(answer('<status level="error" event-id="x">why</status>')))
    assert matched.unknown == (Status(Level.ERROR, "x", "why"),)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"hello",
        answer()[:-5],
        b"<nds dtdversion='1'><input/></nds>",
        answer('<status level="splendid"/>'),
        b'<nds dtdversion="2.0"><output/><output><status level="error"/></output></nds>',
        b"<!DOCTYPE nds [<!ENTITY x 'y'>]>" + answer(),
    ],
)
def test_what_is_no_answer_is_none(reply: bytes) -> None:
    with pytest.raises(InvalidDocument):
        read(reply)


def test_what_is_written_is_read() -> None:
    statuses = [Status(Level.RETRY, "a", "later & <later>"), Status(Level.SUCCESS, None, "", "heartbeat")]
    assert read(write(statuses).encode()) == statuses
