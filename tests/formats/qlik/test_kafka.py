"""Messages through Kafka, on every broker at hand."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.clients.topic_reader import KafkaFault, Topics
from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.formats import neutral
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from eventlog.transfer.sources.metadata_topic import published_metadata
from eventlog.transfer.targets.topics import Sender
from tests.formats.qlik.helpers import NONE, as_text, publish, read_topics, seq
from tests.kit.brokers import own_name
from tests.kit.support import patient

pytestmark = pytest.mark.quick

QUIET = {"log_level": 0}


@pytest.fixture
def kafka(brokers: str, request: pytest.FixtureRequest) -> KafkaSettings:
    """Return settings with a topic and a group of the test's own."""
    name = own_name(request.node.name)
    return KafkaSettings(
        kafka_brokers=brokers,
        kafka=name,
        kafka_group=name,
        kafka_timeout=patient(10),
        kafka_options="log_level=0",
    )


def changes(count: int, table: str = "usr") -> list[Change]:
    return [
        Change(
            Op.INSERT,
            "app",
            table,
            (("id", i),),
            (Field("id", ABSENT, i), Field("name", ABSENT, f"n{i}")),
            seq(i),
            f"{0xAB:032X}",
        )
        for i in range(1, count + 1)
    ]


def send(items: list[Change], kafka: KafkaSettings, **settings: object) -> list[Refused]:
    return list(publish(items, NONE, MessageSettings(**settings), kafka))  # type: ignore[arg-type]


def receive(kafka: KafkaSettings, encoding: str = "json", *, commit: bool = True) -> list[str]:
    answers = read_topics(kafka, encoding, commit=commit)
    return sorted(map(as_text, answers), key=lambda text: text.partition("position=")[2])


