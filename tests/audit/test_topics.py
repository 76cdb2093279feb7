"""Topics of a real broker: what it compacted or deleted is not missed, and each partition is in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from eventlog.audit.delivered import DeliveredTopic
from eventlog.embedded import Server
from eventlog.sinks.kafka import KafkaSinkSettings
from tests.audit.test_kinds import PublishedLog
from tests.kit.brokers import ADDRESS, own_name
from tests.kit.commands import Shell
from tests.kit.databases import EMBEDDED, server_url, temporary_database
from tests.kit.statements import run_statements
from tests.kit.support import patient, until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not ADDRESS, reason="no Kafka broker: .ci/broker starts one"),
]
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture
def log(embedded: Server, tmp_path: Path) -> Iterator[PublishedLog]:
    with (
        server_url(EMBEDDED, embedded) as url,
        temporary_database(EMBEDDED, url) as database,
        closing(Shell(tmp_path)) as shell,
    ):
        published_log = PublishedLog(database, shell)
        yield published_log
        published_log.engine.dispose()


def make_topic(partitions: int, **config: str) -> str:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    name = own_name("audit")
    topic = NewTopic(name, partitions, 1, config=config)
    admin = AdminClient({"bootstrap.servers": ADDRESS})
    admin.create_topics([topic])[name].result(patient(30))
    return name


def test_what_a_topic_lost_to_compaction_is_not_missed(log: PublishedLog) -> None:
    topic = make_topic(1, **COMPACTED)
    sink = ("--sink", "kafka", "--kafka-topic", topic, "--kafka-brokers", ADDRESS)
    log.publish(*sink)
    words = ("audit", "--delivered", f"kafka:{topic}", "--kafka-brokers", ADDRESS, "--json")
    assert log.run(*words)["laws"][1]["judged"]

    def is_compacted() -> bool:
        run_statements(log.engine, "update usr set lname = concat(lname, 'x') where idu = 3")
        log.publish_pending(*sink)  # ends the segment
        return not log.run(*words)["laws"][1]["judged"]

    until(is_compacted, 60)
    assert [law["law"] for law in log.run(*words)["laws"] if law["breaches"]] == []


def test_each_partition_is_a_stream_of_its_own(log: PublishedLog) -> None:
    topic = make_topic(3)
    run_statements(log.engine, "insert into usr select n, 'x', 'y' from generate_series(10, 40) n")
    log.publish("--sink", "kafka", "--kafka-topic", topic, "--kafka-brokers", ADDRESS)
    delivered = DeliveredTopic(topic, KafkaSinkSettings(kafka_brokers=ADDRESS))
    assert len({document.stream for document in delivered.documents()}) == 3
    words = ("audit", "--delivered", f"kafka:{topic}", "--kafka-brokers", ADDRESS, "--json")
    report = log.run(*words)
    assert (report["events"], [law["breaches"] for law in report["laws"]]) == (36, [0] * 6)
