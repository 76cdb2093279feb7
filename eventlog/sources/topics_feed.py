"""The feed of topics: each transaction once, as soon as all its messages came, from any partition or run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Protocol

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Placed, Source
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.files.stores import KeyedStore, StoredItems
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.sequenced import repeats
from eventlog.qlik.sequenced_messages import MessageSequencer, SequencedMessage
from eventlog.sequence.delivery import Delivery, DeliveryStates
from eventlog.sequence.progress import (
    Partition,
    PartitionOffsets,
    PartitionRead,
    TopicProgress,
    load_topic_progress,
)
from eventlog.sequence.stream_settings import StreamSettings
from eventlog.sequence.transactions import (
    DueTransaction,
    Incomplete,
    WaitingTransactions,
    order_key,
    refuse_all,
    size_of,
    without_repeats,
)

_COMPACT = "a topic with cleanup.policy=compact lacks messages: --open-transactions deliver reads it so"


class TopicReader(Protocol):
    """The brokers."""

    def spots(self) -> Mapping[Partition, PartitionOffsets]:
        """Return the partitions that are to be read, as they are now."""

    def identity(self, topic: str) -> tuple[str | None, str | None]:
        """Return the id and the cleanup policy of a topic; None for what the brokers do not report."""

    def between(self, at: Partition, start: int, end: int) -> Source[Object]:
        """Return the messages of a partition from an offset up to another."""

    def commit_offsets(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the offsets for the group."""

    def close(self) -> None: ...


class TopicsFeed:
    """All partitions of topics, round after round up to the ends that they had when it began."""

    ended, blocks, tables = False, False, None  # more may always come; a round does not wait for it

    def __init__(
        self,
        reader: TopicReader,
        tables: Tables,
        reading: MessageSettings,
        stream: StreamSettings,
        state: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._stream = stream
        self._clock = clock
        self._progress = TopicProgress() if state is None else load_topic_progress(state)
        self._sequencer = MessageSequencer(tables, reading, stream.since)
        self._stored_changes: KeyedStore[Placed] = KeyedStore()
        self._waiting = WaitingTransactions(self._progress.recent)
        self._round = 0
        self._number = 0
        self._states = DeliveryStates(lambda: self.state)
        self._named: dict[str, Partition] = {}  # by the name of its source

    @property
    def state(self) -> str | None:
        """Return the state after everything that was handed out."""
        return self._progress.dump()

    def commit(self) -> None:
        """Copy the state to the brokers, now that it is kept."""
        self._reader.commit_offsets(
            {at: partition_read.start for at, partition_read in self._progress.partitions.items()}
        )

    def close(self) -> None:
        self._stored_changes.close()
        self._reader.close()

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Read the new messages, and hand out what is complete.

        With `follow` a transaction that became complete in this round waits for the next one, because then
        every partition was read past its last message.
        """
        self._round += 1
        self._repeats = repeats()
        spots = self._reader.spots()
        self._check(spots)
        for at, spot in spots.items():
            yield from self._read(at, spot)
        yield from self._add_all(self._sequencer.flush())
        yield from self._release(self._round - 1 if follow else self._round)
        yield from self._repeats.warnings()
        if not follow:
            yield from self._open_notices()

    # --- reading

    def _check(self, spots: Mapping[Partition, PartitionOffsets]) -> None:
        """Check, at first and whenever a partition grew, that the topics are those that were read before."""
        for topic, of_topic in groupby(sorted(spots), key=lambda at: at[0]):
            partitions = list(of_topic)
            if self._round > 1 and not any(self._moved(at, spots[at]) for at in partitions):
                continue
            topic_id, policy = self._reader.identity(topic)
            if "compact" in (policy or "") and self._stream.open_transactions != "deliver":
                raise Incomplete(f"{topic}: {_COMPACT}")
            for at in partitions:
                self._progress.check(at, spots[at], topic_id, open_in_memory=self._round > 1)
            if topic_id:
                self._progress.ids[topic] = topic_id

    def _moved(self, at: Partition, spot: PartitionOffsets) -> bool:
        partition_read = self._progress.partitions.get(at)
        return partition_read is None or partition_read.end != spot.high

    def _read(self, at: Partition, spot: PartitionOffsets) -> Iterator[Refused]:
        partition_read = self._progress.partitions.get(at)
        if partition_read is None:
            partition_read = PartitionRead(spot.start(at))
        first = self._round == 1
        source = self._reader.between(at, partition_read.start if first else partition_read.end, spot.high)
        self._named[source.name] = at
        grown_read = PartitionRead(spot.high) if first else PartitionRead(spot.high, partition_read.open)
        self._progress.partitions[at] = grown_read
        yield from self._add_all(self._sequencer.parse(source), partition_read)

    def _add_all(
        self, items: Iterable[SequencedMessage | Refused], partition_read: PartitionRead | None = None
    ) -> Iterator[Refused]:
        for item in items:
            if isinstance(item, Refused):
                yield item
            elif partition_read is None or partition_read.is_new(item.number):
                yield from self._add(item)

    def _add(self, item: SequencedMessage) -> Iterator[Refused]:
        self._number += 1
        placed, seq = Placed(*item[1:]), item.place.seq
        noted = self._waiting.add(placed.change, seq, placed.source, self._number, self._clock(), self._round)
        if noted is None:
            yield self._repeats.add(placed.change.table, placed.where, placed.raw)
            return
        transaction, counter = noted
        self._stored_changes.add(transaction.key, placed, size_of(placed), order_key(counter, seq))
        self._progress.partitions[self._named[placed.source]].open.add(placed.number)

    # --- handing out

    def _release(self, until: int) -> Iterator[Delivery | Refused]:
        """Yield what is complete since the round `until`, in the order of ends; report what never can be."""
        waiting = self._waiting
        is_full = self._stored_changes.size > self._stream.open_bytes
        stuck = waiting.stuck(self._clock() - self._stream.open_time, until, is_full)
        stops = self._stream.open_transactions == "stop"
        blocking = waiting.first(stuck) if stuck and stops else None
        for due in waiting.release(waiting.ready(until), stuck):
            if blocking is not None and due.transaction.progress.last >= blocking.progress.first:
                raise Incomplete(blocking.reason)
            yield from self._hand_out(due)

    def _hand_out(self, due: DueTransaction) -> Iterator[Delivery | Refused]:
        transaction = due.transaction
        stored_changes = self._stored_changes.pop(transaction.key)
        changes, contradiction = without_repeats(stored_changes, self._repeats)
        for placed in stored_changes:
            self._progress.partitions[self._named[placed.source]].open.remove(placed.number)
        if contradiction or (due.is_stuck and self._stream.open_transactions != "deliver"):
            yield from refuse_all(stored_changes, contradiction or transaction.reason)
        else:
            yield from self._delivered(due, changes)
        stored_changes.close()

    def _delivered(self, due: DueTransaction, changes: StoredItems[Placed]) -> Iterator[Delivery | Refused]:
        transaction = due.transaction
        self._waiting.record_delivered(transaction)
        if due.is_late:
            reason = f"transaction {transaction.key[0]} came late: later ones were delivered before"
            yield Refused(transaction.source_names, reason, fault=False)
        yield Delivery((placed.change for placed in changes), self._states.next(), due.is_late)

    def _open_notices(self) -> Iterator[Refused]:
        """Yield the transactions that the end of a read leaves to the next."""
        for key, transaction in self._waiting.open.items():
            changes = quantity(transaction.progress.count, "change is", "changes are")
            reason = f"transaction {key[0]} is open: its {changes} left to the next run"
            yield Refused(transaction.source_names, reason, fault=False)
