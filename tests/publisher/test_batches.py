"""Documents that are divided, and the further parts of a cut event."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from eventlog.publisher.batches import EventDocument, documents_of, further_parts, halves
from tests.publisher.test_batch_record import plain_events

pytestmark = pytest.mark.quick


def parts_of(documents: Iterable[EventDocument]) -> list[list[tuple[str, int]]]:
    """Return the events of each document, with their parts."""
    return [[(event.run_id, event.part) for event in document.events] for document in documents]


@pytest.mark.parametrize("count", [2, 3])
def test_the_halves_of_a_document_have_all_its_events(count: int) -> None:
    runs = [("abc"[n], f"idu={n}", (n + 1,), [1]) for n in range(count)]
    (whole,) = documents_of(plain_events(*runs), [0, count])
    first, second = halves(whole)
    assert parts_of([first]) + parts_of([second]) == [[("a", 1)], [(run[0], 1) for run in runs[1:]]]


def test_a_document_in_the_middle_of_a_table_is_halved_at_its_own_middle() -> None:
    events = plain_events(*(("abcd"[n], f"idu={n}", (n + 1,), [1]) for n in range(4)))
    _, later = documents_of(events, [0, 2, 4])
    assert parts_of(halves(later)) == [[("c", 1)], [("d", 1)]]


def test_further_parts_go_without_the_events_of_their_documents() -> None:
    cut = ("a", "idu=1", (1, 2), [1, 2, 3])
    events = plain_events(cut, ("b", "idu=2", (3,), [1]), ("c", "idu=3", (4,), [1]))
    first, second, third = documents_of(events, [0, 1, 2, 5])
    assert parts_of([first, second, third]) == [[("a", 1)], [("a", 2)], [("a", 3), ("b", 1), ("c", 1)]]
    assert parts_of(further_parts([[first], [second], [third]], {"a"})) == [[("a", 2)], [("a", 3)]]
    assert further_parts([[first], [second], [third]], set()) == []
