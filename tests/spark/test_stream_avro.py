"""Messages in Avro in a stream: their schemas are known from batch to batch, and what lacks one waits."""

from __future__ import annotations

import base64
import pickle
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from eventlog_spark import into_tables
from eventlog_spark.stream.holding import Holding, Released
from eventlog_spark.stream.message_batch import load_metadata
from eventlog_spark.stream.waiting import TopicMessage
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as f

import eventlog
from eventlog.core.change import Change, Field, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.qlik import avro, messages
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from eventlog.sequence.settings import StreamSettings
from eventlog.sources.schema_registry import Registry, RegistryAccess, RegistryFault, UnknownSchema
from eventlog.targets.tables.settings import ApplySettings
from eventlog.transfer.apply import apply_to_delta
from tests.spark.messages import TABLES, deliver, stream
from tests.spark.test_stream_holding import Kept

pytestmark = pytest.mark.quick

pytest.importorskip("fastavro", reason="fastavro is not installed")
MINUTE = 60_000
READING = MessageSettings(encoding="avro", table_of_topic=True)


def changes() -> list[Change]:
    """Write accounts, three changes a transaction; from the seventh on their table has one more column."""
    found = []
    for n in range(1, 13):
        fields = [Field("id", after=n % 5), Field("owner", after=f"n{n}"), Field("amount", after=n)]
        if n > 6:
            fields.append(Field("late", after=-n))
        op = Op.INSERT if n < 6 else Op.UPDATE
        reported = Change(op, None, "account", (("id", n % 5),), tuple(fields), None, f"t{(n - 1) // 3}")
        found.append(reported._replace(time="2025-01-01T00:00:00"))
    return found


@lru_cache
def written() -> Sequence[bytes]:
    """Return their messages, with the metadata of a structure before its first message."""
    records = eventlog.records(changes(), "qlik-message", tables=TABLES, encoding="avro")
    return [record.value for record in records]


def is_metadata(value: bytes) -> bool:
    return value.startswith(avro.METADATA)


class Stream:
    """Read the batches of an Avro stream, each by a new state."""

    def __init__(self, reading: MessageSettings = READING, **bounds: Any) -> None:
        self.kept = Kept()
        self.now = 0
        self._reading = reading
        self._bounds = StreamSettings(**bounds)

    def batch(self, *messages: TopicMessage) -> list[Released]:
        self.now += 1000
        return list(Holding(TABLES, self._reading, self._bounds, self.kept).step(messages, self.now))


def handed_out(batches: Sequence[Sequence[Released]]) -> list[list[Any]]:
    """Return the amounts of each transaction, read only from its batch."""
    found = []
    for reported in batches:
        published = tuple(load_metadata(str(out.reason)) for out in reported if out.kind == "metadata")
        reader = MessageReader(TABLES, replace(READING, published=published))
        for _, group in groupby((out for out in reported if out.kind == "message"), lambda out: out.turn):
            found.append([amount(reader.read(out.value)) for out in group])
    return found


def amount(change: Change | None) -> Any:
    assert change is not None
    return change.after["amount"]


@given(
    st.lists(st.integers(0, 2), min_size=14, max_size=14),
    st.lists(st.lists(st.integers(1, 4), min_size=4, max_size=4), max_size=9),
)
def test_wherever_metadata_stand_each_transaction_goes_out_once_and_in_its_order(
    partitions: list[int], limits: list[list[int]]
) -> None:
    """Read the metadata from a separate partition, which may be read after all others."""
    topics: dict[int, list[TopicMessage]] = defaultdict(list)
    for partition, value in zip(partitions, written(), strict=True):
        at = 3 if is_metadata(value) else partition
        topics[at].append(TopicMessage("bank", at, len(topics[at]), value))
    own, batches = Stream(), []
    for limit in [*limits, [99, 99, 99, 99], [0, 0, 0, 0]]:
        batch = []
        for partition, rest in topics.items():
            batch += rest[: limit[partition]]
            del rest[: limit[partition]]
        batches.append(own.batch(*reversed(batch)))
    assert handed_out(batches) == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
    assert not any(out.late or out.incomplete for reported in batches for out in reported)
    assert (own.kept.texts, own.kept.packed) == ({}, {})


def lacking(*values: bytes) -> list[TopicMessage]:
    """Read messages without their metadata."""
    found = [value for value in values or written()[:4] if not is_metadata(value)]
    return [TopicMessage("bank", 0, offset, value) for offset, value in enumerate(found)]


def kinds(reported: Sequence[Released]) -> list[str]:
    return [out.kind for out in reported if out.kind not in ("read", "metadata")]


def test_what_lacks_its_metadata_waits_and_says_for_what() -> None:
    own = Stream(open_time=60)
    (reported,) = [out for out in own.batch(*lacking()) if out.kind != "read"]
    schema_id = written()[1][11:43].decode()
    assert (reported.kind, reported.where) == ("open", "bank[0]:0")
    assert reported.reason == (
        f"3 messages wait, for bank[0]:0 names schemaId {schema_id}, but no metadata message had it"
    )
    before = dict(own.kept.packed)
    assert kinds(own.batch()) == ["open"]
    assert own.kept.packed == before, "what waits is not written again"
    assert kinds(own.batch(TopicMessage("described", 0, 0, written()[0]))) == []
    assert kinds(own.batch()) == ["message"] * 3, "the partition of metadata was read behind them as well"


