"""Messages from Kafka.

Each partition is read to the end that it had when reading began. Offsets are committed only after the output
is written, so that a failed run reads the same messages again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource  # type: ignore[attr-defined]

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Object, Source
from eventlog.files.messages import message_at
from eventlog.transactions.delivery import NotCopied
from eventlog.transactions.topic_progress import PartitionOffsets

logger = logging.getLogger("eventlog.kafka")
T = TypeVar("T")

_PATIENCE = 30.0  # seconds
_FETCH_WAITS = 10  # milliseconds for more, because other requests wait meanwhile
_MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
)
_SILENT = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)
_MOMENT = 3.0  # seconds without a broker that need no word
_OF_MEMBERS = (  # of a group, by whose own members its offsets are kept
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
)
_MEMBERS = (
    "Kafka: the group {} has members of its own, so that its offsets are not ours to keep:"
    " --kafka-group names another"
)
_TELL = 5.0  # seconds in which brokers describe a topic


class KafkaFault(EventlogError):
    """Kafka: {0}"""

    code: int | None = None  # of the client, if it gave one


class Topics:
    """The topics that are read."""

    def __init__(self, settings: KafkaSettings, encoding: str = "json") -> None:
        self._settings = settings
        self.encoding = encoding
        client = {"fetch.wait.max.ms": _FETCH_WAITS} | settings.client(
            **{
                "group.id": settings.kafka_group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",  # lost messages are an error, and not skipped
            }
        )
        self._consumer = open_client(Consumer, client)

    def metadata_messages(self) -> Iterator[Source[Object]]:
        """Yield the partitions of the metadata topic, from their beginnings; none if no such topic is set."""
        if self._settings.kafka_metadata_topic:
            for partition in self._partitions(self._settings.kafka_metadata_topic):
                yield self._source(partition, OFFSET_BEGINNING)

    def spots(self) -> dict[tuple[str, int], PartitionOffsets]:
        """Return the partitions that are to be read, with the offsets that they hold now."""
        return {
            at: PartitionOffsets(*self._watermarks(TopicPartition(*at)), committed)
            for at, committed in self._committed_offsets()
        }

    def identity(self, topic: str) -> tuple[str | None, str | None]:
        """Return the id and the cleanup policy of a topic; None for what the brokers do not report."""
        client = AdminClient(self._settings.client())
        if client.list_topics(timeout=self._settings.kafka_timeout).controller_id < 0:
            return None, None  # no broker answers for the cluster
        seconds = min(self._settings.kafka_timeout, _TELL)
        try:
            described = client.describe_topics(TopicCollection([topic]), request_timeout=seconds)
            settled = client.describe_configs([ConfigResource("topic", topic)], request_timeout=seconds)
            policy = next(iter(settled.values())).result()["cleanup.policy"].value
            return str(described[topic].result().topic_id), policy
        except (KafkaException, KeyError):
            return None, None

    def between(self, at: tuple[str, int], start: int, end: int) -> Source[Object]:
        """Return the messages of a partition from an offset up to another."""
        return self._source(TopicPartition(*at), start, end)

    def commit_offsets(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit these offsets for the group."""
        if offsets:
            committed = [TopicPartition(*at, offset) for at, offset in offsets.items()]
            try:
                call_brokers(lambda: self._consumer.commit(offsets=committed, asynchronous=False))
            except KafkaFault as fault:
                if fault.code not in _OF_MEMBERS:
                    raise
                raise NotCopied(_MEMBERS.format(self._settings.kafka_group)) from fault

    def close(self) -> None:
        self._consumer.close()

    def _partitions(self, topic: str) -> list[TopicPartition]:
        topic_metadata = list_topics(self._consumer, self._settings, topic).topics[topic]
        if topic_metadata.error is not None:
            raise KafkaFault(f"topic {topic!r}: {topic_metadata.error.str()}")
        return [TopicPartition(topic, number) for number in sorted(topic_metadata.partitions)]

    def _committed_offsets(self) -> Iterator[tuple[tuple[str, int], int | None]]:
        """Yield the partitions that are to be read, with the offsets that the group keeps."""
        seconds = self._settings.kafka_timeout
        for topic in self._settings.kafka.split(","):
            partitions = self._partitions(topic.strip())
            for committed in call_brokers(
                lambda of=partitions: self._consumer.committed(of, timeout=seconds)
            ):
                yield (
                    (committed.topic, committed.partition),
                    committed.offset if committed.offset >= 0 else None,
                )

    def _watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        seconds = self._settings.kafka_timeout
        offsets: tuple[int, int] = call_brokers(
            lambda: self._consumer.get_watermark_offsets(partition, seconds)
        )
        return offsets

    def _source(self, partition: TopicPartition, offset: int, end: int | None = None) -> Source[Object]:
        name = f"{partition.topic}[{partition.partition}]"
        return Source(name, partition.topic, (), self._records(name, partition, offset, end))

    def _records(
        self, name: str, partition: TopicPartition, start: int, end: int | None
    ) -> Iterator[Object | Refused]:
        topic, number = partition.topic, partition.partition
        end = self._watermarks(partition)[1] if end is None else end
        if end == 0 or start >= end:
            return
        self._consumer.assign([TopicPartition(topic, number, start)])
        yield from self._up_to(name, topic, number, end)
        self._consumer.unassign()  # else the client keeps fetching in the background

    def _up_to(self, name: str, topic: str, number: int, end: int) -> Iterator[Object | Refused]:
        """Yield the messages of the assigned partition, up to an offset.

        It is read to there even if the client reports an earlier end.
        """
        while True:
            message = self._consumer.poll(self._settings.kafka_timeout)
            if message is None:
                raise KafkaFault(
                    f"{name}: no message for {self._settings.kafka_timeout:g} s, but its end is not reached"
                )
            fault, offset = message.error(), message.offset()
            if fault is not None and fault.code() != KafkaError._PARTITION_EOF:
                raise KafkaFault(f"{name}: {fault.str()}")
            if offset is None or (message.topic(), message.partition()) != (topic, number):
                continue  # of the partition before
            if offset >= end:
                return  # what is before the end are marks of transactions, which are no messages
            if fault is not None:
                continue
            yield message_at(name, self.encoding, offset, message.value(), message.key())
            if offset + 1 >= end:
                return


