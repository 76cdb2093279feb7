"""change_seq: its format, its ranges, its generator."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.change import Change, Op
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.numbering import Numbered, SequenceMemory, number

pytestmark = pytest.mark.quick

LEGAL = "20230911032325000000000000000000005"


def test_it_is_a_time_of_16_digits_and_a_number_of_19() -> None:
    assert sequence.check(LEGAL) == LEGAL
    assert sequence.time_part("2012-03-04T05:06:07.899Z") == "2012030405060789"
    assert sequence.following("0" * 35, "2012030405060789") == "2012030405060789" + "0" * 18 + "1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LEGAL[:-1], "is not 35 digits"),
        (LEGAL + "0", "is not 35 digits"),
        ("", "is not 35 digits"),
        ("٢" + LEGAL[1:], "is not 35 digits"),
        ("2023" + "13" + LEGAL[6:], "month 13 is not 01 to 12"),
        ("2023" + "00" + LEGAL[6:], "month 00 is not 01 to 12"),
        ("202309" + "32" + LEGAL[8:], "day 32 is not 01 to 31"),
        ("20230911" + "24" + LEGAL[10:], "hour 24 is not 00 to 23"),
        ("2023091103" + "60" + LEGAL[12:], "minute 60 is not 00 to 59"),
        ("202309110323" + "60" + LEGAL[14:], "second 60 is not 00 to 59"),
    ],
)
def test_each_part_is_checked(text: str, reason: str) -> None:
    with pytest.raises(sequence.InvalidSequence, match=reason):
        sequence.check(text)
    assert not sequence.legal(text)


def test_the_order_is_that_of_the_text_and_no_integer_of_64_bits() -> None:
    assert int(LEGAL) > 2**63
    assert sequence.following(LEGAL, LEGAL[:16]) > LEGAL


@given(st.lists(st.datetimes(), min_size=1, max_size=20))
def test_it_grows_whatever_the_clock_does(times: list[object]) -> None:
    last = sequence.START
    for time in times:
        following = sequence.following(last, sequence.time_part(str(time).replace(" ", "T")))
        assert following > last
        last = following


def test_a_clock_that_went_back_leaves_the_time_and_raises_the_number() -> None:
    after = sequence.following("2024010112000000" + f"{7:019}", "2023010112000000")
    assert after == "2024010112000000" + f"{8:019}"


def test_no_number_follows_the_last() -> None:
    with pytest.raises(sequence.InvalidSequence, match="no change number"):
        sequence.following("2024010112000000" + "9" * 19, "2024010112000000")


def _changes(*reported: tuple[str, str | None, str | None]) -> list[Change]:
    return [
        Change(Op.INSERT, None, table, transaction=transaction, time=time)
        for table, transaction, time in reported
    ]


def _numbers(changes: list[Change], last: str) -> list[str]:
    return [
        n.sequence
        for n in number(changes, SequenceMemory(last), "2024-01-01T00:00:01")
        if isinstance(n, Numbered)
    ]


def test_a_change_that_gets_no_number_costs_itself_alone() -> None:
    end = Change(Op.INSERT, None, "t", position="2024010112000000" + "9" * 19)
    late, timeless = end._replace(position=None), end._replace(position=None, time="soon")
    found = list(number([timeless, late, end, late], SequenceMemory(), None))
    assert [isinstance(n, Numbered) for n in found] == [False, True, False, True]


def test_it_is_shared_by_the_tables_of_a_task_and_goes_on_after_a_restart() -> None:
    made = _changes(("a", "1", "2024-01-01T00:00:00Z"), ("b", "1", "2024-01-01T00:00:09Z"), ("a", "2", None))
    numbered = _numbers(made, sequence.START)
    assert numbered == [
        "2024010100000000" + f"{1:019}",
        "2024010100000000" + f"{2:019}",  # one transaction, one time
        "2024010100000100" + f"{3:019}",
    ]
    again = _numbers(made, numbered[-1])
    assert all(a < b for a, b in itertools.pairwise([*numbered, *again]))


def test_counters_and_the_last_event_of_transactions() -> None:
    made = _changes(("a", "1", None), ("b", "1", None), ("a", "2", None), ("a", None, None))
    numbered = [n for n in number(made, SequenceMemory(), None) if isinstance(n, Numbered)]
    assert [(n.counter, n.last) for n in numbered] == [
        (1, False),
        (2, True),
        (1, True),
        (None, None),
    ]
