"""What waits in the state of a stream, batch after batch: each transaction whole, once, in its order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby

import pytest
from eventlog_spark.stream.holding import Holding, Released
from eventlog_spark.stream.waiting import TopicMessage
from hypothesis import given
from hypothesis import strategies as st

from eventlog.qlik.message_settings import MessageSettings
from eventlog.sequence.settings import StreamSettings
from tests.spark.messages import TABLES, message

pytestmark = pytest.mark.quick

MINUTE = 60_000


class Kept:
    """The state as texts and bytes, in dictionaries."""

    def __init__(self) -> None:
        self.reported: str | None = None
        self.texts: dict[str, str] = {}
        self.packed: dict[tuple[str, int], bytes] = {}
        self.described: dict[str, str] = {}

    def progress(self) -> str | None:
        return self.reported

    def keep_progress(self, text: str) -> None:
        self.reported = text

    def waiting(self) -> Sequence[tuple[str, str]]:
        return list(self.texts.items())

    def keep(self, name: str, text: str) -> None:
        self.texts[name] = text

    def drop(self, name: str, rounds: Sequence[int]) -> None:
        del self.texts[name]
        self.drop_messages(name, rounds)

    def messages(self, name: str, round_: int) -> bytes:
        return self.packed[name, round_]

    def keep_messages(self, name: str, round_: int, packed: bytes) -> None:
        self.packed[name, round_] = packed

    def drop_messages(self, name: str, rounds: Sequence[int]) -> None:
        for round_ in rounds:
            del self.packed[name, round_]

    def metadata(self) -> Mapping[str, str]:
        return dict(self.described)

    def keep_metadata(self, schema_id: str, text: str) -> None:
        self.described[schema_id] = text

    def drop_metadata(self, schema_id: str) -> None:
        del self.described[schema_id]


class Stream:
    """Read the batches of a stream, each by a new state."""

    def __init__(self, **bounds: object) -> None:
        self.kept = Kept()
        self.now = 0
        self._bounds = StreamSettings(**bounds)  # type: ignore[arg-type]

    def batch(self, *messages: TopicMessage) -> list[Released]:
        self.now += 1000
        reading = MessageSettings(table_of_topic=True)
        return list(Holding(TABLES, reading, self._bounds, self.kept).step(messages, self.now))

    def places(self, *messages: TopicMessage) -> list[tuple[int, int]]:
        """Return the places of the messages that a batch delivers."""
        return [(out.partition, out.offset) for out in self.batch(*messages) if out.kind == "message"]


def change(number: int, transaction: int, counter: int | None, last: bool = False) -> bytes:
    return message("account", "INSERT", {"id": number, "amount": 1}, number, transaction, counter, last)


def at(partition: int, offset: int, value: bytes | None) -> TopicMessage:
    return TopicMessage("bank", partition, offset, value)


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=8),
    st.lists(st.lists(st.integers(1, 3), min_size=3, max_size=3), max_size=12),
)
def test_every_transaction_goes_out_once_whole_and_in_the_order_of_the_source(
    transactions: list[list[int]], limits: list[list[int]]
) -> None:
    """Cut them by any partitions and batches: as in Kafka's source, a batch has at least one message of
    each partition that has some."""
    topics: dict[int, list[TopicMessage]] = defaultdict(list)
    expected: list[list[tuple[int, int]]] = []
    numbers = iter(range(1, 100))
    for transaction, partitions in enumerate(transactions):
        own = []
        for counter, partition in enumerate(partitions, 1):
            value = change(next(numbers), transaction, counter, counter == len(partitions))
            own.append((partition, len(topics[partition])))
            topics[partition].append(at(partition, len(topics[partition]), value))
        expected.append(own)
    stream, found = Stream(), list[Released]()
    for limit in chain(limits, [[99, 99, 99], [0, 0, 0]]):
        batch = []
        for partition, rest in topics.items():
            batch += rest[: limit[partition]]
            del rest[: limit[partition]]
        found += stream.batch(*reversed(batch))
    reported = [
        [(out.partition, out.offset) for out in group]
        for _, group in groupby((out for out in found if out.kind == "message"), lambda out: out.turn)
    ]
    assert reported == expected
    assert not any(out.late or out.incomplete for out in found)
    assert (stream.kept.texts, stream.kept.packed) == ({}, {})


def test_a_transaction_of_one_partition_does_not_wait() -> None:
    stream = Stream()
    assert stream.places(at(0, 0, change(1, 7, 1)), at(0, 1, change(2, 7, 2, True))) == [(0, 0), (0, 1)]


def test_a_transaction_waits_until_every_partition_was_read_behind_it() -> None:
    """Expect earlier messages in another partition, which was read up to an earlier moment."""
    stream = Stream()
    stream.batch(at(1, 0, change(1, 1, 1, True)))
    assert stream.places(at(0, 0, change(3, 3, 1, True))) == []
    assert stream.places(at(1, 1, change(2, 2, 1, True))) == [(1, 1)]
    assert stream.places() == [(0, 0)]


def test_what_was_sent_again_is_left_out_and_reported() -> None:
    stream = Stream()
    whole = [at(0, 0, change(1, 7, 1)), at(0, 1, change(2, 7, 2, True))]
    assert stream.places(*whole) == [(0, 0), (0, 1)]
    again = stream.batch(*(one._replace(offset=one.offset + 2) for one in whole))
    assert [(out.kind, out.reason) for out in again if out.kind != "read"] == [
        ("said", "2 repeated records are left out, at bank[0]:2, bank[0]:3")
    ]


def test_parts_of_a_transaction_without_counters_are_no_repeats() -> None:
    stream = Stream()
    assert stream.places(at(0, 0, change(1, 7, None))) == [(0, 0)]
    assert stream.places(at(0, 1, change(2, 7, None))) == [(0, 1)]


def test_rows_of_a_full_load_stand_behind_what_came_before_them() -> None:
    load = message("account", "REFRESH", {"id": 5, "amount": 0}, 0, 0)
    load = load.replace(b'"20250101' + b"0" * 27 + b'"', b'""').replace(b'"' + b"0" * 32 + b'"', b'""')
    stream = Stream()
    assert stream.places(at(0, 0, change(3, 7, 1))) == []
    assert stream.places(at(0, 1, load), at(0, 2, load)) == []
    assert stream.places(at(0, 3, change(4, 7, 2, True))) == [(0, 0), (0, 3), (0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("stop", ["stop"]),
        ("refuse", ["refused", "refused", "message"]),
        ("deliver", ["message", "message", "message"]),
    ],
)
def test_a_transaction_that_waits_too_long(policy: str, expected: list[str]) -> None:
    stream = Stream(open_transactions=policy, open_time=60)
    stream.batch(at(0, 0, change(1, 7, 1)), at(0, 1, change(3, 7, 3, True)))
    stream.now += 59 * 1000
    assert kinds(stream.batch()) == ["open"]
    stream.now += MINUTE
    reported = stream.batch(at(0, 2, change(4, 8, 1, True)))
    assert kinds(reported) == expected
    reasons = {out.reason for out in reported if out.kind in ("stop", "refused")}
    assert all(reason is not None and "lacks its changes 2 (bank[0])" in reason for reason in reasons)
    assert [out.incomplete for out in reported if out.kind == "message"] in ([], [False], [True, True, False])


def test_more_than_may_wait_is_reported_at_once() -> None:
    stream = Stream(open_transactions="refuse", open_bytes=4000)
    assert kinds(stream.batch(at(0, 0, change(1, 7, 1)))) == ["open"]
    assert kinds(stream.batch(at(0, 1, change(2, 8, 1)))) == ["refused", "refused"]


def test_what_a_stop_left_as_it_was_goes_on_under_another_setting() -> None:
    stream = Stream(open_time=1)
    stream.batch(at(0, 0, change(1, 7, 1)))
    stream.now += MINUTE
    before = stream.kept.reported, dict(stream.kept.texts)
    assert kinds(stream.batch(at(0, 1, change(2, 8, 1, True)))) == ["stop"]
    assert (stream.kept.reported, stream.kept.texts) == before


@pytest.mark.parametrize("value", [None, b"{", b"[" * 100_000, b'{"magic": 1}', b"\xff"])
def test_what_is_no_message_costs_itself(value: bytes | None) -> None:
    reported = Stream().batch(at(0, 0, value), at(0, 1, change(1, 7, 1, True)))
    assert sorted(kinds(reported)) == ["message", "refused"]


def kinds(reported: Iterable[Released]) -> list[str]:
    return [out.kind for out in reported if out.kind != "read"]


def test_a_transaction_does_not_pass_one_that_waits_for_its_turn() -> None:
    """The third message of the first lies where the second batch brings more than it needs."""
    stream = Stream()
    one = [at(1, 0, change(1, 1, 1)), at(2, 0, change(2, 1, 2)), at(2, 1, change(3, 1, 3, True))]
    two, three = at(0, 0, change(4, 2, 1, True)), at(2, 2, change(5, 3, 1, True))
    assert stream.places(*one[:2], two) == []
    assert stream.places(one[2], three) == []
    assert stream.places() == [(1, 0), (2, 0), (2, 1), (0, 0), (2, 2)]
