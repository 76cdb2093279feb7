"""Each event as a message of a topic, its key the object's association: so its events stay in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from eventlog.clients.kafka_settings import Brokers
from eventlog.core.errors import Misuse
from eventlog.core.extras import extra
from eventlog.core.settings import setting
from eventlog.sinks.document_kinds import DocumentKind, KafkaRecord, document_kind, document_setting
from eventlog.sinks.sink import (
    Item,
    OutgoingDocument,
    Reply,
    Sink,
    SinkKind,
    larger_documents,
    unanswered,
    unreachable,
    xds_document,
)
from eventlog.xds.answers import Level, Status

# errors of a broker about a batch, which are certain only for a batch of one message
_OF_MESSAGES = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD")
# why a message was surely not taken: never sent, or refused for what is no fault of its own
_NOT_TAKEN = (
    "_PURGE_QUEUE",
    "_UNKNOWN_TOPIC",
    "_UNKNOWN_PARTITION",
    "UNKNOWN_TOPIC_OR_PART",
    "TOPIC_EXCEPTION",
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
)


class Message(NamedTuple):
    """A message that is sent in one piece: an event, or a heartbeat under its document's name."""

    name: str
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str = ""  # what follows the sink's topic


class NotDelivered(NamedTuple):
    """An error: a message has not arrived."""

    reason: str
    final: bool = False  # it never will, for what it is itself
    taken: bool = True  # perhaps it has


_UNCONFIRMED = NotDelivered("no broker has confirmed the message")
_IN_COMPANY = NotDelivered("refused with others, and not yet sent alone", taken=False)
Faults = dict[str, NotDelivered]  # by the messages' names


@dataclass(frozen=True, slots=True)
class KafkaSinkSettings(Brokers):
    """The settings of the Kafka sink."""

    kafka_topic: str = setting("eventlog", "the topic of the messages", metavar="TOPIC")
    document: str = document_setting()


def _need_brokers(settings: KafkaSinkSettings) -> dict[str, Any]:
    brokers = settings.librdkafka("the kafka sink")
    kind = document_kind(settings.document)
    if kind is not None and kind.records is None:
        raise Misuse(f"document {settings.document} is for the http sink")
    return brokers


class KafkaSink(Sink):
    """An idempotent producer; one that has failed for good is made anew."""

    def __init__(self, settings: KafkaSinkSettings) -> None:
        brokers = _need_brokers(settings)
        self._topic = settings.kafka_topic
        self._kind = document_kind(settings.document)
        self._timeout = settings.kafka_timeout
        self._options = {
            "enable.idempotence": True,
            "max.in.flight": 1,  # as in places.kafka_writing: else first messages may be lost
            "delivery.timeout.ms": int(settings.kafka_timeout * 1000),
            "linger.ms": 5,
        } | brokers
        self._died = False
        self.producer = self._open()

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        """Send all messages at once; what a broker has not acknowledged in time is taken back."""
        batch = list(documents)
        faults = self._send([message for sent in batch for message in _messages(sent, self._kind)])
        if self._died:
            self._died = False
            self.producer = self._open()
        for sent in batch:
            yield _reply(sent, faults)

    def close(self) -> None:
        self.producer.flush(0)

    def _open(self) -> Any:
        with extra("kafka", "the kafka sink"):
            from confluent_kafka import KafkaException, Producer
        try:
            return Producer(self._options)
        except KafkaException as fault:
            raise Misuse(f"kafka-options: {fault.args[0].str()}") from fault

    def _send(self, messages: Sequence[Message]) -> Faults:
        """Return why messages have not arrived.

        Brokers judge batches. A batch refused for its size or form is sent again in halves until the bad
        message is alone, within the timeout.
        """
        until = time.monotonic() + self._timeout
        faults = self._send_once(messages)
        waiting = _halves(messages, faults)
        while waiting and not self._died and time.monotonic() < until:
            batch, *waiting = waiting
            new_faults = self._send_once(batch)
            waiting = [*_halves(batch, new_faults), *waiting]
            faults |= new_faults
        return faults | {message.name: _IN_COMPANY for batch in waiting for message in batch}

    def _send_once(self, messages: Iterable[Message]) -> Faults:
        faults: Faults = {}
        unconfirmed: dict[int, str] = {}  # the names of messages without a reply of a broker
        for number, message in enumerate(messages):
            unconfirmed[number] = message.name
            self._produce(message, partial(unconfirmed.pop, number, None), faults)
        if self._unless_it_dies(lambda: self.producer.flush(self._timeout)):
            self.producer.purge()
            self._unless_it_dies(lambda: self.producer.flush(self._timeout))
        return dict.fromkeys(unconfirmed.values(), _UNCONFIRMED) | faults

    def _produce(self, message: Message, settled: Callable[[], object], faults: Faults) -> None:
        """Hand a message to the producer; `settled` hears that its fate is known, and a fault is noted."""
        from confluent_kafka import KafkaException

        name, value, key, headers, topic = message

        def delivered(error: Any, message: object) -> None:
            if error is not None:
                faults[name] = _fault(error)
            settled()

        while not self._died:
            try:
                self.producer.produce(
                    self._topic + topic, value, key, headers=list(headers), on_delivery=delivered
                )
            except BufferError:
                if not len(self.producer):
                    faults[name] = NotDelivered("longer than queue.buffering.max.kbytes", final=True)
                    return
                self._unless_it_dies(lambda: self.producer.poll(1.0))
            except KafkaException as fault:
                faults[name] = _fault(fault.args[0])._replace(taken=False)
                return
            else:
                return

    def _unless_it_dies(self, call: Callable[[], int]) -> int:
        """Return the result of a call that hears from the brokers.

        An idempotent producer cannot go on after a fatal error. The client raises that error in a callback,
        from which Python makes a SystemError.
        """
        from confluent_kafka import KafkaException

        try:
            return call()
        except (KafkaException, SystemError) as fault:
            if not isinstance(fault, KafkaException) and not isinstance(fault.__cause__, KafkaException):
                raise
            self._died = True
            return 0


