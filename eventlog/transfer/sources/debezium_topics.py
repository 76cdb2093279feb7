"""Topics of Debezium: changes in the order of their partitions, transactions whole where their ends are read.

A change without a place in a transaction is complete by itself. One with a place waits until the end of its
transaction came, and as many changes of each table that is read as the end counts. A transaction leaves when
nothing older is left in any partition that has changes of it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import Refused, WrongRow
from eventlog.core.formats import Object, Placed, Source
from eventlog.core.grouped_warnings import GroupedWarnings, repeats
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.files.stores import SpoolFile
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.formats.debezium.reader import DebeziumReader, message_parts
from eventlog.formats.debezium.transactions import (
    TransactionEnd,
    is_boundary,
    place_in_transaction,
    table_of,
    transaction_end,
)
from eventlog.transactions.counted import DueTransaction, Incomplete, Key, TransactionProgress, size_of
from eventlog.transactions.open_transactions import Bounds, OpenTransaction, OpenTransactions
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transactions.topic_progress import RECENT, Partition, PartitionRead, remember
from eventlog.transfer.sources.partitions import PartitionReading, TopicReader

_STEP: Final = 1000  # messages after which what is complete leaves
_END: Final = "its end, a message of the topic of transactions, which --kafka must name, too"


@dataclass(slots=True)
class Waiting(TransactionProgress):
    """A transaction, or changes without one that follow each other in a partition."""

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
        # items are changes with their numbers, in which they leave
        self._transactions = OpenTransactions[Key, Waiting, tuple[int, Placed]](
            SpoolFile(), Bounds(), order=itemgetter(0)
        )
        self._queues: dict[Partition, deque[Key]] = {}  # what waits in a partition, the oldest first
        self._tables: set[str] = set()  # whose changes are read

    def close(self) -> None:
        self._transactions.close()
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
        for transaction in () if follow else self._transactions.open.values():
            waiting, changes = transaction.facts, quantity(transaction.count, "change is", "changes are")
            after = f"transaction {waiting.key[0]} is open: its" if waiting.key[0] else "after it,"
            yield Refused(waiting.source_names, f"{after} {changes} left to the next run", fault=False)

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
        transaction = self._transactions.open.get(key) or self._begin(key, payload)
        if not transaction.facts.is_new(place.table, place.number_in_table):
            return repeated.add(place.table, source.at(record.where), record.raw)
        if isinstance(change, Refused):
            self._hold(transaction.facts, read, source, record)
            return change
        self._wait(key, placed(change, source, record), place.number)
        return None

    def _begin(self, key: Key, payload: Any) -> OpenTransaction[Waiting, tuple[int, Placed]]:
        now = self._clock()
        at = payload.get("ts_ms") if isinstance(payload, dict) else None
        since = min(now, at / 1000) if type(at) is int else now
        return self._transactions.begin(key, Waiting(key, since))

    def _wait(self, key: Key, placed: Placed, number: int = 0) -> None:
        """Let a change wait after what its partition has before it."""
        at = self._named[placed.source]
        transaction = self._transactions.open.get(key) or self._begin(key, None)
        transaction.facts.sources.add(placed.source)
        transaction.facts.partitions[at] = None
        queue = self._queues.setdefault(at, deque())
        if not queue or queue[-1] != key:
            queue.append(key)
        self._transactions.add(transaction, (number, placed), size_of(placed))
        self.progress.partitions[at].open.add(placed.number)

    def _end(
        self, end: TransactionEnd | None, source: Source[Object], record: Object, read: PartitionRead
    ) -> None:
        """Note the end of a transaction; None is a begin."""
        if end is None or not read.is_new(record.where):
            return
        key = (end.transaction,)
        if key not in self.progress.recent:
            payload = message_parts(record)[1].payload
            waiting = (self._transactions.open.get(key) or self._begin(key, payload)).facts
            waiting.counts = end.counts
            waiting.sources.add(source.name)
            self._hold(waiting, read, source, record)

    def _hold(self, waiting: Waiting, read: PartitionRead, source: Source[Object], record: Object) -> None:
        """Read a message that is no change again in each run that the transaction waits for."""
        waiting.other_messages.append((self._named[source.name], record.where))
        read.open.add(record.where)

    def _lack(self, key: Key) -> str:
        """Return what is missing of what waits; empty if it is complete."""
        return self._transactions.open[key].facts.missing(_END, self._tables) if key[0] else ""

    def _due(self) -> dict[Key, str]:
        """Return the transactions that must not wait any longer, each with what it lacks."""
        waiting = self._transactions.open
        missing_parts = {key: lack for key in waiting if (lack := self._lack(key))}
        if self._stream.open_transactions == "deliver" or self._transactions.size > self._stream.open_bytes:
            return missing_parts
        oldest = self._clock() - self._stream.open_time
        return {key: lack for key, lack in missing_parts.items() if waiting[key].facts.since < oldest}

    def _release(self, due: Mapping[Key, str] | None = None) -> Iterator[DueTransaction]:
        """Yield what is complete or due, and has nothing older in its partitions, in that order."""
        if due and self._stream.open_transactions == "stop":
            raise Incomplete(next(iter(due.values())))
        partitions = deque(self._queues)
        while partitions:
            key = self._oldest(partitions.popleft())
            if key is None:
                continue
            lack, spread = self._lack(key), self._transactions.open[key].facts.partitions
            if (not lack or (due and key in due)) and all(self._oldest(each) == key for each in spread):
                partitions += spread
                yield from self._hand_out(key, lack)
        if due is not None:
            yield from self._release_rest(due)

    def _release_rest(self, due: Mapping[Key, str]) -> Iterator[DueTransaction]:
        """Yield what no partition hands out: it has no change, or partitions have different orders."""
        waiting = self._transactions.open
        for key in [*waiting]:
            lack = self._lack(key)
            if not waiting[key].facts.partitions and (key in due or not lack):
                yield from self._hand_out(key, lack)
        if not any(map(self._lack, waiting)):
            for key in [*waiting]:
                yield from self._hand_out(key, "")

    def _oldest(self, at: Partition) -> Key | None:
        queue = self._queues[at]
        while queue and queue[0] not in self._transactions.open:
            queue.popleft()
        return queue[0] if queue else None

    def _hand_out(self, key: Key, lack: str) -> Iterator[DueTransaction]:
        """Yield a transaction, which waits no more; its end is read."""
        ended = self._transactions.end(key)
        assert ended is not None
        for at, number in ended.facts.other_messages:
            self.progress.partitions[at].open.remove(number)
        if not ended.count:
            return
        if key[0] and not lack:
            remember(self.progress.recent, key, None, RECENT)
        fault = lack if self._stream.open_transactions == "refuse" else ""
        yield DueTransaction(ended.facts, changes := ended.map(itemgetter(1)), changes, fault)
        ended.close()


def placed(change: Change, source: Source[Object], record: Object) -> Placed:
    """Return the change of a message with its place."""
    return Placed(change, source.at(record.where), record.raw, source.name, record.where)
