"""Topics are read on from a state: transactions whole and once, over partitions, runs, kills and repeats."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import Change, Field, Op
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transactions.counted import Incomplete
from eventlog.transactions.delivery import Delivery
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transactions.topic_progress import GroupAstray, Partition, PartitionOffsets, TopicChanged
from eventlog.transfer.sources.sequenced_feed import SequencedFeed, TopicReading
from tests.formats.qlik.helpers import write_messages
from tests.kit.tiers import drawn
from tests.transactions.test_transactions import TIMES, event, refresh

pytestmark = pytest.mark.quick

LONG = float(os.environ.get("EVENTLOG_PROOF_SECONDS", "0"))  # makes the property longer


class Brokers:
    """A cluster of partitions that grow; it implements what the feed asks for."""

    def __init__(self, partitions: int = 2) -> None:
        self.logs: dict[Partition, list[Any]] = {("t", n): [] for n in range(partitions)}
        self.low = dict.fromkeys(self.logs, 0)
        self.id, self.policy = "one", "delete"
        self.committed: dict[Partition, int] = {}
        self.rounds = 0
        self.arriving: list[tuple[int, Any]] = []  # what comes while a round is read

    def send(self, partition: int, *events: Any) -> None:
        self.logs["t", partition] += events

    def spots(self) -> Mapping[Partition, PartitionOffsets]:
        offsets = {
            at: PartitionOffsets(self.low[at], len(log), self.committed.get(at))
            for at, log in self.logs.items()
        }
        for partition, arrived in self.arriving:
            self.send(partition, arrived)
        self.arriving = []
        return offsets

    def identity(self, topic: str) -> tuple[str, str]:
        return self.id, self.policy

    def between(self, at: Partition, start: int, end: int) -> Source[Object]:
        log = self.logs[at]
        records = [Object(n, log[n], b"%d\n" % n) for n in range(start, end)]
        return Source(f"{at[0]}[{at[1]}]", at[0], (), records)

    def commit_offsets(self, offsets: Mapping[Partition, int]) -> None:
        self.committed.update(offsets)

    def close(self) -> None:
        pass


def feed(brokers: Brokers, state: str | None = None, **settings: Any) -> SequencedFeed:
    return SequencedFeed(
        TopicReading(brokers, Tables(), MessageSettings(), StreamSettings(**settings), state)
    )


def ids(delivery: Delivery) -> list[int]:
    return [int(str(change.fields[0].after)) for change in delivery.changes]


def read(topics_feed: SequencedFeed, follow: bool = False) -> tuple[list[list[int]], list[str]]:
    answers = list(topics_feed.round(follow))
    reasons = [item.reason for item in answers if isinstance(item, Refused)]
    return [ids(item) for item in answers if isinstance(item, Delivery)], reasons


def test_a_transaction_that_is_open_at_the_end_comes_whole_in_the_next_run() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1), event("B", 1, True, 2))
    brokers.send(1, event("A", 2, False, 3))
    one = feed(brokers)
    assert read(one) == ([[2]], ["transaction A is open: its 2 changes are left to the next run"])
    one.commit()
    assert brokers.committed == {("t", 0): 0, ("t", 1): 0}, "before the oldest message that is open"
    brokers.send(1, event("A", 3, True, 4))
    two = feed(brokers, one.state)
    assert read(two) == ([[1, 3, 4]], [])
    two.commit()
    assert brokers.committed == {("t", 0): 2, ("t", 1): 2}
    assert read(feed(brokers, two.state)) == ([], [])


def test_the_state_of_each_delivery_goes_on_behind_it() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1), event("B", 1, True, 2), event("C", 1, True, 4))
    brokers.send(1, event("A", 2, True, 3))
    one_run = feed(brokers)
    found = [(ids(d), one_run.state) for d in one_run.round() if isinstance(d, Delivery)]
    assert [one for one, _ in found] == [[2], [1, 3], [4]]
    for number, (_, state) in enumerate(found):
        assert read(feed(brokers, state))[0] == [one for one, _ in found[number + 1 :]]


def test_what_is_sent_again_after_a_failure_is_not_handed_out_again() -> None:
    brokers = Brokers()
    events = [event("A", 1, False, 1), event("A", 2, True, 2)]
    brokers.send(0, *events, events[0])
    one = feed(brokers)
    assert read(one)[0] == [[1, 2]]
    brokers.send(1, *events)
    found, said = read(feed(brokers, one.state))
    assert (found, said[-1].split(",")[0]) == ([], "2 repeated records are left out")


def described(*, named: bool) -> list[Any]:
    """Return metadata and messages of two structures, whose columns are not in the order of their bits."""

    def update(seq: int, *added: str) -> Change:
        names = (*added, "a", "b")
        fields = (Field("id", 1, 1), *(Field(name, f"{name}0", f"{name}{seq}") for name in names))
        extra = (("event_counter", seq % 2 + 1), ("last_event", seq % 2 == 1))
        position, transaction = f"{TIMES[0]}{seq:019}", f"{seq // 2}"
        return Change(Op.UPDATE, "app", "usr", (("id", 1),), fields, position, transaction, extra=extra)

    messages = [*write_messages([update(2)]), *write_messages([update(seq, "c") for seq in (3, 4, 5, 6)])]
    for message in messages:
        if message["type"] == "DT":
            body = message["message"]
            body["data"] = dict(reversed(body["data"].items()))
            body["beforeData"] = None
            message["messageSchemaId"] = message["messageSchemaId"] if named else None
    assert [message["type"] for message in messages] == ["MD", "DT", "MD", "DT", "DT", "DT", "DT"]
    return messages


@pytest.mark.parametrize("named", [True, False])
def test_metadata_of_earlier_runs_are_in_force_in_the_next(named: bool) -> None:
    messages = described(named=named)

    def changes(of: SequencedFeed) -> list[Change]:
        items = [*of.round()]
        assert not [item for item in items if isinstance(item, Refused) and "is open" not in item.reason]
        return [change for item in items if isinstance(item, Delivery) for change in item.changes]

    whole = Brokers(1)
    whole.send(0, *messages)
    at_once = changes(feed(whole))
    assert [change.position[-1:] for change in at_once if change.position] == ["2", "3", "4", "5"]
    for cut in range(len(messages) + 1):
        parts = Brokers(1)
        parts.send(0, *messages[:cut])
        first = feed(parts)
        before = changes(first)
        parts.send(0, *messages[cut:])
        assert before + changes(feed(parts, first.state)) == at_once, cut


def without_counters(*arguments: Any) -> Any:
    """Return a message of a task that numbers no changes of a transaction."""
    message = event(*arguments)
    headers = message["message"]["headers"]
    return {
        **message,
        "message": {
            **message["message"],
            "headers": {
                name: value
                for name, value in headers.items()
                if name not in ("transactionEventCounter", "transactionLastEvent")
            },
        },
    }


@pytest.mark.parametrize("follow", [False, True])
def test_the_rest_of_a_transaction_without_counters_is_no_repeat(follow: bool) -> None:
    brokers = Brokers()
    brokers.send(0, without_counters("A", 1, False, 1), without_counters("A", 2, False, 2))
    one = feed(brokers)
    assert read(one)[0] == [[1, 2]]
    brokers.send(0, without_counters("A", 3, True, 3))
    again = feed(brokers, one.state)
    found = [read(again, follow) for _ in range(1 + follow)]
    assert [delivered for delivered, _ in found if delivered] == [[[3]]]
    assert [said for _, said in found if said] == []


def test_what_comes_of_a_transaction_that_was_handed_out_with_a_gap_waits_and_is_no_repeat() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1), event("A", 3, True, 3))
    one = feed(brokers, open_transactions="deliver")
    assert read(one)[0] == [[1, 3]]
    brokers.send(0, event("A", 2, False, 2))
    again = feed(brokers, one.state, open_transactions="deliver")
    assert read(again) == ([], ["transaction A is open: its 1 change is left to the next run"])


def test_a_transaction_waits_until_every_partition_was_read_behind_its_end() -> None:
    """Hold B, which is complete, until A has come, which precedes it in the sequence."""
    brokers = Brokers()
    brokers.send(0, event("B", 1, True, 2))
    brokers.arriving = [(1, event("A", 1, True, 1))]
    one = feed(brokers)
    assert read(one, follow=True) == ([], [])
    assert read(one, follow=True) == ([[2]], []), "A came while B was read, and is behind an end of its own"
    assert read(one, follow=True)[0] == [[1]]


def test_a_row_of_a_full_load_waits_for_all_that_began_before_it() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1), refresh(9), event("B", 1, True, 2))
    one = feed(brokers)
    assert read(one)[0] == [[2]]
    brokers.send(0, event("A", 2, True, 3))
    assert read(one)[0] == [[1, 3], [9]]
    assert read(feed(brokers, one.state))[0] == []


def test_one_that_comes_late_is_marked() -> None:
    brokers = Brokers()
    brokers.send(0, event("B", 1, True, 2))
    one = feed(brokers)
    read(one)
    brokers.send(1, event("A", 1, True, 1))
    found = list(one.round())
    assert [item.late for item in found if isinstance(item, Delivery)] == [True]
    assert any(isinstance(item, Refused) and "came late" in item.reason for item in found)


def test_one_that_is_open_too_long_is_as_open_transactions_says() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1))
    moments = iter(range(0, 100_000, 700))

    def clock() -> float:
        return float(next(moments))

    def timed(stream: StreamSettings) -> SequencedFeed:
        return SequencedFeed(TopicReading(brokers, Tables(), MessageSettings(), stream, None, clock))

    for policy, expected in (("refuse", []), ("deliver", [[1]])):
        stream = StreamSettings(open_transactions=policy, open_time=600.0)
        assert read(timed(stream), follow=True)[0] == expected
    stopping = timed(StreamSettings())
    with pytest.raises(Incomplete, match="waits for its last change beyond the limits"):
        read(stopping, follow=True)


def test_a_gap_stops_the_run() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1), event("A", 3, True, 3), event("B", 1, True, 4))
    with pytest.raises(Incomplete, match="lacks its changes 2 "):
        read(feed(brokers))
    assert read(feed(brokers, open_transactions="refuse"))[0] == [[4]]
    assert read(feed(brokers, open_transactions="deliver"))[0] == [[1, 3], [4]]


def test_a_topic_that_is_another_or_lost_messages_is_an_error() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1), event("B", 1, True, 2))
    one = feed(brokers)
    read(one)
    brokers.id = "two"
    with pytest.raises(TopicChanged, match="was created again"):
        read(feed(brokers, one.state))
    brokers.id = "one"
    brokers.low["t", 0] = 1
    with pytest.raises(TopicChanged, match="begins at offset 1: what is wanted from 0 on is gone"):
        read(feed(brokers, one.state))
    brokers.committed["t", 0] = 0
    with pytest.raises(GroupAstray, match="holds the offsets 1 to 2, but its group continues at 0"):
        read(feed(brokers))
    brokers.committed["t", 0] = 2
    assert read(feed(brokers)) == ([], []), "a group is at the end"
    brokers.low["t", 0] = 0
    brokers.logs["t", 0].pop()
    with pytest.raises(TopicChanged, match="ends at offset 1, though it was read up to 2"):
        read(feed(brokers, one.state))


def test_a_compacted_topic_is_read_only_where_that_is_said() -> None:
    brokers = Brokers()
    brokers.policy = "compact"
    with pytest.raises(Incomplete, match=r"cleanup\.policy=compact"):
        read(feed(brokers))
    assert read(feed(brokers, open_transactions="deliver")) == ([], [])


@pytest.mark.parametrize(
    "state",
    [
        "",
        "{}",
        '{"topics": [], "recent": [], "metadata": []}',
        '{"topics": {"t": 1}, "recent": [], "metadata": []}',
        '{"topics": {}, "recent": [], "metadata": ["{}"]}',
        '{"topics": {}, "recent": [], "metadata": ["no JSON"]}',
    ],
)
def test_a_state_that_is_none(state: str) -> None:
    with pytest.raises(EventlogError, match="is not the state of topics"):
        feed(Brokers(), state)


@settings(max_examples=drawn(60) + int(10 * LONG))
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    partitions=st.integers(1, 3),
    chance=st.randoms(use_true_random=False),
    runs=st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 6)), max_size=8),
)
def test_any_split_over_partitions_runs_and_kills_gives_each_transaction_once(
    sizes: list[int], partitions: int, chance: random.Random, runs: list[tuple[int, bool, int]]
) -> None:
    """A killed run keeps the state of the last delivery that was out; messages may be sent again."""
    brokers = Brokers(partitions)
    waiting = _interleaved(sizes, chance)
    expected = sorted(_ids_by_transaction(sizes))
    found: list[list[int]] = []
    state: str | None = None
    for count, again, kill in [*runs, (len(waiting), False, 10**6)]:
        sent, waiting = waiting[:count], waiting[count:]
        for one in [*sent, *(sent[-2:] if again else ())]:
            brokers.send(chance.randrange(partitions), one)
        one_run = feed(brokers, state)
        for item in one_run.round():
            if isinstance(item, Delivery):
                if not kill:
                    break
                kill -= 1
                found.append(ids(item))
                state = one_run.state
        else:
            state = one_run.state
    assert sorted(found) == expected


def _interleaved(sizes: list[int], chance: random.Random) -> list[Any]:
    """Return the messages of transactions as a producer sends them: each one's in order, those of several
    mixed.
    """
    number = 0
    unsent = []
    for transaction, size in enumerate(sizes):
        numbers = range(number + 1, number + size + 1)
        number += size
        unsent.append(
            [
                event(f"{transaction:X}", counter, counter == size, n, time=transaction % 2)
                for counter, n in enumerate(numbers, 1)
            ]
        )
    messages = []
    while unsent:
        chosen_events = chance.choice(unsent)
        messages.append(chosen_events.pop(0))
        unsent = [events for events in unsent if events]
    return messages


def _ids_by_transaction(sizes: list[int]) -> list[list[int]]:
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return [list(range(end - size + 1, end + 1)) for end, size in zip(ends, sizes, strict=True)]


def test_states_are_json() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, False, 1), event("B", 1, True, 2))
    one = feed(brokers)
    read(one)
    assert json.loads(one.state or "") == {
        "topics": {"t": {"id": "one", "partitions": {"0": [2, [[0, 1]]], "1": [0, []]}}},
        "recent": [["B", "2024010112000000"]],
        "metadata": [],
    }
