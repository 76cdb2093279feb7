"""Messages written in transactions of Kafka: each change once, however runs end; on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Object
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.sources import capture_feed
from eventlog.sources.kafka import KafkaFault, Topics
from eventlog.sources.kafka_settings import KafkaSettings
from eventlog.targets import records
from eventlog.transfer.convert import convert
from tests.brokers import ADDRESS, own_name, settle
from tests.gbase.world import World
from tests.sequence.test_states import Line, task, written
from tests.support import CLOCK

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not ADDRESS, reason="no Kafka broker: .ci/broker starts one"),
]


def topic(partitions: int = 3, **config: str) -> str:
    name = own_name("written")
    admin = AdminClient({"bootstrap.servers": ADDRESS})
    made = admin.create_topics([NewTopic(name, partitions, 1, config=config)])
    made[name].result(30)
    return name


class Interrupted(Report):
    """A report of a run that somebody interrupts after so many records."""

    def __init__(self, left: int) -> None:
        super().__init__(lambda refused: None)
        self._left = left

    def good(self, records: Iterable[Any]) -> Iterator[Any]:
        for record in super().good(records):
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
            yield record


def job(folder: Path, name: str, inputs: list[str], states: str = "") -> Job:
    given = {
        "kafka": name,
        "kafka_brokers": ADDRESS,
        "kafka_transactional_id": name,
        "kafka_state_topic": states or f"{name}-states",
    }
    return Job("qlik-table", "qlik-message", tuple(inputs), given=given)


def run(one: Job, *, strict: bool = False) -> list[Refused]:
    said: list[Refused] = []
    convert(one, Report(said.append, strict=strict), CLOCK)
    return said


def committed(name: str) -> list[Any]:
    """Return what a consumer of committed messages sees, with repeats."""
    settle(name, ADDRESS)
    topics = Topics(KafkaSettings(kafka_brokers=ADDRESS, kafka=name, kafka_group=own_name("reader")))
    messages = [record for source in topics.sources() for record in source.records]
    topics.close()
    return [message.value["message"] for message in messages if isinstance(message, Object)]


def positions(name: str) -> list[str]:
    """Return the positions of the committed messages."""
    headers = [message.get("headers") for message in committed(name)]
    return sorted(header["changeSequence"] for header in headers if header)


@pytest.mark.parametrize("partitions", [0, 20])
def test_each_change_is_written_once_over_runs(tmp_path: Path, partitions: int) -> None:
    """Write each once, also if the topic of states was made by others with several partitions."""
    kafka = topic()
    states = topic(partitions, **{"cleanup.policy": "compact"}) if partitions else f"{kafka}-states"
    lines = task([0, 1, 2, 60, 61, 300])
    for upto in (3, 3, 6):
        inputs = [
            written(
                tmp_path, f"{upto}.{table}", [line for line in lines[:upto] if line.table == table], 9_000
            )
            for table in ("usr", "grp")
        ]
        assert not run(job(tmp_path, kafka, inputs, states))
        assert positions(kafka) == [line.seq for line in lines[:upto]]


def test_what_a_run_left_open_is_given_up_by_the_next(tmp_path: Path) -> None:
    """A process that died in a transaction: its messages are there, but never committed."""
    name = topic()
    lines = [Line(1, 0, "A", "usr"), Line(2, 1, "B", "usr")]
    dead = Producer({"bootstrap.servers": ADDRESS, "transactional.id": name, "log_level": 0})
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(name, json.dumps({"half": "of it"}).encode())
    dead.flush(30)
    run(job(tmp_path, name, [written(tmp_path, "a", lines, 9_000)]))
    assert positions(name) == [line.seq for line in lines]


def test_a_run_that_is_interrupted_anywhere_leaves_whole_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make each part one transaction; the state is after the committed ones."""
    monkeypatch.setattr(records, "CHANGES", 2)
    name = topic()
    lines = [Line(n, n, f"{n:X}", "usr") for n in range(1, 8)]
    one = job(tmp_path, name, [written(tmp_path, "a", lines, 9_000)])
    for taken in (1, 3, 2, 0, 5):
        with suppress(KeyboardInterrupt):
            convert(one, Interrupted(taken), CLOCK)
        found = positions(name)
        assert found == [line.seq for line in lines[: len(found)]]
        assert len(found) % 2 == 0 or len(found) == len(lines)
    run(one)
    assert positions(name) == [line.seq for line in lines]


