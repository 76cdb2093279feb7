"""Topics of Debezium are read on from a state: transactions whole and once, over partitions and runs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object, Source
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.transactions.counted import Incomplete
from eventlog.transactions.delivery import Delivery
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transactions.topic_progress import Partition
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from eventlog.transfer.sources.debezium_topics import DebeziumReading
from eventlog.transfer.sources.sequenced_feed import SequencedFeed
from tests.kit.brokers import own_name
from tests.kit.support import CLOCK
from tests.kit.tiers import drawn
from tests.transactions.test_topics import Brokers

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    '[tables.usr]\nschema = "hr"\nkey = ["id"]\ncolumns = { id = "integer", v = "integer" }\n'
    '[tables.grp]\nschema = "hr"\nkey = ["id"]\ncolumns = { id = "integer", v = "integer" }\n'
)
ENDS, USR, GRP = "db.transaction", "db.hr.usr", "db.hr.grp"
NOW = 1_700_000_000


class Topics(Brokers):
    """The topics of Debezium: two of tables, in two partitions each, and that of transactions."""

    def __init__(self, *, ends: bool = True) -> None:
        super().__init__()
        topics = {USR: 2, GRP: 2, **({ENDS: 1} if ends else {})}
        self.logs = {(topic, number): [] for topic, count in topics.items() for number in range(count)}
        self.low = dict.fromkeys(self.logs, 0)

    def take(self, sent: Sent) -> None:
        if sent.at in self.logs:
            self.logs[sent.at].append(sent)

    def between(self, at: Partition, start: int, end: int) -> Source[Object]:
        log = self.logs[at]
        return Source(f"{at[0]}[{at[1]}]", at[0], (), [log[n].message(n) for n in range(start, end)])


class Sent(NamedTuple):
    """A message where it is sent to."""

    at: Partition
    value: Any
    key: Any = None

    def message(self, offset: int) -> Object:
        key = None if self.key is None else json.dumps(self.key).encode()
        return Object(offset, self.value, json.dumps(self.value).encode(), key)


def change(topic: str, idu: int, v: int, transaction: Any = None, op: str = "u") -> Sent:
    source = {"connector": "postgresql", "schema": "hr", "table": topic.rpartition(".")[2], "lsn": v}
    after = None if op == "d" else {"id": idu, "v": v}
    before = {"id": idu, "v": None} if op == "d" else None
    value: dict[str, Any] = {"op": op, "before": before, "after": after}
    value |= {"source": source, "transaction": transaction, "ts_ms": NOW * 1000}
    return Sent((topic, idu % 2), value, {"id": idu})


def transaction(name: str, *rows: tuple[str, int, int]) -> list[Sent]:
    """Return what Debezium sends of a transaction that updates these rows."""
    counts: dict[str, int] = {}
    sent = [Sent((ENDS, 0), {"status": "BEGIN", "id": name, "ts_ms": NOW * 1000})]
    for number, (topic, idu, v) in enumerate(rows, 1):
        counts[topic] = counts.get(topic, 0) + 1
        place = {"id": name, "total_order": number, "data_collection_order": counts[topic]}
        sent.append(change(topic, idu, v, place))
    collections = [
        {"data_collection": topic.partition(".")[2], "event_count": n} for topic, n in counts.items()
    ]
    end = {"status": "END", "id": name, "event_count": len(rows), "ts_ms": NOW * 1000}
    return [*sent, Sent((ENDS, 0), {**end, "data_collections": collections})]


def feed(topics: Topics, state: str | None = None, now: float = NOW, **stream: Any) -> SequencedFeed:
    reading = DebeziumReading(
        topics, TABLES, DebeziumSettings(), StreamSettings(**stream), state, clock=lambda: now
    )
    return SequencedFeed(reading)


def values(delivery: Delivery) -> list[Any]:
    return [dict(change.after)["v"] if change.after else -1 for change in delivery.changes]


def read(of: SequencedFeed, *, follow: bool = False) -> tuple[list[list[Any]], list[str]]:
    items = [values(item) if isinstance(item, Delivery) else item.reason for item in of.round(follow)]
    return [item for item in items if isinstance(item, list)], [i for i in items if isinstance(i, str)]


def test_a_transaction_leaves_whole_with_its_end() -> None:
    topics = Topics()
    begin, one, two, end = transaction("9:1", (USR, 1, 10), (GRP, 1, 11))
    for sent in (begin, one, end):
        topics.take(sent)
    first = feed(topics)
    assert read(first) == ([], ["transaction 9:1 is open: its 1 change is left to the next run"])
    topics.take(two)
    assert read(feed(topics, first.state)) == ([[10, 11]], [])


def test_changes_without_a_transaction_leave_at_once_in_the_order_of_their_partition() -> None:
    topics = Topics(ends=False)
    for sent in (change(USR, 2, 1, op="r"), change(GRP, 1, 2, op="r"), change(USR, 2, 3), change(USR, 1, 4)):
        topics.take(sent)
    one = feed(topics)
    assert read(one) == ([[1, 3], [4], [2]], [])
    assert read(feed(topics, one.state)) == ([], [])


def test_a_change_without_a_transaction_waits_for_an_open_one_before_it() -> None:
    topics = Topics()
    _, before, end = transaction("9:1", (USR, 1, 10))
    for sent in (before, change(USR, 1, 11), change(USR, 2, 12)):
        topics.take(sent)
    one = feed(topics)
    assert read(one) == (
        [[12]],
        [
            "transaction 9:1 is open: its 1 change is left to the next run",
            "after it, 1 change is left to the next run",
        ],
    )
    topics.take(end)
    assert read(feed(topics, one.state)) == ([[10], [11]], [])


def test_a_tombstone_after_its_delete_says_nothing() -> None:
    topics = Topics(ends=False)
    gone = change(USR, 2, 5, op="d")
    topics.take(gone)
    topics.take(gone._replace(value=None))
    assert read(feed(topics)) == ([[-1]], [])


def test_a_tombstone_that_a_later_run_reads_says_nothing_either() -> None:
    topics = Topics(ends=False)
    gone = change(USR, 2, 5, op="d")
    topics.take(gone)
    one = feed(topics)
    assert read(one) == ([[-1]], [])
    topics.take(gone._replace(value=None))
    assert read(feed(topics, one.state)) == ([], [])


def test_what_a_connector_sends_again_is_left_out() -> None:
    topics = Topics()
    sent = transaction("9:1", (USR, 1, 10), (USR, 1, 11))
    for message in (*sent[:2], *sent, *sent):
        topics.take(message)
    one = feed(topics)
    assert read(one)[0] == [[10, 11]]
    for message in (*sent, *transaction("9:2", (USR, 1, 12))):
        topics.take(message)
    found, said = read(feed(topics, one.state))
    assert (found, said[-1].partition(",")[0]) == ([[12]], "2 repeated records are left out")


def test_changes_of_tables_that_are_not_read_do_not_count() -> None:
    topics = Topics()
    for sent in transaction("9:1", (USR, 1, 10), ("db.hr.other", 1, 11), (USR, 2, 12)):
        topics.take(sent)
    for sent in transaction("9:2", ("db.hr.other", 1, 13)):
        topics.take(sent)
    assert read(feed(topics)) == ([[10, 12]], [])


def test_a_record_that_is_bad_costs_itself_alone_also_in_a_later_run() -> None:
    topics = Topics()
    begin, bad, good, end = transaction("9:1", (USR, 1, 10), (USR, 2, 11))
    bad.value["op"] = "x"
    for sent in (begin, bad, good):
        topics.take(sent)
    one = feed(topics)
    assert read(one)[1][0].startswith("op is 'x'")
    topics.take(end)
    found, said = read(feed(topics, one.state))
    assert (found, [reason[:9] for reason in said]) == ([[11]], ["op is 'x'"])


@pytest.mark.parametrize(
    ("policy", "expected"), [("refuse", [[12]]), ("deliver", [[10], [12]])], ids=["refuse", "deliver"]
)
def test_one_that_lacks_changes_for_too_long_is_as_open_transactions_says(
    policy: str, expected: list[list[int]]
) -> None:
    topics = Topics()
    begin, one, _, end = transaction("9:1", (USR, 1, 10), (USR, 2, 11))
    for sent in (begin, one, end, *transaction("9:2", (USR, 1, 12))):
        topics.take(sent)
    assert read(feed(topics))[0] == []
    late = NOW + 700.0
    with pytest.raises(Incomplete, match=r"9:1 lacks its changes 2 of hr\.usr"):
        read(feed(topics, now=late))
    assert read(feed(topics, now=late, open_transactions=policy))[0] == expected


def test_without_the_topic_of_ends_the_error_names_it() -> None:
    topics = Topics(ends=False)
    topics.take(transaction("9:1", (USR, 1, 10))[1])
    with pytest.raises(
        Incomplete, match="a message of the topic of transactions, which --kafka must name, too"
    ):
        read(feed(topics, now=NOW + 700.0))
    assert read(feed(topics, open_transactions="deliver"))[0] == [[10]]


def test_complete_transactions_in_different_orders_all_leave() -> None:
    topics = Topics()
    one = transaction("9:1", (USR, 1, 10), (GRP, 1, 11))
    two = transaction("9:2", (USR, 1, 20), (GRP, 1, 21))
    for sent in (one[1], two[1], two[2], one[2], one[3], two[3]):
        topics.take(sent)
    assert read(feed(topics)) == ([[10, 11], [20, 21]], [])


def _sent_again(sent: Sequence[Sent], chance: random.Random) -> Iterator[Sent]:
    """Yield messages as a connector sends them that is killed at times, and repeats its last ones."""
    at = 0
    while at < len(sent):
        yield sent[at]
        at += 1
        if chance.random() < 0.1:
            at = max(0, at - chance.randint(1, 6))


@settings(max_examples=drawn(60))
@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=10),
    chance=st.randoms(use_true_random=False),
    runs=st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.integers(0, 6)), max_size=8),
)
def test_any_split_over_partitions_runs_and_kills_gives_each_transaction_once(
    sizes: list[int], chance: random.Random, runs: list[tuple[int, bool, int]]
) -> None:
    """A size of 0 is a change without a transaction. A killed run keeps the state of its last delivery."""
    sent: list[Sent] = []
    expected: list[tuple[int, ...]] = []
    for number, size in enumerate(sizes):
        rows = [
            (chance.choice((USR, GRP)), chance.randint(1, 3), number * 10 + n) for n in range(max(size, 1))
        ]
        expected.append(tuple(v for _, _, v in rows))
        sent += transaction(f"t{number}", *rows) if size else [change(*rows[0])]
    arriving = list(_sent_again(sent, chance))
    by_partition: dict[Partition, list[Sent]] = {}
    for message in arriving:
        by_partition.setdefault(message.at, []).append(message)
    topics, state = Topics(), None
    delivered: list[tuple[int, ...]] = []
    rows_delivered: dict[tuple[str, Any], list[int]] = {}
    for count, follow, killed_after in [*runs, (len(arriving), False, 10_000)]:
        for _ in range(count):
            if pending := [messages for messages in by_partition.values() if messages]:
                topics.take(chance.choice(pending).pop(0))
        reading = feed(topics, state)
        for number, item in enumerate(i for i in reading.round(follow) if isinstance(i, Delivery)):
            changes = list(item.changes)
            delivered.append(tuple(values(Delivery(changes))))
            for each in changes:
                rows_delivered.setdefault((each.table, each.key), []).append(int(str(each.after["v"])))
            state = reading.state
            if number == killed_after:
                break
        else:
            state = reading.state
        reading.close()
    alone = {one for one in expected if sizes[one[0] // 10] == 0}
    whole = [one for one in delivered if sizes[one[0] // 10]]
    assert sorted(whole) == sorted(set(expected) - alone)
    assert {v for one in delivered for v in one} == {v for one in expected for v in one}
    for order in rows_delivered.values():
        firsts = list(dict.fromkeys(order))
        assert firsts == sorted(firsts), "the changes of a row come in their order"


@pytest.mark.slow("the mock cluster does not describe topics, and each run asks it for two seconds")
def test_they_are_read_from_brokers_on_from_a_state(brokers: str, tmp_path: Path) -> None:
    """All messages are in one topic, as a connector with a router sends them."""
    topic = own_name("routed")
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})

    def send(*messages: Sent) -> None:
        for message in messages:
            key = None if message.key is None else json.dumps(message.key)
            producer.produce(topic, json.dumps(message.value), key)
        producer.flush(30)

    options = {"kafka": topic, "kafka_brokers": brokers, "kafka_group": topic, "kafka_timeout": 2.0}
    output, refused = tmp_path / "out.jsonl", list[Refused]()
    job = Job(
        "debezium",
        "changes",
        output=str(output),
        tables=TABLES,
        options={**options, "kafka_options": "log_level=0", "open_time": 1e9},
        state=tmp_path / "state",
    )

    def tables_after_a_run() -> list[str]:
        convert(job, Report(refused.append), CLOCK)
        return [json.loads(line)["table"] for line in output.read_text().splitlines()]

    begin, one, two, end = transaction("9:1", (USR, 1, 10), (GRP, 1, 11))
    send(change(GRP, 2, 12), begin, one, two)
    assert tables_after_a_run() == ["grp"]
    send(end)
    assert tables_after_a_run() == ["grp", "usr", "grp"]
    assert [each.reason for each in refused] == [
        "transaction 9:1 is open: its 2 changes are left to the next run"
    ]


def test_since_is_refused(brokers: str) -> None:
    options = {"kafka": own_name("t"), "kafka_brokers": brokers, "since": "5"}
    with pytest.raises(Misuse, match="--since takes no part"):
        convert(Job("debezium", "changes", options=options), Report(lambda refused: None), CLOCK)
