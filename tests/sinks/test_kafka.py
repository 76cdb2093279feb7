"""A broker of messages, and none."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.errors import InvalidValue, Misuse
from eventlog.sinks import open_sink
from eventlog.sinks.sink import Item, OutgoingDocument
from tests.kit.brokers import ADDRESS, own_name
from tests.kit.support import patient
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

kafka_missing = "confluent-kafka is not installed"


def consumed(brokers: str, topic: str, count: int) -> list[Any]:
    """Return so many messages of a topic."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages = [
        message for message in (consumer.poll(patient(10)) for _ in range(count)) if message is not None
    ]
    consumer.close()
    return messages


@pytest.mark.slow("a consumer waits for its group")
def test_kafka_an_event_is_a_message_whose_key_is_its_association(brokers: str) -> None:
    topic = own_name("eventlog")
    sink = open_sink("kafka", {"kafka_brokers": brokers, "kafka_topic": topic, "kafka_timeout": patient(10)})
    both = OutgoingDocument("1-2", [*make(1).items, *make(2).items])
    assert [reply.fault for reply in sink.deliver([both, make(3)])] == [None, None]
    sink.close()
    found: dict[str, Any] = {str(message.key(), "utf-8"): message for message in consumed(brokers, topic, 3)}
    assert sorted(found) == [f"idu={n},table=usr" for n in (1, 2, 3)]
    assert found["idu=2,table=usr"].value().decode() == make(2).text
    assert found["idu=2,table=usr"].headers() == [("event-id", b"eventlog:2")]


@pytest.mark.slow("a consumer waits for its group")
def test_kafka_passes_the_trace_on(brokers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    monkeypatch.setenv("TRACEPARENT", parent)
    monkeypatch.setenv("TRACESTATE", "rojo=1")
    topic = own_name("traced")
    sink = open_sink("kafka", {"kafka_brokers": brokers, "kafka_topic": topic, "kafka_timeout": patient(10)})
    heartbeat = OutgoingDocument("heartbeat-1", (), "<nds/>")
    assert [reply.fault for reply in sink.deliver([make(1), heartbeat])] == [None, None]
    sink.close()
    trace = [("traceparent", parent.encode()), ("tracestate", b"rojo=1")]
    headers = [message.headers() for message in consumed(brokers, topic, 2)]
    assert sorted(headers, key=len) == [trace, [("event-id", b"eventlog:1"), *trace]]


@pytest.mark.parametrize("form", ["cloudevents-binary", "cloudevents-structured"])
def test_kafka_events_are_cloudevents_as_their_own_package_reads_them(brokers: str, form: str) -> None:
    from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
    from cloudevents.core.formats.json import JSONFormat

    topic = own_name("cloud")
    sink = open_sink("kafka", {"kafka_brokers": brokers, "kafka_topic": topic, "document": form})
    assert [reply.fault for reply in sink.deliver([make(1), make(1)])] == [None, None]
    sink.close()
    messages = [
        KafkaMessage(headers=dict(message.headers()), key=message.key(), value=message.value())
        for message in consumed(brokers, topic, 2)
    ]
    first, second = (from_kafka(message, JSONFormat()) for message in messages)
    assert (first.get_id(), first.get_source(), first.get_type(), first.get_subject()) == (
        "eventlog:1",
        "/eventlog/eventlog",
        "eventlog.delete",
        "idu=1,table=usr",
    )
    assert first.get_datacontenttype() == "application/xml"
    data = first.get_data()
    assert (data.decode() if isinstance(data, bytes) else data) == make(1).text
    assert (second.get_id(), second.get_source()) == (first.get_id(), first.get_source())
    assert messages[0].key == b"idu=1,table=usr"


def test_kafka_takes_events_of_one_event_id(brokers: str) -> None:
    """Send them, because a file of others may contain them."""
    sink = open_sink("kafka", {"kafka_brokers": brokers, "kafka_topic": own_name("twice")})
    assert [reply.fault for reply in sink.deliver([make(1), make(2), make(1)])] == [None, None, None]
    sink.close()


def test_kafka_without_a_broker_nothing_arrived() -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    sink = open_sink("kafka", {"kafka_brokers": "127.0.0.1:1", "kafka_timeout": 1.0})
    replies = list(sink.deliver([make(1), make(2)]))
    sink.close()
    assert len(replies) in (1, 2)
    assert replies[0].fault is not None


def test_kafka_a_message_that_was_refused_with_others_and_not_sent_alone_has_not_arrived() -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    options = {"kafka_brokers": "127.0.0.1:1", "kafka_options": "message.max.bytes=1000"}
    sink = open_sink("kafka", options | {"kafka_timeout": 0.1})
    large = OutgoingDocument(
        "1-1", [Item("eventlog:1", make(1).items[0].text.replace("</", " " * 999 + "</"))]
    )
    first, *_ = sink.deliver([large, make(2)])
    sink.close()
    assert "not yet sent alone" in str(first.fault)


@pytest.mark.skipif(not ADDRESS, reason="no Kafka broker: .ci/broker starts one")
def test_a_producer_that_met_a_fatal_error_is_made_anew() -> None:
    """Make it anew after the error in its callback; only acknowledged messages count as arrived."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    topic = own_name("fatal")
    admin = AdminClient({"bootstrap.servers": ADDRESS})
    admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "600"})])[topic].result(
        patient(30)
    )
    sink = open_sink(
        "kafka",
        {
            "kafka_brokers": ADDRESS,
            "kafka_topic": topic,
            "kafka_options": "enable.gapless.guarantee=true",  # what is too large is a fatal error then
        },
    )
    text = make(2).items[0].text
    large = OutgoingDocument("2-2", [Item("eventlog:2", text.replace("</", " " * 5_000 + "</"))])
    for _ in range(2):
        assert all(reply.fault for reply in sink.deliver([make(1), large, make(3)]))
        assert [reply.fault for reply in sink.deliver([make(4)])] == [None]
    sink.close()


@pytest.mark.parametrize("options", ["no.such=1", "linger.ms", "=1"])
def test_kafka_refuses_options_that_are_none(options: str) -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    with pytest.raises((Misuse, InvalidValue), match=r"kafka-options|name=value"):
        open_sink("kafka", {"kafka_brokers": "b:1", "kafka_options": options})


def test_kafka_needs_brokers() -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    with pytest.raises(Misuse, match="kafka-brokers"):
        open_sink("kafka", {})