@pytest.mark.parametrize("taken", [0, 3, 6])
def test_a_run_whose_place_another_takes_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """Write each change once, wherever the first run is."""
    monkeypatch.setattr(records, "CHANGES", 2)
    name = topic()
    lines = [Line(n, n, f"{n:X}", "usr") for n in range(1, 8)]
    one = job(tmp_path, name, [written(tmp_path, "a", lines, 9_000)])

    class Overtaken(Report):
        left = taken

        def good(self, records: Iterable[Any]) -> Iterator[Any]:
            for record in super().good(records):
                if self.left == 0:
                    assert not run(one)
                self.left -= 1
                yield record

    with pytest.raises(KafkaFault, match=f"another run began to write under {name}, or the brokers aborted"):
        convert(one, Overtaken(lambda refused: None), CLOCK)
    assert positions(name) == [line.seq for line in lines]


def test_states_stand_behind_a_transaction_of_another_run_too(tmp_path: Path) -> None:
    """Wait for an open transaction of another run before the state is read; no older state is taken."""
    name, lines = topic(), task([0, 1, 2])
    part = [
        written(tmp_path, f"{upto}", [line for line in lines[:upto] if line.table == "grp"], 9_000)
        for upto in (1, 3)
    ]
    one = job(tmp_path, name, part[:1])
    run(one)
    other = Producer({"bootstrap.servers": ADDRESS, "transactional.id": own_name("other"), "log_level": 0})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(one.given["kafka_state_topic"], b"half", b"other")
    other.flush(30)
    one = job(tmp_path, name, part[1:])
    run(one)
    with pytest.raises(EventlogError, match="a transaction of another run may be open there"):
        run(replace(one, given={**one.given, "kafka_timeout": 2.0}))
    other.abort_transaction(30)
    run(one)
    assert positions(name) == [line.seq for line in lines if line.table == "grp"]


def test_a_live_capture_is_written_once_over_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the rows of the table first, then its changes; each run goes on from the state in Kafka."""
    world, name = World(("shop:own.t1",), 5, steps=0), topic(1)
    monkeypatch.setitem(capture_feed.TRANSPORTS, "informix", lambda address, settings: world)
    given = {"kafka": name, "kafka_brokers": ADDRESS, "kafka_transactional_id": name}
    given["kafka_state_topic"] = f"{name}-states"
    address = "informix://cdc@localhost:9088/shop?server=ol1"
    for key in (1, 2, 3):
        transaction = world.begin()
        world.change(transaction, key=key)
        world.end(transaction, keep=True)
        assert not run(Job("gbase", "qlik-message", ("own.t1",), url=address, given=given))
    assert not run(Job("gbase", "qlik-message", ("own.t1",), url=address, given=given))
    reported = [
        (one["headers"]["operation"], one["data"]["k"]) for one in committed(name) if one.get("headers")
    ]
    assert reported == [("REFRESH", 1), ("INSERT", 2), ("INSERT", 3)]


def test_a_topic_of_states_that_forgets_is_misuse(tmp_path: Path) -> None:
    name, states = topic(), topic(1, **{"cleanup.policy": "delete"})
    one = job(tmp_path, name, [written(tmp_path, "a", [Line(1, 0, "A", "usr")], 9_000)])
    with pytest.raises(Misuse, match=r"has cleanup\.policy=delete: states would go"):
        run(replace(one, given={**one.given, "kafka_state_topic": states}))


def test_misuse_of_transactions(tmp_path: Path) -> None:
    name = topic()
    one = job(tmp_path, name, [written(tmp_path, "a", [Line(1, 0, "A", "usr")], 9_000)])
    with pytest.raises(Misuse, match="the state is in Kafka"):
        run(replace(one, state=tmp_path / "state"))
    with pytest.raises(Misuse, match="is for what is written to --kafka"):
        run(replace(one, target_format="changes"))
    with pytest.raises(Misuse, match="what is read from --kafka is not written there"):
        run(replace(one, source_format="qlik-message"))
    with pytest.raises(EventlogError, match="Kafka: "):
        run(replace(one, given={**one.given, "kafka_brokers": "127.0.0.1:1", "kafka_timeout": 1.0}))
