"""The partitions of topics: each message once, over rounds and runs, whatever the messages are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Final, Protocol

from eventlog.core.formats import Object, Source
from eventlog.transactions.counted import DueTransaction, Incomplete
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transactions.topic_progress import (
    Partition,
    PartitionOffsets,
    PartitionRead,
    TopicProgress,
    load_topic_progress,
)

_COMPACT: Final = (
    "a topic with cleanup.policy=compact lacks messages: --open-transactions deliver reads it so"
)


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


class PartitionReading:
    """All partitions of topics; each round reads up to the ends that they had when it began."""

    def __init__(
        self,
        reader: TopicReader,
        stream: StreamSettings,
        state: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._stream = stream
        self._clock = clock
        self.progress = TopicProgress() if state is None else load_topic_progress(state)
        self._round = 0
        self._named: dict[str, Partition] = {}  # by the name of its source

    def commit(self) -> None:
        """Copy the state to the brokers, now that it is kept."""
        partitions = self.progress.partitions.items()
        self._reader.commit_offsets({at: partition_read.start for at, partition_read in partitions})

    def close(self) -> None:
        self._reader.close()

    def note(self, transaction: DueTransaction) -> None:
        """Note that no message of a transaction is open any longer."""
        for placed in transaction.stored:
            self.progress.partitions[self._named[placed.source]].open.remove(placed.number)

    def _begin_round(self) -> Mapping[Partition, PartitionOffsets]:
        """Return the partitions as they are now, after a check that they are those of before."""
        self._round += 1
        spots = self._reader.spots()
        self._check(spots)
        return spots

    def _unread(
        self, at: Partition, spot: PartitionOffsets, overlap: int = 0
    ) -> tuple[Source[Object], PartitionRead]:
        """Return the messages of a partition that this run did not read, and what was read of it before.

        So many earlier messages come first, which a reader needs to understand the others.
        """
        read = self.progress.partitions.get(at) or PartitionRead(spot.start(at))
        start = read.start if self._round == 1 else read.end
        if self._round == 1 and start < spot.high:
            start = max(spot.low, start - overlap)
        source = self._reader.between(at, start, spot.high)
        self._named[source.name] = at
        return source, read

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
                self.progress.check(at, spots[at], topic_id, open_in_memory=self._round > 1)
            if topic_id:
                self.progress.ids[topic] = topic_id

    def _moved(self, at: Partition, spot: PartitionOffsets) -> bool:
        partition_read = self.progress.partitions.get(at)
        return partition_read is None or partition_read.end != spot.high
