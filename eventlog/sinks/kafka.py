"""Each event as a message of a topic, its association the key: events of one object stay in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eventlog.errors import InvalidValue, Misuse
from eventlog.extras import extra
from eventlog.settings import setting
from eventlog.sinks.sink import Document, Item, Reply, SinkKind, unanswered, unreachable
from eventlog.xds.answers import Level, Status
from eventlog.xds.documents import document

SURE = "surely not sent"


def read_options(text: str) -> dict[str, str]:
    """librdkafka's own settings, as name=value with commas."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        raise InvalidValue(text.partition("=")[0], "name=value, several with commas")
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    kafka_brokers: str | None = setting(None, "host:port, several with commas", metavar="BROKERS")
    kafka_topic: str = setting("eventlog", "the topic of the messages", metavar="TOPIC")
    kafka_timeout: float = setting(
        30.0, "seconds until a message counts as not delivered", metavar="S", within=(0.01, 86_400)
    )
    kafka_options: str = setting(
        "",
        "further settings of librdkafka, such as security.protocol=SSL",
        metavar="N=V,…",
        check=read_options,
    )


class KafkaSink:
    """An idempotent producer; one that has failed for good is made anew."""

    def __init__(self, settings: KafkaSettings) -> None:
        options = read_options(settings.kafka_options)
        if settings.kafka_brokers is None and "test.mock.num.brokers" not in options:
            raise Misuse("the kafka sink needs kafka-brokers")
        self._topic = settings.kafka_topic
        self._timeout = settings.kafka_timeout
        self._options = {
            "bootstrap.servers": settings.kafka_brokers or "",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(settings.kafka_timeout * 1000),
            "linger.ms": 5,
            "log_level": 0,  # what it has to say comes as errors
        } | options
        self._died = False
        self.producer = self._open()

    def deliver(self, documents: Sequence[Document]) -> Iterator[Reply]:
        """All messages at once; what a broker has not acknowledged in time is taken back."""
        faults: dict[str, str] = {}
        for sent in documents:
            for item in sent.items:
                self._send(item, faults)
            if not sent.items:
                self.producer.produce(self._topic, sent.text.encode())  # a heartbeat
        if self.producer.flush(self._timeout):
            self.producer.purge()
            self.producer.flush(self._timeout)
        if self._died:
            self._died = False
            self.producer = self._open()
        for sent in documents:
            reply = _reply(sent, faults)
            yield reply
            if not reply.arrived:
                return

    def knows(self, name: str) -> bool:
        return False

    def close(self) -> None:
        self.producer.flush(0)

    def _open(self) -> Any:
        with extra("kafka", "the kafka sink"):
            from confluent_kafka import KafkaException, Producer
        try:
            return Producer(self._options | {"error_cb": self._suffer})
        except KafkaException as fault:
            raise Misuse(f"kafka-options: {fault.args[0].str()}") from fault

    def _send(self, item: Item, faults: dict[str, str]) -> None:
        def delivered(error: Any, message: object) -> None:
            if error is not None:
                faults[item.event_id] = SURE if error.name() == "_PURGE_QUEUE" else error.str()

        value, key = document([item.text]).encode(), item.association.encode()
        headers = [("event-id", item.event_id.encode())]
        while True:
            try:
                self.producer.produce(self._topic, value, key, headers=headers, on_delivery=delivered)
            except BufferError:
                self.producer.poll(1.0)
            else:
                return

    def _suffer(self, error: Any) -> None:
        """An idempotent producer that met a fatal error cannot go on."""
        self._died = self._died or bool(error.fatal())


def _reply(sent: Document, faults: dict[str, str]) -> Reply:
    """Each event's own fate; where none of them got out, the document's."""
    failed = [item.event_id for item in sent.items if item.event_id in faults]
    if len(failed) < len(sent.items) or not sent.items:
        return Reply([Status(Level.RETRY, event_id, faults[event_id]) for event_id in failed])
    if all(faults[event_id] == SURE for event_id in failed):
        return unreachable("no broker took the messages")
    return unanswered(faults[failed[0]])


KIND = SinkKind(KafkaSettings, KafkaSink)
