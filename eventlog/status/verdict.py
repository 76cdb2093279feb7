"""The state of a log in a sentence, the worst first: the same on the page, in `status`, --json and /readyz.

`RULES` is the order. Each rule reads what is on record and returns its verdict if it holds. The last rule
always holds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from eventlog.core.errors import shortened
from eventlog.core.plurals import duration, number, quantity, roughly
from eventlog.core.remedies import Remedy

if TYPE_CHECKING:
    from eventlog.status.log_status import LogStatus

_START = "start `eventlog run`"
TOO_LONG = 300.0  # seconds that a row may be pending; the alert of examples/monitoring has the same


class Severity(enum.StrEnum):
    """A degree of trouble, which has a colour on the pages."""

    ERROR = enum.auto()  # a person is needed
    WARNING = enum.auto()  # a person decided it, or may be needed
    RETRY = enum.auto()  # it goes on by itself, later
    SUCCESS = enum.auto()


class Verdict(NamedTuple):
    """One state that a log is in."""

    state: str  # its name for programs
    severity: Severity
    word: str  # for titles
    facts: str  # since when, why, what waits, when it is done
    advice: str = ""  # what to do; empty if nothing is to be done
    path: str = ""  # of the page that lists what is meant
    obstacle: str = ""  # why no row goes at present; empty if rows go

    @property
    def sentence(self) -> str:
        """Return the whole as a sentence."""
        facts = f"{self.word}{'' if self.facts.startswith(('since', 'by', 'for')) else ':'} {self.facts}"
        return f"{facts}; {self.advice}" if self.advice else facts


def verdicts_of(log: LogStatus) -> list[Verdict]:
    """Return the states that a log is in, the worst first; there is at least one."""
    verdicts = [verdict for rule in RULES if (verdict := rule(log)) is not None]
    return verdicts[:-1] if verdicts[1:] else verdicts  # the last one is that nothing is wrong


def obstacle_of(log: LogStatus) -> str:
    """Return why no row goes at present; empty if rows go."""
    return next((verdict.obstacle for verdict in verdicts_of(log) if verdict.obstacle), "")


def needs_person(verdicts: Iterable[Verdict]) -> bool:
    """Return whether something failed, is not published, or has been pending for too long."""
    return any(v.severity is Severity.ERROR or v.state == "late" for v in verdicts)


def _no_publisher(log: LogStatus) -> Verdict | None:
    if log.publishes or not log.pending or (log.holder and not log.holder.publisher):
        return None
    severity = Severity.ERROR if _is_late(log) else Severity.WARNING
    waiting = f"; {_standbys(log)}" if log.standbys else ""
    facts = f"{_pending(log)}, and no session leads, as far as the database shows{waiting}"
    obstacle = "no publisher leads, as far as the database shows"
    return Verdict("no-publisher", severity, "No publisher", facts, _START, obstacle=obstacle)


def _lock_taken(log: LogStatus) -> Verdict | None:
    if log.holder is None or log.holder.publisher:
        return None
    obstacle = f"the leader's lock is held by {log.holder}"
    facts, advice = f"{obstacle}; {_pending(log)}", "end that session"
    return Verdict("lock-taken", Severity.ERROR, "Nothing is published", facts, advice, obstacle=obstacle)


def _slot_lost(log: LogStatus) -> Verdict | None:
    if log.slot is None or log.slot.wal_status not in (None, "lost"):
        return None
    facts = f"{log.slot.name} is lost, so changes are not logged"
    return Verdict("slot-lost", Severity.ERROR, "Slot lost", facts, f"`{Remedy.CHECK}` has the remedy")


def _paused(log: LogStatus) -> Verdict | None:
    if log.paused is None:
        return None
    pause = f"by {log.paused}, since {clock_text(log.paused_at, log.now)}"
    word = "Pausing after this batch" if log.pausing else "Paused"
    facts, obstacle = f"{pause}; {_pending(log)}", f"the publisher is paused {pause}"
    return Verdict("paused", Severity.WARNING, word, facts, f"`{Remedy.RESUME}` ends it", obstacle=obstacle)


def _receiver_down(log: LogStatus) -> Verdict | None:
    if (reason := log.cycle.get("down")) is None or not log.publishes:
        return None
    since = f"since {clock_text(log.down_since, log.now)} ({reason})" if log.down_since else f"now ({reason})"
    work = f", about {roughly(log.work_left)} of work once it answers" if log.work_left else ""
    next_try = "" if log.next_try is None else f"; next try {_until(log.next_try, log.now)}"
    facts = f"{since}; {_pending(log)}{work}{next_try}"
    obstacle = f"the receiver is down {since}{next_try}"
    return Verdict(
        "receiver-down", Severity.ERROR, "Receiver down", facts, "mend what it names", obstacle=obstacle
    )


def _unread(log: LogStatus) -> Verdict | None:
    if not (unread := log.cycle.get("unread")):
        return None
    table, reason = next(iter(unread.items()))
    further = f", and {len(unread) - 1} more" if unread.keys() - {table} else ""
    word = f"{quantity(len(unread), 'table is', 'tables are')} not published"
    facts = f"{shortened(table, 100)}: {reason}{further}"
    return Verdict("not-published", Severity.ERROR, word, facts)


def _failed(log: LogStatus) -> Verdict | None:
    if not log.failed_rows:
        return None
    rows = f"{number(log.failed_rows)} row{'' if log.failed_rows == 1 else 's'}"
    facts = largest((count for letter in "EF" for count in log.counts.get(letter, {}).items()), 3)
    advice = f"`{Remedy.ERRORS}` has the reasons"
    return Verdict(
        "failed", Severity.ERROR, f"{rows} failed", facts or "their reasons are kept", advice, "/errors"
    )


def _late(log: LogStatus) -> Verdict | None:
    if not _is_late(log):
        return None
    facts = f"the oldest row has been pending for {duration(log.moving_age or 0)}; {_pending(log)}"
    return Verdict("late", Severity.WARNING, "Late", facts)


def _waiting(log: LogStatus) -> Verdict | None:
    if not log.waiting:
        return None
    word = f"{number(log.waiting)} event{' waits' if log.waiting == 1 else 's wait'}"
    next_retry = "" if log.next_retry is None else f", the next {_until(log.next_retry, log.now)}"
    owner = "its object" if log.waiting == 1 else "their objects"
    held_rows = f"{_rows(log.held_rows)} of {owner} {'is' if log.held_rows == 1 else 'are'} held"
    facts = f"for a retry{next_retry}; {held_rows}"
    advice = f"`{Remedy.RETRY_ALL}` sends them now"
    return Verdict("waiting", Severity.RETRY, word, facts, advice, "/waiting")


def _publishing(log: LogStatus) -> Verdict | None:
    rests = log.paused is not None or log.cycle.get("down") is not None
    if rests or not log.publishes or log.pending <= log.held_rows:
        return None
    return Verdict("publishing", Severity.SUCCESS, "Publishing", _pending(log))


def _no_successor(log: LogStatus) -> Verdict | None:
    """Return that standbys are there, and that none of them could take over."""
    if not log.publishes or not log.standbys or any(standby.could_lead for standby in log.standbys):
        return None
    advice = f"`{Remedy.CHECK}` there has the reason"
    return Verdict("no-successor", Severity.WARNING, "No standby could take over", _standbys(log), advice)


def _idle(log: LogStatus) -> Verdict:
    publisher = "" if log.publishes else "; no publisher is running, as far as the database shows"
    return Verdict("idle", Severity.SUCCESS, "Idle", f"every row that may go is published{publisher}")


# The worst first: nothing is published, then some of it, then what may become bad, then what is well.
RULES: tuple[Callable[[LogStatus], Verdict | None], ...] = (
    _lock_taken,
    _no_publisher,
    _slot_lost,
    _paused,
    _receiver_down,
    _unread,
    _failed,
    _late,
    _waiting,
    _no_successor,
    _publishing,
    _idle,
)


def clock_text(at: datetime | None, now: datetime) -> str:
    """Return a time in UTC to the second, without the day if that is today."""
    if at is None:
        return "an unknown time"
    return f"{at:%H:%M:%S} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _is_late(log: LogStatus) -> bool:
    return (log.moving_age or 0) > TOO_LONG


def _until(at: datetime, now: datetime) -> str:
    seconds = (at - now).total_seconds()
    return f"in {duration(round(seconds))}" if seconds >= 1 else "now"


def _pending(log: LogStatus) -> str:
    """Return how many rows are pending, and when they are gone."""
    verb = " is" if log.pending == 1 else "s are"
    ending = f", {log.outlook}" if log.outlook else ""
    return f"{number(log.pending)} row{verb} pending{ending}" if log.pending else "no row is pending"


def _standbys(log: LogStatus) -> str:
    first, *further = log.standbys
    count = f", and {len(further)} more" if further else ""
    return f"{first.holder} is on standby{count}: {first.words}"


def _rows(rows: int) -> str:
    return f"{number(rows)} row{'' if rows == 1 else 's'}"


def largest(counts: Iterable[tuple[str, int]], limit: int) -> str:
    """Return the tables with the most rows, and how many more there are."""
    totals: dict[str, int] = {}
    for table, rows in counts:
        totals[table] = totals.get(table, 0) + rows
    ordered = sorted(totals.items(), key=lambda count: (-count[1], count[0]))
    further = (
        [f"and {quantity(len(ordered) - limit, 'more table', 'more tables')}"] if ordered[limit:] else []
    )
    named = [f"{shortened(table, 100)} {number(rows)}" for table, rows in ordered[:limit]]
    return ", ".join([*named, *further])