def raw(kafka: KafkaSettings, topic: str) -> list[tuple[bytes | None, bytes]]:
    """Return keys and values of everything in a topic."""
    consumer = Consumer(kafka.client(**{"group.id": "raw", "enable.partition.eof": True}))
    partitions = sorted(consumer.list_topics(topic, timeout=patient(10)).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    records: list[tuple[bytes | None, bytes]] = []
    ends = 0
    while ends < len(partitions):
        message = consumer.poll(patient(10))
        assert message is not None
        if message.error():
            ends += 1
        else:
            records.append((message.key(), message.value()))  # type: ignore[arg-type]
    consumer.close()
    return records


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_what_is_published_is_read(kafka: KafkaSettings, encoding: str) -> None:
    assert send(changes(50), kafka, encoding=encoding) == []
    assert receive(kafka, encoding) == list(map(as_text, changes(50)))


def test_the_first_messages_into_topics_that_are_just_made_are_there(kafka: KafkaSettings) -> None:
    """Deliver them, though a busy broker refused some and took later ones."""
    waiting = replace(kafka, kafka_timeout=patient(60))
    topics = [replace(waiting, kafka=f"{kafka.kafka}-{n}", kafka_group=f"g{n}") for n in range(12)]

    def ids(one: KafkaSettings) -> list[object]:
        assert send(changes(50), one) == []
        return [
            message["message"]["data"]["id"]
            for _, raw_ in raw(one, one.kafka)
            if (message := json.loads(raw_))["type"] == "DT"
        ]

    with ThreadPoolExecutor(4) as threads:
        found = [sorted(map(str, one)) for one in threads.map(ids, topics)]
    assert found == [sorted(str(n) for n in range(1, 51))] * len(topics)


def test_a_metadata_topic_is_read_before_the_data(kafka: KafkaSettings) -> None:
    apart = replace(kafka, kafka_metadata_topic=f"{kafka.kafka}.metadata")
    send(changes(5), apart, encoding="avro")
    assert receive(apart, "avro") == list(map(as_text, changes(5)))
    assert len(raw(apart, apart.kafka_metadata_topic)) == 1
    assert len(raw(apart, apart.kafka)) == 5


def test_a_partition_that_ends_before_the_end_that_it_had_is_reported(kafka: KafkaSettings) -> None:
    """Report it, as if a topic was made anew meanwhile."""
    send(changes(1), kafka, metadata=False)
    topics = Topics(replace(kafka, kafka_timeout=2.0))
    try:
        ((at, held),) = [(at, spot) for at, spot in topics.spots().items() if spot.high]
        assert len(list(topics.between(at, 0, held.high).records)) == held.high == 1
        with pytest.raises(KafkaFault, match="its end is not reached"):
            list(topics.between(at, 0, held.high + 1).records)
    finally:
        topics.close()


def test_offsets_are_committed_only_by_commit(kafka: KafkaSettings) -> None:
    send(changes(3), kafka)
    assert len(receive(kafka, commit=False)) == 3
    assert len(receive(kafka)) == 3, "nothing was committed, so all comes again"
    assert receive(kafka) == []
    send([c._replace(position=seq(9)) for c in changes(1)], kafka)
    assert len(receive(kafka)) == 1


@pytest.mark.parametrize(("key", "expected"), [("none", None), ("primary-key", b"1"), ("table", b"app+usr")])
def test_keys(kafka: KafkaSettings, key: str, expected: bytes | None) -> None:
    send(changes(1), replace(kafka, kafka_key=key))
    data = [k for k, v in raw(kafka, kafka.kafka) if json.loads(v)["type"] == "DT"]
    assert data == [expected]


def test_the_changes_of_a_row_share_a_partition_where_nothing_is_said_of_keys(kafka: KafkaSettings) -> None:
    send(changes(1), kafka, metadata=False)
    assert [key for key, _ in raw(kafka, kafka.kafka)] == [b"1"]


def test_a_primary_key_of_text_is_itself_and_one_of_several_columns_an_array(kafka: KafkaSettings) -> None:
    one = changes(1)[0]._replace(key=(("name", "n1"),))
    two = changes(1)[0]._replace(key=(("id", 1), ("name", "n1")), table="t2")
    send([one, two], replace(kafka, kafka_key="primary-key"), metadata=False)
    assert sorted(k or b"" for k, _ in raw(kafka, kafka.kafka)) == [b'[1, "n1"]', b"n1"]


def test_a_topic_for_each_table(kafka: KafkaSettings) -> None:
    each = replace(kafka, kafka_topics="table")
    send(changes(2) + changes(1, "grp"), each, table_names="off", metadata=False)
    assert len(raw(each, f"{kafka.kafka}.app.usr")) == 2
    assert len(raw(each, f"{kafka.kafka}.app.grp")) == 1


def test_the_topic_names_the_table_where_nothing_else_does(kafka: KafkaSettings) -> None:
    send(changes(1), kafka, table_names="off", metadata=False)
    (found,) = receive(kafka)
    assert f"table={kafka.kafka!r}" in found


def test_what_is_no_message_is_refused_with_partition_and_offset(kafka: KafkaSettings) -> None:
    producer = Producer(kafka.client())
    producer.produce(kafka.kafka, b"{", partition=0)
    producer.produce(kafka.kafka, None, partition=0)
    producer.flush(10)
    assert [r.where for r in read_topics(kafka) if isinstance(r, Refused)] == [
        f"{kafka.kafka}[0]:0",
        f"{kafka.kafka}[0]:1",
    ]


def test_a_transaction_that_is_open_at_the_end_is_read_again_as_a_whole(kafka: KafkaSettings) -> None:
    def counted(counter: int, last: bool) -> Change:
        facts = (("event_counter", counter), ("last_event", last))
        return changes(counter)[-1]._replace(extra=facts)

    send([counted(1, False), counted(2, False)], replace(kafka, kafka_key="primary-key"), metadata=False)
    assert _read_ids(kafka) == []
    send([counted(3, True)], replace(kafka, kafka_key="primary-key"), metadata=False)
    assert _read_ids(kafka) == [1, 2, 3], "its first half was not committed past, in whatever partition it is"
    assert _read_ids(kafka) == []


@pytest.mark.slow("a consumer waits for its group")
def test_a_topic_is_read_on_from_a_state_and_followed(kafka: KafkaSettings, tmp_path: Path) -> None:
    def counted(number: int, transaction: str, counter: int, last: bool) -> Change:
        facts = (("event_counter", counter), ("last_event", last))
        return changes(number)[-1]._replace(extra=facts, transaction=transaction)

    names = ("kafka", "kafka_brokers", "kafka_group", "kafka_options")
    given = {name: getattr(kafka, name) for name in names} | {"kafka_timeout": 2.0}
    job = Job(
        "qlik-message", "changes", output=f"{tmp_path / 'out'}/", state=tmp_path / "state", options=given
    )
    said: list[str] = []
    report = Report(lambda refused: said.append(refused.reason))
    send([counted(1, "A", 1, True), counted(2, "B", 1, False)], kafka, metadata=False)
    convert(job, report, "2025-01-01 00:00:00")
    assert out(tmp_path) == [1]
    assert len(said) == 1
    more = [[counted(3, "B", 2, True)], []]

    def wait(seconds: float) -> bool:
        if not more:
            return False
        send(more.pop(0), kafka, metadata=False)
        return True

    convert(job, report, "2025-01-01 00:00:00", run_length=RunLength(True, wait))
    assert out(tmp_path) == [1, 2, 3]
    convert(job, report, "2025-01-01 00:00:00")
    assert out(tmp_path) == [1, 2, 3]
    topics = Topics(kafka)
    assert any(spot.committed == spot.high > 0 for spot in topics.spots().values())
    topics.close()


def out(folder: Path) -> list[int]:
    """Return the ids of the changes in the parts of a folder."""
    lines = [line for path in sorted((folder / "out").iterdir()) for line in path.read_text().splitlines()]
    return [json.loads(line)["fields"][0]["after"] for line in lines]


def _read_ids(kafka: KafkaSettings) -> list[object]:
    return [item.fields[0].after for item in read_topics(kafka) if isinstance(item, Change)]


def test_a_table_that_makes_no_topic_is_refused(kafka: KafkaSettings) -> None:
    refused = send(changes(1, "ü"), replace(kafka, kafka_topics="table"), metadata=False)
    assert "is no name of a topic" in refused[0].reason


def test_brokers_that_are_not_there() -> None:
    kafka = KafkaSettings(
        kafka_brokers="127.0.0.1:1", kafka="t", kafka_timeout=0.2, kafka_options="log_level=0"
    )
    with pytest.raises(KafkaFault, match="not out"):
        send(changes(1), kafka, metadata=False)


def test_what_the_brokers_do_not_take_is_reported_at_the_end(kafka: KafkaSettings) -> None:
    with pytest.raises(KafkaFault, match="Unknown partition"), Sender(kafka).part() as sender:
        sender.produce(kafka.kafka, b"{}", None, 99)


def convert_into(
    kafka: KafkaSettings, folder: Path, items: list[Change], tables_text: str, **message_settings: object
) -> None:
    """Write changes into a topic as the command does."""
    source = folder / "in.jsonl"
    source.write_text("".join(neutral.dumps(item) + "\n" for item in items))
    names = ("kafka", "kafka_brokers", "kafka_group", "kafka_metadata_topic", "kafka_options", "kafka_topics")
    settings = {name: getattr(kafka, name) for name in names} | message_settings
    tables = tablesfile.read(tables_text)
    job = Job("changes", "qlik-message", (str(source),), "-", tables=tables, options=settings)
    heard: list[Refused] = []
    convert(job, Report(heard.append), "2024-01-01 10:00:00")
    assert heard == []


USR = '[tables.usr]\nschema = "app"\nkey = ["id"]\ncolumns = { id = "integer", name = "varchar(20)" }\n'
WIDER = USR.replace(" }", ', age = "integer" }')


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize("apart", [True, False], ids=["metadata apart", "metadata among the data"])
def test_a_later_run_goes_on_where_the_topic_ends(
    kafka: KafkaSettings, tmp_path: Path, apart: bool, encoding: str
) -> None:
    """Publish structures only once; versions and sequences continue, also after what is no message."""
    if apart:
        kafka = replace(kafka, kafka_metadata_topic=f"{kafka.kafka}_metadata")
    new = [change._replace(position=None, time="2024-01-01T10:00:00Z") for change in changes(2)]
    producer = Producer(kafka.client())
    for known in (USR, USR, WIDER):
        convert_into(kafka, tmp_path, new, known, encoding=encoding)
        producer.produce(kafka.kafka, b"{", partition=0)
        producer.flush(10)
    topics = Topics(kafka, encoding)
    published = published_metadata(topics)
    topics.close()
    found = read_topics(kafka, encoding)
    positions = [item.position for item in found if isinstance(item, Change)]
    assert sorted(filter(None, positions)) == [f"2024010110000000{number:019}" for number in range(1, 7)]
    if apart:
        assert [(known.version, len(known.structure.columns)) for known in published] == [(1, 2), (2, 3)]
