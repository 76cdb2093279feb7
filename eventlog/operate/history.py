"""The history of a log: one entry for each command and each leadership, however many notices it left."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog.operate.notice_sentences import command_of
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.log_record import Notice, NoticeKind

_BEGUN, _ENDED = "are being logged", "logged"  # of a resync


def read_history(admin: LogAdmin, limit: int) -> list[Notice]:
    """Return what was done to the log in its latest commands, newest first."""
    window = limit + 1
    while True:
        notices = admin.notices(window)
        entries = joined(notices)
        if len(entries) > limit or len(notices) < window:
            return entries[:limit]
        window *= 4


def joined(notices: Iterable[Notice]) -> list[Notice]:
    """Return one notice for each command; the notices come newest first."""
    entries: dict[object, Notice] = {}
    ends: dict[object, object] = {}  # of commands whose begin has not come, with their keys
    for number, notice in enumerate(notices):
        key: object = command_of(notice) or number
        if notice.kind in (NoticeKind.PURGE, NoticeKind.RESYNC):
            subject = notice.kind, notice.table_name, notice.first_id, notice.answer
            if notice.row_count is None:
                key = ends.pop(subject, number)
            elif notice.kind == NoticeKind.PURGE or notice.words == _ENDED:
                ends[subject] = number
        entries[key] = _join(entries[key], notice) if key in entries else notice
    return [*entries.values()]


def _join(end: Notice, begin: Notice) -> Notice:
    """Return what a notice and an earlier one of its command have together."""
    if end.kind == NoticeKind.PURGE:
        return end
    if end.kind == NoticeKind.RESYNC:
        before, _, after = str(begin.words).rpartition(_BEGUN)
        return end._replace(words=f"{before}{_ENDED}{after}")
    record_ids = begin.record_ids + end.record_ids
    is_one_table, letters = begin.table_name == end.table_name, f"{begin.answer}, {end.answer}"
    return end._replace(
        table_name=end.table_name if is_one_table else None,
        table_key=end.table_key if is_one_table and begin.table_key == end.table_key else None,
        first_id=min(record_ids),
        last_id=max(record_ids),
        row_count=len(record_ids),
        record_ids=record_ids,
        event_id=None,
        answer=", ".join(sorted({*letters.split(", ")})),
    )
