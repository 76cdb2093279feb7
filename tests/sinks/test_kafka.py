"""A broker of messages, and none."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.errors import Misuse
from eventlog.sinks import open_sink
from eventlog.sinks.sink import OutgoingDocument
from tests.brokers import own_name
from tests.sinks.documents import make

kafka_missing = "confluent-kafka is not installed"


def test_kafka_an_event_is_a_message_whose_key_is_its_association(brokers: str) -> None:
    import confluent_kafka

    topic = own_name("eventlog")
    sink = open_sink("kafka", {"kafka_brokers": brokers, "kafka_topic": topic, "kafka_timeout": 10.0})
    both = OutgoingDocument("1-2", [*make(1).items, *make(2).items])
    assert [reply.fault for reply in sink.deliver([both, make(3)])] == [None, None]
    sink.close()
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages: list[Any] = [
        message for message in (consumer.poll(10.0) for _ in range(3)) if message is not None
    ]
    consumer.close()
    found: dict[str, Any] = {str(message.key(), "utf-8"): message for message in messages}
    assert sorted(found) == [f"idu={n},table=usr" for n in (1, 2, 3)]
    assert found["idu=2,table=usr"].value().decode() == make(2).text
    assert found["idu=2,table=usr"].headers() == [("event-id", b"eventlog:2")]


def test_kafka_without_a_broker_nothing_arrived() -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    sink = open_sink("kafka", {"kafka_brokers": "127.0.0.1:1", "kafka_timeout": 1.0})
    replies = list(sink.deliver([make(1), make(2)]))
    sink.close()
    assert len(replies) in (1, 2)
    assert replies[0].fault is not None


def test_kafka_needs_brokers() -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    with pytest.raises(Misuse, match="kafka-brokers"):
        open_sink("kafka", {})
    with pytest.raises(Misuse, match="kafka-options"):
        open_sink("kafka", {"kafka_brokers": "b:1", "kafka_options": "no.such=1"})