def _messages(sent: OutgoingDocument, kind: DocumentKind | None) -> Iterator[Message]:
    trace = sent.begin()
    records_of = _xds_records if kind is None else kind.records
    assert records_of is not None  # for _need_brokers
    for item in sent.items:
        for key, value, headers, topic in records_of(item):
            yield Message(item.event_id, value, key, _encoded({**headers, **trace}), topic)
    if not sent.items and (kind is None or kind.answers_xds):
        yield Message(sent.name, sent.text.encode(), headers=_encoded(trace))


def _encoded(headers: Mapping[str, str]) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, value.encode()) for name, value in headers.items())


def _xds_records(item: Item) -> Sequence[KafkaRecord]:
    headers = {"event-id": item.event_id}
    return (KafkaRecord(item.association.encode(), xds_document([item]).encode(), headers),)


def _halves(batch: Sequence[Message], faults: Faults) -> list[Sequence[Message]]:
    """Return the messages of a batch that were refused in company, in two batches; they are no faults any
    more.
    """
    refused = [m for m in batch if len(batch) > 1 and m.name in faults and faults[m.name].final]
    for message in refused:
        del faults[message.name]
    middle = len(refused) // 2
    return [half for half in (refused[:middle], refused[middle:]) if half]


def _fault(error: Any) -> NotDelivered:
    name = error.name()
    reason = "no broker took the message" if name == "_PURGE_QUEUE" else error.str()
    return NotDelivered(reason, name in _OF_MESSAGES, name not in _NOT_TAKEN)


def _reply(sent: OutgoingDocument, faults: Faults) -> Reply:
    """Return each event's own fate; where none of those that may arrive did, the document's."""
    names = [item.event_id for item in sent.items] or [sent.name]
    failed = {name: faults[name] for name in names if name in faults}
    waiting = [fault for fault in failed.values() if not fault.final]
    if waiting and len(failed) == len(names):
        first = waiting[0].reason
        return unanswered(first) if any(fault.taken for fault in waiting) else unreachable(first)
    levels = {True: Level.ERROR, False: Level.RETRY}
    return Reply([Status(levels[fault.final], name, fault.reason) for name, fault in failed.items()])


KIND = SinkKind(
    KafkaSinkSettings,
    KafkaSink,
    check=lambda settings: KafkaSink(settings).close(),
    place="kafka_topic",
    remedy=lambda settings, fault: f"start the brokers {settings.kafka_brokers or 'of kafka-options'}",
    speedups=lambda settings, batch_size: larger_documents(batch_size, of_waiting=True),
    span="PRODUCER",
)
