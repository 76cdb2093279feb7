"""The state of a log in a sentence, by its consequence: the same wherever people or programs look.

`RULES` is the order: what is lost, why nothing goes, what is late, then what goes on by itself. Each rule
reads what is on record and returns its verdict if it holds. Rules in one line come by the number of their
rows. The last rule always holds. `log_watch` has the states of a log that cannot be read.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from eventlog.core.errors import shortened
from eventlog.core.plurals import are, clock_text, duration, number, quantity, roughly
from eventlog.core.remedies import Remedy

if TYPE_CHECKING:
    from eventlog.status.log_status import LogStatus

_PUBLISH = f"to publish: `{Remedy.RUN}`"
TOO_LONG = 300.0  # seconds that a row may be pending
_BACKLOG = 100  # rows; fewer may come and go while people look


class Severity(enum.StrEnum):
    """A degree of trouble, which has a colour on the pages."""

    ERROR = enum.auto()  # a person is needed
    WARNING = enum.auto()  # a person decided it, or may be needed
    RETRY = enum.auto()  # it goes on by itself, later
    SUCCESS = enum.auto()

    @property
    def exit_code(self) -> int:
        """Return the exit code of `status --exit-code`, which is that of a Nagios plugin."""
        return {Severity.ERROR: 2, Severity.WARNING: 1}.get(self, 0)


class State(enum.StrEnum):
    """A state that a log may be in, by its name for programs, with its severity."""

    severity: Severity

    def __new__(cls, name: str, severity: Severity) -> Self:
        """Make a state of its name and its severity."""
        state = str.__new__(cls, name)
        state._value_, state.severity = name, severity
        return state

    STARTING = "starting", Severity.RETRY
    DATABASE_AWAY = "database-away", Severity.ERROR
    LOG_LOCKED = "log-locked", Severity.ERROR
    LOG_UNREAD = "log-unread", Severity.ERROR
    SLOT_LOST = "slot-lost", Severity.ERROR
    LOCK_TAKEN = "lock-taken", Severity.ERROR
    NO_PUBLISHER = "no-publisher", Severity.WARNING  # a start is no trouble; `late` comes after five minutes
    PAUSED = "paused", Severity.WARNING
    RECEIVER_DOWN = "receiver-down", Severity.ERROR
    NOT_PUBLISHED = "not-published", Severity.ERROR
    LATE = "late", Severity.ERROR
    BACKLOG = "backlog", Severity.WARNING
    FAILED = "failed", Severity.ERROR
    NO_SUCCESSOR = "no-successor", Severity.WARNING
    NO_PAGE = "no-page", Severity.WARNING
    WAITING = "waiting", Severity.RETRY
    PUBLISHING = "publishing", Severity.SUCCESS
    IDLE = "idle", Severity.SUCCESS


class Verdict(NamedTuple):
    """One state that a log is in."""

    state: State
    word: str  # for titles
    facts: str  # since when, why, what waits, when it is done
    advice: str = ""  # what to do, with the command as its end; empty if nothing is to be done
    path: str = ""  # of the page that lists what is meant
    obstacle: str = ""  # why no row goes at present; empty if rows go
    rows: int = 0  # for how many rows it holds, as far as that is known

    @property
    def severity(self) -> Severity:
        """Return the severity of the state."""
        return self.state.severity

    @property
    def sentence(self) -> str:
        """Return the whole as a sentence."""
        facts = f"{self.word}{'' if self.facts.startswith(('since', 'by', 'for')) else ':'} {self.facts}"
        return f"{facts}; {self.advice}" if self.advice else facts

    @property
    def command(self) -> str:
        """Return the command to paste; empty without one."""
        return self.advice.split("`")[-2] if self.advice.endswith("`") else ""

    def as_json(self) -> dict[str, Any]:
        """Return the state as `status --json` has it."""
        words = {"severity": self.severity, "sentence": self.sentence, "command": self.command}
        return self._asdict() | words


def verdicts_of(log: LogStatus) -> list[Verdict]:
    """Return the states that a log is in, by their consequence; there is at least one."""
    verdicts = list[Verdict]()
    for line in RULES:
        line_verdicts = [verdict for rule in line if (verdict := rule(log)) is not None]
        verdicts += sorted(line_verdicts, key=_weight, reverse=True)
    return verdicts[:-1] if verdicts[1:] else verdicts  # the last one is that nothing is wrong


def _weight(verdict: Verdict) -> int:
    """Return the rows of a state; none of one that is good and may be over in a moment."""
    return 0 if verdict.severity is Severity.SUCCESS and verdict.rows < _BACKLOG else verdict.rows


def obstacle_of(log: LogStatus) -> str:
    """Return why no row goes at present; empty if rows go."""
    return next((verdict.obstacle for verdict in verdicts_of(log) if verdict.obstacle), "")


def worst_of(verdicts: Iterable[Verdict]) -> Severity:
    """Return the severity of the states together."""
    return max((verdict.severity for verdict in verdicts), key=lambda severity: severity.exit_code)


def _no_publisher(log: LogStatus) -> Verdict | None:
    if log.publishes or not log.pending or (log.holder and not log.holder.publisher):
        return None
    waiting = f"; {_standbys(log)}" if log.standbys else ""
    facts = f"{_pending(log)}, and no session leads, as far as the database shows{waiting}"
    obstacle = "no publisher leads, as far as the database shows"
    return Verdict(State.NO_PUBLISHER, "No publisher", facts, _PUBLISH, obstacle=obstacle, rows=log.pending)


def _lock_taken(log: LogStatus) -> Verdict | None:
    if log.holder is None or log.holder.publisher:
        return None
    obstacle = f"the leader's lock is held by {log.holder}"
    facts, ending = f"{obstacle}; {_pending(log)}", log.holder.ending
    advice = f"to end that session: `{ending}`" if ending else "end that session"
    word = "Nothing is published"
    return Verdict(State.LOCK_TAKEN, word, facts, advice, obstacle=obstacle, rows=log.pending)


def _slot_lost(log: LogStatus) -> Verdict | None:
    if log.slot is None or log.slot.wal_status not in (None, "lost"):
        return None
    facts = f"{log.slot.name} is lost, so changes are not logged"
    return Verdict(State.SLOT_LOST, "Slot lost", facts, f"for the remedy: `{Remedy.CHECK}`")


def _paused(log: LogStatus) -> Verdict | None:
    if log.paused is None:
        return None
    pause = f"by {log.paused}, since {clock_text(log.paused_at, log.now)}"
    word = "Pausing after this batch" if log.pausing else "Paused"
    facts, obstacle = f"{pause}; {_pending(log)}", f"the publisher is paused {pause}"
    advice = f"to go on: `{Remedy.RESUME}`"
    return Verdict(State.PAUSED, word, facts, advice, obstacle=obstacle, rows=log.pending)


def _receiver_down(log: LogStatus) -> Verdict | None:
    if (reason := log.cycle.get("down")) is None or not log.publishes:
        return None
    since = f"since {clock_text(log.down_since, log.now)} ({reason})" if log.down_since else f"now ({reason})"
    work = f", about {roughly(log.work_left)} of work once it answers" if log.work_left else ""
    next_try = "" if log.next_try is None else f"; next try {_until(log.next_try, log.now)}"
    facts = f"{since}; {_pending(log)}{work}{next_try}"
    obstacle = f"the receiver is down {since}{next_try}"
    advice = f"{log.cycle.get('remedy') or 'start the receiver'}, then `{Remedy.RETRY_ALL}`"
    return Verdict(State.RECEIVER_DOWN, "Receiver down", facts, advice, obstacle=obstacle, rows=log.pending)


def _unread(log: LogStatus) -> Verdict | None:
    if not (unread := log.cycle.get("unread")):
        return None
    table, reason = next(iter(unread.items()))
    further = f", and {len(unread) - 1} more" if unread.keys() - {table} else ""
    word = f"{quantity(len(unread), 'table is', 'tables are')} not published"
    facts = f"{shortened(table, 100)}: {reason}{further}"
    is_stopped = table in log.cycle.get("stopped_tables", ())
    advice = (
        f"if the deletes are right: `{Remedy.RESUME_TABLE.command(TABLE=table)}`"
        if is_stopped
        else f"for what is wrong: `{Remedy.CHECK}`"
    )
    return Verdict(State.NOT_PUBLISHED, word, facts, advice)


def _failed(log: LogStatus) -> Verdict | None:
    if not log.failed_rows:
        return None
    listed = sum(log.failed_tables.values())
    first = "" if listed == log.failed_rows - log.unexplained else f"of the first {number(listed)}: "
    reasonless = f"no reason is kept of {number(log.unexplained)}" if log.unexplained else ""
    tables = f"{first}{largest(log.failed_tables.items(), 3)}" if listed else ""
    facts = ", ".join(filter(None, (tables, reasonless))) or "of tables that are not counted"
    advice = f"for the reasons: `{Remedy.ERRORS}`"
    word = f"{_rows(log.failed_rows)} failed"
    return Verdict(State.FAILED, word, facts, advice, "/errors", rows=log.failed_rows)


def _late(log: LogStatus) -> Verdict | None:
    if not _is_late(log):
        return None
    return _too_long(log, State.LATE, "Late", f", the oldest for {duration(log.moving_age or 0)}")


def _backlog(log: LogStatus) -> Verdict | None:
    """Return that rows will be late, because the backlog takes too long, or grows."""
    has_end = log.done_in is not None and log.done_in <= TOO_LONG
    if has_end or not (log.done_in or (log.grows and log.pending - log.held_rows >= _BACKLOG)):
        return None
    return _too_long(log, State.BACKLOG, "Backlog", "")


def _too_long(log: LogStatus, state: State, word: str, oldest: str) -> Verdict:
    rows = log.pending - log.held_rows
    facts = f"{are(rows, 'row')} pending{oldest}{_ending(log)}{_slow_delivery(log)}"
    advice = f"for what each waits for: `{Remedy.EXPLAIN}`"
    return Verdict(state, word, facts, advice, rows=rows)


def _slow_delivery(log: LogStatus) -> str:
    """Return what a document takes and what would help, if that is most of the time and rows go."""
    words = "" if _rests(log) else log.cycle.get("slow_delivery")
    return f"; {words}" if words else ""


def _waiting(log: LogStatus) -> Verdict | None:
    if not log.waiting:
        return None
    word = f"{number(log.waiting)} event{' waits' if log.waiting == 1 else 's wait'}"
    next_retry = "" if log.next_retry is None else f", the next {_until(log.next_retry, log.now)}"
    owner = "its object" if log.waiting == 1 else "their objects"
    held_rows = f"{_rows(log.held_rows)} of {owner} {'is' if log.held_rows == 1 else 'are'} held"
    facts = f"for a retry{next_retry}; {held_rows}"
    advice = f"to send {'it' if log.waiting == 1 else 'them'} now: `{Remedy.RETRY_ALL}`"
    return Verdict(State.WAITING, word, facts, advice, "/waiting", rows=log.held_rows)


def _publishing(log: LogStatus) -> Verdict | None:
    if _rests(log) or log.pending <= log.held_rows:
        return None
    moving = log.pending - log.held_rows
    return Verdict(State.PUBLISHING, "Publishing", _pending(log), rows=moving)


def _no_successor(log: LogStatus) -> Verdict | None:
    """Return that standbys are there, and that none of them could take over."""
    if not log.publishes or not log.standbys or any(standby.could_lead for standby in log.standbys):
        return None
    advice = f"for the reason, there: `{Remedy.CHECK}`"
    return Verdict(State.NO_SUCCESSOR, "No standby could take over", _standbys(log), advice)


def _no_page(log: LogStatus) -> Verdict | None:
    if not (reason := log.cycle.get("no_page")) or not log.publishes:
        return None
    advice = f"free that port or set another one, then start the publisher: `{Remedy.RUN}`"
    return Verdict(State.NO_PAGE, "The publisher has no status page", reason, advice)


def _idle(log: LogStatus) -> Verdict:
    publisher, advice = ("", "") if log.publishes else (_NO_PUBLISHER, _PUBLISH)
    facts = f"every row that may go is published{publisher}"
    return Verdict(State.IDLE, "Idle", facts, advice)


_NO_PUBLISHER = "; no publisher is running, as far as the database shows"

RULES: tuple[tuple[Callable[[LogStatus], Verdict | None], ...], ...] = (
    (_slot_lost,),
    (_lock_taken,),
    (_no_publisher,),
    (_paused,),
    (_receiver_down,),
    (_unread,),
    (_late, _backlog, _failed),
    (_no_successor,),
    (_no_page,),
    (_waiting, _publishing),
    (_idle,),
)


def _rests(log: LogStatus) -> bool:
    """Return whether no row goes, because of the publisher, a pause or the receiver."""
    return not log.publishes or log.paused is not None or log.cycle.get("down") is not None


def _is_late(log: LogStatus) -> bool:
    return (log.moving_age or 0) > TOO_LONG


def _until(at: datetime, now: datetime) -> str:
    return in_time((at - now).total_seconds())


def in_time(seconds: float) -> str:
    """Return when something is, in so many seconds; its time may have passed."""
    return f"in {duration(round(seconds))}" if seconds >= 1 else "due now"


def _pending(log: LogStatus) -> str:
    """Return how many rows are pending, and when they are gone."""
    return f"{are(log.pending, 'row')} pending{_ending(log)}" if log.pending else "no row is pending"


def _ending(log: LogStatus) -> str:
    return f", {log.outlook}" if log.outlook else ""


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
