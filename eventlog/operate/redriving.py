"""Failed events, sent once more: each as a whole, and read back, so that nothing old is sent.

Values go as types 7 and 8. A row of an insert goes as type 8 if other rows of the insert were sent, because
it would make a second add. A delete goes only if its object is still absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from secrets import token_hex
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from eventlog.core.entry import Cell, read_integer
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.sql.log.log_admin import FailedRow, FailureFilter, LogAdmin, Relative
from eventlog.sql.log.store import Store

if TYPE_CHECKING:
    from eventlog.publisher.fold import PickUpFold

PAGE = 1000  # rows of one transaction
LISTED = 20  # rows named in one line
_INSERTS = (1, 7)
_DELETE = 4
_READ_BACK: Mapping[Cell, int] = {1: 7, 2: 8, 3: 8}  # the type as which a row with a value goes again
_SEVERAL = re.compile(r".*:\d+-\d+:[0-9a-f]{8}", re.DOTALL).fullmatch

_COMPARED = "its object was compared since, and a later event of it brings what it has"

Named = tuple[str, str]  # an object as rows name it: table_name and table_key


class StayReport(NamedTuple):
    """The reason why some rows stay as they are."""

    reason: str
    rows: tuple[int, ...]

    def __str__(self) -> str:
        rows = sorted(self.rows)
        listed = ", ".join(map(str, rows[:LISTED])) + (f", … ({len(rows)})" if len(rows) > LISTED else "")
        verb = f"row {listed} stays" if len(rows) == 1 else f"rows {listed} stay"
        return f"{verb}: {self.reason}"


class Redriven(NamedTuple):
    """The result of a redrive."""

    rows: int
    reports: tuple[StayReport, ...]  # of the rows that stay as they are

    @property
    def refused(self) -> tuple[int, ...]:
        """Return the rows that stay as they are."""
        return tuple(sorted(row for report in self.reports for row in report.rows))


class _Insert(NamedTuple):
    """The consecutive rows of one insert."""

    failed: tuple[int, ...]
    sent: bool  # some of its rows were sent


def redrive_by(
    config: Config, store: Store, selection: FailureFilter, who: str, condition: FailureFilter | None = None
) -> Redriven:
    """Make the failed events of these rows new again for a person, by the settings. The history has the
    condition by which they were chosen, which is the selection itself if none is given.
    """
    from eventlog.publisher.preparation import make_reader  # NumPy takes a while to load

    deletes = config.build(PublisherSettings).delete_from_log
    words = write_condition(condition or selection)
    return redrive(store, selection, make_reader(config, store), who, words, rows_are_deleted=deletes)


def write_condition(selection: FailureFilter) -> str:
    """Return what each notice of one redrive has: a mark of its own, and the condition as options."""
    options = {
        "--table": selection.table,
        "--because": selection.reason,
        "--reason": selection.whole_reason,
    }
    condition = " ".join(f"{name} {quote(value)}" for name, value in options.items() if value)
    condition = condition or ("" if selection.ids else "--all")
    return json.dumps({"command": token_hex(8), "condition": condition})


def redrive(
    store: Store,
    selection: FailureFilter,
    reader: PickUpFold,
    who: str | None = None,
    words: str | None = None,
    *,
    rows_are_deleted: bool = False,
) -> Redriven:
    """Make the failed events of these rows new again.

    If handled rows are deleted, rows of an insert that was refused in part may have been sent.
    """
    rows, reasons, seen_ids = 0, dict[str, list[int]](), set[int]()

    def why_present(names: Set[Named]) -> Mapping[Named, str]:
        return store.read(lambda snapshot: reader.objects.why_present(snapshot, names)) if names else {}

    for page in _pages(store, selection):
        with store.admin() as admin:
            admin.keep_leader_out()
            events = list(_events(admin, [row for row in page if row not in seen_ids]))
            reasons_present = why_present({row.object for event in events for row in event.deletes})
            latest = admin.receiver_state().latest_events(
                row.record_id for event in events for row in event.rows
            )
            types = dict[int, int]()
            for event in events:
                seen_ids.update(row.record_id for row in event.rows)
                if reason := event.why_refused(reader, reasons_present, latest):
                    reasons.setdefault(reason, []).extend(row.record_id for row in event.rows)
                else:
                    types |= event.types(rows_are_deleted)
            rows += admin.redrive(types, who, words)
    if unknown_ids := {*selection.ids} - seen_ids:
        with store.snapshot() as snapshot:
            present_ids = {read_integer(row[0]) for row in snapshot.rows(unknown_ids)}
        subject = "it" if len(present_ids) == 1 else "they"
        why_not = f"{subject} did not fail{' like that' if selection != FailureFilter(selection.ids) else ''}"
        for row in sorted(unknown_ids):
            reasons.setdefault(why_not if row in present_ids else "not in the log", []).append(row)
    return Redriven(rows, tuple(StayReport(reason, tuple(ids)) for reason, ids in reasons.items()))


@dataclass(frozen=True)
class _Event:
    """The failed rows that go together."""

    rows: Sequence[FailedRow]
    inserts: Sequence[_Insert]

    @property
    def deletes(self) -> Iterator[FailedRow]:
        """Yield the rows that are deletes of objects."""
        return (row for row in self.rows if row.event_type == _DELETE)

    def why_refused(
        self, reader: PickUpFold, present: Mapping[Named, str], latest: Mapping[Named, int]
    ) -> str:
        """Return why the event may not go again; empty if it may.

        `present` has the reasons why deleted objects may be there, `latest` the first rows of the events that
        comparing logged for objects since.
        """
        values = (row.object for row in self.rows if row.event_type in _READ_BACK)
        reason = next(
            chain(
                (_COMPARED for row in self.rows if row.record_id < latest.get(row.object, 0)),
                (reason for name in values if (reason := reader.objects.why_unreadable(*name))),
                (present[row.object] for row in self.deletes if row.object in present),
            ),
            "",
        )
        return reason and f"{reason}; mend it or skip it"

    def types(self, rows_are_deleted: bool) -> dict[int, int]:
        """Return the types as which the rows go again; 0 keeps the type of a row."""
        refused = not any(row.event_id for row in self.rows)
        no_second_add = {
            row
            for insert in self.inserts
            for row in insert.failed
            if insert.sent or (rows_are_deleted and refused)
        }
        types = {row.record_id: _READ_BACK.get(row.event_type, 0) for row in self.rows}
        return {row: 8 if row in no_second_add else kind for row, kind in types.items()}


def has_several_rows(name: str | None) -> bool:
    """Return whether the event of that name has more rows than one."""
    return name is not None and _SEVERAL(name) is not None


def _pages(store: Store, selection: FailureFilter) -> Iterator[list[int]]:
    after = 0
    while True:
        with store.admin() as admin:
            page = admin.failures(selection, PAGE, after)
        yield [failed.record_id for failed in page if selection.matches(failed)]
        if len(page) < PAGE:
            return
        after = page[-1].record_id


def _events(admin: LogAdmin, ids: Sequence[int]) -> Iterator[_Event]:
    """Yield the events of these rows, each with all its rows that failed."""
    rows = {row.record_id: row for row in admin.failed_events_of(ids)}
    first = [row.record_id for row in rows.values() if row.event_type == 1]
    inserts = [insert for insert in _inserts(admin.relatives(first)) if rows.keys() & set(insert.failed)]
    rows |= {row.record_id: row for row in admin.failed_events_of(n for i in inserts for n in i.failed)}
    name = {row.record_id: row.event_id or str(row.record_id) for row in rows.values()}
    for insert in inserts:  # the failed rows of one insert are one event
        names = {name[row] for row in insert.failed}
        name |= {row: min(names) for row, event_name in name.items() if event_name in names}
    events: dict[str, list[FailedRow]] = {}
    for number, row in sorted(rows.items()):
        events.setdefault(name[number], []).append(row)
    for event_rows in events.values():
        among = {row.record_id for row in event_rows}
        yield _Event(event_rows, [insert for insert in inserts if among & set(insert.failed)])


def _inserts(relatives: Iterable[Relative]) -> Iterator[_Insert]:
    """Yield the inserts of objects from all their rows: those of types 1 and 7 that follow each other.

    A refused row between them, which has no event, does not end an insert.
    """
    objects: dict[tuple[str, str], list[list[Relative]]] = {}
    for row in relatives:
        runs = objects.setdefault((row.table_name, row.table_key), [[]])
        if row.event_type in _INSERTS:
            runs[-1].append(row)
        elif row.status not in ("E", "F") or row.event_id is not None:
            runs.append([])
    for run in (run for runs in objects.values() for run in runs if run):
        failed = tuple(row.record_id for row in run if row.status in ("E", "F") and row.event_type == 1)
        yield _Insert(failed, any(row.status in ("S", "W") for row in run))
