"""Pick-ups for a consumer that confirms later: taken, kept, remembered, and finished at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from eventlog.fold import ObjectName
from eventlog.publisher.batches import Remembered, Sending, association_of, draft_of, read_memory
from eventlog.publisher.cycle import without_collections
from eventlog.publisher.finish import Coming, Ledger, PickedUpBefore, coming_of
from eventlog.publisher.fold import Reader
from eventlog.publisher.pick_up import LogReader
from eventlog.publisher.reading import Reading
from eventlog.publisher.settings import PublisherSettings
from eventlog.publisher.tally import AnswerTally
from eventlog.publisher.waits import DatabaseClock
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import RememberedBatch

MOST_EVENTS = 500  # that are remembered together, and finished


class LeavingEvent(NamedTuple):
    """An event on its way, and what the receiver calls its object in every event."""

    sending: Sending
    association: str


class Taken(NamedTuple):
    """The events of a pick-up, in the order in which they leave, and the marks of what is remembered."""

    events: Sequence[LeavingEvent]
    marks: Sequence[str]

    @property
    def waited(self) -> dict[str, ObjectName]:
        """The objects of events that were sent before, by event-id: they are held until these are out."""
        return {event.sending.run_id: event.sending.object for event in self.events if event.sending.tries}


class PickUps:
    """Returns one pick-up after another; the one before must be finished by then."""

    first = 0  # the lowest record_id of the last pick-up
    full = True  # there may be more than it was allowed to take

    def __init__(
        self, store: Store, make_reader: Callable[[], Reader], epoch: int, settings: PublisherSettings
    ) -> None:
        self._store = store
        self._ledger = Ledger(store, epoch, delete=settings.delete_from_log)
        self._log = LogReader(store, make_reader, settings, self._ledger, DatabaseClock())
        self._waits = settings.waits
        self._tally = AnswerTally(self._waits)
        self._coming: Sequence[Coming] = ()  # the batches of a pick-up that is not remembered yet
        self._redriven: int | None = None  # the notice of the last redrive that it contains

    def take(self) -> Taken | None:
        """Return the next events, None if there are none; they are to be kept, then remembered.

        What another leader remembered comes first, and alone; then what waits no longer, and what is pending.
        """
        with without_collections():
            while True:
                self._tally = AnswerTally(self._waits)
                self.first, self.full, self._redriven = 0, True, None
                adopted = self._ledger.adopt(self._log.tables) if self._ledger.interrupted else ()
                sendings = self._interrupted(adopted) if adopted else self._ready()
                if sendings:
                    break
                self._ledger.write(self._tally, redriven=self._redriven)
                if not adopted and not self._tally.cycle.full:
                    return None
            groups = _groups(_firsts(sendings))
            self._coming = [coming_of([draft_of([s]) for s in group], self._tally) for group in groups]
            tables = self._log.tables
            events = [LeavingEvent(sending, association_of(tables, sending.object)) for sending in sendings]
            return Taken(events, [_mark(batch.content) for batch in self._coming])

    def remember(self) -> bool:
        """Remember the pick-up that was taken, which is kept by now.

        Return False if rows were redriven since, because then it is to be taken anew.
        """
        try:
            self._ledger.write(self._tally, self._coming, self._redriven)
        except PickedUpBefore:
            return False
        return True

    def remembers(self, marks: Iterable[str]) -> bool:
        """Return whether all of a pick-up is on record still: none of it was finished."""
        return {_mark(batch.content) for batch in self._store.remembered()}.issuperset(marks)

    def finish(self, marks: Container[str], waited: Mapping[str, ObjectName]) -> None:
        """Give the rows of a pick-up their letters, unless another leader has done it."""
        remembered = self._ledger.adopt(self._log.tables)
        ours = [batch for batch in remembered if _mark(batch.content) in marks]
        for batch in ours:
            self._finish(batch, waited)
        self._ledger.look_again(complete=len(ours) == len(remembered))

    def _finish(self, batch: RememberedBatch, waited: Mapping[str, ObjectName]) -> None:
        tally = AnswerTally(self._waits)
        facts = list(_facts(batch))
        tally.settle(facts)
        tally.released += ((waited[f.run_id], f.run_id) for f in facts if f.run_id in waited)
        self._ledger.settle(batch, tally)

    def _interrupted(self, remembered: Iterable[RememberedBatch]) -> Sequence[Sending]:
        """Return the events that were about to go out when a leader stopped, under the same event-ids."""
        facts = [fact for batch in remembered for fact in _facts(batch)]
        for fact in facts:
            self._tally.worsen(fact.run_id, fact.worst)
        return self._accounted(self._log.again(facts))

    def _ready(self) -> Sequence[Sending]:
        """Return the first events whose wait is over, and the pending ones."""
        reading = self._log.pick_up(unless_due=True)
        waited: Sequence[Sending] = ()
        if reading.due:
            waited = next(filter(None, map(self._accounted, self._log.due())), ())
        reading = self._log.past_held(self._log.pick_up() if reading.due else reading, self._tally)
        self._redriven = reading.redriven
        self.first, self.full = min(reading.picked, default=0), reading.full or bool(waited)
        return [*waited, *reading.every()]

    def _accounted(self, reading: Reading) -> Sequence[Sending]:
        self._tally.account(reading)
        return reading.sendings


def _mark(content: str) -> str:
    """Return a mark by which a batch is recognised again."""
    return hashlib.sha256(content.encode()).hexdigest()


def _facts(batch: RememberedBatch) -> Iterator[Remembered]:
    return chain.from_iterable(facts for _, facts in read_memory(batch.content))


def _firsts(sendings: Iterable[Sending]) -> Iterator[Sending]:
    """Return the first part of each event, because an event is sent again from one part on."""
    seen = set[str]()
    for sending in sendings:
        if sending.run_id not in seen:
            seen.add(sending.run_id)
            yield sending


def _groups(sendings: Iterator[Sending]) -> Iterator[list[Sending]]:
    while group := list(islice(sendings, MOST_EVENTS)):
        yield group
