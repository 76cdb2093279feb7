"""What the pages know of a publisher's process and its log: its course, its counts, and why rows failed."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Protocol

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.opening.config import Config
from eventlog.opening.log_address import address_of_log
from eventlog.publisher.readiness import Readiness
from eventlog.sql.log.failure_reasons import FailureReason
from eventlog.sql.log.log_admin import FailedRow, FailureFilter
from eventlog.sql.log.store import Store
from eventlog.status.log_status import LogStatus
from eventlog.status.log_watch import PAGE_SHARE, SAMPLE_SHARE, LogLook, LogWatch
from eventlog.web.monitor import MonitorSettings

EVERY = 5.0  # seconds between two samples
SAMPLES = 720  # an hour
PAGE = 50
CHUNK = 1000  # rows read at a time, to find those of one reason


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
    def watch(self) -> LogWatch: ...

    @property
    def readiness(self) -> Readiness: ...


class PageData:
    """One process's view of its log."""

    def __init__(self, process: Process, config: Config | None = None) -> None:
        self.process = process
        self.config = config or Config({})
        self.explain_lock = threading.Lock()  # of requests that may hold the rows of a cycle in memory
        self.watch = process.watch
        self.samples: deque[Sample] = deque(maxlen=SAMPLES)

    @property
    def store(self) -> Store:
        """Return the log for brief looks."""
        return self.store_to_change.looking(briefly=True)

    @property
    def store_to_change(self) -> Store:
        if self.process.store is None:
            raise NoDatabase
        return self.process.store

    def sample_often(self, ended: threading.Event) -> None:
        """Note the state every few seconds, until an event is set."""
        while not ended.wait(EVERY):
            self.sample(time.monotonic())

    def sample(self, now: float) -> None:
        """Note the state; while the log cannot be read, there is a gap."""
        if (log_status := self.watch.look(count_share=SAMPLE_SHARE).log) is not None:
            self.samples.append(_sample_of(log_status, now))

    def samples_until(self, log_status: LogStatus) -> list[Sample]:
        """Return the samples, with the present state as the last one."""
        samples = list(self.samples)
        at = max(time.monotonic(), samples[-1].at if samples else 0.0)
        return [*samples, _sample_of(log_status, at)]

    @property
    def place(self) -> str:
        """Return the name of the log, its database, its host and its port."""
        return str(address_of_log(self.config))

    @property
    def publisher(self) -> str:
        """Return who publishes; empty if the log cannot be read."""
        log = self.watch.look().log
        return "" if log is None else f"published by {log.leader}" if log.publishes else "no publisher"

    def rates(self) -> list[float]:
        """Return the rows a second that the leader finished between samples."""
        samples = list(self.samples)
        return [
            max(sample.finished - previous.finished, 0) / max(sample.at - previous.at, 0.001)
            for previous, sample in pairwise(samples)
        ]

    def look(self) -> LogLook:
        """Return the log as it is now, its rows counted so often that it takes a twentieth of the time. Raise
        why it cannot be read.
        """
        look = self.watch.look(0.0, count_share=PAGE_SHARE)
        if look.log is None:
            raise look.fault or NoDatabase()
        return look

    def failures(self, selection: FailureFilter, upto: int = MAX_RECORD_ID) -> Iterator[FailedRow]:
        """Yield the rows with E or F, newest first."""
        size = CHUNK if selection.whole_reason else PAGE + 1
        while True:
            with self.store.admin() as admin:
                rows = admin.latest_failures(selection, size, upto)
            yield from filter(selection.matches, rows)
            if len(rows) < size:
                return
            upto = rows[-1].record_id - 1

    def reasons(self, selection: FailureFilter) -> list[FailureReason]:
        """Return the reasons of failed rows with how many rows have each, most first."""
        with self.store.admin() as admin:
            return admin.reasons(selection)

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
