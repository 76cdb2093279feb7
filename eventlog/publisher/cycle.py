"""One cycle: pick up, fold, query back, deliver, finish; what was interrupted or must be retried first.

Remember, deliver, finish: which rows go out under which event-id is on record before a document goes,
and rows are finished, by their ids, once the receiver has answered.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from eventlog.core.entry import Status as Letter
from eventlog.core.errors import EventlogError
from eventlog.publisher import batches
from eventlog.publisher.batches import Draft, PlainDraft, Remembered, Sending
from eventlog.publisher.head import Head
from eventlog.publisher.reading import Reader, Reading
from eventlog.publisher.settings import PublisherSettings
from eventlog.publisher.tally import LETTERS, Tally, Waits
from eventlog.sinks.sink import Parallel, Recording, Reply, Sequential, Sink
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import Spelling, Work
from eventlog.xds.answers import Level

logger = logging.getLogger("eventlog.publisher")

PATIENCE = 1.0  # seconds of answers that a crash may cost
MOST_DOCUMENTS = 500  # of one batch
DOWN_AFTER = 2  # documents without an answer, one after another: the receiver is down
MOST_AGAIN = 10_000  # events that are tried again in one cycle


class ReceiverFatal(EventlogError):
    """the receiver answered fatal, and the publisher stopped: {0}"""


@dataclass
class Cycle:
    """What one cycle did."""

    rows: int = 0  # that were picked up
    documents: int = 0
    events: int = 0
    refused: int = 0
    full: bool = False  # the limit was reached: there may be more
    paused: bool = False
    stopped: bool = False  # somebody asked to stop before everything was sent
    down: str | None = None  # why the sink takes nothing at the moment
    wait: float | None = None  # seconds that the receiver asked for
    unread: dict[str, str] = field(default_factory=dict)  # tables that could not be compared, and why
    seconds: float = 0.0
    query_back: float = 0.0  # seconds of it
    delivery: float = 0.0  # likewise
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)  # by operation and level


class Publisher:
    """Publishes one log to one sink, as the leader of one epoch."""

    def __init__(
        self,
        store: Store,
        make_reader: Callable[[], Reader],
        sink: Sink,
        epoch: int,
        batch_size: int,
        settings: PublisherSettings,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._make_reader = make_reader
        self._reader = make_reader()
        self._stopping = stopping
        self._sink = sink
        self._epoch = epoch
        self._batch_size = batch_size
        self._settings = settings
        self._head = Head()  # what is known of the log's
        self._waits = Waits(settings.retry_wait, settings.retry_longest)
        self._open: list[int] | None = None  # the batches that are remembered; None: not looked yet
        self._number = 0
        self._highest = 0  # record_id that ever went out, as far as we know
        self._was_down = False  # the receiver, in the last cycle
        self._faults = 0  # documents without an answer, one after another
        self._clock: datetime | None = None  # the database's, when ours stood at 0
        self._begin()

    def cycle(self) -> Cycle:
        """One cycle; ReceiverFatal once everything that was answered is finished."""
        begun = time.monotonic()
        self._begin()
        with _without_collections():
            for stage in (self._go_on, self._try_again, self._publish_new):
                if not self._stopped:
                    stage()
        self._was_down = self._cycle.down is not None
        self._cycle.seconds = time.monotonic() - begun
        return self._cycle

    def _begin(self) -> None:
        self._tally = Tally(self._waits)
        self._cycle = Cycle(answers=self._tally.levels)

    def _go_on(self) -> None:
        """First what was about to go out when somebody stopped: the same rows under the same event-ids."""
        if self._open == []:
            return
        if self._open is None:
            self._check_ids()
            self._name_holds()
        remembered = self._store.remembered()
        self._open = [batch.number for batch in remembered]
        if remembered:
            self._number = max(self._open)
            with self._store.work(self._epoch) as work:
                work.adopt()
            self._restore([d for batch in remembered for d in batches.read_memory(batch.content)])

    def _restore(self, documents: Sequence[tuple[str, Sequence[Remembered]]]) -> None:
        """Finish the documents that are out; send the others, their content read anew."""
        out = {name for name, _ in documents if self._sink.knows(name)}
        facts: list[Remembered] = []
        for name, fact in ((name, fact) for name, found in documents for fact in found):
            self._tally.worsen(fact.run_id, fact.worst)
            if name not in out:
                facts.append(fact)
            elif fact.more:
                facts.append(fact._replace(part=fact.part + 1))
            else:
                self._tally.letter(LETTERS[fact.worst.level], fact.settles)
        found = self._read_again(facts)
        drafts = [
            PlainDraft(name, sendings)
            for name, among in documents
            if name not in out and (sendings := tuple(found[f.run_id][0] for f in among if f.run_id in found))
        ]
        first = {sending.event_id for draft in drafts for sending in draft.sendings}
        rest = [s for sendings in found.values() for s in sendings if s.event_id not in first]
        self._send([*drafts, *batches.pack(rest, self._batch_size)])

    def _try_again(self) -> None:
        """Then the events whose wait is over."""
        if self._clock is None:
            with self._store.snapshot() as snapshot:
                self._set_clock(snapshot.now())
        waiting = self._store.waiting(self._now(), MOST_AGAIN)
        if waiting:
            found = self._read_again([Remembered(w.event_id, w.record_ids, tries=w.tries) for w in waiting])
            self._tally.released += ((w.object, w.event_id) for w in waiting if w.event_id not in found)
            objects = {w.event_id: w.object for w in waiting}  # under which they are held
            sendings = [s._replace(object=objects[s.run_id]) for parts in found.values() for s in parts]
            self._send(batches.pack(sendings, self._batch_size))

    def _publish_new(self) -> None:
        """Then the pending rows; at once again where all that were found are of objects that wait."""
        reading, known = self._pick_up(), set[Spelling]()
        while reading.all_held and not known.issuperset(reading.spelled) and not self._stopped:
            self._write()
            known.update(reading.spelled)
            reading = self._pick_up()
        first = 0
        if self._was_down:  # one event finds out, before a backlog becomes events that wait
            self._faults, first = DOWN_AFTER - 1, 1
            self._send(batches.pack(reading.first(), 1))
        if not self._stopped:
            self._send(reading.drafts(self._batch_size, first))

    def _pick_up(self) -> Reading:
        choice = self._settings.choice()
        reading = self._read(
            lambda reader, snapshot: reader.pick_up(snapshot, choice, self._head, by_column=True)
        )
        if reading.cut is not None:
            logger.warning("the insert of %s %s is cut: max-insert-rows or -bytes is too small", *reading.cut)
        if min(reading.picked, default=self._highest + 1) <= self._highest:
            self._check_ids()
        self._cycle.rows += len(reading.picked)
        self._cycle.full = reading.full
        self._tally.spelled += reading.spelled
        self._account(reading)
        return reading

    def _check_ids(self) -> None:
        """IdsComeAgain where rows are given the record ids of others that went out."""
        position = self._store.position()
        if isinstance(self._sink, Recording):
            position = position.came_out(self._sink.highest())
        position.demand_new()
        self._highest = max(self._highest, position.highest)

    def _name_holds(self) -> None:
        """The objects that wait under the names that they have with the tables as they are."""
        with self._store.work(self._epoch) as work:
            work.rename(self._reader.object_of)

    def _read(self, read: Callable[[Reader, Snapshot], Reading]) -> Reading:
        """What rows say. Before any is refused the catalogue is read again: perhaps the tables changed."""
        reading = self._read_once(read)
        if reading.doubtful:
            known, self._reader = list(self._reader.tables), self._make_reader()
            if known != list(self._reader.tables):
                self._name_holds()
            self._reader.thorough = True
            reading = self._read_once(read)
            self._reader.thorough = False
        return reading

    def _read_once(self, read: Callable[[Reader, Snapshot], Reading]) -> Reading:
        with self._store.snapshot() as snapshot:
            self._set_clock(snapshot.now())
            return read(self._reader, snapshot)

    def _read_again(self, facts: Sequence[Remembered]) -> dict[str, list[Sending]]:
        """The events that are still to be sent, by the names they had."""
        reading = self._read(lambda reader, snapshot: reader.read_again(snapshot, facts))
        self._account(reading)
        tries = {fact.run_id: fact.tries for fact in facts}
        found: dict[str, list[Sending]] = {}
        for sending in reading.sendings:
            again = sending._replace(tries=tries[sending.run_id])
            found.setdefault(sending.run_id, []).append(again)
        return found

    def _account(self, reading: Reading) -> None:
        """Note the rows that need no receiver."""
        self._tally.letter(Letter.SUCCESS, reading.silent)
        if reading.loopback:
            logger.info(reading.loopback)
        for row, reason in reading.refused:
            logger.warning("row %s is refused: %s", row, reason, extra={"record_id": row})
            self._tally.refuse(row, reason)
        self._cycle.refused += len(reading.refused)
        self._cycle.query_back += reading.query_back

    def _send(self, drafts: Iterable[Draft]) -> None:
        """Batch after batch: each transaction finishes one and remembers the next."""
        rest: Sequence[Draft] = ()
        apart = not isinstance(self._sink, Sequential)
        for planned in batches.in_batches(drafts, MOST_DOCUMENTS, apart=apart):
            rest = self._deliver_all(batches.without(planned, self._tally.blocked))
            if self._stopped:
                break
        self._write(rest)
        if self._tally.fatal is not None:
            raise ReceiverFatal(self._tally.fatal.text)

    @property
    def _stopped(self) -> bool:
        self._cycle.stopped = self._cycle.stopped or self._stopping()
        return self._cycle.stopped or self._cycle.down is not None or self._tally.fatal is not None

    def _deliver_all(self, batch: Sequence[Draft]) -> Sequence[Draft]:
        """Send a batch; where documents are too large, their halves, which are remembered before they go.
        Returns what a stop leaves to be sent."""
        while batch:
            self._write(batch)
            batch = self._deliver(batch)
            if self._stopped:
                break
        return batch

    def _deliver(self, batch: Sequence[Draft]) -> Sequence[Draft]:
        """Send a batch once and take the answers as they come. Returns the documents that are still to go."""
        left: list[Draft] = []  # of those with a reply
        replied, halted, begun = 0, False, time.monotonic()
        written = begun
        name_of = self._reader.association_of
        replies = self._sink.deliver([draft.document(name_of) for draft in batch])
        for draft, reply in zip(batch, replies, strict=False):
            left += self._settle(draft, reply)
            replied += 1
            halted = halted or reply.halts
            if self._stopped and not self._more_replies():
                break
            if time.monotonic() > written + PATIENCE:
                self._write([*left, *batch[replied:]])
                written = time.monotonic()
        if replied < len(batch) and not halted and not self._stopped:
            self._cycle.down = f"the sink replied to {replied} of {len(batch)} documents"
        self._cycle.delivery += time.monotonic() - begun
        return [*left, *batch[replied:]]

    def _settle(self, draft: Draft, reply: Reply) -> list[Draft]:
        """Note the reply to a document. Returns what of it is still to go."""
        if reply.fault is not None:
            self._suffer(reply)
        if reply.divide:
            return batches.halves(draft)
        if not reply.arrived:
            return [draft]
        self._take(draft, reply)
        return []

    def _more_replies(self) -> bool:
        """Have no further document begun. Returns whether there may be some on their way."""
        if not isinstance(self._sink, Parallel):
            return False
        self._sink.stop()
        return True

    def _take(self, draft: Draft, reply: Reply) -> None:
        """Note the answer to a document."""
        answer = self._tally.take(draft, reply, self._now())
        for status in answer.unknown:
            logger.warning("the receiver speaks of %s, which was not sent", status.event_id)
        for event_id, status in answer.statuses.items():
            if status.level >= Level.ERROR:
                facts = {"event_id": event_id, "level": status.level.name.lower()}
                logger.warning("event %s: %s: %s", event_id, facts["level"], status.text, extra=facts)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("document %s: %d events", draft.name, draft.size, extra=_facts(draft))
        self._faults = 0 if reply.fault is None else self._faults
        self._cycle.documents += 1
        self._cycle.events += draft.size

    def _suffer(self, reply: Reply) -> None:
        """A document without an answer: the second one, or one that did not arrive, ends the cycle."""
        self._faults += 1
        logger.warning("no answer: %s", reply.fault)
        if self._faults >= DOWN_AFTER or not reply.arrived or reply.wait is not None:
            asked = [wait for wait in (self._cycle.wait, reply.wait) if wait is not None]
            self._cycle.down, self._cycle.wait = reply.fault, max(asked, default=None)

    def _write(self, coming: Sequence[Draft] = ()) -> None:
        """Write what the answers came to, and remember what goes next, in one transaction."""
        if not (self._tally or self._open or coming):
            return
        self._head.release(name for name, _ in self._tally.released)
        with self._store.work(self._epoch) as work:
            self._tally.write(work)
            for number in self._open or ():
                work.settle(number)
            if coming:
                work.remember(self._number + 1, batches.write_memory(coming, self._tally.worst))
                self._note_highest(work, max(draft.highest for draft in coming))
        self._tally.clear()
        self._number += bool(coming)
        self._open = [self._number] if coming else []

    def _note_highest(self, work: Work, record_id: int) -> None:
        if record_id > self._highest:
            work.note_highest(record_id)
            self._highest = record_id

    def _set_clock(self, now: str) -> None:
        """The database's clock, by which waits are counted."""
        self._clock = datetime.fromisoformat(now) - timedelta(seconds=time.monotonic())

    def _now(self) -> datetime:
        assert self._clock is not None
        return self._clock + timedelta(seconds=time.monotonic())


@contextmanager
def _without_collections() -> Iterator[None]:
    """A cycle makes many objects and no circles of them; looking for some takes half of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _facts(draft: Draft) -> dict[str, object]:
    return {
        "event_ids": [sending.event_id for sending in draft.sendings],
        "record_ids": [row for sending in draft.sendings for row in sending.settles],
    }
