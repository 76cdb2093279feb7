"""The laws, on histories that a person can read: they hold on right ones, and name the row of a wrong one."""

from __future__ import annotations

import pytest

from tests.laws.judge.event_steps import ValueStep
from tests.laws.judge.laws import (
    Arrival,
    AuditedRow,
    Breach,
    Law,
    Present,
    RecordedRows,
    breaches,
    event_name,
)

pytestmark = pytest.mark.quick

COLUMN = {1: "fname", 2: "fname", 3: "fname", 7: "fname", 8: "fname"}


def row(record_id: int, event_type: int, letter: str = "S", **facts: object) -> AuditedRow:
    plain = AuditedRow(record_id, letter, event_type, COLUMN.get(event_type))
    return plain._replace(**facts)  # type: ignore[arg-type]


def event(*ids: int, operation: str = "modify", level: str = "success", **facts: object) -> Arrival:
    plain = Arrival(0, f"document {ids[0]}", event_name("log", ids), operation, b"content", level)
    return plain._replace(**facts)  # type: ignore[arg-type]


def judge(rows: list[AuditedRow], deliveries: list[Arrival], **facts: object) -> list[tuple[Law, int]]:
    return [(breach.law, breach.record_id) for breach in judged(rows, deliveries, **facts)]


def judged(rows: list[AuditedRow], deliveries: list[Arrival], **facts: object) -> list[Breach]:
    placed = [event._replace(place=place) for place, event in enumerate(deliveries)]
    return list(breaches("usr idu=1", rows, placed, **facts))  # type: ignore[arg-type]


ROWS = [row(1, 1), row(2, 1, column="lname"), row(4, 2), row(7, 4)]
EVENTS = [event(1, 2, operation="add"), event(4), event(7, operation="delete")]

