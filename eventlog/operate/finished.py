"""What a log keeps of rows that are not new: their event and its time, the reason, who skipped them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import chain

from eventlog.core.entry import Letter
from eventlog.fold import Fate, Outcome
from eventlog.publisher.fold import PickUpFolder
from eventlog.sql.log.record import BACKLOG, Notice, RecordedRow, Try
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import FailedRow, FailureFilter

_HANDLED = (Letter.SUCCESS, Letter.WARNING)
_FAILED = (Letter.ERROR, Letter.FATAL)


def finished_outcomes(
    store: Store, snapshot: Snapshot, reader: PickUpFolder, letters: Mapping[int, str]
) -> dict[int, Outcome]:
    """Return the outcomes of rows by their letters; a row that is not in the log has an empty one."""
    if not letters:
        return {}
    with store.upkeep() as upkeep:
        failed_ids = {row for row, letter in letters.items() if letter in _FAILED}
        failures = upkeep.failures(FailureFilter(tuple(failed_ids)), len(letters)) if failed_ids else ()
        skips = upkeep.skips_of(row for row, letter in letters.items() if letter == Letter.WARNING)
        batches = [b for b in upkeep.settled_with(letters.keys() - failed_ids) if not b.is_unanswered]
    failure_of = {failure.record_id: failure for failure in failures}
    recorded_rows = chain.from_iterable(batch.rows() for batch in batches)  # the latest batch counts
    records = {row: recorded for row, recorded in recorded_rows if row in letters}
    events = {recorded.event.run_id: recorded.event for recorded in records.values() if recorded.event}
    superseded: dict[int, Outcome] = {}
    for event in events.values():
        if len(event.rows) > 1:
            superseded |= reader.superseded(snapshot, event)

    def outcome_of(row: int, letter: str) -> Outcome:
        if letter in _FAILED:
            return _failed(failure_of.get(row))
        if row in skips:
            return _skipped(skips[row])
        if row in records:
            return _finished(row, letter, records[row], superseded)
        return _unrecorded(letter)

    return {row: outcome_of(row, letter) for row, letter in letters.items()}


def moment(at: datetime | None) -> str:
    """Return a time of the database's clock for people."""
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


def try_words(answered: Try) -> str:
    """Return an answer to an event that was tried more than once, for people."""
    status = answered.status
    words = f": {status.text}" if status.text else ""
    return f"try {answered.number}: {status.level.name.lower()}{words}"


def _failed(failure: FailedRow | None) -> Outcome:
    if failure is None:
        return Outcome(Fate.FAILED, "no reason is kept")
    tries = f", after {failure.tries} tries" if (failure.tries or 1) > 1 else ""
    fate = Fate.REFUSED if failure.event_id is None else Fate.FAILED
    return Outcome(fate, f"{failure.reason} ({moment(failure.failed_at)}{tries})", failure.event_id)


def _skipped(notice: Notice) -> Outcome:
    return Outcome(Fate.SKIPPED, f"by {notice.person} at {moment(notice.at)}: {notice.words}")


def _finished(row: int, letter: str, recorded: RecordedRow, superseded: Mapping[int, Outcome]) -> Outcome:
    document, event, settled_at = recorded
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
