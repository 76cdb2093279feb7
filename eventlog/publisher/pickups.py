"""Pick-ups for somebody who says later that they are out: taken, kept, remembered, finished in the end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from eventlog.fold import ObjectName
from eventlog.publisher import batches
from eventlog.publisher.batches import Remembered, Sending
from eventlog.publisher.log_session import Coming, LogSession, without_collections
from eventlog.sql.log.work import RememberedBatch

MOST_EVENTS = 500  # that are remembered together, and finished


class LeavingEvent(NamedTuple):
    """An event on its way, and what the receiver calls its object in every event."""

    sending: Sending
    association: str


class Taken(NamedTuple):
    """What a pick-up gives, in the order in which it leaves, and marks of what is remembered of it."""

    events: Sequence[LeavingEvent]
    marks: Sequence[str]

    @property
    def waited(self) -> dict[str, ObjectName]:
        """The objects of events that were sent before, by event-id: they are held until these are out."""
        return {event.sending.run_id: event.sending.object for event in self.events if event.sending.tries}


class PickUps(LogSession):
    """Takes one pick-up after another; the one before must be finished by then."""

    first = 0  # the lowest record_id of the last pick-up
    full = True  # there may be more than it was allowed to take

    def take(self, keep: Callable[[Taken], None]) -> bool:
        """Have the next events kept, and remember them then. Returns whether there were any.

        What another leader remembered comes first, and alone; then what waits no longer, and what is pending.
        """
        with without_collections():
            while True:
                self._begin()
                self.first, self.full = 0, True
                adopted = self._adopt() if self._open != [] else ()
                waited = () if adopted else next(filter(None, self._due()), ())
                sendings = self._again(adopted) if adopted else [*waited, *self._pending()]
                self.full = self.full or bool(waited)
                if sendings:
                    break
                self._write()
                if not adopted and not self._cycle.full:
                    return False
            coming = [self._coming(some) for some in _groups(_firsts(sendings))]
            name_of = self._reader.association_of
            events = [LeavingEvent(sending, name_of(sending.object)) for sending in sendings]
            keep(Taken(events, [_mark(batch.content) for batch in coming]))
            self._write(coming)
            return True

    def remembers(self, marks: Iterable[str]) -> bool:
        """Whether all of a pick-up is on record still: nobody has finished any of it."""
        return {_mark(batch.content) for batch in self._store.remembered()}.issuperset(marks)

    def finish(self, marks: Container[str], waited: Mapping[str, ObjectName]) -> None:
        """Give the rows of a pick-up their letters, as far as nobody has done it."""
        remembered = self._adopt()
        ours = [batch for batch in remembered if _mark(batch.content) in marks]
        for batch in ours:
            self._finish(batch, waited)
        self._open = [] if len(ours) == len(remembered) else None

    def _finish(self, batch: RememberedBatch, waited: Mapping[str, ObjectName]) -> None:
        self._begin()
        facts = list(_facts(batch))
        self._tally.settle(facts)
        self._tally.released += ((waited[f.run_id], f.run_id) for f in facts if f.run_id in waited)
        self._open = [batch.number]
        self._write()

    def _again(self, remembered: Iterable[RememberedBatch]) -> list[Sending]:
        """The events that were about to go out when somebody stopped, under the same event-ids."""
        facts = [fact for batch in remembered for fact in _facts(batch)]
        for fact in facts:
            self._tally.worsen(fact.run_id, fact.worst)
        return [sending for parts in self._read_again(facts).values() for sending in parts]

    def _pending(self) -> Sequence[Sending]:
        reading = self._new()
        self.first, self.full = min(reading.picked, default=0), reading.full
        return reading.every()

    def _coming(self, sendings: Sequence[Sending]) -> Coming:
        """What is remembered of events: a document for each."""
        drafts = [batches.draft_of([sending]) for sending in sendings]
        return Coming(batches.write_memory(drafts, self._tally.worst), max(draft.highest for draft in drafts))


def _mark(content: str) -> str:
    """By what a batch is known again."""
    return hashlib.sha256(content.encode()).hexdigest()


def _facts(batch: RememberedBatch) -> Iterator[Remembered]:
    return chain.from_iterable(facts for _, facts in batches.read_memory(batch.content))


def _firsts(sendings: Iterable[Sending]) -> Iterator[Sending]:
    """The first part of each event: whoever sends an event again sends it from a part on."""
    seen = set[str]()
    for sending in sendings:
        if sending.run_id not in seen:
            seen.add(sending.run_id)
            yield sending


def _groups(sendings: Iterator[Sending]) -> Iterator[list[Sending]]:
    while group := list(islice(sendings, MOST_EVENTS)):
        yield group
