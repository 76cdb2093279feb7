"""What the status page reads of a running publisher and its log, and what it may change there."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby, islice, pairwise
from typing import NamedTuple, Protocol

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.opening.config import Config
from eventlog.opening.log_status import LogStatus, read_log_status
from eventlog.opening.settings import DatabaseSettings
from eventlog.opening.verdict import Severity, Verdict, verdicts_of
from eventlog.operate.account import ObjectAccount, RowAccount, read_accounts, read_object
from eventlog.operate.left_out import why_left_out
from eventlog.operate.recent import RecentRecord, RecordPlace, recent_records
from eventlog.operate.redriving import Redriven, redrive_by
from eventlog.operate.upkeep import Skipped, skip
from eventlog.publisher.readiness import Outage, Readiness
from eventlog.sql.connect import read_url
from eventlog.sql.log.record import Notice
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import FailedRow, FailureFilter
from eventlog.sql.log.work import WaitingEvent
from eventlog.web.monitor import MonitorSettings

_NUMBER = re.compile(r"[0-9]+")
MASK = "#"


class FailureReason(NamedTuple):
    """A reason, with how many rows have it."""

    text: str | None  # None: none is kept; numbers are masked if several reasons differ only by them
    rows: int


def grouped(counts: Iterable[tuple[str | None, int]]) -> list[FailureReason]:
    """Return the reasons, most rows first. Numbers are masked in those that differ only by them."""
    ordered = sorted(counts, key=lambda count: _masked(count[0]))
    groups = [_reason(list(same)) for _, same in groupby(ordered, key=lambda count: _masked(count[0]))]
    return sorted(groups, key=lambda group: (-group.rows, group.text or ""))


def _reason(same: Sequence[tuple[str | None, int]]) -> FailureReason:
    (text, _), rows = same[0], sum(number for _, number in same)
    return FailureReason(text if text is None or len(same) == 1 else _masked(text), rows)


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
LOOKED_AT = 200  # rows of the next cycle
_EVER = datetime(9999, 1, 1)  # when every retry is due


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


class TableLoad(NamedTuple):
    """The rows of a table in the log, by what became of them."""

    table: str
    arrived: int  # in the last minute
    pending: int
    failed: int
    success: int
    warning: int
    foreign: int  # with a letter that is none of ours


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


class Board:
    """One process's view of its log."""

    def __init__(self, process: Process, config: Config | None = None) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._explaining = threading.Lock()
        self._counted: Mapping[str, Mapping[str, int]] = {}
        self._arrivals: Mapping[str, int] = {}  # when the rows were counted
        self._counted_until = 0.0
        self.last_status: LogStatus | None = None
        self.samples: deque[Sample] = deque(maxlen=SAMPLES)
        self.config = config or Config({})

    @property
    def store(self) -> Store:
        store = self._process.store
        if store is None:
            raise NoDatabase
        return store

    def sample_often(self, ended: threading.Event) -> None:
        """Note the state every few seconds, until an event is set."""
        while not ended.wait(EVERY):
            self.sample(time.monotonic())

    def sample(self, now: float) -> None:
        """Note the state; if the database is away, there is a gap."""
        try:
            log_status = self.log_status()
        except EventlogError:
            return
        self.samples.append(_sample_of(log_status, now))

    def samples_until(self, log_status: LogStatus) -> list[Sample]:
        """Return the samples, with the present state as the last one."""
        samples = list(self.samples)
        at = max(time.monotonic(), samples[-1].at if samples else 0.0)
        return [*samples, _sample_of(log_status, at)]

    @property
    def leads(self) -> bool:
        return self._process.leads

    @property
    def outage(self) -> Outage | None:
        return self._process.outage

    @property
    def readiness(self) -> Readiness:
        return self._process.readiness

    def verdicts(self, log_status: LogStatus) -> list[Verdict]:
        """Return the states that the log is in, the worst first."""
        return verdicts_of(replace(log_status, counts=self.counts()))

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
        if self._process.store is None:
            reason = self.outage.reason if self.outage else "not connected yet"
            return Verdict("database-away", Severity.ERROR, "Database away", reason)
        log_status = self.last_status or self.log_status()
        return verdicts_of(replace(log_status, counts=self._counted))[0]

    def last_sentence(self) -> str:
        """Return the state of the log as it was read last, some seconds ago; empty if it was not."""
        if self.last_status is None:
            return ""
        return verdicts_of(replace(self.last_status, counts=self._counted))[0].sentence

    def rates(self) -> list[float]:
        """Return the rows a second that the leader finished between samples."""
        samples = list(self.samples)
        return [
            max(sample.finished - previous.finished, 0) / max(sample.at - previous.at, 0.001)
            for previous, sample in pairwise(samples)
        ]

    def log_status(self) -> LogStatus:
        """Return the state of the log, without the rows by status and table."""
        self.last_status = read_log_status(self.store, counted=False)
        return self.last_status

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Return the rows by status and table, counted anew only so often that it takes a twentieth of the
        time.
        """
        with self._lock:
            start = time.monotonic()
            if start > self._counted_until:
                log_status = read_log_status(self.store)
                self._counted, self._arrivals = log_status.counts, log_status.arrivals
                end = time.monotonic()
                self._counted_until = end + SHARE * (end - start)
            return self._counted

    def failed(self, log_status: LogStatus) -> int:
        """Return how many rows have E or F: those with a reason are counted now, the others now and then."""
        counts = self.counts()
        return max(log_status.failed, sum(sum(counts.get(letter, {}).values()) for letter in "EF"))

    def failures(
        self, selection: FailureFilter, whole_reason: str = "", upto: int = MAX_RECORD_ID
    ) -> Iterator[FailedRow]:
        """Yield the rows with E or F, newest first; of one reason, whatever its numbers, if it is given.

        Reasons are compared as far as they are grouped.
        """
        selection, size = narrowed(selection, whole_reason), CHUNK if whole_reason else PAGE + 1
        while True:
            with self.store.upkeep() as upkeep:
                rows = upkeep.latest_failures(selection, size, upto)
            for row in rows:
                if not whole_reason or _masked((row.reason or "")[:GROUPED]) == _masked(whole_reason):
                    yield row
            if len(rows) < size:
                return
            upto = rows[-1].record_id - 1

    def reasons(self, selection: FailureFilter, whole_reason: str = "") -> list[FailureReason]:
        """Return the reasons of failed rows with how many rows have each, most first."""
        with self.store.upkeep() as upkeep:
            groups = grouped(upkeep.failed_groups(narrowed(selection, whole_reason), GROUPS))
        return [group for group in groups if not whole_reason or _masked(group.text) == _masked(whole_reason)]

    def waiting(self) -> tuple[list[WaitingEvent], datetime]:
        """Return the first events that wait for a retry, one more than a page shows, and the time."""
        with self.store.snapshot() as snapshot:
            now = datetime.fromisoformat(snapshot.now())
        return self.store.waiting(_EVER, PAGE + 1), now

    def recent(self, before: RecordPlace) -> tuple[list[RecentRecord], RecordPlace | None]:
        """Return what was sent, held back or refused before a place, newest first, and where to go on."""
        return recent_records(self.store, PAGE, before)

    def rows(self, ids: Sequence[int]) -> list[RowAccount]:
        """Return the accounts of rows, whatever their status."""
        with self._explaining:
            return list(read_accounts(self.config, self.store, ids=ids))

    def loads(self) -> list[TableLoad]:
        """Return the rows of each table by what became of them, those with most to do first."""
        loads: dict[str, Counter[str]] = {}
        for letter, tables in self.counts().items():
            for table, rows in tables.items():
                loads.setdefault(table, Counter())[letter if letter in "NSWEF" else "other"] += rows
        every = (
            TableLoad(
                table, self._arrivals.get(table, 0), of["N"], of["E"] + of["F"], of["S"], of["W"], of["other"]
            )
            for table, of in loads.items()
        )
        return sorted(
            every, key=lambda load: (-load.pending - load.failed, -load.arrived, -load.success, load.table)
        )

    def explain(self, table: str = "") -> list[RowAccount]:
        """Return the accounts of the rows that go next, or of those among them of a table.

        One request at a time explains, because each may hold the rows of a cycle in memory.
        """
        with self._explaining:
            accounts = read_accounts(self.config, self.store, table or None, limit=LOOKED_AT)
            return list(islice(accounts, LOOKED_AT + 1))

    def object(self, table: str, key: str) -> ObjectAccount:
        """Return the account of an object, with its first rows."""
        with self._explaining:
            return read_object(self.config, self.store, table, key, LOOKED_AT + 1)

    def left_out(self) -> dict[str, str]:
        """Return why pending rows are not among the next ones: a sentence for each fate."""
        return why_left_out(self.config, self.store)

    def redrive(self, selection: FailureFilter, token: str) -> Redriven:
        """Make failed events new again, for a person who has the token."""
        return redrive_by(self.config, self.store, selection, self.person(token))

    def skip(self, selection: FailureFilter, token: str, reason: str) -> Skipped:
        """Give failed events up, for a person who has the token."""
        return skip(self.store, selection.ids, reason, self.person(token))

    def retry(self, ids: Sequence[int] | None, token: str) -> list[int]:
        """Let the waiting events of these rows be sent again now, None: of all. Return their rows."""
        who = self.person(token)
        with self.store.upkeep() as upkeep:
            return upkeep.try_now(ids, who)

    def resume(self, token: str) -> bool:
        """Let the publisher go on. Return whether it was paused."""
        who = self.person(token)
        with self.store.upkeep() as upkeep:
            return upkeep.resume(who)

    def person(self, token: str) -> str:
        """Return who has a token; raise WrongToken if no person has it, NoToken if there are none."""
        settings = self.config.build(MonitorSettings)
        if not settings.may_change:
            raise NoToken
        person = settings.person(token)
        if person is None:
            raise WrongToken
        return person

    @property
    def may_change(self) -> bool:
        return self.config.build(MonitorSettings).may_change

    def has_skips(self) -> bool:
        """Return whether rows were skipped, which have W too."""
        with self.store.upkeep() as upkeep:
            return upkeep.has_skips()

    def notices(self, page: int = 0) -> list[Notice]:
        """Return what people did, newest first: a page of it, with one notice more than it shows."""
        with self.store.upkeep() as upkeep:
            return upkeep.notices((page + 1) * PAGE + 1)[page * PAGE :]

    def event_rows(self, record_id: int) -> list[int]:
        """Return the rows of the event that a row failed or waits in; the row alone without one."""
        with self.store.upkeep() as upkeep:
            waiting = upkeep.waiting_with((record_id,))
            failed = [row.record_id for row in upkeep.failed_events_of((record_id,))]
        return failed or sorted(next(iter(waiting.values()), [record_id]))
