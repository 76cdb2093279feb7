"""What the pages know of a publisher's process and its log: its course, its counts, and why rows failed."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, Protocol

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import DatabaseSettings
from eventlog.publisher.readiness import Outage, Readiness
from eventlog.sql.connect import read_url
from eventlog.sql.log.log_admin import FailedRow, FailureFilter
from eventlog.sql.log.store import Store
from eventlog.status.log_status import LogStatus, read_log_status
from eventlog.status.verdict import Severity, Verdict, verdicts_of
from eventlog.web.monitor import MonitorSettings

_NUMBER = re.compile(r"[0-9]+")
MASK = "#"


class FailureReason(NamedTuple):
    """A reason, with how many rows have it."""

    text: str | None  # None: none is kept; numbers are masked if several reasons differ only by them
    rows: int


def grouped(counts: Iterable[tuple[str | None, int]]) -> list[FailureReason]:
    """Return the reasons, most rows first. Numbers are masked in those that differ only by them."""
    groups = defaultdict[str, Counter[str | None]](Counter)
    for text, rows in counts:
        groups[_masked(text)][text] += rows
    reasons = [
        FailureReason(masked if len(same) > 1 else next(iter(same)), same.total())
        for masked, same in groups.items()
    ]
    return sorted(reasons, key=lambda reason: (-reason.rows, reason.text or ""))


def narrowed(selection: FailureFilter, whole_reason: str) -> FailureFilter:
    """Return a selection that contains the rows of a reason, by its longest part without numbers."""
    if not whole_reason:
        return selection
    return replace(selection, reason=max(re.split(r"[0-9#]+", whole_reason), key=len))


def _masked(text: str | None) -> str:
    return "" if text is None else _NUMBER.sub(MASK, text)


EVERY = 5.0  # seconds between two samples
SAMPLES = 720  # an hour
SHARE = 20  # counting reads the whole log; the next count waits so many times as long as this one took
PAGE = 50
CHUNK = 1000  # rows read at a time, to find those of one reason
GROUPED = 200  # characters of a reason by which rows are grouped
GROUPS = 10_000  # reasons, before those that differ by numbers are put together


class NoDatabase(EventlogError):
    """the database is away; the publisher connects again by itself"""


class WrongToken(EventlogError):
    """no one has this token, so nothing was changed"""


class NoToken(EventlogError):
    """neither monitor-token nor monitor-tokens-file is set, so nothing can be changed here"""


class Sample(NamedTuple):
    """The state at one moment."""

    at: float
    pending: int
    oldest: float
    finished: int  # rows, since the leader began


TableLoad = tuple[str, Counter[str]]  # a table, and its rows in the log by what became of them
_LOADS = {"N": "pending", "E": "failed", "F": "failed", "S": "success", "W": "warning"}  # by their letters


def loads_of(log_status: LogStatus) -> list[TableLoad]:
    """Return the rows of each table by what became of them, those with most to do first."""
    loads = defaultdict[str, Counter[str]](Counter)
    for letter, tables in log_status.counts.items():
        for table, rows in tables.items():
            loads[table][_LOADS.get(letter, "foreign")] += rows
            loads[table]["arrived"] = log_status.arrivals.get(table, 0)

    def order(load: TableLoad) -> tuple[int, int, int, str]:
        table, rows = load
        return -rows["pending"] - rows["failed"], -rows["arrived"], -rows["success"], table

    return sorted(loads.items(), key=order)


def _sample_of(log_status: LogStatus, at: float) -> Sample:
    return Sample(at, log_status.pending, log_status.oldest_age or 0.0, log_status.finished)


class Process(Protocol):
    """The facts about a publisher's process."""

    @property
    def store(self) -> Store | None: ...  # None while there is no database

    @property
    def leads(self) -> bool: ...  # whether it is the one that publishes

    @property
    def outage(self) -> Outage | None: ...  # since the database was last there

    @property
    def readiness(self) -> Readiness: ...


