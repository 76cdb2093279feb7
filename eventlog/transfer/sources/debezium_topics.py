"""Topics of Debezium: changes in the order of their partitions, transactions whole where their ends are read.

A change without a place in a transaction is complete by itself. One with a place waits until the end of its
transaction came, and as many changes of each table that is read as the end counts. A transaction leaves when
nothing older is left in any partition that has changes of it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import Refused, WrongRow
from eventlog.core.formats import Object, Placed, Source
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.files.stores import KeyedItems
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.formats.debezium.reader import DebeziumReader, message_parts
from eventlog.formats.debezium.transactions import (
    TransactionEnd,
    is_boundary,
    place_in_transaction,
    table_of,
    transaction_end,
)
from eventlog.formats.qlik.sequenced import repeats
from eventlog.transactions.counted import DueTransaction, Incomplete, Key, TransactionProgress, size_of
from eventlog.transactions.ranges import Ranges
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transactions.topic_progress import RECENT, Partition, PartitionRead, remember
from eventlog.transfer.sources.partitions import PartitionReading, TopicReader

_STEP: Final = 1000  # messages after which what is complete leaves
_NO_END: Final = (
    "transaction {} ({}) lacks its end, a message of the topic of transactions, which --kafka must name, too"
)


@dataclass(slots=True)
class _Waiting:
    """A transaction, or changes without one that follow each other in a partition."""

    progress: TransactionProgress
    counters: dict[str, Ranges] = field(default_factory=dict)  # of the changes that came, by table
    end: TransactionEnd | None = None
    partitions: dict[Partition, None] = field(default_factory=dict)  # that have changes of it
    other_messages: list[tuple[Partition, int]] = field(default_factory=list)  # messages that are no changes


class DebeziumReading(PartitionReading):
    """The messages of Debezium in all partitions of topics."""

    def __init__(
        self,
        reader: TopicReader,
        tables: Tables,
        reading: DebeziumSettings,
        stream: StreamSettings,
        state: str | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(reader, stream, state, clock)
        self._messages = DebeziumReader(tables, reading)
        self._waiting: dict[Key, _Waiting] = {}
        self._queues: dict[Partition, deque[Key]] = {}  # what waits in a partition, the oldest first
        self._store: KeyedItems[Placed] = KeyedItems()
        self._tables: set[str] = set()  # whose changes are read

    def close(self) -> None:
        self._store.close()
        super().close()

    def transactions(self, follow: bool) -> Iterator[DueTransaction | Refused]:
        """Read the new messages, and yield what is complete or can never be."""
        repeated = repeats()
        spots = self._begin_round()
        self._tables |= {table_of(topic) for topic, _ in spots}
        for at, spot in spots.items():
            source, read = self._unread(at, spot, overlap=1)  # a delete, whose tombstone may be the next
            self.progress.partitions[at] = read
            yield from self._take_all(source, at, read, repeated)
            read.end = max(read.end, spot.high)
        yield from self._release(self._due())
        yield from repeated.warnings()
        yield from self._messages.warnings()
        for waiting in () if follow else self._waiting.values():
            progress = waiting.progress
            changes = quantity(progress.count, "change is", "changes are")
            after = f"transaction {progress.key[0]} is open: its" if progress.key[0] else "after it,"
            yield Refused(progress.source_names, f"{after} {changes} left to the next run", fault=False)

    def _take_all(
        self, source: Source[Object], at: Partition, read: PartitionRead, repeated: GroupedWarnings
    ) -> Iterator[DueTransaction | Refused]:
        """Take the messages of a partition, and yield what leaves and what is refused."""
        for number, record in enumerate(source.records, 1):
            if isinstance(record, Refused):
                yield record
                continue
            refused = self._take(source, record, at, read, repeated)
            if refused is not None:
                yield refused
            read.end = max(read.end, record.where + 1)
            if number % _STEP == 0:
                yield from self._release()
        yield from self._release()

    def _take(
        self,
        source: Source[Object],
        record: Object,
        at: Partition,
        read: PartitionRead,
        repeated: GroupedWarnings,
    ) -> Refused | None:
        """Put a message where it waits, unless it was handed out before; return one that is refused."""
        try:
            payload = message_parts(record)[1].payload
            if is_boundary(payload):
                self._end(transaction_end(payload), source, record, read)
                return None
            change = self._messages.read_record(source, record)
            place = place_in_transaction(payload)
        except WrongRow as fault:
            return source.refuse(record, str(fault)) if read.is_new(record.where) else None
        if change is None or not read.is_new(record.where):
            return None
        if place is None:
            if isinstance(change, Refused):
                return change
            queue = self._queues.get(at)
            key = queue[-1] if queue and not queue[-1][0] else ("", *map(str, at), str(record.where))
            self._wait(key, placed(change, source, record))
            return None
        self._tables.add(place.table)
        key = (place.transaction,)
        if key in self.progress.recent:
            return repeated.add(place.table, source.at(record.where), record.raw)
        waiting = self._waiting.get(key) or self._begin(key, payload)
        counters_seen = waiting.counters.setdefault(place.table, Ranges())
        if place.number_in_table in counters_seen:
            return repeated.add(place.table, source.at(record.where), record.raw)
        counters_seen.add(place.number_in_table)
        if isinstance(change, Refused):
            self._hold(waiting, read, source, record)
            return change
        self._wait(key, placed(change, source, record), place.number)
        return None

    def _begin(self, key: Key, payload: Any) -> _Waiting:
        now = self._clock()
        at = payload.get("ts_ms") if isinstance(payload, dict) else None
        since = min(now, at / 1000) if type(at) is int else now
        waiting = self._waiting[key] = _Waiting(TransactionProgress(key, since))
        return waiting

    def _wait(self, key: Key, placed: Placed, number: int = 0) -> None:
        """Let a change wait after what its partition has before it."""
        at = self._named[placed.source]
        waiting = self._waiting.get(key) or self._begin(key, None)
        waiting.progress.count += 1
        waiting.progress.sources.add(placed.source)
        waiting.partitions[at] = None
        queue = self._queues.setdefault(at, deque())
        if not queue or queue[-1] != key:
            queue.append(key)
        self._store.add(key, placed, size_of(placed), number)
        self.progress.partitions[at].open.add(placed.number)

    def _end(
        self, end: TransactionEnd | None, source: Source[Object], record: Object, read: PartitionRead
    ) -> None:
        """Note the end of a transaction; None is a begin."""
        if end is None or not read.is_new(record.where):
            return
        key = (end.transaction,)
        if key not in self.progress.recent:
            waiting = self._waiting.get(key) or self._begin(key, message_parts(record)[1].payload)
            waiting.end = end
            waiting.progress.sources.add(source.name)
            self._hold(waiting, read, source, record)

    def _hold(self, waiting: _Waiting, read: PartitionRead, source: Source[Object], record: Object) -> None:
        """Read a message that is no change again in each run that the transaction waits for."""
        waiting.other_messages.append((self._named[source.name], record.where))
        read.open.add(record.where)

    def _missing_part(self, key: Key) -> str:
        """Return what is missing of what waits; empty if it is complete."""
        waiting, name = self._waiting[key], key[0]
        if not name:
            return ""
        if waiting.end is None:
            return _NO_END.format(name, waiting.progress.source_names)
        for table, count in waiting.end.counts.items():
            gaps = waiting.counters.get(table, Ranges()).missing(1, count) if table in self._tables else ()
            if gaps:
                missing = sum(last - first for first, last in gaps)
                return f"transaction {name} lacks {missing} of {quantity(count, 'change')} of {table}"
        return ""

    def _due(self) -> dict[Key, str]:
        """Return the transactions that must not wait any longer, each with what it lacks."""
        missing_parts = {key: lack for key in self._waiting if (lack := self._missing_part(key))}
        if self._stream.open_transactions == "deliver" or self._store.size > self._stream.open_bytes:
            return missing_parts
        oldest = self._clock() - self._stream.open_time
        return {
            key: lack for key, lack in missing_parts.items() if self._waiting[key].progress.since < oldest
        }

    def _release(self, due: Mapping[Key, str] | None = None) -> Iterator[DueTransaction]:
        """Yield what is complete or due, and has nothing older in its partitions, in that order."""
        if due and self._stream.open_transactions == "stop":
            raise Incomplete(next(iter(due.values())))
        partitions = deque(self._queues)
        while partitions:
            queue = self._queues[partitions.popleft()]
            while queue and queue[0] not in self._waiting:
                queue.popleft()
            if not queue:
                continue
            key, waiting = queue[0], self._waiting[queue[0]]
            lack = self._missing_part(key)
            if (not lack or (due and key in due)) and self._is_oldest(key, waiting.partitions):
                partitions += waiting.partitions
                yield from self._handed_out(key, lack)
        if due is not None:
            yield from self._release_rest(due)

    def _release_rest(self, due: Mapping[Key, str]) -> Iterator[DueTransaction]:
        """Yield what no partition hands out: it has no change, or partitions have different orders."""
        for key in [*self._waiting]:
            lack = self._missing_part(key)
            if not self._waiting[key].partitions and (key in due or not lack):
                yield from self._handed_out(key, lack)
        if not any(map(self._missing_part, self._waiting)):
            for key in [*self._waiting]:
                yield from self._handed_out(key, "")

    def _is_oldest(self, key: Key, partitions: Collection[Partition]) -> bool:
        for at in partitions:
            queue = self._queues[at]
            while queue[0] not in self._waiting:
                queue.popleft()
            if queue[0] != key:
                return False
        return True

    def _handed_out(self, key: Key, lack: str) -> Iterator[DueTransaction]:
        """Yield a transaction, which waits no more; its end is read."""
        waiting = self._waiting.pop(key)
        for at, number in waiting.other_messages:
            self.progress.partitions[at].open.remove(number)
        stored = self._store.pop(key)
        if not stored.count:
            return
        if key[0] and not lack:
            remember(self.progress.recent, key, None, RECENT)
        fault = lack if self._stream.open_transactions == "refuse" else ""
        yield DueTransaction(waiting.progress, stored, stored, fault)
        stored.close()


def placed(change: Change, source: Source[Object], record: Object) -> Placed:
    """Return the change of a message with its place."""
    return Placed(change, source.at(record.where), record.raw, source.name, record.where)
