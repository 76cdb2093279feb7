"""The states of a log: each rule, and of any two states the worse one first."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import pytest

from eventlog.core.plurals import number
from eventlog.sql.log.leader import Holder, Standby
from eventlog.status.log_status import LogStatus, SlotStatus
from eventlog.status.log_watch import STARTING, UNREADABLE
from eventlog.status.verdict import RULES, Severity, State, verdicts_of, worst_of

pytestmark = pytest.mark.quick

NOW = datetime(2026, 11, 28, 12, 45)
LEADER = Holder("ada", "17", "eventlog", publisher=True)
LOST = SlotStatus("slot", is_read=False, wal_status="lost", held_bytes=0, bytes_behind=0, delay=None)
QUIET: dict[str, Any] = {
    **dict.fromkeys(LogStatus.__dataclass_fields__),
    "now": NOW,
    **dict.fromkeys(("pending", "held_rows", "waiting", "failed", "unexplained", "finished", "epoch"), 0),
    "failed_tables": {},
    "counts": {},
    "arrivals": {},
    "standbys": [],
    "cycle": {},
    "outlook": "",
    "pausing": False,
    "grows": False,
    "holder": LEADER,
}
DOWN = {"down_since": NOW - timedelta(minutes=3), "next_try": NOW + timedelta(seconds=9), "pace": 80.0}
# In the order of the rules: what makes each state, and its sentence.
SENTENCES: dict[str, tuple[dict[str, Any], str]] = {
    "slot-lost": (
        {"slot": LOST},
        "Slot lost: slot is lost, so changes are not logged; for the remedy: `eventlog check`",
    ),
    "lock-taken": (
        {"holder": Holder("eve", "99", None, publisher=False, ending="kill 99"), "pending": 1},
        (
            "Nothing is published: the leader's lock is held by role eve, process 99: no publisher of this"
            " log; 1 row is pending; to end that session: `kill 99`"
        ),
    ),
    "no-publisher": (
        {"holder": None, "pending": 2},
        (
            "No publisher: 2 rows are pending, and no session leads, as far as the database shows;"
            " to publish: `eventlog run`"
        ),
    ),
    "paused": (
        {"paused": "ada: the engine moves", "paused_at": datetime(2026, 11, 27, 9), "pending": 3},
        (
            "Paused by ada: the engine moves, since 2026-11-27 09:00:00 UTC; 3 rows are pending;"
            " to go on: `eventlog resume`"
        ),
    ),
    "receiver-down": (
        {"cycle": {"down": "connection refused", "remedy": "start it"}, "pending": 20_000, **DOWN},
        (
            "Receiver down since 12:42:00 UTC (connection refused); 20_000 rows are pending,"
            " about 4 min of work once it answers; next try in 9 s; start it, then `eventlog retry --all`"
        ),
    ),
    "not-published": (
        {"cycle": {"unread": {"hr.usr": "it has no key", "hr.dept": "it is gone"}}},
        "2 tables are not published: hr.usr: it has no key, and 1 more; for what is wrong: `eventlog check`",
    ),
    "late": (
        {"moving_age": 1200.0, "pending": 30, "outlook": "growing by 3 a second", "grows": True},
        (
            "Late: 30 rows are pending, the oldest for 20 min, growing by 3 a second;"
            " for what each waits for: `eventlog explain`"
        ),
    ),
    "backlog": (
        {"pending": 25, "outlook": "done in about 4 h", "done_in": 14_400.0},
        "Backlog: 25 rows are pending, done in about 4 h; for what each waits for: `eventlog explain`",
    ),
    "failed": (
        {"failed": 21, "failed_tables": {"t1": 8, "t5": 5, "t4": 4, "t3": 3, "t2": 1}, "unexplained": 1},
        (
            "22 rows failed: t1 8, t5 5, t4 4, and 2 more tables, no reason is kept of 1;"
            " for the reasons: `eventlog errors`"
        ),
    ),
    "no-successor": (
        {"standbys": [Standby(Holder("ada", "18", "eventlog", publisher=True), could_lead=False)]},
        (
            "No standby could take over: role ada, process 18, eventlog is on standby:"
            " it could not take over; for the reason, there: `eventlog check`"
        ),
    ),
    "no-page": (
        {"cycle": {"no_page": "127.0.0.1, port 9464 (the setting monitor-port): Address already in use"}},
        (
            "The publisher has no status page: 127.0.0.1, port 9464 (the setting monitor-port): Address"
            " already in use; free that port or set another one, then start the publisher: `eventlog run`"
        ),
    ),
    "waiting": (
        {"waiting": 2, "held_rows": 3, "pending": 3, "next_retry": NOW + timedelta(seconds=12)},
        (
            "2 events wait for a retry, the next in 12 s; 3 rows of their objects are held;"
            " to send them now: `eventlog retry --all`"
        ),
    ),
    "publishing": (
        {"pending": 99, "outlook": "done in about 2 min"},
        "Publishing: 99 rows are pending, done in about 2 min",
    ),
    "idle": ({}, "Idle: every row that may go is published"),
}


def status(*changes: dict[str, Any]) -> LogStatus:
    """Return a quiet log with these changes together."""
    facts = dict(QUIET)
    for change in changes:
        cycle = {**facts["cycle"], **change.get("cycle", {})}
        facts |= change | {"cycle": cycle, "pending": max(facts["pending"], change.get("pending", 0))}
    return LogStatus(**facts)


@pytest.mark.parametrize("state", SENTENCES)
def test_each_state_has_its_sentence_which_ends_in_its_command(state: str) -> None:
    change, sentence = SENTENCES[state]
    verdict = verdicts_of(status(change))[0]
    assert (verdict.state, verdict.sentence) == (state, sentence.replace("20_000", number(20_000)))
    assert verdict.sentence.endswith(f"`{verdict.command}`") == (verdict.severity is not Severity.SUCCESS)


def test_the_worse_of_two_states_comes_first() -> None:
    assert len(SENTENCES) == sum(map(len, RULES))
    needs_publisher = {"lock-taken", "receiver-down", "publishing"}
    for worse, better in combinations(SENTENCES, 2):
        if "no-publisher" in (worse, better) and {worse, better} & needs_publisher:
            continue  # both are never true
        log = status(SENTENCES[better][0], SENTENCES[worse][0])
        named = [verdict.state for verdict in verdicts_of(log) if verdict.state in (worse, better)]
        assert named[0] == worse, (worse, better)


def test_a_log_without_a_publisher_is_good_until_a_row_is_pending() -> None:
    idle = verdicts_of(status({"holder": None}))
    assert [(verdict.state, verdict.severity) for verdict in idle] == [("idle", Severity.SUCCESS)]
    assert "no publisher is running" in idle[0].sentence
    fresh = status({"holder": None, "pending": 1})
    assert worst_of(verdicts_of(fresh)) is Severity.WARNING
    late = status({"holder": None, "pending": 1, "moving_age": 999.0})
    assert worst_of(verdicts_of(late)) is Severity.ERROR


def test_a_person_is_needed_where_something_fails_or_is_late() -> None:
    needing = [
        state
        for state, (change, _) in SENTENCES.items()
        if worst_of(verdicts_of(status(change))) is Severity.ERROR
    ]
    assert needing == ["slot-lost", "lock-taken", "receiver-down", "not-published", "late", "failed"]


def test_the_worst_of_several_states_counts_wherever_it_is() -> None:
    """A pause is named before rows that failed, and a row that waits before none."""
    failed = {"failed": 1, "failed_tables": {"usr": 1}}
    paused_and_failed = verdicts_of(status(SENTENCES["paused"][0], failed))
    assert [verdict.state for verdict in paused_and_failed] == [State.PAUSED, State.FAILED]
    assert worst_of(paused_and_failed) is Severity.ERROR
    for first, second in combinations(Severity, 2):
        assert first.exit_code >= second.exit_code


def test_of_two_states_of_rows_the_one_of_more_rows_comes_first() -> None:
    def first(*changes: dict[str, Any]) -> str:
        return verdicts_of(status(*changes))[0].state

    one_failed, many_failed = ({"failed": n, "failed_tables": {"usr": n}} for n in (1, 50))
    late = {"moving_age": 1200.0, "pending": 30}
    assert (first(one_failed, late), first(many_failed, late)) == ("late", "failed")
    four_hours = {"pending": 30, "outlook": "done in about 4 h", "done_in": 14_400.0}
    assert (first(one_failed, four_hours), first(many_failed, four_hours)) == ("backlog", "failed")
    one_waits, many_wait = ({"waiting": n, "held_rows": n} for n in (1, 20_000))
    many_pending = {"pending": 38_500}
    assert (first(one_waits, many_pending), first(many_wait, many_pending)) == ("publishing", "waiting")
    assert first(one_waits, {"pending": 60}) == "waiting"  # they may be gone in a moment


def test_a_table_that_was_stopped_has_the_command_that_lets_it_pass() -> None:
    cycle = {"unread": {"hr.usr x": "9 of 9 objects would be deleted"}, "stopped_tables": ["hr.usr x"]}
    (verdict,) = verdicts_of(status({"cycle": cycle}))
    assert verdict.command == "eventlog resume --table 'hr.usr x'"


def test_the_tables_of_many_failed_rows_are_those_of_the_first() -> None:
    (verdict,) = verdicts_of(status({"failed": 20_000, "failed_tables": {"a": 900, "b": 100}}))
    rows, first = number(20_000), number(1_000)
    assert verdict.sentence.startswith(f"{rows} rows failed: of the first {first}: a 900, b 100;")


def test_failed_rows_without_counted_tables_promise_no_reasons_twice() -> None:
    (verdict,) = verdicts_of(status({"failed": 2_000, "failed_tables": {}}))
    assert verdict.sentence == (
        f"{number(2_000)} rows failed: of tables that are not counted; for the reasons: `eventlog errors`"
    )


def test_an_event_whose_time_has_passed_is_due() -> None:
    passed = {"waiting": 1, "held_rows": 1, "pending": 1, "next_retry": NOW - timedelta(seconds=4)}
    (verdict,) = verdicts_of(status(passed))
    assert verdict.sentence.startswith("1 event waits for a retry, the next due now; 1 row")


def test_events_that_waited_finish_rows_of_earlier_cycles() -> None:
    facts = [{"finished": 2, "rows": 0}, {"finished": 4_000, "rows": 10_000}]
    words = [status({"cycle": cycle}).progress for cycle in facts]
    assert words == ["2 rows finished", f"{number(4_000)} of {number(10_000)} rows finished"]


def test_each_state_has_a_place_in_the_metric() -> None:
    unreadable = [state for _, state, _, _ in UNREADABLE]
    assert [*State] == [STARTING.state, *sorted(unreadable), *SENTENCES]


def test_a_log_that_rests_is_not_called_publishing() -> None:
    for rest in ("paused", "receiver-down"):
        names = [verdict.state for verdict in verdicts_of(status(SENTENCES[rest][0]))]
        assert names == [rest]


def test_what_a_document_takes_is_part_of_what_is_late_while_rows_go() -> None:
    words = "delivery takes about 2 ms a document"
    slow = {"cycle": {"slow_delivery": words}}
    for state in ("late", "backlog"):
        change = SENTENCES[state][0] | slow
        assert f"; {words}; for what each waits for" in verdicts_of(status(change))[0].sentence
        for rest in ("no-publisher", "paused", "receiver-down"):
            assert words not in str(verdicts_of(status(change, SENTENCES[rest][0]))), rest
    assert words not in str(verdicts_of(status(SENTENCES["publishing"][0] | slow)))