def call_brokers(call: Any) -> Any:
    """Return the answer of the brokers; ask again while a group or partition moves between brokers."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return call()
        except (KafkaException, SystemError) as raised:
            # a fatal fault is raised in whatever is called back, which Python calls an error of the system
            fault = raised if isinstance(raised, KafkaException) else raised.__cause__
            if not isinstance(fault, KafkaException):
                raise
            error = fault.args[0] if fault.args else None
            if not isinstance(error, KafkaError):
                raise KafkaFault(str(fault)) from None
            if error.code() not in _MOVING or time.monotonic() > deadline:
                raise kafka_fault(error) from None
            time.sleep(0.1)


def list_topics(
    client: Consumer | Producer, settings: KafkaSettings, topic: str | None = None
) -> ClusterMetadata:
    """Return what the brokers report of a topic, or of all; a wait and a fault name the brokers."""
    brokers, seconds = settings.brokers, settings.kafka_timeout
    for wait in (first := min(_MOMENT, seconds), seconds - first):
        try:
            answer: ClusterMetadata = call_brokers(lambda wait=wait: client.list_topics(topic, timeout=wait))
            return answer
        except KafkaFault as fault:
            if fault.code not in _SILENT:
                raise
            if wait is first and seconds > first:
                logger.warning("no broker answers at %s: waiting up to %g s", brokers, seconds)
    raise KafkaFault(f"no broker answers at {brokers} (kafka-brokers) within {seconds:g} s")


def open_client(kind: Callable[[dict[str, Any]], T], settings: dict[str, Any]) -> T:
    """Return a client; Misuse where a setting is for programs, such as a function that is called back."""
    try:
        client: T = call_brokers(lambda: kind(settings))
    except (TypeError, ValueError, AttributeError) as fault:
        raise Misuse(f"kafka-options: {fault}") from fault
    return client


def kafka_fault(error: KafkaError) -> KafkaFault:
    """Return the client's message with its code."""
    fault = KafkaFault(error.str())
    fault.code = error.code()
    return fault
