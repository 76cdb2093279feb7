"""The care of a log besides publishing: retry failed rows, skip them, delete handled ones."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from eventlog.core.entry import COLUMNS, Cell, Letter, read_integer
from eventlog.core.errors import EventlogError, Misuse, similar
from eventlog.core.remedies import Remedy
from eventlog.core.tables import Tables
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_tables, table_named
from eventlog.operate.redriving import StayReport
from eventlog.sql.log.log_admin import FailedRow, FailureFilter, LogAdmin
from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.sql.log.store import Store
from eventlog.status.log_status import read_log_status
from eventlog.status.verdict import State, verdicts_of

PAGE = 1000  # rows of one transaction
FAILED = (Letter.ERROR, Letter.FATAL)
HANDLED = (Letter.SUCCESS, Letter.WARNING)
_STATUS = COLUMNS.index("status")
_OPEN = (Letter.NEW, Letter.ERROR, Letter.FATAL)
_AGE = re.compile(r"(\d+)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class NotStopped(EventlogError):
    """{0}: max-deletes stops no such table, so there is nothing to let pass{1}"""


class NotInLog(EventlogError):
    """{0}"""


class Skipped(NamedTuple):
    """The result of a skip."""

    rows: int
    further_rows: tuple[int, ...]  # that were not named, and are of the same events
    reports: tuple[StayReport, ...]  # of the rows that stay as they are


class Retried(NamedTuple):
    """The result of a retry."""

    rows: list[int]  # that go again now
    reports: list[str]  # of the rows that do not wait
    tries_receiver: bool = False  # which is down, and is tried now
    obstacle: str = ""  # why nothing goes at present all the same


def retry_now(store: Store, ids: Sequence[int], who: str | None = None) -> Retried:
    """Let the waiting events of these rows be sent now; raise NotInLog for rows that are nowhere.

    Without any rows all events are sent, and a receiver that is down is tried, also if it asked for a wait.
    """
    letters = demand_present(store, ids)
    log_status = read_log_status(store, counted=False)
    is_down = log_status.cycle.get("down") is not None
    with store.admin() as admin:
        rows = admin.try_now(ids or None, who)
        if is_down and not ids:
            admin.try_receiver(who)
    unmatched_ids = (row for row in ids if row not in rows)
    reports = [f"row {row} does not wait: its status is {letters[row]}" for row in unmatched_ids]
    ends_wait = is_down and (not ids or (bool(rows) and log_status.cycle.get("wait") is None))
    obstacles = (
        verdict.obstacle
        for verdict in verdicts_of(log_status)
        if verdict.obstacle and not (ends_wait and verdict.state is State.RECEIVER_DOWN)
    )
    return Retried(rows, reports, ends_wait, next(obstacles, ""))


def failures(store: Store, selection: FailureFilter) -> Iterator[FailedRow]:
    """Yield the rows with E or F, oldest first."""
    after = 0
    while True:
        with store.admin() as admin:
            page = admin.failures(selection, PAGE, after)
        yield from filter(selection.matches, page)
        if len(page) < PAGE:
            return
        after = page[-1].record_id


def whole_events(admin: LogAdmin, ids: Sequence[int]) -> tuple[int, ...]:
    """Return these rows, and the other rows of the events that they failed or wait in."""
    failed = (row.record_id for row in admin.failed_events_of(ids))
    return tuple(sorted({*ids, *failed, *chain.from_iterable(admin.waiting_with(ids).values())}))


def unmatched(config: Config, store: Store, selection: FailureFilter) -> list[str]:
    """Return why a selection of failed rows is empty; raise NotInLog for a row or a table that is nowhere."""
    if selection.table is not None:
        check_table(config, store, selection.table)
    sentences = [
        f"row {row} has not failed: its status is {letter}"
        for row, letter in demand_present(store, selection.ids).items()
        if letter not in FAILED
    ]
    none = "no row has failed" if selection == FailureFilter() else "no row of these has failed"
    return sentences or [none]


def demand_present(store: Store, ids: Sequence[int]) -> dict[Cell, Cell]:
    """Return the letters of these rows; raise NotInLog for those that are not in the log."""
    letters: dict[Cell, Cell] = {}
    if ids:
        with store.snapshot() as snapshot:
            letters = {read_integer(row[0]): row[_STATUS] for row in snapshot.rows(ids)}
    demand_rows(row for row in ids if row not in letters)
    return letters


def demand_rows(absent: Iterable[int]) -> None:
    """Raise NotInLog if any rows are absent."""
    if ids := sorted({*absent}):
        verb = "row {} is" if len(ids) == 1 else "rows {} are"
        raise NotInLog(f"{verb.format(', '.join(map(str, ids)))} not in the log")


def check_table(config: Config, store: Store, name: str) -> None:
    """Raise NotInLog for a table that is neither published nor named by a row of the log."""
    published: Tables = Tables()
    with suppress(EventlogError):  # such as a list of tables that is missing
        published = read_tables(store.engine, store.log, config)
    with store.admin() as admin:
        names = {count.table_name for count in admin.counts()}
    if name not in names and published.find(name) is None:
        question = similar(name, names | {table.name for table in published})
        raise NotInLog(f"no row of the log is of a table {name}, and no such table is published{question}")


def skip(
    store: Store,
    ids: Sequence[int],
    reason: str,
    who: str | None = None,
    *,
    table: str | None = None,
    whole_reason: str | None = None,
) -> Skipped:
    """Give rows up, each with its whole event, and keep why; with a table or the reason that rows failed for,
    only those that failed so.
    """
    unmatched_ids: Sequence[int] = ()
    if table is not None or whole_reason is not None:
        selection = FailureFilter(tuple(ids), table, whole_reason=whole_reason)
        matching = [row.record_id for row in failures(store, selection)]
        unmatched_ids, ids = sorted({*ids}.difference(matching)), matching
    with store.admin() as admin:
        event_rows = whole_events(admin, ids)
        letters = admin.skip(event_rows, reason, who)
    why = {row: _why_not_skipped(letters.get(row)) for row in event_rows}
    rows_by_reason: dict[str, list[int]] = {}
    for row, why_not in why.items():
        rows_by_reason.setdefault(why_not, []).append(row)
    skipped = rows_by_reason.pop("", [])
    if unmatched_ids:
        of = f"of {table}" if whole_reason is None else "with that reason"
        rows_by_reason[f"not a failed row {of}"] = [*unmatched_ids]
    reports = tuple(StayReport(why_not, tuple(rows)) for why_not, rows in rows_by_reason.items())
    return Skipped(len(skipped), tuple(sorted({*skipped}.difference(ids))), reports)


def commands_for(letter: str, ids: Sequence[int], *, wait: bool = False) -> list[str]:
    """Return the commands that send rows with this letter again, or give them up; new ones may wait."""
    letters = {Remedy.REDRIVE: FAILED, Remedy.RETRY: (Letter.NEW,) if wait else (), Remedy.SKIP: _OPEN}
    rows = " ".join(map(str, ids))
    return [remedy.template(ROWS=rows) for remedy in letters if letter in letters[remedy]]


def _why_not_skipped(letter: str | None) -> str:
    """Return why a row with this letter is not skipped; empty if it is."""
    if letter is None:
        return "not in the log"
    return "" if letter in _OPEN else f"its status is {letter} already, so there is nothing to give up"


def resume_tables(store: Store, names: Sequence[str], who: str) -> list[str]:
    """Let the next poll of tables that max-deletes stopped pass once; raise NotStopped for another name.

    Return the names of the tables.
    """
    cycle = read_log_status(store, counted=False).cycle
    reasons, stopped_tables = cycle.get("unread", {}), cycle.get("stopped_tables", ())
    tables = Tables(map(table_named, reasons))
    resumed = [(name, str(tables.find(name) or name)) for name in names]
    for name, table in resumed:
        if table not in stopped_tables:
            reason = f". It is not published for another reason: {reasons[table]}" if table in reasons else ""
            raise NotStopped(name, reason)
    with store.admin() as admin:
        for _, table in resumed:
            admin.resume_table(table, who)
    return [table for _, table in resumed]


@dataclass(frozen=True)
class Purge:
    """The rows to be deleted."""

    before: datetime  # in UTC
    letters: Sequence[Letter] = HANDLED
    chunk: int = PAGE
    pause: float = 0.0  # seconds between two chunks
    who: str | None = None  # the person who asks for it


def purge(store: Store, selection: Purge, progress: Callable[[int], None] = lambda rows: None) -> int:
    """Delete handled rows from before a time, in chunks, with the record of their batches. Return how many;
    `progress` is called with the rows deleted so far.

    A notice exists from the first chunk on, even if the process is killed.
    """
    words = f"from before {selection.before}"
    notice = Notice(NoticeKind.PURGE, answer=", ".join(selection.letters), who=selection.who, words=words)
    deleted, after = 0, 0
    while True:
        with store.admin() as admin:
            rows, ids = admin.purge(selection.before, selection.letters, after, selection.chunk)
            if rows:
                notice = notice._replace(first_id=notice.first_id if deleted else ids[0], last_id=ids[-1])
            if rows and not deleted:
                admin.note(notice._replace(words=f"{words} are being deleted"))
        deleted += rows
        progress(deleted)
        if len(ids) < selection.chunk:
            break
        after = ids[-1]
        time.sleep(selection.pause)
    with store.admin() as admin:
        admin.note(notice._replace(row_count=deleted))
    while Letter.SUCCESS in selection.letters and _forget_settled(store, selection):
        time.sleep(selection.pause)
    return deleted


def _forget_settled(store: Store, selection: Purge) -> bool:
    """Forget a chunk of batches, in a transaction of its own. Return whether there may be more."""
    with store.admin() as admin:
        return admin.forget_settled(selection.before, selection.chunk)


def read_letters(text: str) -> tuple[Letter, ...]:
    """Return the letters of a list such as S,W,E."""
    try:
        return tuple(Letter(part.strip()) for part in text.split(","))
    except ValueError:
        raise Misuse(f"{text!r} names a letter that is none of N, S, W, E, F") from None


def read_age(text: str, now: datetime) -> datetime:
    """Return the time that was so long ago (30d, 12h) or that is named (2025-03-23 10:00:00), in UTC."""
    match = _AGE.fullmatch(text.strip())
    if match is not None:
        span: dict[str, Any] = {_UNITS[match[2]]: int(match[1])}
        try:
            return now - timedelta(**span)
        except OverflowError:
            raise Misuse(f"{text!r} is not an age such as 30d") from None
    try:
        named = datetime.fromisoformat(text)
        return named if named.tzinfo is None else named.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise Misuse(f"{text!r} is not an age such as 30d, or a time such as 2025-03-23 10:00:00") from None
