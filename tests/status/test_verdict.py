"""The states of a log: each rule, and of any two states the worse one first."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import pytest

from eventlog.core.plurals import number
from eventlog.sql.log.leader import Holder, Standby
from eventlog.status.log_status import LogStatus, SlotStatus
from eventlog.status.verdict import RULES, Severity, needs_person, verdicts_of

pytestmark = pytest.mark.quick

NOW = datetime(2026, 11, 28, 12, 45)
LEADER = Holder("ada", "17", "eventlog", publisher=True)
LOST = SlotStatus("slot", is_read=False, wal_status="lost", held_bytes=0, bytes_behind=0, delay=None)
QUIET: dict[str, Any] = {
    **dict.fromkeys(LogStatus.__dataclass_fields__),
    "now": NOW,
    **dict.fromkeys(("pending", "held_rows", "waiting", "failed", "finished", "epoch"), 0),
    "counts": {},
    "arrivals": {},
    "standbys": [],
    "cycle": {},
    "outlook": "",
    "pausing": False,
    "holder": LEADER,
}
DOWN = {"down_since": NOW - timedelta(minutes=3), "next_try": NOW + timedelta(seconds=9), "pace": 80.0}
# In the order of the rules: what makes each state, and its sentence.
STATES: dict[str, tuple[dict[str, Any], str]] = {
    "lock-taken": (
        {"holder": Holder("eve", "99", None, publisher=False), "pending": 1},
        (
            "Nothing is published: the leader's lock is held by role eve, process 99: no publisher of this"
            " log; 1 row is pending; end that session"
        ),
    ),
    "no-publisher": (
        {"holder": None, "pending": 2},
        (
            "No publisher: 2 rows are pending, and no session leads, as far as the database shows;"
            " start `eventlog run`"
        ),
    ),
    "slot-lost": (
        {"slot": LOST},
        "Slot lost: slot is lost, so changes are not logged; `eventlog check` has the remedy",
    ),
    "paused": (
        {"paused": "ada: the engine moves", "paused_at": datetime(2026, 11, 27, 9), "pending": 3},
        (
            "Paused by ada: the engine moves, since 2026-11-27 09:00:00 UTC; 3 rows are pending;"
            " `eventlog resume` ends it"
        ),
    ),
    "receiver-down": (
        {"cycle": {"down": "connection refused"}, "pending": 20_000, **DOWN},
        (
            "Receiver down since 12:42:00 UTC (connection refused); 20_000 rows are pending,"
            " about 4 min of work once it answers; next try in 9 s; mend what it names"
        ),
    ),
    "not-published": (
        {"cycle": {"unread": {"hr.usr": "9 of 9 objects would be deleted", "hr.dept": "it is gone"}}},
        "2 tables are not published: hr.usr: 9 of 9 objects would be deleted, and 1 more",
    ),
    "failed": (
        {"counts": {"E": {f"t{n}": n for n in range(1, 6)}, "F": {"t1": 7}}},
        "22 rows failed: t1 8, t5 5, t4 4, and 2 more tables; `eventlog errors` has the reasons",
    ),
    "late": (
        {"moving_age": 1200.0, "pending": 5, "outlook": "growing by 3 a second"},
        "Late: the oldest row has been pending for 20 min; 5 rows are pending, growing by 3 a second",
    ),
    "waiting": (
        {"waiting": 2, "held_rows": 3, "pending": 3, "next_retry": NOW + timedelta(seconds=12)},
        (
            "2 events wait for a retry, the next in 12 s; 3 rows of their objects are held;"
            " `eventlog retry --all` sends them now"
        ),
    ),
    "no-successor": (
        {"standbys": [Standby(Holder("ada", "18", "eventlog", publisher=True), could_lead=False)]},
        (
            "No standby could take over: role ada, process 18, eventlog is on standby:"
            " it could not take over; `eventlog check` there has the reason"
        ),
    ),
    "publishing": (
        {"pending": 400, "outlook": "done in about 2 min"},
        "Publishing: 400 rows are pending, done in about 2 min",
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


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_sentence(state: str) -> None:
    change, sentence = STATES[state]
    verdict = verdicts_of(status(change))[0]
    assert (verdict.state, verdict.sentence) == (state, sentence.replace("20_000", number(20_000)))


def test_the_worse_of_two_states_comes_first() -> None:
    assert len(STATES) == len(RULES)
    needs_publisher = {"lock-taken", "receiver-down", "publishing"}
    for worse, better in combinations(STATES, 2):
        if "no-publisher" in (worse, better) and {worse, better} & needs_publisher:
            continue  # both are never true
        log = status(STATES[better][0], STATES[worse][0])
        assert verdicts_of(log)[0].state == worse, (worse, better)


def test_a_log_without_a_publisher_is_good_until_a_row_is_pending() -> None:
    idle = verdicts_of(status({"holder": None}))
    assert [(verdict.state, verdict.severity) for verdict in idle] == [("idle", Severity.SUCCESS)]
    assert "no publisher is running" in idle[0].sentence
    fresh = status({"holder": None, "pending": 1})
    assert verdicts_of(fresh)[0].severity is Severity.WARNING
    late = status({"holder": None, "pending": 1, "moving_age": 999.0})
    assert verdicts_of(late)[0].severity is Severity.ERROR


def test_a_person_is_needed_where_something_fails_or_is_late() -> None:
    needing = [state for state, (change, _) in STATES.items() if needs_person(verdicts_of(status(change)))]
    assert needing == ["lock-taken", "slot-lost", "receiver-down", "not-published", "failed", "late"]


def test_a_log_that_rests_is_not_called_publishing() -> None:
    for rest in ("paused", "receiver-down"):
        names = [verdict.state for verdict in verdicts_of(status(STATES[rest][0]))]
        assert names == [rest]
