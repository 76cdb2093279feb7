"""Messages of a task, batch after batch: what is handed out, and what waits in the state.

One sequence runs through all topics and partitions of a task. A transaction leaves when all of it came and
every partition was read past its end, or to an end taken after its last message. A partition without messages
in a batch counts as read. A partition is read no further than an Avro message without its metadata: that
message and the later ones wait.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from eventlog.core.errors import Refused
from eventlog.core.formats import Placed
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.sequenced import repeats
from eventlog.qlik.sequenced_messages import SequencedMessage
from eventlog.sequence.settings import StreamSettings
from eventlog.sequence.transactions import Incomplete, Key, is_row, size_of
from eventlog.sequence.waiting import Leaving, WaitingTransactions
from eventlog_spark.stream.message_batch import BatchReading, RegistryFailed, name_of
from eventlog_spark.stream.waiting import (
    KeptTransactions,
    OrderedMessage,
    StreamProgress,
    TopicMessage,
    WaitingTransaction,
    pack,
    unpack,
)

MESSAGE, REFUSED, SAID, OPEN, STOP, READ = "message", "refused", "said", "open", "stop", "read"
METADATA = "metadata"  # that messages of the batch name
_NAMED = 100  # open transactions that are named


class Released(NamedTuple):
    """An item that a batch hands out: a message of a transaction, or a notice."""

    kind: str
    turn: int = 0  # the transaction
    late: bool = False
    incomplete: bool = False
    topic: str | None = None
    partition: int = 0
    offset: int = 0
    value: bytes | None = None
    where: str | None = None
    reason: str | None = None


@dataclass
class Holding:
    """The state of a task; each step is a batch."""

    tables: Tables
    reading: MessageSettings
    bounds: StreamSettings
    kept: KeptTransactions

    def step(self, messages: Iterable[TopicMessage], now: int) -> Iterator[Released]:
        """Yield what leaves with these messages, at a time in milliseconds; after a STOP nothing is kept."""
        self._progress = StreamProgress.load(self.kept.progress())
        self._progress.round += 1
        self._now = now
        self._repeats = repeats()
        self._used: set[str] = set()  # metadata of what goes out
        self._reading = BatchReading(self.tables, self.reading, self.bounds, self.kept, self._progress)
        self._waiting = WaitingTransactions(
            WaitingTransaction, self._progress.recent, self._progress.released
        )
        kept = (WaitingTransaction.load(text) for _, text in self.kept.waiting())
        self._waiting.open = {one.key: one for one in kept}
        came: set[str] = set()
        try:
            yield from self._read(messages, came)
        except (RegistryFailed, Incomplete) as fault:
            yield Released(STOP, reason=str(fault))
            return
        ready = self._ready(came)
        held = sum(one.size for key, one in self._waiting.open.items() if key not in ready)
        full = held > self.bounds.open_bytes
        stuck = self._waiting.stuck(ready, self._now - 1000 * self.bounds.open_time, full=full)
        if stuck and self.bounds.open_transactions == "stop":
            yield Released(STOP, reason=self._waiting.first(stuck).why)
            return
        yield from self._release(ready, stuck)
        for schema_id in sorted(self._used & self._reading.known.keys()):
            yield Released(METADATA, reason=self._reading.known[schema_id])
        for warning in self._repeats.warnings():
            yield Released(SAID, where=warning.where, reason=warning.reason)
        yield from self._open()
        self._keep()

    @property
    def waits(self) -> bool:
        """Return whether something must be looked at again, even if no message comes."""
        return bool(self._waiting.open or self._progress.halted)

    # --- reading

    def _read(self, messages: Iterable[TopicMessage], came: set[str]) -> Iterator[Released]:
        places: dict[str, tuple[str, int]] = {}
        messages = list(messages)
        for one in messages:
            places[name_of(one[:2])] = one[:2]
        for name, halted in self._progress.halted.items():
            places[name] = halted.topic, halted.partition
        came.update(places)
        for name in places:
            self._progress.greatest.setdefault(name, "")
        yield from self._take(self._reading.read(messages, self._now), places)
        if self._reading.count:
            yield Released(READ, turn=self._reading.count)

    def _take(
        self, items: Iterable[SequencedMessage | Refused], places: dict[str, tuple[str, int]]
    ) -> Iterator[Released]:
        loaded: tuple[str, str] | None = None  # rows of a full load that go together
        for item in items:
            if isinstance(item, Refused):
                yield Released(REFUSED, value=item.raw, where=item.where, reason=item.reason)
                continue
            greatest = self._progress.greatest
            seq = max(greatest[item.source], item.place.seq)
            if not item.place.behind:
                greatest[item.source] = seq
                seq = item.place.seq
            if not item.place.behind or loaded != (item.source, seq):
                self._progress.number += 1
                loaded = (item.source, seq) if item.place.behind else None
            message = TopicMessage(*places[item.source], item.number, item.raw)
            self._add(item, seq, message, self._reading.schema_id)

    def _add(self, item: SequencedMessage, seq: str, message: TopicMessage, schema_id: str | None) -> None:
        placed, number = Placed(*item[1:]), self._progress.number
        noted = self._waiting.add(placed.change, seq, placed.source, number, self._now, self._progress.round)
        if noted is None:
            self._repeats.add(placed.change.table, placed.where, placed.raw)
            return
        one, counter = noted
        one.size += size_of(placed)
        if schema_id is not None:
            one.schemas.add(schema_id)
        one.new.append(OrderedMessage(counter, seq, len(one.new) if is_row(one.key) else number, message))

    # --- handing out

    def _ready(self, came: Set[str]) -> set[Key]:
        """Return the complete transactions whose predecessors are complete too."""
        complete = [one for one in self._waiting.open.values() if one.facts.complete]
        ready = {one.key for one in complete if self._passed(one, came)}
        wait = min((one.facts.last for one in complete if one.key not in ready), default=None)
        return {key for key in ready if wait is None or self._waiting.open[key].facts.last <= wait}

    def _passed(self, one: WaitingTransaction, came: Set[str]) -> bool:
        """Return whether every partition was read past a transaction, or to an end taken after all of it
        came.
        """
        greatest = self._progress.greatest
        known = came if one.round < self._progress.round else greatest
        return all(greatest[name] >= one.facts.last for name in known)

    def _release(self, ready: Set[Key], stuck: Set[Key]) -> Iterator[Released]:
        for going in self._waiting.leave(ready, stuck):
            one = going.waiting
            yield from self._hand_out(going)
            if one.rounds:
                self.kept.drop(_name(one.key), one.rounds)

    def _hand_out(self, going: Leaving[WaitingTransaction]) -> Iterator[Released]:
        one = going.waiting
        messages = self._messages(one)
        if going.stuck and self.bounds.open_transactions == "refuse":
            for message in messages:
                where = f"{name_of(message[:2])}:{message.offset}"
                yield Released(REFUSED, value=message.value, where=where, reason=one.why)
            return
        self._waiting.left(one)
        self._progress.turn += 1
        for message in messages:
            yield Released(MESSAGE, self._progress.turn, going.late, going.stuck, *message[:4])
        self._used |= one.schemas

    def _messages(self, one: WaitingTransaction) -> list[TopicMessage]:
        name = _name(one.key)
        kept = (unpack(self.kept.messages(name, round_)) for round_ in one.rounds)
        return [ordered.message for ordered in sorted(chain(*kept, one.new), key=lambda found: found[:3])]

    # --- keeping

    def _open(self) -> Iterator[Released]:
        waits = [one for one in self._waiting.open.values() if not one.facts.complete]
        for one in waits[:_NAMED]:
            said = f"transaction {one.key[0]} is open: {one.facts.count} of its changes arrived"
            yield Released(OPEN, where=one.places, reason=said)
        for halted in self._progress.halted.values():
            waiting = quantity(halted.count, "message waits", "messages wait")
            yield Released(OPEN, where=halted.where, reason=f"{waiting}, for {halted.why}")

    def _keep(self) -> None:
        self._reading.keep()
        self._progress.released = self._waiting.released
        for key, one in self._waiting.open.items():
            if one.new:
                name = _name(key)
                self.kept.keep_messages(name, one.round, pack(one.new))
                one.rounds.append(one.round)
                self.kept.keep(name, one.dump())
        self.kept.keep_progress(self._progress.dump())


def _name(key: Key) -> str:
    return json.dumps(key)
