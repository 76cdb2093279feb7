"""Messages to Kafka: their topics, their keys, and whether the brokers have them.

A new run goes on from the last sequence and the metadata that the topics already hold.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, Producer, TopicPartition

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.clients.topic_reader import (
    KafkaFault,
    Topics,
    call_brokers,
    kafka_fault,
    list_topics,
    open_client,
)
from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, NotExpressible, Refused
from eventlog.core.formats import Object, Source
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.formats.qlik import message_writer
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.message_writer import WrittenMessage
from eventlog.formats.qlik.numbering import SequenceMemory
from eventlog.formats.qlik.structure import Structure
from eventlog.transfer.sources.metadata_topic import published_metadata

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


# A new or moved partition may refuse a producer's first messages and accept later ones. The first ones then
# count as repeats when they are sent again, and are lost. So only one request is on its way at a time.
_IN_ORDER = MappingProxyType({"enable.idempotence": True, "max.in.flight": 1})


class Sender:
    """Sends messages to their topics; a failure of one is raised by the next call, at last by `flush`."""

    last = None  # no part is recorded in a state

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._fault: KafkaError | None = None
        client = settings.client(**_IN_ORDER, partitioner="murmur2_random")
        self.producer = open_client(Producer, client)

    def send(self, written: WrittenMessage) -> Refused | None:
        """Hand a message to the client; return it as refused if it has no legal topic or no key."""
        try:
            topic = self._topic(written.structure)
        except NotExpressible as fault:
            return Refused(f"{written.structure}:{_position(written)}", str(fault))
        value = _bytes(written.message)
        if written.metadata is None:
            try:
                key = self._key(written)
            except EventlogError as fault:
                return Refused(f"{written.structure}:{_position(written)}", str(fault))
            self.produce(topic, value, key)
        elif self._settings.kafka_metadata_topic:
            self.produce(self._settings.kafka_metadata_topic, value, written.metadata.schema_id.encode())
        else:
            for partition in self._partitions(topic):  # before its data in every partition
                self.produce(topic, value, None, partition)
        return None

    @contextmanager
    def part(self) -> Iterator[Self]:
        """Wait after the block until the brokers have everything."""
        yield self
        self.flush()

    def flush(self) -> None:
        """Wait until the brokers have everything."""
        unsent_count = call_brokers(lambda: self.producer.flush(self._settings.kafka_timeout))
        self._raise()
        if unsent_count:
            messages = quantity(unsent_count, "message is", "messages are")
            raise KafkaFault(f"{messages} not out after {self._settings.kafka_timeout:g} s")

    def produce(self, topic: str, value: bytes, key: bytes | None, partition: int = -1) -> None:
        """Hand a message to the client as soon as it has room."""
        while True:
            self._raise()
            try:
                call_brokers(lambda: self.producer.produce(topic, value, key, partition, self._delivered))
                call_brokers(lambda: self.producer.poll(0))
                return
            except BufferError:
                call_brokers(lambda: self.producer.poll(1))

    def _delivered(self, fault: KafkaError | None, message: Message) -> None:
        self._fault = self._fault or fault

    def _raise(self) -> None:
        if self._fault is not None:
            raise kafka_fault(self._fault)

    def _topic(self, structure: Structure) -> str:
        topic = self._settings.topic_of(structure.schema, structure.table)
        if not _TOPIC.fullmatch(topic):
            raise NotExpressible(f"{topic!r} is no name of a topic: [a-zA-Z0-9._-], at most 249")
        return topic

    def _partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic. Brokers that make a topic at the first request need a moment."""
        deadline = time.monotonic() + self._settings.kafka_timeout
        while True:
            cluster = list_topics(self.producer, self._settings, topic)
            if cluster.topics[topic].partitions:
                return sorted(cluster.topics[topic].partitions)
            if time.monotonic() > deadline:
                raise KafkaFault(f"topic {topic!r} is not there, and the brokers make none")
            time.sleep(0.1)

    def _key(self, written: WrittenMessage) -> bytes | None:
        assert written.change is not None
        return KEYS[self._settings.kafka_key](written.change, written.structure)


def _position(written: WrittenMessage) -> str:
    return (written.change.position or "") if written.change is not None else ""


def _primary_key(change: Change, structure: Structure) -> bytes | None:
    """Return the value of the key's column, as text; an array of JSON where there are several."""
    values = [value.hex().upper() if isinstance(value, bytes) else value for _, value in change.key]
    if not values:
        return None
    if len(values) == 1 and isinstance(values[0], str):
        return values[0].encode()
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False).encode()


KEYS: dict[str, Callable[[Change, Structure], bytes | None]] = {
    "none": lambda change, structure: None,
    "primary-key": _primary_key,
    "table": lambda change, structure: "+".join(n for n in (structure.schema, structure.table) if n).encode(),
}


def _bytes(message: message_writer.Message) -> bytes:
    if isinstance(message, bytes):
        return message
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


_TAIL = 100  # messages at the end of a partition: the last of them may be metadata, or marks of a transaction


def read_topic_state(tables: Tables, settings: MessageSettings, kafka: KafkaSettings) -> SequenceMemory:
    """Return the state of the topics to which messages will be written; a missing topic has none.

    Metadata messages are in a topic of their own, or in every partition among the data. In the second case
    one partition is read as a whole.
    """
    topics = {kafka.topic_of(table.schema, table.name) for table in tables} or {kafka.kafka}
    reading = TopicEnds(kafka, settings.encoding)
    try:
        existing_topics = reading.topic_names()
        published = published_metadata(reading) if kafka.kafka_metadata_topic in existing_topics else ()
        reader = MessageReader(tables, replace(settings, published=(*settings.published, *published)))
        last = settings.last_sequence
        for topic in topics:
            from_beginning = settings.metadata and not kafka.kafka_metadata_topic
            for source in reading.ends(topic, from_beginning) if topic in existing_topics else ():
                last = max([last, *_sequences(reader, source)])
    finally:
        reading.close()
    return SequenceMemory(last, reader.metadata_by_id.values())


class TopicEnds(Topics):
    """Reads the ends of topics, and commits nothing."""

    def topic_names(self) -> frozenset[str]:
        """Return the topics that there are."""
        return frozenset(list_topics(self._consumer, self._settings).topics)

    def ends(self, topic: str, from_beginning: bool) -> Iterator[Source[Object]]:
        """Yield the last messages of each partition; the first partition as a whole, where that is wanted."""
        for partition in self._partitions(topic):
            low, high = self._watermarks(partition)
            start = OFFSET_BEGINNING if from_beginning else max(low, high - _TAIL)
            from_beginning = False
            if high > low:
                yield self._source(TopicPartition(topic, partition.partition), start)


def _sequences(reader: MessageReader, source: Source[Object]) -> Iterator[str]:
    """Yield the change_seqs of a source; a message that cannot be read has none."""
    for item in reader.run([source]):
        if not isinstance(item, Refused) and item.position is not None:
            yield item.position
