"""What only a real broker shows: partitions, a group that others join, deleted records, transactions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.clients.topic_reader import KafkaFault, Topics
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Misuse, Refused
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transactions.topic_progress import GroupAstray
from eventlog.transfer.sources.sequenced_feed import SequencedFeed, TopicReading
from tests.formats.qlik.helpers import NONE, publish, read_topics, seq, write_messages
from tests.kit.brokers import ADDRESS, own_name, settle
from tests.kit.support import patient

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not ADDRESS, reason="no Kafka broker: .ci/broker starts one"),
]


def insert(number: int, key: int | None = None) -> Change:
    key = number if key is None else key
    fields = (Field("id", ABSENT, key), Field("name", ABSENT, f"n{number}"))
    return Change(Op.INSERT, "app", "usr", (("id", key),), fields, seq(number), f"{number:032X}")


@pytest.fixture
def admin() -> AdminClient:
    return AdminClient({"bootstrap.servers": ADDRESS})


def new_topic(admin: AdminClient, name: str, partitions: int, **config: str) -> KafkaSettings:
    """Return settings for a new topic with so many partitions."""
    topic = own_name(name)
    for creation in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
        creation.result(patient(30))
    return KafkaSettings(
        kafka_brokers=ADDRESS,
        kafka=topic,
        kafka_group=topic,
        kafka_timeout=patient(20),
        kafka_key="primary-key",
    )


def send(items: Sequence[Change], kafka: KafkaSettings) -> None:
    assert list(publish(items, NONE, MessageSettings(metadata=False), kafka)) == []


def read(kafka: KafkaSettings, *, commit: bool = True, **settings: Any) -> list[Change]:
    answers = read_topics(kafka, commit=commit, **settings)
    assert [item for item in answers if isinstance(item, Refused) and item.fault] == []
    return [item for item in answers if isinstance(item, Change)]


def positions(changes: Sequence[Change]) -> list[str | None]:
    return [change.position for change in changes]


def test_partitions_are_read_as_one_sequence(admin: AdminClient) -> None:
    kafka = new_topic(admin, "many", 7)
    send([insert(number, key=number % 20) for number in range(1, 301)], kafka)
    assert positions(read(kafka)) == [seq(number) for number in range(1, 301)]
    assert read(kafka) == []


def test_a_group_that_somebody_else_joins_loses_nothing(admin: AdminClient) -> None:
    """Take our partitions ourselves, so that a member of the same group takes none from us."""
    kafka = new_topic(admin, "joined", 4)
    send([insert(number) for number in range(1, 101)], kafka)
    other = Consumer({"bootstrap.servers": ADDRESS, "group.id": own_name("other")})
    other.subscribe([kafka.kafka])
    other.poll(0.1)
    try:
        assert len(read(kafka, commit=False)) == 100
        assert len(read(kafka)) == 100
    finally:
        other.close()


def test_more_partitions_are_seen_by_the_next_run(admin: AdminClient) -> None:
    kafka = new_topic(admin, "grown", 1)
    send([insert(1), insert(2)], kafka)
    assert len(read(kafka)) == 2
    for grown in admin.create_partitions([NewPartitions(kafka.kafka, 5)]).values():
        grown.result(patient(30))
    send([insert(number) for number in range(3, 60)], kafka)
    assert positions(read(kafka)) == [seq(number) for number in range(3, 60)]


def test_a_transaction_that_its_producer_gave_up_is_not_there(admin: AdminClient) -> None:
    kafka = new_topic(admin, "transactions", 2)
    producer = Producer({"bootstrap.servers": ADDRESS, "transactional.id": own_name("producer")})
    producer.init_transactions(30)
    for numbers, kept in (((1, 2), True), ((3, 4), False), ((5, 6), True)):
        producer.begin_transaction()
        for number in numbers:
            (message,) = write_messages([insert(number)], metadata=False)
            producer.produce(kafka.kafka, json.dumps(message).encode(), str(number).encode())
        assert producer.flush(30) == 0, "what is given up stands there"
        if kept:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    settle(kafka.kafka, ADDRESS)
    assert positions(read(kafka)) == [seq(number) for number in (1, 2, 5, 6)]
    assert read(kafka) == [], "the marks of transactions at the ends are passed too"


def test_a_topic_whose_beginning_was_deleted_is_read_from_what_is_left(admin: AdminClient) -> None:
    kafka = new_topic(admin, "deleted", 1)
    send([insert(number) for number in range(1, 11)], kafka)
    delete(admin, kafka, 4)
    assert positions(read(kafka)) == [seq(number) for number in range(5, 11)]


@pytest.mark.parametrize("committed", [3, 11])
def test_a_group_whose_messages_are_gone_is_an_error(admin: AdminClient, committed: int) -> None:
    """Report lost messages: retention was faster, or the topic was made anew."""
    kafka = new_topic(admin, "gone", 1)
    send([insert(number) for number in range(1, 11)], kafka)
    commit(kafka, committed)
    delete(admin, kafka, 4)
    topics = Topics(kafka)
    said = rf"\[0\] holds the offsets 4 to 10, but its group continues at {committed}: messages are missing"
    try:
        feed = SequencedFeed(TopicReading(topics, NONE, MessageSettings(), StreamSettings(), None))
        with pytest.raises(GroupAstray, match=said):
            list(feed.round())
    finally:
        topics.close()
    commit(kafka, 4)
    assert positions(read(kafka)) == [seq(number) for number in range(5, 11)]


def test_what_goes_while_it_is_read_is_an_error(admin: AdminClient) -> None:
    kafka = new_topic(admin, "going", 1)
    send([insert(number) for number in range(1, 11)], kafka)
    topics = Topics(kafka)
    try:
        ((at, spot),) = topics.spots().items()
        source = topics.between(at, spot.start(at), spot.high)
        delete(admin, kafka, 4)
        with pytest.raises(KafkaFault, match="out of range"):
            list(source.records)
    finally:
        topics.close()


def test_marks_of_transactions_that_go_are_no_gap(admin: AdminClient) -> None:
    """Go on after the marks, which follow the last message."""
    kafka = new_topic(admin, "marks", 1)
    producer = Producer({"bootstrap.servers": ADDRESS, "transactional.id": kafka.kafka})
    producer.init_transactions(30)
    producer.begin_transaction()
    (message,) = write_messages([insert(1)], metadata=False)
    producer.produce(kafka.kafka, json.dumps(message).encode())
    producer.commit_transaction(30)
    settle(kafka.kafka, ADDRESS)
    assert positions(read(kafka)) == [seq(1)]
    delete(admin, kafka, 2)
    assert read(kafka) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("group.id=mine", "kafka-options: group.id is --kafka-group"),
        ("error_cb=print", "kafka-options: expected error_cb property as a callable function"),
        ("throttle_cb=print", "kafka-options: expected throttle_cb property as a callable function"),
        ("default.topic.config=acks", "kafka-options: "),
    ],
)
def test_options_that_are_not_for_librdkafka_are_misuse(admin: AdminClient, options: str, said: str) -> None:
    kafka = replace(new_topic(admin, "options", 1), kafka_options=options)
    with pytest.raises(Misuse, match=said):
        read(kafka)
    with pytest.raises(Misuse, match=said):
        send([insert(1)], kafka)


def commit(kafka: KafkaSettings, offset: int) -> None:
    """Keep an offset of the first partition for the group."""
    member = Consumer({"bootstrap.servers": ADDRESS, "group.id": kafka.kafka_group})
    member.commit(offsets=[TopicPartition(kafka.kafka, 0, offset)], asynchronous=False)
    member.close()


def delete(admin: AdminClient, kafka: KafkaSettings, offset: int) -> None:
    """Delete what the first partition holds before an offset."""
    for deleted in admin.delete_records([TopicPartition(kafka.kafka, 0, offset)]).values():
        deleted.result(patient(30))


def test_every_key_keeps_to_one_partition(admin: AdminClient) -> None:
    kafka = new_topic(admin, "keys", 5)
    send([insert(number, key=number % 10) for number in range(1, 101)], kafka)
    consumer = Consumer(
        {"bootstrap.servers": ADDRESS, "group.id": own_name("raw"), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([kafka.kafka])
    found = Counter((message.key(), message.partition()) for message in taken(consumer, 100))
    consumer.close()
    assert len(found) == 10
    assert set(found.values()) == {10}


def taken(consumer: Consumer, count: int) -> Iterator[Any]:
    for _ in range(count):
        message = consumer.poll(patient(20))
        assert message is not None
        assert message.error() is None
        yield message


def test_what_stands_before_an_open_transaction_is_read_at_once(admin: AdminClient) -> None:
    """Read it, because for readers of committed messages the partition ends there."""
    kafka = new_topic(admin, "beside-open", 1)
    send([insert(n) for n in range(1, 4)], kafka)
    other = Producer({"bootstrap.servers": ADDRESS, "transactional.id": kafka.kafka})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(kafka.kafka, b"{}")
    assert other.flush(30) == 0
    try:
        assert positions(read(kafka)) == [seq(n) for n in range(1, 4)]
    finally:
        other.abort_transaction(30)
