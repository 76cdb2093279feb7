"""One look at the log for all who ask a process: its pages and their titles, /readyz and the metrics.

A look is at most a few seconds old. It shows what the process knows by itself, too: that it has not connected
yet, or why the log cannot be read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from eventlog.core.errors import EventlogError
from eventlog.core.plurals import clock_text
from eventlog.core.remedies import Remedy
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.log.log_lock import LogLocked
from eventlog.sql.log.store import Store
from eventlog.status.log_status import NOT_COUNTED, LogStatus, read_counts, read_log_status
from eventlog.status.verdict import State, Verdict, in_time, verdicts_of

MAX_AGE = 2.0  # seconds for which a look is shown again
PAGE_SHARE = 20  # counting reads the whole log; the next count waits so many times as long as this one took
SAMPLE_SHARE = 100  # the same, where no one looks

STARTING = Verdict(State.STARTING, "Starting", "this publisher has not read its log yet")
# The state of a log that cannot be read, by the first of these kinds that the fault is: the state, the word
# for titles, and what to do.
_START = "start the database; it is connected to by itself"
_END = "wait until that session ends its transaction, or end it"
UNREADABLE: tuple[tuple[type[EventlogError], State, str, str], ...] = (
    (LogLocked, State.LOG_LOCKED, "Log locked", _END),
    (ConnectionLost, State.DATABASE_AWAY, "Database away", _START),
    (EventlogError, State.LOG_UNREAD, "The log is not read", f"for what is wrong: `{Remedy.CHECK}`"),
)


class Outage(NamedTuple):
    """A time in which a process cannot read its log."""

    since: datetime  # by this machine's clock, in UTC
    fault: EventlogError
    next_try: float  # by the monotonic clock

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the next try."""
        return max(self.next_try - time.monotonic(), 0.0)


def unreadable(fault: EventlogError, outage: Outage | None = None) -> Verdict:
    """Return the state of a log that cannot be read, now or since the begin of an outage."""
    _, state, word, advice = next(row for row in UNREADABLE if isinstance(fault, row[0]))
    if isinstance(fault, LogLocked) and fault.ending:
        advice = f"wait, or end that session: `{fault.ending}`"
    begun = f"since {clock_text(outage.since, now())}" if outage else "for now"
    next_try = f"; next try {in_time(outage.seconds_left)}" if outage else ""
    facts = f"{begun} ({fault}); how many rows are pending cannot be known{next_try}"
    return Verdict(state, word, facts, advice)


def now() -> datetime:
    """Return this machine's time in UTC, without a zone, as the database's times are."""
    return datetime.now(UTC).replace(tzinfo=None)


class WatchingProcess(Protocol):
    """The facts about a publisher's process that a look needs."""

    @property
    def store(self) -> Store | None: ...  # None while there is no database

    @property
    def outage(self) -> Outage | None: ...  # since the log was last read


class LogLook(NamedTuple):
    """The log and its states at one moment."""

    at: float  # by the monotonic clock
    verdicts: Sequence[Verdict]  # the first one first
    log: LogStatus | None = None  # None if it could not be read
    fault: EventlogError | None = None  # why not

    @property
    def age(self) -> float:
        """Return the seconds since then."""
        return max(time.monotonic() - self.at, 0.0)


class LogWatch:
    """The looks of one process; however many ask, one of them reads."""

    def __init__(self, process: WatchingProcess) -> None:
        self.last_read: LogStatus | None = None  # the log as it was read last
        self._process = process
        self._lock = threading.Lock()
        self._look: LogLook | None = None  # the last one at the store
        self._store: Store | None = None  # that it was at
        self._changed_at = 0.0  # when something was changed here
        self._unread_since: datetime | None = None
        self._counting = threading.Lock()
        self._counts = NOT_COUNTED
        self._counted_at = self._count_seconds = 0.0

    def look(self, max_age: float = MAX_AGE, *, count_share: int | None = None) -> LogLook:
        """Return a look that is not older. With a share the rows are counted before, if that is due by it."""
        asked_at = time.monotonic()
        if (store := self._process.store) is None:
            return self._without_store(asked_at)
        if count_share is not None:
            self._count(store, count_share)
        with self._lock:
            look = self._look if store is self._store else None
            if look is None or look.at < max(asked_at - max_age, self._changed_at):
                look = self._look = self._read(store)
                self._store = store
            return look

    def forget(self) -> None:
        """Let the next look be a new one, because something was changed here."""
        self._changed_at = time.monotonic()

    def unread(self, fault: EventlogError) -> LogLook:
        """Return the look of a page that could not read the log, for all who look in the next seconds."""
        with self._lock:
            self._look, self._store = self._unread(fault), self._process.store
            return self._look

    def _unread(self, fault: EventlogError) -> LogLook:
        at = time.monotonic()
        self._unread_since = self._unread_since or now()
        outage = Outage(self._unread_since, fault, at + MAX_AGE)
        return LogLook(at, [unreadable(fault, outage)], fault=fault)

    def _without_store(self, at: float) -> LogLook:
        if (outage := self._process.outage) is None:
            return LogLook(at, [STARTING])
        return LogLook(at, [unreadable(outage.fault, outage)], fault=outage.fault)

    def _count(self, store: Store, share: int) -> None:
        """Count the rows, if that is due; looks do not wait for it."""
        if self._counts.unexplained:
            share = PAGE_SHARE  # only a count sees that they are gone
        with self._counting, suppress(EventlogError):  # the look shows what is wrong
            begun = time.monotonic()
            if self._counts.at is None or begun > self._counted_at + share * self._count_seconds:
                self._counts = read_counts(store)
                self._counted_at = time.monotonic()
                self._count_seconds = self._counted_at - begun

    def _read(self, store: Store) -> LogLook:
        begun = time.monotonic()
        try:
            log = read_log_status(store, counted=False, counts=self._counts)
        except EventlogError as fault:
            return self._unread(fault)
        self._unread_since, self.last_read = None, log
        return LogLook(begun, verdicts_of(log), log)
