"""Runs over topics are stopped and go on: nothing is lost, and a repeated message is the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from eventlog.clients import topic_reader
from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.clients.topic_reader import Topics
from eventlog.core.formats import Object
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transfer import job_output
from eventlog.transfer.targets import topics as topics_written
from tests.formats.qlik.helpers import publish
from tests.kit.brokers import own_name
from tests.kit.support import patient
from tests.laws.resume.inputs import TABLES, message_changes
from tests.laws.resume.samples import Sample, samples
from tests.laws.resume.stops import How, Meter, metered_files
from tests.laws.resume.test_files import Tables
from tests.laws.resume.trials import Document, Reference

pytestmark = pytest.mark.quick

# the mock brokers are threads of this process, which no child has
SAMPLES = samples(quick=6, long=40, pairs=10, hows=(How.ENDED, How.FAILED, How.INTERRUPTED))


@contextmanager
def _metered_client(meter: Meter) -> Iterator[None]:
    """Count what the client of Kafka is asked to produce, to flush and to commit."""

    def fail() -> BaseException:
        return KafkaException(KafkaError(KafkaError._TRANSPORT))

    class Producer(confluent_kafka.Producer):
        def produce(self, *args: Any, **named: Any) -> None:
            meter.step("produce", lambda: super(Producer, self).produce(*args, **named), fail=fail)

        def flush(self, *args: Any) -> int:
            return int(meter.step("flush", lambda: super(Producer, self).flush(*args), fail=fail))

    class Consumer(confluent_kafka.Consumer):
        def commit(self, *args: Any, **named: Any) -> Any:
            return meter.step("commit", lambda: super(Consumer, self).commit(*args, **named), fail=fail)

    with metered_files(meter), pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics_written, "Producer", Producer)
        patch.setattr(topic_reader, "Consumer", Consumer)
        yield


def _settings(brokers: str) -> dict[str, Any]:
    """Return settings with a topic and a group of a trial's own."""
    name = own_name("resume")
    confluent_kafka.Producer({"bootstrap.servers": brokers, "log_level": 0}).list_topics(
        name, timeout=patient(10)
    )
    return {
        "kafka": name,
        "kafka_brokers": brokers,
        "kafka_group": name,
        "kafka_options": "log_level=0",
        "kafka_timeout": patient(10),
    }


class Written(Tables):
    """Change tables that are written to a topic, part after part."""

    def __init__(self, folder: Path, brokers: str) -> None:
        super().__init__(folder, "qlik-message", "-")
        self._kafka = _settings(brokers)
        self.job = replace(self.job, options={**self.job.options, **self._kafka})

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return _metered_client(meter)

    def documents(self) -> list[Document]:
        topics = Topics(KafkaSettings(**self._kafka))
        sources = [topics.between(at, spot.low, spot.high) for at, spot in topics.spots().items()]
        values = [
            record.value for source in sources for record in source.records if isinstance(record, Object)
        ]
        topics.close()
        bodies = [value["message"] for value in values if value["message"].get("headers")]
        return [
            Document(
                str(body["data"]["id"]), body["headers"]["changeSequence"], json.dumps(body, sort_keys=True)
            )
            for body in bodies
        ]


def _document(body: dict[str, Any]) -> Document:
    text = json.dumps(body, sort_keys=True)
    return Document(str(body["data"]["id"]), body["headers"]["changeSequence"], text)


class Read(Tables):
    """A topic that is converted to parts; its offsets are committed after each round."""

    source = "qlik-message"
    idle = 1  # a transaction that became complete in a round is delivered in the next

    def __init__(self, folder: Path, brokers: str) -> None:
        super().__init__(folder, "changes", "out/")
        self._kafka = _settings(brokers)
        self.job = replace(self.job, inputs=("-",), options={**self.job.options, **self._kafka})

    def add(self, stage: int) -> None:
        refused = list(
            publish(
                message_changes(stage), TABLES, MessageSettings(metadata=False), KafkaSettings(**self._kafka)
            )
        )
        assert not refused

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        return _metered_client(meter)


@pytest.fixture(autouse=True)
def small_parts_and_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a part after two changes, and wait briefly for what the mock brokers do not describe."""
    monkeypatch.setattr(job_output, "CHANGES", 2)
    monkeypatch.setattr(topic_reader, "_TELL", 0.2)


# a reader that commits waits seconds for the coordinator of its group
@pytest.mark.parametrize("kind", [Written, pytest.param(Read, marks=pytest.mark.long)])
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_topic_has_each_message_and_gives_each_change(
    tmp_path: Path, brokers: str, kind: type[Written | Read], sample: Sample
) -> None:
    sample.check(Reference(lambda folder: kind(folder, brokers), tmp_path))
