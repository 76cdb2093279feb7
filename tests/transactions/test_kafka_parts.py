"""Parts in topics with their state in a file: nothing is lost, and what is repeated is the same message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.clients.topic_reader import KafkaFault, Topics, call_brokers
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Object
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from eventlog.transfer.sources import capture_feed
from tests.formats.gbase.world import World
from tests.kit.brokers import own_name
from tests.kit.support import CLOCK, patient
from tests.publisher.brokers import FORBIDDEN, LIST_OFFSETS, NOT_LEADER, cluster
from tests.transactions.test_states import USR, Line, task, written

pytestmark = pytest.mark.quick


@pytest.fixture
def options(brokers: str) -> dict[str, Any]:
    """Return settings with a topic of the test's own."""
    name = own_name("written")
    Producer({"bootstrap.servers": brokers, "log_level": 0}).list_topics(
        name, timeout=patient(10)
    )  # makes it
    return {"kafka": name, "kafka_brokers": brokers, "kafka_options": "log_level=0"}


def job(folder: Path, options: dict[str, Any], inputs: list[str]) -> Job:
    return Job("qlik-table", "qlik-message", tuple(inputs), options=options, state=folder / "state")


def run(conversion: Job) -> list[Refused]:
    refused: list[Refused] = []
    convert(conversion, Report(refused.append), CLOCK)
    return refused


def messages(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the data messages of a topic, with repeats."""
    settings = {**options, "kafka_group": own_name("reader"), "kafka_timeout": patient(10)}
    topics = Topics(KafkaSettings(**settings))
    sources = (topics.between(at, spot.low, spot.high) for at, spot in topics.spots().items())
    objects = [record for source in sources for record in source.records]
    topics.close()
    bodies = [message.value["message"] for message in objects if isinstance(message, Object)]
    return [body for body in bodies if body.get("headers")]


def positions(options: dict[str, Any]) -> list[str]:
    return sorted(body["headers"]["changeSequence"] for body in messages(options))


def test_each_change_is_written_once_over_runs(tmp_path: Path, options: dict[str, Any]) -> None:
    lines = task([0, 1, 2, 60, 61, 300])
    for upto in (3, 3, 6):
        inputs = [
            written(
                tmp_path, f"{upto}.{table}", [line for line in lines[:upto] if line.table == table], 9_000
            )
            for table in ("usr", "grp")
        ]
        assert not run(job(tmp_path, options, inputs))
        assert positions(options) == [line.seq for line in lines[:upto]]


def test_a_live_capture_goes_on_in_a_topic_over_runs(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write the rows of the table first, then its changes; made sequences of a repeated part are the same."""
    world = World(("shop:own.t1",), 5, steps=0)
    monkeypatch.setitem(capture_feed.TRANSPORTS, "informix", lambda address, settings: world)
    address = "informix://cdc@localhost:9088/shop?server=ol1"
    one = Job("gbase", "qlik-message", ("own.t1",), url=address, options=options, state=tmp_path / "state")
    for key in (1, 2, 3):
        transaction = world.begin()
        world.change(transaction, key=key)
        world.end(transaction, keep=True)
        before = (tmp_path / "state").read_bytes() if key == 3 else b""
        assert not run(one)
        if before:  # the last run failed before its state was kept
            (tmp_path / "state").write_bytes(before)
            assert not run(one)
    assert not run(one)
    bodies = sorted(messages(options), key=lambda body: str(body["data"]["k"]))
    changes = [(body["headers"]["operation"], body["data"]["k"]) for body in bodies]
    assert changes == [("REFRESH", 1), ("INSERT", 2), ("INSERT", 3), ("INSERT", 3)]
    assert bodies[2] == bodies[3]


@pytest.mark.parametrize("kept", [True, False])
def test_a_message_that_is_refused_is_not_counted(
    tmp_path: Path, options: dict[str, Any], kept: bool
) -> None:
    lines = written(tmp_path, "a", [Line(1, 0, "A", "ü")], 9_000)
    one, refused = job(tmp_path, options | {"kafka_topics": "table"}, [lines]), list[Refused]()
    report = Report(refused.append)
    convert(one if kept else replace(one, state=None), report, CLOCK)
    assert ["is no name of a topic" in one.reason for one in refused] == [True, True]  # and its metadata
    assert (report.changes, report.refused) == (0, 2)


def test_change_tables_of_a_database_are_written_to_a_topic_once(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    url, lines = f"sqlite:///{tmp_path / 'one.db'}", [Line(n, n, "A", "usr") for n in (1, 2)]
    stored = Job("qlik-table", "changes", (written(tmp_path, "a", lines, 9_000),), str(tmp_path / "b.jsonl"))
    assert not run(replace(stored, tables=USR))
    assert not run(Job("changes", "qlik-table", (stored.output,), url=url, tables=USR))
    assert not run(Job("qlik-table", "qlik-message", ("usr",), url=url, tables=USR, options=options))
    assert sorted(body["data"]["id"] for body in messages(options)) == [1, 2]


def test_transactions_that_interleave_are_counted_in_a_topic(tmp_path: Path, options: dict[str, Any]) -> None:
    lines = [Line(n, 1, t, "usr") for n, t in enumerate("ABABA", 1)]
    one = job(tmp_path, options, [written(tmp_path, "a", lines, 9_000)])
    for state in (one.state, None):  # transactions by their ends, then rows by change_seq
        assert not run(replace(one, state=state))
        headers = [body["headers"] for body in messages(options)]
        names = ("changeSequence", "transactionEventCounter", "transactionLastEvent")
        places = sorted({tuple(header[name] for name in names) for header in headers})
        assert places == [
            (line.seq, counter, last)
            for line, counter, last in zip(
                lines, (1, 1, 2, 2, 3), (False, False, False, True, True), strict=True
            )
        ]


def test_misuse(tmp_path: Path, options: dict[str, Any]) -> None:
    lines = written(tmp_path, "a", [Line(1, 0, "A", "usr")], 9_000)
    away = {**options, "kafka_brokers": "127.0.0.1:1", "kafka_timeout": 1.0}
    with pytest.raises(EventlogError, match="Kafka: "):
        run(job(tmp_path, away, [lines]))
    into_tables = Job("gbase", "qlik-table", (lines,), url="sqlite://", state=tmp_path / "state")
    with pytest.raises(Misuse, match="write to files or to --kafka, not to --url"):
        run(into_tables)


confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


def test_a_partition_that_moves_is_asked_for_its_ends_again() -> None:
    with cluster() as brokers:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": brokers.address, "group.id": "x"})
        partition = confluent_kafka.TopicPartition("eventlog", 0)
        brokers.refuse(*[NOT_LEADER] * 8, request=LIST_OFFSETS)
        assert call_brokers(lambda: consumer.get_watermark_offsets(partition, 10)) == (0, 0)
        brokers.refuse(*[FORBIDDEN] * 8, request=LIST_OFFSETS)
        with pytest.raises(KafkaFault):
            call_brokers(lambda: consumer.get_watermark_offsets(partition, 10))
        consumer.close()