class PageData:
    """One process's view of its log."""

    def __init__(self, process: Process, config: Config | None = None) -> None:
        self.process = process
        self.config = config or Config({})
        self.explain_lock = threading.Lock()  # of requests that may hold the rows of a cycle in memory
        self.last_status: LogStatus | None = None
        self.samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._counting = threading.Lock()
        self._counts: Mapping[str, Mapping[str, int]] = {}
        self._arrivals: Mapping[str, int] = {}  # when the rows were counted
        self._counted_until = 0.0

    @property
    def store(self) -> Store:
        if self.process.store is None:
            raise NoDatabase
        return self.process.store

    def sample_often(self, ended: threading.Event) -> None:
        """Note the state every few seconds, until an event is set."""
        while not ended.wait(EVERY):
            self.sample(time.monotonic())

    def sample(self, now: float) -> None:
        """Note the state; if the database is away, there is a gap."""
        with suppress(EventlogError):
            self.samples.append(_sample_of(self.log_status(), now))

    def samples_until(self, log_status: LogStatus) -> list[Sample]:
        """Return the samples, with the present state as the last one."""
        samples = list(self.samples)
        at = max(time.monotonic(), samples[-1].at if samples else 0.0)
        return [*samples, _sample_of(log_status, at)]

    @property
    def place(self) -> str:
        """Return the name of the log, its database and its host."""
        settings = self.config.build(DatabaseSettings)
        url = read_url(settings.url) if settings.url else None
        if url is None:
            return settings.log_table
        host = f" on {url.host}" if url.host else ""
        return f"{url.database}/{settings.log_table}{host}"

    def headline(self) -> Verdict:
        """Return the worst state of the log as it was read last, or that the database is away."""
        if self.process.store is None:
            reason = self.process.outage.reason if self.process.outage else "not connected yet"
            return Verdict("database-away", Severity.ERROR, "Database away", reason)
        return verdicts_of(self.last_status or self.log_status())[0]

    def rates(self) -> list[float]:
        """Return the rows a second that the leader finished between samples."""
        samples = list(self.samples)
        return [
            max(sample.finished - previous.finished, 0) / max(sample.at - previous.at, 0.001)
            for previous, sample in pairwise(samples)
        ]

    def log_status(self, *, counted: bool = False) -> LogStatus:
        """Return the state of the log, with its rows by status and table as they were counted last. They are
        counted anew if that is asked for, and only so often that it takes a twentieth of the time.
        """
        with self._counting if counted else nullcontext():
            start = time.monotonic()
            is_due = counted and start > self._counted_until
            log_status = read_log_status(self.store, counted=is_due)
            if is_due:
                self._counts, self._arrivals = log_status.counts, log_status.arrivals
                end = time.monotonic()
                self._counted_until = end + SHARE * (end - start)
            self.last_status = replace(log_status, counts=self._counts, arrivals=self._arrivals)
            return self.last_status

    def failures(
        self, selection: FailureFilter, whole_reason: str = "", upto: int = MAX_RECORD_ID
    ) -> Iterator[FailedRow]:
        """Yield the rows with E or F, newest first; of one reason, whatever its numbers, if it is given.

        Reasons are compared as far as they are grouped.
        """
        selection, size = narrowed(selection, whole_reason), CHUNK if whole_reason else PAGE + 1
        while True:
            with self.store.admin() as admin:
                rows = admin.latest_failures(selection, size, upto)
            for row in rows:
                if not whole_reason or _masked((row.reason or "")[:GROUPED]) == _masked(whole_reason):
                    yield row
            if len(rows) < size:
                return
            upto = rows[-1].record_id - 1

    def reasons(self, selection: FailureFilter, whole_reason: str = "") -> list[FailureReason]:
        """Return the reasons of failed rows with how many rows have each, most first."""
        with self.store.admin() as admin:
            groups = grouped(admin.failed_groups(narrowed(selection, whole_reason), GROUPS))
        return [group for group in groups if not whole_reason or _masked(group.text) == _masked(whole_reason)]

    def person(self, token: str) -> str:
        """Return who has a token; raise WrongToken if no person has it, NoToken if there are none."""
        if not self.settings.may_change:
            raise NoToken
        person = self.settings.person(token)
        if person is None:
            raise WrongToken
        return person

    @property
    def settings(self) -> MonitorSettings:
        return self.config.build(MonitorSettings)
