"""A document that is too large for its sink is divided until one event is alone; only that one fails."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eventlog.opening.waits import Waits
from eventlog.operate.file_delivery import AnswerMemory, FileDelivery
from eventlog.sinks import open_sink
from eventlog.sinks.files import FilesSink, FolderFailed
from eventlog.sinks.sink import Item, OutgoingDocument, Reply
from eventlog.xds.answers import Level
from eventlog.xds.documents import document
from tests.kit.logs import Crash, key
from tests.kit.support import patient
from tests.publisher.brokers import (
    CLUSTER_FORBIDDEN,
    FORBIDDEN,
    INVALID_RECORD,
    TAKEN,
    TOO_LARGE,
    VIOLATION,
    Cluster,
    cluster,
)
from tests.publisher.test_crashes import DyingSink, files
from tests.world.world import World

pytestmark = pytest.mark.quick
ROOM = 2_000  # bytes of a file or message
SHORT, LONG = "s" * 300, "l" * 3_000


def event(number: int, text: str = SHORT) -> str:
    return f'<add event-id="e{number}"><association>i={number},table=t</association>{text}</add>'


def make(*events: tuple[int, str]) -> OutgoingDocument:
    """Return a document of these events."""
    items = [Item(f"e{number}", event(number, text)) for number, text in events]
    return OutgoingDocument("-".join(str(number) for number, _ in events), items)


def errors(reply: Reply) -> list[str | None]:
    assert reply.fault is None
    return [status.event_id for status in reply.statuses if status.level is Level.ERROR]


# kafka


@pytest.fixture
def brokers() -> Iterator[Cluster]:
    with cluster() as mock_cluster:
        yield mock_cluster


def kafka(brokers: Cluster, **options: Any) -> Any:
    reported = {"linger.ms": 100} | {name.replace("_", "."): value for name, value in options.items()}
    text = ",".join(f"{name}={value}" for name, value in reported.items())
    settings = {"kafka_brokers": brokers.address, "kafka_timeout": patient(10)}
    return open_sink("kafka", settings | {"kafka_options": text})


def arrived(brokers: Cluster) -> list[str]:
    """Return the event-ids of the messages in the topic."""
    headers: list[dict[str, Any]] = [dict(message.headers() or []) for message in brokers.messages()]
    return [header["event-id"].decode() for header in headers]


@pytest.mark.parametrize("limit", [{"message_max_bytes": ROOM}, {"queue_buffering_max_kbytes": 1}])
def test_kafka_a_message_over_the_limit_fails_alone(brokers: Cluster, limit: dict[str, int]) -> None:
    sink = kafka(brokers, **limit)
    replies = list(sink.deliver([make((1, SHORT), (2, LONG), (3, SHORT)), make((4, LONG)), make((5, SHORT))]))
    sink.close()
    assert [errors(reply) for reply in replies] == [["e2"], ["e4"], []]
    assert sorted(arrived(brokers)) == ["e1", "e3", "e5"]


@pytest.mark.parametrize("code", [TOO_LARGE, INVALID_RECORD])
def test_kafka_what_a_broker_says_of_a_batch_is_no_verdict_on_its_messages(
    brokers: Cluster, code: int
) -> None:
    sink = kafka(brokers)
    brokers.refuse(code, code, code)  # all, the first two, the first
    documents = [make((1, SHORT), (2, SHORT)), make((3, SHORT), (4, SHORT))]
    replies = list(sink.deliver(documents))
    sink.close()
    assert [errors(reply) for reply in replies] == [["e1"], []]
    assert sorted(arrived(brokers)) == ["e2", "e3", "e4"]


@pytest.mark.parametrize("code", [FORBIDDEN, CLUSTER_FORBIDDEN])
def test_kafka_what_is_no_fault_of_a_message_is_no_verdict(brokers: Cluster, code: int) -> None:
    sink = kafka(brokers)
    for _ in range(2):  # the second time the producer knows it beforehand
        brokers.refuse(code)
        (reply,) = sink.deliver([make((1, SHORT))])
        assert not reply.arrived
        assert reply.fault is not None
    sink.close()


@pytest.mark.parametrize(
    ("numbers", "codes", "refused"), [((1, 2), (TAKEN, VIOLATION), "e2"), ((1, 1), (VIOLATION, TAKEN), "e1")]
)
def test_kafka_names_what_of_a_document_did_not_arrive(
    brokers: Cluster, numbers: tuple[int, ...], codes: tuple[int, ...], refused: str
) -> None:
    """Name an event, too, if the other of its two messages did."""
    sink = kafka(brokers, batch_num_messages=1)
    brokers.refuse(*codes)
    (reply,) = sink.deliver([make(*((number, SHORT) for number in numbers))])
    sink.close()
    assert [(status.level, status.event_id) for status in reply.statuses] == [(Level.RETRY, refused)]


def test_kafka_tells_that_a_heartbeat_was_not_taken(brokers: Cluster) -> None:
    sink = kafka(brokers)
    brokers.refuse(FORBIDDEN)
    refused, taken = (
        next(sink.deliver([OutgoingDocument(f"heartbeat-{n}", (), "<nds/>")])) for n in range(2)
    )
    sink.close()
    assert "authorization" in str(refused.fault)
    assert taken.fault is not None


@pytest.mark.parametrize(("refused", "codes"), [(1, (VIOLATION, TAKEN)), (2, (TAKEN, VIOLATION))])
def test_of_a_document_that_arrived_in_part_the_rest_goes_again(
    world: World, brokers: Cluster, refused: int, codes: tuple[int, ...]
) -> None:
    """Let the event wait whose message a broker refused, though the other one of its document arrived."""
    world.write(*(key(n, event_type=1, column_name="fname", new_value=SHORT) for n in (1, 2)))
    brokers.refuse(*codes)
    letters = []
    for _ in range(2):
        sink = kafka(brokers, batch_num_messages=1)
        assert world.cycle(sink, batch_size=2, retry_wait=0).documents == 1
        sink.close()
        letters.append(world.letters())
    assert letters == [{1: "S", 2: "S"} | {refused: "N"}, {1: "S", 2: "S"}]
    assert arrived(brokers) == [f"eventlog:{3 - refused}", f"eventlog:{refused}"]


def test_the_answers_after_documents_that_were_refused_are_taken(world: World, brokers: Cluster) -> None:
    """Let a broker refuse the first two of four messages, which all leave before the first answer."""
    world.write(*(key(n, event_type=1, column_name="fname", new_value=SHORT) for n in range(1, 5)))
    brokers.refuse(VIOLATION, VIOLATION, TAKEN, TAKEN)
    sink = kafka(brokers, batch_num_messages=1)
    world.cycle(sink, batch_size=1, retry_wait=0.0)
    assert world.letters() == {1: "N", 2: "N", 3: "S", 4: "S"}
    world.cycle(sink, batch_size=1, retry_wait=0.0)
    sink.close()
    assert world.counts() == {"S": 4}
    assert sorted(arrived(brokers)) == [f"eventlog:{n}" for n in range(1, 5)]


def test_a_publisher_goes_on_past_a_message_over_the_limit(world: World, brokers: Cluster) -> None:
    long = {"event_type": 1, "column_name": "fname"}
    world.write(*(key(n, new_value=LONG if n in (2, 5) else SHORT, **long) for n in range(1, 7)))
    for _ in range(2):
        sink = kafka(brokers, message_max_bytes=ROOM)
        world.cycle(sink, batch_size=3)
        sink.close()
    assert world.letters() == {n: "E" if n in (2, 5) else "S" for n in range(1, 7)}
    assert sorted(arrived(brokers)) == [f"eventlog:{n}" for n in (1, 3, 4, 6)]
    assert {failure.record_id for failure in world.failures()} == {2, 5}
    assert "too large" in str(world.failures()[0].reason)


# files


@contextmanager
def files_up_to(max_bytes: int) -> Iterator[None]:
    """No file grows longer meanwhile; Python would keep half of a module's bytecode."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    keeps_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        sys.dont_write_bytecode = keeps_none


