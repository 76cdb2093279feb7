"""From events to documents: no two events of one object in a document, none of one object in a batch.

A batch is what is remembered, sent and finished together. Within it nothing depends on an answer, so
a sink may send it in one go; what is to be remembered of it is its rows and event-ids, never content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from eventlog.fold import ObjectName
from eventlog.xds.answers import Level, Status


class Sending(NamedTuple):
    """One event, or one part of a cut one, on its way."""

    event_id: str  # of this part
    run_id: str  # of the event as a whole
    object: ObjectName
    settles: tuple[int, ...]
    text: str
    part: int = 1
    parts: int = 1
    tries: int = 0  # how often it was answered with retry, or not at all


class Remembered(NamedTuple):
    """What must be known of a sending after a crash; its content is read anew."""

    run_id: str
    settles: tuple[int, ...]
    part: int = 1
    more: bool = False  # further parts of a cut event follow
    tries: int = 0
    worst: Status = Status(Level.SUCCESS)  # of the parts before this one


class Draft(NamedTuple):
    """A document that is about to go out."""

    name: str
    sendings: tuple[Sending, ...]


def name_document(sendings: Sequence[Sending]) -> str:
    """First and last record_id, with the part where an event was cut: no two documents share a name."""
    first = min(sendings, key=_first_row)
    last = max([s.settles[-1] for s in sendings])
    part = "" if first.part == 1 else f".{first.part}"
    return f"{first.settles[0]}{part}-{last}"


def _first_row(sending: Sending) -> int:
    return sending.settles[0]


def pack(sendings: Iterable[Sending], batch_size: int) -> Iterator[Draft]:
    """Documents of up to so many events."""
    batch: list[Sending] = []
    objects: set[ObjectName] = set()
    for sending in sendings:
        if batch and (len(batch) >= _limit(sending, batch_size) or sending.object in objects):
            yield Draft(name_document(batch), tuple(batch))
            batch, objects = [], set()
        batch.append(sending)
        objects.add(sending.object)
    if batch:
        yield Draft(name_document(batch), tuple(batch))


def halves(draft: Draft) -> list[Draft]:
    """The events of a document in two."""
    middle = len(draft.sendings) // 2
    parts = draft.sendings[:middle], draft.sendings[middle:]
    return [Draft(name_document(part), part) for part in parts]


def without(drafts: Iterable[Draft], blocked: Set[ObjectName]) -> list[Draft]:
    """The documents without the events of some objects."""
    if not blocked:
        return list(drafts)
    kept = [(draft, tuple(s for s in draft.sendings if s.object not in blocked)) for draft in drafts]
    return [
        draft if len(left) == len(draft.sendings) else Draft(name_document(left), left)
        for draft, left in kept
        if left
    ]


def _limit(sending: Sending, batch_size: int) -> int:
    """Documents that came back shrink eightfold each time, until what spoils them stands alone."""
    return max(1, batch_size >> 3 * sending.tries)


def in_batches(drafts: Iterable[Draft], most: int) -> Iterator[list[Draft]]:
    """The documents in batches of at most so many, none with two events of one object."""
    batch: list[Draft] = []
    objects: set[ObjectName] = set()
    for draft in drafts:
        coming = {s.object for s in draft.sendings}
        if len(batch) >= most or not objects.isdisjoint(coming):
            yield batch
            batch, objects = [], set()
        batch.append(draft)
        objects |= coming
    if batch:
        yield batch


def write_memory(drafts: Iterable[Draft], worst: Callable[[str], Status]) -> str:
    """What is remembered of a batch."""
    return json.dumps(
        [[draft.name, [_fact(s, worst(s.run_id)) for s in draft.sendings]] for draft in drafts],
        separators=(",", ":"),
    )


def read_memory(content: str) -> list[tuple[str, list[Remembered]]]:
    """The documents that were remembered, by their names."""
    return [(name, [_remembered(*fact) for fact in facts]) for name, facts in json.loads(content)]


def _fact(sending: Sending, worst: Status) -> list[object]:
    event_id, run_id, _, settles, _, part, parts, tries = sending
    if parts == 1 and not tries:
        return [event_id, settles]
    fact = [run_id, settles, part, part < parts, tries]
    return fact if worst.level is Level.SUCCESS else [*fact, worst.level.name, worst.text]


def _remembered(
    run_id: str,
    settles: list[int],
    part: int = 1,
    more: bool = False,
    tries: int = 0,
    level: str = "SUCCESS",
    text: str = "",
) -> Remembered:
    return Remembered(run_id, tuple(settles), part, more, tries, Status(Level[level], None, text))
