"""The messages of a batch, partition by partition, and the metadata by which they are read.

Metadata stay in the state for as long as the stream runs. In Avro those of a whole batch are learned before
it is read. An Avro message cannot be read without its metadata: its partition halts there, until they come or
the limits are reached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby

from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.files.messages import message_at
from eventlog.qlik import metadata
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.sequenced_messages import MessageSequencer, SequencedMessage, stated
from eventlog.sequence.settings import StreamSettings
from eventlog.sequence.transactions import Incomplete
from eventlog.sources.schema_registry import UnknownSchema
from eventlog_spark.stream.waiting import (
    Halted,
    KeptTransactions,
    OrderedMessage,
    StreamProgress,
    TopicMessage,
    pack,
    unpack,
)

_MESSAGE = 100  # bytes that one takes at least


class RegistryFailed(Exception):
    """A registry did not answer; it is no fault of a message."""


class BatchReading:
    """The messages of one batch that were read; `keep` keeps the rest."""

    def __init__(
        self,
        tables: Tables,
        settings: MessageSettings,
        bounds: StreamSettings,
        kept: KeptTransactions,
        progress: StreamProgress,
    ) -> None:
        self.known = dict(kept.metadata())
        self.count = 0  # of messages that came
        published = tuple(map(load_metadata, self.known.values()))
        ask = None if settings.schema_of is None else _asking(settings.schema_of)
        self._sequencer = MessageSequencer(tables, replace(settings, published=published, schema_of=ask))
        self._before = {one.schema_id: one for one in published}
        self._encoding = settings.encoding
        self._bounds = bounds
        self._kept = kept
        self._progress = progress
        self._writes: list[Callable[[], None]] = []

    def read(self, messages: Iterable[TopicMessage], now: int) -> Iterator[SequencedMessage | Refused]:
        """Yield the changes with their places, and what is refused; Incomplete where metadata do not come."""
        batch = {at: list(some) for at, some in groupby(sorted(messages, key=_offset), key=_partition)}
        self.count = sum(map(len, batch.values()))
        whole = self._encoding != "avro"  # messages in JSON describe themselves
        if not whole:
            self._learn(batch.values())
        halted = {(one.topic, one.partition) for one in self._progress.halted.values()}
        for at in sorted({*batch, *halted}):
            name, own = name_of(at), batch.get(at, [])
            readable = own if whole else self._readable(name, own, now)
            objects = (self._object(name, one) for one in readable)
            yield from self._sequencer.parse(0, Source(name, at[0], (), objects))
        yield from self._sequencer.rest()
        self._remember()

    @property
    def schema_id(self) -> str | None:
        """The metadata of the message that was read last."""
        return self._sequencer.reader.schema_id

    def keep(self) -> None:
        """Keep what the next batch needs."""
        for write in self._writes:
            write()

    def _object(self, name: str, message: TopicMessage) -> Object | Refused:
        return message_at(name, self._encoding, message.offset, message.value, message.key)

    # --- metadata

    def _learn(self, batch: Iterable[Iterable[TopicMessage]]) -> None:
        reader = self._sequencer.reader
        for some in batch:
            for one in some:
                if one.value is not None and reader.is_metadata(one.value):
                    stated(reader, Source(one.topic, one.topic, (), ()), Object(one.offset, one.value))

    def _remember(self) -> None:
        now = self._sequencer.reader.known
        for schema_id in self.known.keys() - now.keys():
            del self.known[schema_id]
            self._writes.append(partial(self._kept.drop_metadata, schema_id))
        for schema_id, known in now.items():
            if known != self._before.get(schema_id):
                text = self.known[schema_id] = dump_metadata(known)
                self._writes.append(partial(self._kept.keep_metadata, schema_id, text))

    # --- partitions that halt

    def _readable(self, name: str, came: list[TopicMessage], now: int) -> list[TopicMessage]:
        """Return the messages of a partition up to the first whose metadata are not known."""
        reader, halted, kept = self._sequencer.reader, self._progress.halted.get(name), self._kept
        over = False
        if halted is not None:
            over = self._over(halted, came, now)
            if halted.schema_id not in reader.known and not over:
                if came:
                    self._halt(name, halted, came)
                return []
            rounds = halted.rounds
            before = [one.message for at in rounds for one in unpack(kept.messages(_called(name), at))]
            came = [*before, *came]
            self._writes.append(lambda: kept.drop_messages(_called(name), rounds))
            del self._progress.halted[name]
        for at, message in enumerate(() if over else came):
            schema_id = None if message.value is None else reader.awaits(message.value)
            if schema_id is not None:
                new = Halted(message.topic, message.partition, schema_id, message.offset, now)
                self._progress.halted[name] = new
                self._halt(name, new, came[at:])
                return came[:at]
        return came

    def _over(self, halted: Halted, came: list[TopicMessage], now: int) -> bool:
        """Return whether a partition has waited beyond the limits."""
        size = sum(one.size for one in self._progress.halted.values()) + _size(came)
        late = halted.since < now - 1000 * self._bounds.open_time
        known = halted.schema_id in self._sequencer.reader.known
        over = not known and (late or size > self._bounds.open_bytes)
        if over and self._bounds.open_transactions == "stop":
            raise Incomplete(f"{halted.why}, and waits for it beyond the limits")
        return over

    def _halt(self, name: str, halted: Halted, came: list[TopicMessage]) -> None:
        """Make messages wait."""
        packed = pack([OrderedMessage(0, "", 0, one) for one in came])
        round_ = self._progress.round
        halted.size += _size(came)
        halted.count += len(came)
        halted.rounds.append(round_)
        self._writes.append(lambda: self._kept.keep_messages(_called(name), round_, packed))


def dump_metadata(known: Metadata) -> str:
    """Return metadata as a text."""
    return json.dumps([metadata.payload(known), known.message_schema])


def load_metadata(text: str) -> Metadata:
    """Return the metadata of a text."""
    return metadata.read(*json.loads(text))


def name_of(at: tuple[str, int]) -> str:
    """Return the name of a topic's partition in messages."""
    return f"{at[0]}[{at[1]}]"


def _asking(schema_of: Callable[[int], str]) -> Callable[[int], str]:
    """Return the same, where only a schema that is not there is a fault of the message that names it."""

    def ask(number: int) -> str:
        try:
            return schema_of(number)
        except UnknownSchema:
            raise
        except EventlogError as fault:
            raise RegistryFailed(str(fault)) from fault

    return ask


def _called(name: str) -> str:
    """Return the name under which the state has the messages of a partition that halts: no transaction's."""
    return f"halted {name}"


def _size(messages: Iterable[TopicMessage]) -> int:
    return sum(_MESSAGE + len(one.value or b"") + len(one.key or b"") for one in messages)


def _partition(message: TopicMessage) -> tuple[str, int]:
    return message.topic, message.partition


def _offset(message: TopicMessage) -> tuple[str, int, int]:
    return message[:3]