CUT_AND_REFUSED = [event(1), event(1, event_id="log:1.2", level="error"), event(7)]
RIGHT = {
    "an insert that a row with a later number swallowed, because it was logged before the object went": (
        [row(8, 1), row(13, 4), row(14, 6, has_no_event=True)],
        [event(13, operation="delete")],
    ),
    "a part whose answer was lost, and that a changed object does not have any more": (
        [row(1, 8), row(7, 8)],
        CUT_AND_REFUSED,
    ),
    "a redriven event of fewer parts than before": (
        [row(1, 7, is_redriven=True)],
        [event(1), event(1, event_id="log:1.2", level="fatal"), event(1, content=b"all of it")],
    ),
    "an event that goes again in fewer parts, because its object has changed": (
        [row(1, 6)],
        [event(1), event(1, event_id="log:1.2", level="retry"), event(1, content=b"less")],
    ),
    "what a skipped row left of an event comes after a later event": (
        [row(1, 1, "W", reason="skipped"), row(2, 1, column="phone"), row(5, 2)],
        [event(1, 2, operation="add"), event(5), event(2, operation="add"), event(5)],
    ),
    "a delete that failed ended no life of the rows that were folded then": (
        [row(1, 6, has_no_event=True), row(2, 4, "F", reason="fatal"), row(3, 1), row(4, 4)],
        [event(2, operation="delete", level="fatal"), event(4, operation="delete")],
    ),
    "a redriven row whose object was gone by then, as the log has on record": (
        [row(1, 8, is_redriven=True, has_no_event=True)],
        [event(1, operation="add", level="error")],
    ),
    "a cut insert that is redriven, in which only a later part was refused": (
        [row(1, 7, is_redriven=True)],
        [
            event(1, operation="add"),
            event(1, event_id="log:1.2", level="error"),
            event(1, content=b"read back"),
            event(1, event_id="log:1.2", content=b"read back, too"),
        ],
    ),
    "a life": (ROWS, EVENTS),
    "pending rows have no document": ([row(1, 6, "N")], []),
    "a document may come before its row is finished": ([row(1, 6, "N", is_remembered=True)], [event(1)]),
    "a retry is sent again": ([row(1, 6)], [event(1, level="retry"), event(1)]),
    "a document without an answer is sent again": ([row(1, 2)], [event(1, level=""), event(1)]),
    "a repeat without an answer takes nothing back": ([row(1, 2)], [event(1), event(1, level="")]),
    "a repeat of the same content": ([row(1, 2)], [event(1), event(1)]),
    "what is read back may have changed since": ([row(1, 6)], [event(1), event(1, content=b"newer")]),
    "parts of an event have the worst answer": (
        [row(1, 6, "W")],
        [event(1, event_id="log:1", level="warning"), event(1, event_id="log:1.2")],
    ),
    "a value that a later row was to read back, which was skipped": (
        [row(1, 1), row(2, 1, column="phone"), row(3, 8, "W", column="phone", reason="skipped")],
        [event(1, operation="add")],
    ),
    "an object that is gone when its event goes again, after a warning": (
        [row(1, 8), row(2, 4)],
        [event(1, level="warning"), event(2, operation="delete")],
    ),
    "a value of an insert that a later row reads back, which is refused": (
        [row(1, 1), row(2, 6, "E")],
        [event(1, 2, level="error")],
    ),
    "a value of an insert that a redriven row of an earlier life reads back, which is refused": (
        [row(1, 7, "F", reason="fatal"), row(2, 4), row(3, 1)],
        [event(1, level="error"), event(2, operation="delete"), event(1, 3, level="fatal")],
    ),
    "one of two rows was skipped while they waited, and a later row reads the other": (
        [row(1, 2), row(2, 2, "W", column="phone", reason="skipped"), row(3, 6)],
        [event(1, 2, level="retry"), event(3)],
    ),
    "two refused events are redriven as one, after a later event": (
        [row(1, 2), row(3, 6), row(5, 2)],
        [event(1, level="error"), event(3, level="error"), event(5), event(1, 3)],
    ),
    "a refused insert goes again as a change, because one of its rows was skipped": (
        [row(1, 8), row(2, 1, "W", column="phone", reason="skipped")],
        [event(1, operation="add", level=""), event(1, operation="add", level="error"), event(1)],
    ),
    "rows of the driver itself inside an event of many": (
        [*(row(n, 2, is_loopback=n == 6) for n in range(1, 13))],
        [event(*(n for n in range(1, 13) if n != 6))],
    ),
    "rows that say nothing, and loopback": ([row(1, 2, is_silent=True), row(2, 6, is_loopback=True)], []),
    "a query-back of an object that is gone, and what it swallowed": (
        [row(1, 2), row(2, 6), row(3, 4)],
        [event(3, operation="delete")],
    ),
    "an insert that a modify of its pick-up read back": ([row(1, 1), row(2, 8)], [event(2)]),
    "a refused row has its reason": ([row(1, 6, "E", reason="the table is not known")], []),
    "a skipped row has its reason": (
        [row(1, 6, "W", reason="skipped: test data")],
        [event(1, level="error")],
    ),
    "an event goes anew without a row that was skipped while it waited": (
        [row(1, 2, "W", reason="skipped: test data"), row(2, 2, column="lname")],
        [event(1, 2, level="retry"), event(2, content=b"less")],
    ),
    "an event of many rows without one that was skipped": (
        [row(n, 8, "W", reason="skipped: no") if n == 6 else row(n, 8) for n in range(1, 15)],
        [event(*(n for n in range(1, 15) if n != 6))],
    ),
    "a delete that was skipped may have ended a life, or not": (
        [row(1, 1), row(2, 4, "W", reason="skipped: test data"), row(3, 6), row(4, 4)],
        [event(4, operation="delete")],
    ),
    "what a skipped row read back stays without a success": (
        [row(1, 1), row(2, 6, "W", reason="skipped: test data")],
        [event(1, 2, level="retry")],
    ),
    "a row that was logged late by hand begins an event of a later life": (
        [row(1, 6), *(row(n, 1) for n in range(2, 12)), row(12, 4), row(13, 1), row(14, 8)],
        [event(*range(2, 12), operation="add"), event(12, operation="delete"), event(1, 13, 14)],
    ),
    "a redriven event comes late": (
        [row(1, 6), row(2, 6)],
        [event(1, level="error"), event(2), event(1)],
    ),
    "a redrive makes other events of the rows, which are read back": (
        [row(1, 7), row(2, 7, column="lname")],
        [event(1, 2, operation="add", level="error"), event(1), event(2)],
    ),
    "a redriven insert is a modify under the same event-id": (
        [row(1, 7)],
        [event(1, operation="add", level="error"), event(1, content=b"read back")],
    ),
    "an object that is gone when its event is sent again": (
        [row(1, 6), row(2, 6), row(3, 4)],
        [event(1, level=""), event(2, level="fatal"), event(3, operation="delete")],
    ),
    "an object that is gone when a part goes again, after a warning to another part": (
        [row(1, 6, "W"), row(3, 4)],
        [
            event(1, event_id="log:1", level="warning"),
            event(1, event_id="log:1.2", level="error"),
            event(3, operation="delete"),
        ],
    ),
    "rows of an event may have others between them": (
        [row(1, 8), row(2, 1, column="lname"), row(3, 8)],
        [event(2, operation="add"), event(1, 3)],
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_the_laws_hold(case: str) -> None:
    assert judged(*RIGHT[case]) == []


WRONG = {
    "a refused part of an object that did not change": ([row(1, 8)], CUT_AND_REFUSED[:2], Law.ANSWERED, 1),
    "a deleted document": (ROWS, EVENTS[:1] + EVENTS[2:], Law.ACCOUNTED, 4),
    "a deleted document of two rows": (ROWS, EVENTS[1:], Law.ACCOUNTED, 1),
    "two that are swapped": (ROWS, [EVENTS[1], EVENTS[0], EVENTS[2]], Law.IN_ORDER, 1),
    "twice with another content": (ROWS, [*EVENTS, event(4, content=b"other")], Law.ONE_CONTENT, 4),
    "another operation": (ROWS, [*EVENTS[:2], event(7)], Law.EXPLAINED, 7),
    "a row that is gone": (ROWS[:2] + ROWS[3:], EVENTS, Law.EXPLAINED, 4),
    "a row in the middle that is gone": (
        [row(1, 2), row(3, 2)],
        [event(1, 2, 3)],
        Law.EXPLAINED,
        1,
    ),
    "an event of no row": (ROWS, [*EVENTS, event(9)], Law.EXPLAINED, 9),
    "an event-id that is none": ([], [event(1, event_id="17")], Law.EXPLAINED, 0),
    "a letter changed to warning": ([row(1, 6, "W")], [event(1)], Law.ANSWERED, 1),
    "a letter changed to new": ([row(1, 6, "N")], [event(1)], Law.ANSWERED, 1),
    "an error that is a success": ([row(1, 6)], [event(1, level="error")], Law.ANSWERED, 1),
    "a refused value of an insert that no row reads back": (
        [row(1, 7, "F", reason="fatal"), row(3, 1, column="phone")],
        [event(1, 3, level="fatal")],
        Law.ANSWERED,
        3,
    ),
    "finished before it was answered": ([row(1, 2)], [event(1, level="")], Law.ANSWERED, 1),
    "refused without a reason": ([row(1, 6, "E")], [], Law.ACCOUNTED, 1),
    "a query-back that never left": ([row(1, 6)], [], Law.ACCOUNTED, 1),
    "a delete that never left": ([row(1, 6), row(2, 4)], [event(1)], Law.ACCOUNTED, 2),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_first_breach_is_named_at_its_row(case: str) -> None:
    rows, deliveries, law, record_id = WRONG[case]
    assert judge(rows, deliveries)[:1] == [(law, record_id)]


def test_rows_may_be_missing_where_some_were_purged() -> None:
    assert judge(ROWS[2:], EVENTS, is_purged=True) == []
    assert judge(ROWS, EVENTS[2:], is_purged=True) == []
    assert judge([row(1, 2), row(3, 2)], [event(1, 2, 3)], is_purged=True) == []


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_was_redriven_comes_late_also_where_its_rows_are_deleted(is_kept: bool) -> None:
    rows = [row(7, 8), row(8, 8), row(9, 2)] if is_kept else []
    refused = [event(7, 8, level="error"), event(9), event(7), event(8)]  # and read back by two pick-ups
    assert judge(rows, refused, is_purged=True) == []
    unheard = [event(7, 8), event(9), event(7), event(8)]  # the answer was another on its way
    assert judge(rows, unheard, is_purged=True, redriven_rows={7, 8}) == []
    assert (Law.IN_ORDER, 7) in judge(rows, unheard, is_purged=True)
    assert judge(rows, [event(9), event(7, 8)], is_purged=True, redriven_rows={7, 8}) == []


def test_an_object_of_a_compared_table_may_go_and_come_back_without_a_row() -> None:
    redriven = event(1, operation="add", level="error")  # while it was gone
    came_back = [row(1, 7), row(2, 2)], [redriven, event(2)]
    assert judge(*came_back, is_compared=True) == []
    assert judge(*came_back) == [(Law.ANSWERED, 1)]
    assert judge([row(1, 7)], [redriven], is_compared=True) == [(Law.ANSWERED, 1)]


def test_a_row_that_was_logged_by_hand_may_commit_late_if_it_is_read_back() -> None:
    rows, events = [row(2, 6), row(5, 6)], [event(5), event(2)]
    late = {"log:5": RecordedRows([5], 1, 2), "log:2": RecordedRows([2], 3, 4)}
    swapped = {"log:5": RecordedRows([5], 3, 4), "log:2": RecordedRows([2], 1, 2)}
    assert judge(rows, events, recorded=late) == []
    assert judge(rows, events[::-1], recorded=late) == [(Law.IN_ORDER, 5)]
    assert judge(rows, events, recorded=swapped) == judge(rows, events) == [(Law.IN_ORDER, 2)]
    assert judge([row(2, 2), row(5, 6)], events, recorded=late) == []
    assert judge([row(2, 2), row(5, 2)], events, recorded=late) == [(Law.IN_ORDER, 2)]


def test_a_present_state_is_not_judged_where_the_receiver_wrote_to_the_table() -> None:
    rows = [row(1, 6), row(2, 6, is_loopback=True)]
    assert judge(rows, [event(1, steps=FIELDS)], present=Present({"fname": frozenset({"Eve"})})) == []


def test_an_insert_that_was_cut_by_a_limit_comes_as_two_adds() -> None:
    name, phone = ValueStep("fname", "add", "John"), ValueStep("phone", "add", "1")
    adds = [event(1, operation="add", steps=[name]), event(2, operation="add", steps=[phone])]
    present = Present({"fname": frozenset({"John"}), "phone": frozenset({"1"})})
    assert judge([row(1, 1), row(2, 1, column="phone")], adds, present=present) == []


def test_an_event_names_its_own_log() -> None:
    assert judge([row(1, 6)], [event(1)], log="log") == []
    assert judge([row(1, 6)], [event(1)], log="other") == [(Law.EXPLAINED, 1)]


def test_what_came_after_the_log_was_read_is_no_breach() -> None:
    later = event(9, is_late=True)
    assert judge([*ROWS, row(8, 5, "N")], [*EVENTS, event(8, is_late=True), later]) == []


FIELDS = [
    ValueStep("fname", "clear"),
    ValueStep("fname", "add", "John"),
    ValueStep("phone", "clear"),
    ValueStep("phone", "add", "1"),
    ValueStep("phone", "add", "2"),
]
STATE = {"fname": frozenset({"John"}), "phone": frozenset({"1", "2"}), "lname": frozenset({"Doe"})}


@pytest.mark.parametrize(
    ("deliveries", "present", "words"),
    [
        ([event(1, steps=FIELDS)], Present(STATE), None),
        ([event(1, operation="add", steps=FIELDS)], Present(STATE), "attribute lname"),
        ([event(1, steps=FIELDS)], Present({**STATE, "phone": frozenset({"1"})}), "attribute phone"),
        ([event(1, steps=FIELDS)], Present(None), "the documents leave it"),
        ([event(1, steps=FIELDS)], Present({"fname": frozenset({"John"})}), None),  # phone is not read
        ([event(1, steps=FIELDS)], Present({}, frozenset({"phone"})), "attribute phone"),
        ([event(1, operation="delete")], Present(STATE), "the documents delete it"),
        ([event(1, operation="delete")], Present(None), None),
        ([event(1, steps=FIELDS, level="error")], Present(None), None),
    ],
)
def test_the_documents_make_what_the_table_has(
    deliveries: list[Arrival], present: Present, words: str | None
) -> None:
    kind = {"add": 1, "modify": 6, "delete": 4}[deliveries[-1].operation]
    letter = "E" if deliveries[-1].level == "error" else "S"
    rows = [row(1, kind, letter, reason="refused" if letter == "E" else None)]
    reported = [breach.words for breach in judged(rows, deliveries, present=present)]
    assert [text.partition(" is not")[0].partition(",")[0] for text in reported] == ([words] if words else [])


NOTHING_LEFT = {
    "a query-back that found nothing": ([row(3, 6, has_no_event=True)], Present(STATE, frozenset(STATE))),
    "a new row of a table that is all key": ([row(3, 5, has_no_event=True)], Present({}, is_all_key=True)),
    "one column that was read back": ([row(3, 8, has_no_event=True)], Present(STATE, frozenset(STATE))),
}
NOTHING_TO_SEND = {
    "a withheld value": ([row(3, 1, is_silent=True)], Present(STATE, frozenset(STATE))),
    "no column that may leave": ([row(3, 6, has_no_event=True)], Present({})),
    "a column that the table lacks": ([row(3, 8, has_no_event=True)], Present({"lname": frozenset()})),
    "a change of a table that is all key": ([row(3, 6, has_no_event=True)], Present({}, is_all_key=True)),
    "a row of the driver's own user": ([row(3, 6, is_loopback=True)], Present(STATE, frozenset(STATE))),
    "a row that is pending": ([row(3, 6, "N")], Present(STATE, frozenset(STATE))),
    "a row that is gone": ([row(3, 6, has_no_event=True)], Present(None)),
}


@pytest.mark.parametrize("name", NOTHING_LEFT)
def test_an_object_that_is_there_has_left(name: str) -> None:
    rows, present = NOTHING_LEFT[name]
    assert (Law.SAME_STATE, 3) in judge(rows, [], present=present)
    assert (Law.SAME_STATE, 3) not in judge(rows, [], present=present, is_purged=True)


@pytest.mark.parametrize("name", NOTHING_TO_SEND)
def test_an_object_of_which_nothing_is_sent_need_not_have_left(name: str) -> None:
    rows, present = NOTHING_TO_SEND[name]
    assert Law.SAME_STATE not in {law for law, _ in judge(rows, [], present=present)}


def test_a_digest_of_decimal_digits_is_no_row() -> None:
    number = next(n for n in range(2, 10_000) if event_name("log", [1, n]).rpartition(":")[2].isdecimal())
    assert judge([row(1, 1), row(number, 1)], [event(1, number, operation="add")]) == []


def test_values_go_and_come() -> None:
    steps = [
        ValueStep("phone", "remove", "1"),
        ValueStep("phone", "add", "3"),
        ValueStep("phone", "add", "4"),
    ]
    deliveries = [event(1, steps=FIELDS), event(2, steps=steps)]
    present = Present({"fname": frozenset({"John"}), "phone": frozenset({"2", "3", "4"})})
    assert judge([row(1, 6), row(2, 2)], deliveries, present=present) == []
