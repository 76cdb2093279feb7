"""What a real broker does to a topic that is read on and on: it compacts, restarts, keeps what is open."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core.errors import EventlogError, Refused
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transactions.counted import Incomplete
from eventlog.transactions.delivery import NotCopied
from eventlog.transactions.topic_progress import TopicChanged
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.formats.qlik.helpers import NONE, publish, read_topics
from tests.formats.qlik.test_broker import insert
from tests.kit.brokers import ADDRESS, JARS, OwnBroker, own_name, settle
from tests.kit.support import CLOCK, patient, until
from tests.transactions.test_transactions import event

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not ADDRESS, reason="no Kafka broker: .ci/broker starts one"),
]


class Topic:
    """A topic of a broker, with a producer and a folder where it is read to."""

    def __init__(self, folder: Path, address: str = ADDRESS, partitions: int = 3, **config: str) -> None:
        self.name = own_name("topic")
        self.folder = folder
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address})
        self._config = config
        self.make(partitions)

    def make(self, partitions: int) -> None:
        topic = NewTopic(self.name, partitions, 1, config=self._config)
        for creation in self.admin.create_topics([topic]).values():
            creation.result(patient(30))

    def producer(self, **config: Any) -> Producer:
        return Producer({"bootstrap.servers": self.address, "log_level": 0} | config)

    def send(self, producer: Producer, *events: Any) -> None:
        """Each event to the partition of its number, and to the broker."""
        for number, message in enumerate(events):
            producer.produce(self.name, json.dumps(message).encode(), str(number).encode(), number % 3)
        producer.flush(30)

    def job(self, **options: Any) -> Job:
        kafka = {
            "kafka": self.name,
            "kafka_brokers": self.address,
            "kafka_timeout": patient(30),
            "kafka_group": self.name,
        }
        output = f"{self.folder / 'out'}/"
        state = self.folder / "state"
        return Job("qlik-message", "changes", output=output, options=kafka | options, state=state)

    def read(self, **options: Any) -> list[str]:
        """Read on from the state, and return the reports."""
        refused: list[Refused] = []
        convert(self.job(**options), Report(refused.append), CLOCK)
        return [r.reason for r in refused]

    def out(self) -> list[int]:
        """Return the values of all changes in the parts."""
        texts = [path.read_text() for path in sorted((self.folder / "out").glob("part-*"))]
        changes = [json.loads(line) for text in texts for line in text.splitlines()]
        return [int(change["fields"][0]["after"]) for change in changes]


def messages_of(transaction: str, *numbers: int) -> list[Any]:
    """Return the messages of one transaction of the source."""
    last = len(numbers)
    return [event(transaction, at, at == last, number) for at, number in enumerate(numbers, 1)]


def test_a_transaction_of_the_producer_that_is_open_is_waited_for(tmp_path: Path) -> None:
    """Hand out nothing after it before it is over, and nothing that was aborted."""
    topic = Topic(tmp_path)
    open_ = topic.producer(**{"transactional.id": topic.name})
    open_.init_transactions(30)
    open_.begin_transaction()
    topic.send(open_, *messages_of("A", 1, 2, 3))
    topic.send(topic.producer(), *messages_of("B", 4, 5, 6))
    assert topic.read() == []
    assert topic.out() == []
    open_.commit_transaction(30)
    settle(topic.name, topic.address)
    topic.read()
    assert topic.out() == [1, 2, 3, 4, 5, 6]
    open_.begin_transaction()
    topic.send(open_, *messages_of("C", 7, 8, 9))
    topic.send(topic.producer(), *messages_of("D", 10, 11))
    open_.abort_transaction(30)
    settle(topic.name, topic.address)
    assert topic.read() == []
    assert topic.out() == [1, 2, 3, 4, 5, 6, 10, 11]


def test_a_half_transaction_of_the_source_is_left_though_its_producer_committed(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    producer = topic.producer(**{"transactional.id": topic.name})
    producer.init_transactions(30)
    events = messages_of("A", 1, 2, 3)
    for some in (events[:2], events[2:]):
        producer.begin_transaction()
        topic.send(producer, *some)
        producer.commit_transaction(30)
        settle(topic.name, topic.address)
        topic.read()
    assert topic.out() == [1, 2, 3]


def test_a_partition_that_is_empty_for_ever_holds_nothing_up(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    producer = topic.producer()
    rounds = [messages_of("A", 1), messages_of("B", 2), []]

    def wait(seconds: float) -> bool:
        if rounds:
            topic.send(producer, *rounds.pop(0))
            return True
        return False

    convert(
        topic.job(follow_interval=0.1), Report(lambda refused: None), CLOCK, run_length=RunLength(True, wait)
    )
    assert topic.out() == [1, 2]


def test_a_topic_that_is_made_anew_while_it_is_followed_is_an_error(tmp_path: Path) -> None:
    """Refuse it, because it holds fewer messages than were read, and new ones would be passed over."""
    topic = Topic(tmp_path)
    topic.send(topic.producer(), *messages_of("A", 1, 2, 3), *messages_of("B", 4, 5, 6))
    rounds = 0

    def wait(seconds: float) -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            for gone in topic.admin.delete_topics([topic.name]).values():
                gone.result(patient(30))
            until(lambda: topic.name not in topic.admin.list_topics(timeout=patient(10)).topics)
            topic.make(3)
            topic.send(topic.producer(), *messages_of("C", 7, 8, 9))
        return rounds < 4

    with pytest.raises(TopicChanged, match="was created again"):
        convert(
            topic.job(follow_interval=0.1),
            Report(lambda refused: None),
            CLOCK,
            run_length=RunLength(True, wait),
        )
    assert topic.out() == [1, 2, 3, 4, 5, 6]


def test_retention_past_a_topic_that_is_followed_is_an_error(tmp_path: Path) -> None:
    """Refuse it also if whole transactions were lost, so that none lacks anything."""
    from confluent_kafka import TopicPartition

    topic = Topic(tmp_path)
    topic.send(topic.producer(), *messages_of("A", 1, 2, 3))
    rounds = 0

    def wait(seconds: float) -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            topic.send(topic.producer(), *messages_of("B", 4), *messages_of("C", 5))
            for deleted in topic.admin.delete_records([TopicPartition(topic.name, 0, 2)]).values():
                deleted.result(patient(30))
        return rounds < 4

    with pytest.raises(TopicChanged, match=r"\[0\] begins at offset 2: what is wanted from 1 on is gone"):
        convert(
            topic.job(follow_interval=0.1),
            Report(lambda refused: None),
            CLOCK,
            run_length=RunLength(True, wait),
        )
    assert topic.out() == [1, 2, 3]


def test_a_topic_that_was_compacted_is_read_only_where_that_is_said(tmp_path: Path) -> None:
    """Read what is left of two messages of a key as incomplete; the broker really drops the first."""
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    topic = Topic(tmp_path, partitions=1, **config)
    producer = topic.producer()
    first, second = messages_of("A", 1, 2)
    for one, key in ((first, b"k"), (second, b"k")):
        producer.produce(topic.name, json.dumps(one).encode(), key)
    producer.flush(30)
    with pytest.raises(Incomplete, match=r"cleanup\.policy=compact"):
        topic.read()

    def compacted() -> bool:
        producer.produce(topic.name, json.dumps(event("B", 1, True, 3)).encode(), b"b")  # ends the segment
        producer.flush(30)
        return len(_offsets(topic)) < _high(topic)

    until(compacted, 60)
    topic.read(open_transactions="deliver")
    assert 1 not in topic.out()
    assert topic.out()[-2:] == [2, 3] or sorted(set(topic.out())) == [2, 3]


def test_members_of_the_group_that_come_and_go_take_nothing_from_a_run(tmp_path: Path) -> None:
    """Let two consumers of the group rebalance while the topic is followed.

    The brokers take no copy of our offsets meanwhile, which is reported once.
    """
    topic = Topic(tmp_path)
    producer = topic.producer()
    rounds = [messages_of(f"{n:X}", 3 * n, 3 * n + 1, 3 * n + 2) for n in range(1, 5)]
    expected = [number for n in range(1, 5) for number in (3 * n, 3 * n + 1, 3 * n + 2)]
    members: list[Consumer] = []
    said: list[Refused] = []

    def wait(seconds: float) -> bool:
        if not rounds:
            return False
        topic.send(producer, *rounds.pop(0))
        group = {"group.id": topic.name, "auto.offset.reset": "latest", "bootstrap.servers": topic.address}
        if len(members) < 2:
            members.append(Consumer(group))
            members[-1].subscribe([topic.name])
        else:
            members.pop().close()
        for member in members:
            member.poll(0.2)
        return True

    try:
        convert(topic.job(follow_interval=0.1), Report(said.append), CLOCK, run_length=RunLength(True, wait))
        topic.read()
    finally:
        for member in members:
            member.close()
    assert topic.out() == expected
    (reported,) = [r.reason for r in said if "members" in r.reason]
    assert reported.startswith(f"Kafka: the group {topic.name} has members of its own, so that its offsets")


def test_a_group_with_members_is_an_error_where_its_offsets_are_the_only_state(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    topic.send(topic.producer(), *messages_of("A", 1, 2, 3))
    member = Consumer({"group.id": topic.name, "bootstrap.servers": topic.address})
    member.subscribe([topic.name])
    until(lambda: member.poll(0.2) or member.assignment())
    job = replace(topic.job(), output=str(tmp_path / "other.jsonl"), state=None)
    with pytest.raises(NotCopied, match=f"group {topic.name} has members of its own"):
        convert(job, Report(lambda refused: None), CLOCK)
    member.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    if not JARS:
        pytest.skip("the jars of the broker are not given: .ci/broker gives them")
    own_broker = OwnBroker(tmp_path_factory.mktemp("broker"))
    yield own_broker
    own_broker.stop()


def test_a_broker_that_restarts_loses_and_repeats_nothing(tmp_path: Path, broker: OwnBroker) -> None:
    """Stop and start the broker in the middle of a run that follows, and of one that writes."""
    topic = Topic(tmp_path, broker.address)
    topic.send(topic.producer(), *messages_of("A", 1, 2, 3))
    rounds = 0

    def wait(seconds: float) -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            broker.stop()
            threading.Thread(target=broker.start).start()  # while the next round asks
        if rounds == 2:
            topic.send(topic.producer(), *messages_of("B", 4, 5, 6))
        return rounds < 4

    convert(
        topic.job(follow_interval=0.1), Report(lambda refused: None), CLOCK, run_length=RunLength(True, wait)
    )
    assert topic.out() == [1, 2, 3, 4, 5, 6]
    written = Topic(tmp_path / "written", broker.address)
    kafka = KafkaSettings(kafka_brokers=broker.address, kafka=written.name, kafka_timeout=patient(60))

    def changes() -> Iterator[Any]:
        for number in range(1, 201):
            if number == 100:
                broker.stop()
                threading.Thread(target=broker.start).start()
            yield insert(number)

    assert list(publish(changes(), NONE, MessageSettings(metadata=False), kafka)) == []
    found = read_topics(kafka)
    values = [item.fields[0].after for item in found if not isinstance(item, Refused)]
    assert values == list(range(1, 201))


def test_a_broker_that_stays_away_is_an_error_that_names_it(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    with pytest.raises(EventlogError, match="Kafka: "):
        topic.read(kafka_brokers="127.0.0.1:1", kafka_timeout=1.0)


def _offsets(topic: Topic) -> list[int]:
    """Return the offsets that the only partition still holds."""
    from confluent_kafka import TopicPartition

    config = {"bootstrap.servers": topic.address, "group.id": own_name("raw"), "enable.partition.eof": True}
    consumer = Consumer(config)
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    offsets: list[int] = []
    while (message := consumer.poll(patient(20))) is not None and message.error() is None:
        offsets.append(message.offset() or 0)
    consumer.close()
    return offsets


def _high(topic: Topic) -> int:
    from confluent_kafka import TopicPartition

    consumer = Consumer({"bootstrap.servers": topic.address, "group.id": own_name("raw")})
    high: int = consumer.get_watermark_offsets(TopicPartition(topic.name, 0), 20)[1]
    consumer.close()
    return high