@pytest.mark.parametrize("policy", ["stop", "refuse", "deliver"])
def test_metadata_that_never_come(policy: str) -> None:
    own = Stream(open_transactions=policy, open_time=60)
    own.batch(*lacking())
    own.now += MINUTE
    before = own.kept.reported, dict(own.kept.packed)
    reported = [out for out in own.batch(TopicMessage("described", 1, 0, written()[7])) if out.kind != "read"]
    if policy == "stop":
        assert kinds(reported) == ["stop"]
        assert "but no metadata message had it" in str(reported[0].reason)
        assert (own.kept.reported, own.kept.packed) == before, (
            "nothing is lost: the next start reads it again"
        )
    else:
        assert kinds(reported) == ["refused"] * 3
        assert [out.where for out in reported] == ["bank[0]:0", "bank[0]:1", "bank[0]:2"]
        assert all("is unknown" in str(out.reason) and out.value for out in reported)
        assert own.kept.packed == {}


def test_more_than_may_wait_is_reported_at_once() -> None:
    own = Stream(open_transactions="refuse", open_bytes=900)
    messages = lacking(*written()[:7])
    assert kinds(own.batch(*messages[:1])) == ["open"]
    assert kinds(own.batch(*messages[1:])) == ["refused"] * 6


def registered() -> tuple[list[TopicMessage], dict[int, str]]:
    """Return messages in Confluent's wire format, and the schemas of the registry."""
    schemas: dict[int, str] = {}

    def register(table: str, schema: str) -> int:
        schemas[len(schemas) + 7] = schema
        return len(schemas) + 6

    settings = MessageSettings(
        encoding="avro", framing="confluent", register=register, register_key=register, metadata=False
    )
    values = [value for value in messages.write(changes(), TABLES, settings) if isinstance(value, bytes)]
    return [TopicMessage("bank", 0, at, value) for at, value in enumerate(values)], schemas


def test_a_schema_of_a_registry_is_asked_for_once() -> None:
    sent, schemas = registered()
    asked: list[int] = []

    def schema_of(number: int) -> str:
        asked.append(number)
        return schemas[number]

    own = Stream(replace(READING, schema_of=schema_of))
    batches = [own.batch(*sent[:5]), own.batch(*sent[5:8]), own.batch(*sent[8:])]
    assert handed_out(batches) == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
    assert len(asked) == len(set(asked)) == 2


def test_a_registry_that_does_not_answer_loses_nothing_and_one_that_lacks_a_schema_refuses() -> None:
    sent, schemas = registered()
    faults: list[EventlogError] = [RegistryFault("/schemas/ids/7: it answers 503")]

    def schema_of(number: int) -> str:
        if faults:
            raise faults[0]
        return schemas[number]

    own = Stream(replace(READING, schema_of=schema_of))
    (reported,) = own.batch(*sent)
    assert (reported.kind, reported.reason) == ("stop", "schema registry: /schemas/ids/7: it answers 503")
    assert (own.kept.reported, own.kept.packed) == (None, {})
    faults[0] = UnknownSchema("/schemas/ids/7: it answers 404 Not Found")
    assert kinds(own.batch(*sent[:3])) == ["refused"] * 3
    faults.clear()
    assert kinds(own.batch(*sent[3:6])) == ["message"] * 3


def test_a_registry_travels_to_the_workers() -> None:
    registry = Registry("https://registry.example", access=RegistryAccess({"Authorization": "Basic Zm9v"}))
    again = pickle.loads(pickle.dumps(registry.schema_of))
    with pytest.raises(RegistryFault):
        again.__self__._call("/nowhere")


def table(folder: Path) -> list[dict[str, Any]]:
    found = DeltaTable(folder / "account").to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.long
def test_schemas_that_come_in_the_middle_and_behind_and_a_restart_between(spark: Any, tmp_path: Path) -> None:
    """Hold messages for their metadata over the end of a run; a batch of the next run fails and is
    repeated."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    inbox, lake, refused = tmp_path / "in", tmp_path / "lake", list[Refused]()
    inbox.mkdir()

    def run() -> None:
        coded = stream(spark, inbox).withColumn("value", f.unbase64("value"))
        into_tables(
            coded,
            TABLES,
            checkpoint=str(tmp_path / "checkpoint"),
            to_delta=lake,
            refused=refused.append,
            encoding="avro",
            available_now=True,
        )

    sent = [("bank", 0, at, base64.b64encode(value)) for at, value in enumerate(written())]
    first, second = (at for at, value in enumerate(written()) if is_metadata(value))
    deliver(inbox, "1", sent[first + 1 : first + 3])
    deliver(inbox, "2", [("described", *sent[first][1:]), *sent[first + 3 : second]])
    deliver(inbox, "3", sent[second + 1 : second + 3])
    run()
    assert [row["amount"] for row in table(lake)] == [5, 6, 2, 3, 4]
    assert [one.reason.split(" wait,")[0] for one in refused] == ["2 messages"]

    deliver(inbox, "4", [("described", 0, 99, sent[second][3]), *sent[second + 3 : -1]])
    deliver(inbox, "5", sent[-1:])
    in_the_way = lake / "account" / "_delta_log" / f"{DeltaTable(lake / 'account').version() + 1:020}.json"
    in_the_way.mkdir()
    with pytest.raises(Exception, match="account: "):
        run()
    in_the_way.rmdir()
    refused.clear()
    run()
    assert refused == []

    messages_in = tmp_path / "messages.bin"
    eventlog.write(
        changes(), messages_in, "qlik-message", tables=TABLES, container="messages", encoding="avro"
    )
    how: dict[str, Any] = {"encoding": "avro"}
    job = Job("qlik-message", "changes", (str(messages_in),), "-", "messages", tables=TABLES, given=how)
    apply_to_delta(job, tmp_path / "applied", ApplySettings(), Report(print), "", lambda size: None)
    assert table(lake) == table(tmp_path / "applied")
    assert [row["late"] for row in table(lake)] == [-10, -11, -12, -8, -9]