class SmallSink(DyingSink):
    """A sink on a file system without long files."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        with files_up_to(ROOM):
            replies = list(super().deliver(documents))
        yield from replies


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", range(1, 8))
@pytest.mark.family
def test_files_hold_each_event_once_wherever_the_dividing_is_interrupted(
    world: World, tmp_path: Path, call: int, after: bool
) -> None:
    rows = [key(1, event_type=1, column_name="fname", new_value=SHORT) for _ in range(3)]
    rows += [key(n, event_type=1, column_name="fname", new_value=SHORT) for n in range(2, 10)]
    rows.insert(7, key(20, event_type=1, column_name="fname", new_value=LONG))
    world.write(*rows)
    given = {"batch_size": 8, "max_changes": 2}
    for attempt in (call, 1000):
        sink = SmallSink(tmp_path, attempt, after)
        try:
            world.cycle(sink, **given)
        except Crash:
            assert attempt == call
        sink.close()
    found = [event_id for event_ids in files(tmp_path).values() for event_id in event_ids]
    parts = [event_id for event_id in found if event_id.startswith("eventlog:1-3:")]
    assert len(parts) == 2
    assert sorted(set(found) - set(parts)) == sorted(f"eventlog:{n}" for n in range(4, 13) if n != 8)
    assert len(found) == len(set(found))
    assert world.letters() == {n: "E" if n == 8 else "S" for n in range(1, 13)}
    assert world.remembered() == 0


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", range(1, 4))
@pytest.mark.family
def test_files_a_part_that_is_refused_costs_its_change_wherever_that_is_interrupted(
    world: World, tmp_path: Path, call: int, after: bool
) -> None:
    """Send what follows it, without overtaking."""
    world.write(
        *(key(1, event_type=1, column_name="fname", new_value=value) for value in (SHORT, LONG, SHORT)),
        key(2, event_type=4),
    )
    for attempt in (call, 1000):
        sink = SmallSink(tmp_path, attempt, after)
        try:
            world.cycle(sink, max_changes=1, batch_size=8)
        except Crash:
            assert attempt == call
        sink.close()
    found = sorted(event_id for event_ids in files(tmp_path).values() for event_id in event_ids)
    assert [event_id.partition(".")[2] for event_id in found] == ["", "3", ""]
    assert world.letters() == {1: "E", 2: "E", 3: "E", 4: "S"}
    assert {failure.record_id for failure in world.failures()} == {1, 2, 3}
    assert world.remembered() == 0


def test_files_a_folder_whose_own_name_is_too_long_is_no_fault_of_a_document(tmp_path: Path) -> None:
    long = str(tmp_path)
    room = 4_095 - len(f"{long}/.eventlog/") - 30  # of the longest path that the system takes
    folder = Path(long, *(["f" * 200] * (room // 201)), "f" * (room % 201 - 1))
    with pytest.raises(FolderFailed, match="too long"):
        FilesSink(folder)


# deliver


@pytest.mark.parametrize(("size", "call"), [(8, 3), (2, 1)])
def test_a_delivery_divides_and_goes_on_where_it_was_interrupted(
    tmp_path: Path, size: int, call: int
) -> None:
    """Let one document have all events, or the third of four an event that is too large."""
    events = [event(n, LONG if n == 5 else SHORT) for n in range(1, 9)]
    contents = [document(events[n : n + size]).encode() for n in range(0, 8, size)]
    levels: dict[str, int] = {}
    for attempt in (call, 1000):
        sink, memory = SmallSink(tmp_path / "out", attempt, after=True), AnswerMemory(tmp_path / "memory")
        delivery = FileDelivery(sink, memory, Waits(1, 4), lambda words: None, lambda seconds: None)
        try:
            delivery.run(lambda: contents)
        except Crash:
            assert attempt == call
        memory.close()
        sink.close()
        levels |= delivery.levels
    assert levels["error"] == 1
    found = [event_id for event_ids in files(tmp_path / "out").values() for event_id in event_ids]
    assert sorted(found) == [f"e{n}" for n in range(1, 9) if n != 5]
