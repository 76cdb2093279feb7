"""What a log keeps of rows that are not new: their event and its time, the reason, who skipped them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from eventlog.core.entry import Letter
from eventlog.fold import Fate, Outcome
from eventlog.publisher.fold import PickUpFolder
from eventlog.sql.log.record import BACKLOG, RecordedRow, read_rows
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import FailedRow, FailureFilter, Notice

_SKIPPED = re.compile(r"rows? ([0-9]+(?:, [0-9]+)*): (.*)", re.DOTALL)
_SKIPS = 10_000  # notices that are read
_HANDLED = (Letter.SUCCESS, Letter.WARNING)
_FAILED = (Letter.ERROR, Letter.FATAL)


_Record = tuple[RecordedRow, datetime]  # a row as a settled batch has it, and when that was settled


class FinishedRows:
    """The outcomes of rows by the record of a log."""

    def __init__(self, store: Store, snapshot: Snapshot, reader: PickUpFolder) -> None:
        self._store = store
        self._snapshot = snapshot
        self._reader = reader

    def outcomes(self, letters: Mapping[int, str]) -> dict[int, Outcome]:
        """Return the outcomes of rows by their letters; a row that is not in the log has an empty one."""
        if not letters:
            return {}
        with self._store.upkeep() as upkeep:
            failed_ids = {row for row, letter in letters.items() if letter in _FAILED}
            failures = upkeep.failures(FailureFilter(tuple(failed_ids)), len(letters)) if failed_ids else ()
            notices = upkeep.notices(_SKIPS, "skip") if Letter.WARNING in letters.values() else ()
            batches = list(upkeep.settled_with(letters.keys() - failed_ids))
        failure_of = {failure.record_id: failure for failure in failures}
        notice_of = {row: notice for notice in reversed(notices) for row in _skipped_rows(notice)}
        records: dict[int, _Record] = {}
        for settled_at, content in batches:
            for row, recorded in read_rows(content):
                if row in letters:  # the latest batch counts
                    records[row] = recorded, settled_at
        superseded = self._superseded(records.values())

        def outcome_of(row: int, letter: str) -> Outcome:
            if letter in _FAILED:
                return _failed(failure_of.get(row))
            if letter == Letter.WARNING and row in notice_of:
                return _skipped(notice_of[row])
            if row in records:
                return _finished(row, letter, records[row], superseded)
            return _unrecorded(letter)

        return {row: outcome_of(row, letter) for row, letter in letters.items()}

    def _superseded(self, records: Iterable[_Record]) -> dict[int, Outcome]:
        """Return the outcomes of the rows that a query-back of their event superseded."""
        outcomes: dict[int, Outcome] = {}
        events = {row.event.run_id: row.event for row, _ in records if row.event}
        for event in events.values():
            if len(event.rows) > 1:
                outcomes |= self._reader.superseded(self._snapshot, event)
        return outcomes


def _skipped_rows(notice: Notice) -> Iterator[int]:
    """Yield the rows that a notice of a skip names."""
    match = _SKIPPED.fullmatch(notice.words or "")
    return map(int, match[1].split(", ") if match else ())


def moment(at: datetime | None) -> str:
    """Return a time of the database's clock for people."""
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


def _failed(failure: FailedRow | None) -> Outcome:
    if failure is None:
        return Outcome(Fate.FAILED, "no reason is kept")
    tries = f", after {failure.tries} tries" if (failure.tries or 1) > 1 else ""
    fate = Fate.REFUSED if failure.event_id is None else Fate.FAILED
    return Outcome(fate, f"{failure.reason} ({moment(failure.failed_at)}{tries})", failure.event_id)


def _skipped(notice: Notice) -> Outcome:
    match = _SKIPPED.fullmatch(notice.words or "")
    reason = match[2] if match else notice.words
    return Outcome(Fate.SKIPPED, f"by {notice.username} at {moment(notice.at)}: {reason}")


def _finished(row: int, letter: str, record: _Record, superseded: Mapping[int, Outcome]) -> Outcome:
    (document, event), settled_at = record
    if event is None and document == BACKLOG:
        return Outcome(Fate.SENT, f"by a backlog, finished at {moment(settled_at)}; its output has the event")
    if event is None:
        fate, _, reason = document.partition(": ")
        return Outcome(Fate(fate), f"{reason}; finished without being sent at {moment(settled_at)}")
    warned = " with a warning" if letter == Letter.WARNING else ""
    answered = f"document {document}, answered{warned} at {moment(settled_at)}"
    absence = "" if letter else "; the row is not in the log any more"
    if row in superseded:
        by, why = superseded[row].by, superseded[row].reason
        return Outcome(Fate.SUPERSEDED, f"{why}; {answered}{absence}", event.run_id, by)
    return Outcome(Fate.SENT, f"{answered}{absence}", event.run_id)


def _unrecorded(letter: str) -> Outcome:
    if not letter:
        return Outcome(
            Fate.NOT_IN_LOG, "it never was, or it was deleted when it was handled, by a purge or by hand"
        )
    if letter in _HANDLED:
        return Outcome(
            Fate.FINISHED, f"its status is {letter}, and its event is not on record any more, or never was"
        )
    return Outcome(Fate.NOT_NEW, f"its status is {letter}")
