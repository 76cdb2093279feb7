"""Transactions come out whole, whatever partitions and orders their messages come in."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.files.stores import SpoolFile
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.messages import FORMAT
from eventlog.formats.qlik.sequenced_messages import MessageSequencer
from eventlog.formats.qlik.whole_transactions import assemble
from eventlog.transactions.counted import Incomplete
from eventlog.transactions.ranges import Ranges
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.ordered import changes_in_order, ordered
from tests.formats.qlik.helpers import write_messages

pytestmark = pytest.mark.quick

TIMES = ("2024010112000000", "2024010112000001")


def event(transaction: str, counter: int, last: bool, seq: int, table: str = "usr", time: int = 0) -> Any:
    """Return a message of a transaction, written by the writer, its counter as given."""
    change = Change(
        Op.INSERT,
        "app",
        table,
        (("id", seq),),
        (Field("id", ABSENT, seq),),
        f"{TIMES[time]}{seq:019}",
        transaction,
        extra=(("event_counter", counter), ("last_event", last)),
    )
    (message,) = write_messages([change], metadata=False)
    message["message"]["headers"]["transactionId"] = transaction
    return message


def partition(number: int, *events: Any) -> Source[Object]:
    return Source(f"t[{number}]", "t", (), [Object(i, e, b"%d\n" % i) for i, e in enumerate(events)])


def read(*partitions: Source[Object]) -> tuple[list[int], list[str]]:
    """Return the ids of the changes, and the reports."""
    reading = MessageSettings(whole_transactions=True)
    answers = list(changes_in_order(FORMAT, Tables(), reading, StreamSettings(), partitions))
    ids = [int(str(item.fields[0].after)) for item in answers if isinstance(item, Change)]
    return ids, [item.reason for item in answers if isinstance(item, Refused)]


def test_a_transaction_over_partitions_is_one() -> None:
    one = partition(0, event("A", 1, False, 1), event("A", 3, True, 3))
    other = partition(1, event("A", 2, False, 2), event("B", 1, True, 4))
    assert read(one, other) == ([1, 2, 3, 4], [])
    assert read(other, one) == ([1, 2, 3, 4], [])


def test_transactions_come_in_the_order_of_their_last_changes() -> None:
    events = [event("A", 1, False, 1), event("B", 1, True, 2), event("A", 2, True, 3)]
    assert read(partition(0, *events))[0] == [2, 1, 3]


def refresh(number: int) -> Any:
    change = Change(Op.SNAPSHOT, "app", "usr", (("id", number),), (Field("id", ABSENT, number),))
    (message,) = write_messages([change], metadata=False)
    return message


def test_a_row_of_a_full_load_comes_behind_all_that_began_before_it() -> None:
    events = [event("A", 1, False, 1), event("C", 1, True, 2), refresh(9), event("A", 2, True, 3)]
    assert read(partition(0, *events, event("B", 1, True, 4), refresh(8)))[0] == [2, 1, 3, 9, 4, 8]


def test_an_id_that_is_used_again_is_another_transaction() -> None:
    events = [event("A", 1, True, 1), event("A", 1, False, 2, time=1), event("A", 2, True, 3, time=1)]
    assert read(partition(0, *reversed(events))) == ([1, 2, 3], [])


def test_one_that_is_open_where_nothing_can_come_is_refused() -> None:
    ids, said = read(partition(0, event("A", 1, False, 1), event("B", 1, True, 2)))
    assert (ids, len(said)) == ([2], 1)
    assert "its last message is missing" in said[0]


GAP = partition(
    0,
    event("0", 1, True, 1),
    event("A", 1, False, 2),
    event("A", 4, True, 5),
    event("B", 1, True, 6),
)


def test_a_gap_stops_the_run_and_nothing_behind_it_comes_out() -> None:
    stream = StreamSettings()
    found = changes_in_order(FORMAT, Tables(), MessageSettings(whole_transactions=True), stream, [GAP])
    assert isinstance(next(found), Change), "what ended before the first of its changes"
    with pytest.raises(Incomplete, match=r"A at \d{16} lacks its changes 2 to 3 \(t\[0\]\)"):
        next(found)


def test_a_contradiction_costs_the_whole_transaction() -> None:
    other = event("A", 2, True, 2)
    other["message"]["data"]["id"] = 9
    events = [event("A", 1, False, 1), event("A", 2, True, 2), other, event("B", 1, True, 3)]
    ids, said = read(partition(0, *events))
    assert ids == [3]
    assert len(said) == 3


def test_what_memory_does_not_hold_waits_on_disk() -> None:
    events = [event("A", n, n == 300, n) for n in range(1, 301)]
    random.Random(3).shuffle(events)
    whole = _assembled(partition(0, *events), memory=20_000)
    assert [(len(w), list(w)) for w in whole] == [(300, list(range(1, 301)))]


def _assembled(source: Source[Object], memory: int) -> list[list[int]]:
    placed = ordered(MessageSequencer(Tables(), MessageSettings()), [source])
    answers = assemble(placed, "stop", SpoolFile(), memory=memory)
    return [
        [int(str(p.change.fields[0].after)) for p in w.changes] for w in answers if not isinstance(w, Refused)
    ]


@given(st.lists(st.integers(0, 40)), st.integers(0, 40), st.integers(0, 41))
@example([1, 3], 1, 3)
def test_ranges_are_sets(numbers: list[int], at: int, last: int) -> None:
    ranges, plain = Ranges(), set(numbers)
    for number in numbers:
        ranges.add(number)
    assert {n for start, end in ranges for n in range(start, end)} == plain
    assert [n in ranges for n in range(42)] == [n in plain for n in range(42)]
    missing = {n for start, end in ranges.missing(at, last) for n in range(start, end)}
    assert missing == set(range(at, last + 1)) - plain
    ranges.remove(at)
    assert {n for start, end in ranges for n in range(start, end)} == plain - {at}
