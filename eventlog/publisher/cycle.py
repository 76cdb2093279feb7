"""One cycle: pick up, fold, query back, deliver, finish; what was interrupted or must be retried first.

Remember, deliver, finish: which rows go out under which event-id is on record before a document goes,
and rows are finished, by their ids, once the receiver has answered.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError
from eventlog.publisher import batches
from eventlog.publisher.batches import Draft, PlainDraft, Remembered
from eventlog.publisher.log_session import (
    Coming,
    Cycle,
    LogSession,
    PickedUpBefore,
    logger,
    without_collections,
)
from eventlog.publisher.reading import Reader
from eventlog.publisher.settings import PublisherSettings
from eventlog.sinks.sink import ACCEPTED, Parallel, Recording, Reply, Sequential, Sink
from eventlog.sql.log.position import IdPosition
from eventlog.sql.log.store import Store
from eventlog.xds.answers import Level

PATIENCE = 1.0  # seconds of answers that a crash may cost
MOST_DOCUMENTS = 500  # of one batch
DOWN_AFTER = 2  # documents without an answer, one after another: the receiver is down


class ReceiverFatal(EventlogError):
    """the receiver answered fatal, and the publisher stopped: {0}"""


class Publisher(LogSession):
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
        report: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(store, make_reader, epoch, settings)
        self._stopping = stopping
        self._report = report  # called after each reply
        self.receiver_down: str | None = None  # why, by its last answer or fault
        self._begun = 0.0  # when the cycle did
        self._sink = sink
        self._batch_size = batch_size
        self._was_down = False  # the receiver, in the last cycle
        self._faults = 0  # documents without an answer, one after another

    def _begin(self) -> None:
        super()._begin()
        self._silent: list[int] = []  # rows that need no receiver, not finished yet

    def cycle(self) -> Cycle:
        """One cycle; ReceiverFatal once everything that was answered is finished."""
        self._begun = time.monotonic()
        self._begin()
        with without_collections():
            for stage in (self._go_on, self._try_again, self._publish_new):
                if not self._stopped:
                    stage()
        self._was_down = self._cycle.down is not None
        self._cycle.seconds = time.monotonic() - self._begun
        return self._cycle

    @property
    def progress(self) -> Cycle:
        """The cycle so far; whether the receiver is down follows its last answer or fault, in any cycle."""
        seconds = self._cycle.seconds or time.monotonic() - self._begun
        return replace(self._cycle, down=self.receiver_down, seconds=seconds)

    def _go_on(self) -> None:
        """First what was about to go out when somebody stopped: the same rows under the same event-ids."""
        if self._open != []:
            remembered = self._adopt()
            if remembered:
                self._restore([d for batch in remembered for d in batches.read_memory(batch.content)])

    def _restore(self, documents: Sequence[tuple[str, Sequence[Remembered]]]) -> None:
        """Finish the documents that are out; send the others, their content read anew."""
        out = {name for name, _ in documents if self._sink.knows(name)}
        for name, fact in ((name, fact) for name, found in documents for fact in found):
            self._tally.worsen(fact.run_id, fact.worst)
            if name in out and not fact.more:
                self._tally.settle((fact,))
        found = self._read_again(batches.still_to_go(documents, out))
        parts = {(s.run_id, s.part): s for sendings in found.values() for s in sendings}
        drafts = [
            PlainDraft(name, sendings)
            for name, among in documents
            if name not in out
            and (sendings := tuple(parts[at] for f in among if (at := (f.run_id, f.part)) in parts))
        ]
        first = {sending.event_id for draft in drafts for sending in draft.sendings}
        rest = [s for sendings in found.values() for s in sendings if s.event_id not in first]
        self._send([*drafts, *batches.pack(rest, self._batch_size)])

    def _try_again(self) -> None:
        """Then the events whose wait is over."""
        for sendings in self._due():
            self._send(batches.pack(sendings, self._batch_size))
            if self._stopped:
                break

    def _publish_new(self) -> None:
        """Then the pending rows; what is left when others are redriven meanwhile goes in the next cycle."""
        reading = self._new()
        first = 0
        try:
            if self._was_down:  # one event finds out, before a backlog becomes events that wait
                self._faults, first = DOWN_AFTER - 1, 1
                self._send(batches.pack(reading.first(), 1), new=True, more=True)
            if not self._stopped:
                self._send(reading.drafts(self._batch_size, first), new=True)
        except PickedUpBefore as told:
            logger.info("%s", told)
            self._cycle.full = True

    def _position(self) -> IdPosition:
        position = super()._position()
        return position.came_out(self._sink.highest()) if isinstance(self._sink, Recording) else position

    def _send(self, drafts: Iterable[Draft], *, new: bool = False, more: bool = False) -> None:
        """Batch after batch: each transaction finishes one and remembers the next, the last one also what
        needs no receiver, where no more follows that was read with it."""
        rest: Sequence[Draft] = ()
        apart = not isinstance(self._sink, Sequential)
        for planned in batches.in_batches(drafts, MOST_DOCUMENTS, apart=apart):
            rest = self._deliver_all(batches.without(planned, self._tally.blocked), new=new)
            if self._stopped:
                break
        if not (more or self._stopped):
            self._finish_silent()
        self._remember(rest)
        if self._tally.fatal is not None:
            raise ReceiverFatal(self._tally.fatal.text)

    def _let_go(self, silent: Sequence[int]) -> None:
        """Keep rows of which no event speaks, until all events before them are answered: one of their object
        that fails was overtaken by them, and one that waits holds them."""
        self._silent += silent

    def _finish_silent(self) -> None:
        """Finish the rows of which no event speaks, but for those behind an event that waits."""
        silent, self._silent = self._silent, []
        held = self._tally.held
        if silent and held:
            with self._store.snapshot() as snapshot:
                rows = [
                    (int(str(row[0])), self._reader.object_of(*row[5:7])) for row in snapshot.rows(silent)
                ]
            silent = [row for row, name in rows if row < held.get(name, row + 1)]
        self._tally.letter(Letter.SUCCESS, silent)

    @property
    def _stopped(self) -> bool:
        self._cycle.stopped = self._cycle.stopped or self._stopping()
        return self._cycle.stopped or self._cycle.down is not None or self._tally.fatal is not None

    def _deliver_all(self, batch: Sequence[Draft], *, new: bool) -> Sequence[Draft]:
        """Send a batch; where documents are too large, their halves, which are remembered before they go.
        Returns what a stop leaves to be sent."""
        while batch:
            self._remember(batch, new=new)
            batch, new = self._deliver(batch), False
            if self._stopped:
                break
        return batch

    def _deliver(self, batch: Sequence[Draft]) -> Sequence[Draft]:
        """Send a batch once and take the answers as they come. Returns the documents that are still to go."""
        left: list[Draft] = []  # of those with a reply
        in_order = isinstance(self._sink, Sequential)
        replied, halted, begun = 0, False, time.monotonic()
        written = begun
        name_of = self._reader.association_of
        replies = self._sink.deliver([draft.document(name_of) for draft in batch])
        for draft, reply in zip(batch, replies, strict=False):
            left += self._settle(draft, reply)
            self._report()
            replied += 1
            halted = halted or reply.halts or (in_order and reply != ACCEPTED)
            if self._stopped and not self._more_replies():
                break
            if time.monotonic() > written + PATIENCE:
                self._remember([*left, *batch[replied:]])
                written = time.monotonic()
        if replied < len(batch) and not halted and not self._stopped:
            self._cycle.down = f"the sink replied to {replied} of {len(batch)} documents"
            self.receiver_down = self._cycle.down
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
        if reply.fault is None:
            self._faults, self.receiver_down = 0, None
        self._cycle.documents += 1
        self._cycle.events += draft.size

    def _suffer(self, reply: Reply) -> None:
        """A document without an answer: the second one, or one that did not arrive, ends the cycle."""
        self._faults += 1
        logger.warning("no answer: %s", reply.fault)
        if self._faults >= DOWN_AFTER or not reply.arrived or reply.wait is not None:
            asked = [wait for wait in (self._cycle.wait, reply.wait) if wait is not None]
            self._cycle.down, self._cycle.wait = reply.fault, max(asked, default=None)
            self.receiver_down = reply.fault

    def _remember(self, batch: Sequence[Draft], *, new: bool = False) -> None:
        """Write what the answers came to, and remember what goes next."""
        content = batches.write_memory(batch, self._tally.worst)
        self._write([Coming(content, max(draft.highest for draft in batch))] if batch else (), new=new)


def _facts(draft: Draft) -> dict[str, object]:
    return {
        "event_ids": [sending.event_id for sending in draft.sendings],
        "record_ids": [row for sending in draft.sendings for row in sending.settles],
    }
