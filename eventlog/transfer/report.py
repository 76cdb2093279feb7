"""The report of what was left out, and the filters of changes before they are written."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from shlex import quote
from typing import IO, Any

from eventlog.core.change import ABSENT, Change, Op
from eventlog.core.errors import BadFile, EventlogError, Misuse, NotExpressible, Refused, Stopped
from eventlog.core.formats import Format
from eventlog.core.publish_lists import column_filter
from eventlog.core.tables import Tables
from eventlog.files.current_files import CurrentFiles
from eventlog.formats.neutral import refuse

LOGGER = logging.getLogger(__name__)
_MAX_TABLES = 10_000  # tables that are remembered


class Report:
    """Reports what was left out, counts it and keeps it."""

    def __init__(
        self,
        show: Callable[[Refused], None],
        rejects: IO[bytes] | None = None,
        strict: bool = False,
        inform: Callable[[str], None] = LOGGER.warning,
        *,
        in_lines: bool = True,
    ) -> None:
        """Each rejected record begins on a line of its own, unless they are parts of a stream of bytes."""
        self.changes = 0  # that were converted
        self.refused = 0  # bad files included
        self.bad_files = 0
        self._show = show
        self._rejects = rejects
        self._strict = strict
        self._in_lines = in_lines
        self._is_line_open = False  # the last rejected record did not end its line
        self._keyless: set[tuple[str | None, str, bool]] = set()  # tables that were reported
        self.inform = inform  # of what was decided without being asked

    def refuse(self, refused: Refused) -> None:
        """Report a record that was left out, and keep it; what is no fault is only reported."""
        if not refused.grouped or self._strict:
            self._show(refused)
        if not refused.fault:
            return
        self.refused += 1
        self.bad_files += isinstance(refused, BadFile)
        if self._rejects is not None and refused.raw is not None:
            if self._is_line_open:
                self._rejects.write(b"\n")
            self._rejects.write(refused.raw)
            self._is_line_open = self._in_lines and not refused.raw.endswith(b"\n")
        if self._strict:
            raise Misuse("stopped at the first bad file") if isinstance(refused, BadFile) else Stopped

    def note_keyless(self, changes: Iterable[Change], tables: Tables) -> Iterator[Change]:
        """Yield the changes, and report each table whose key no source describes, or no record contains."""
        for change in changes:
            if not change.key and change.op is not Op.TRUNCATE:
                table = change.schema, change.table, change.raw is None
                if table not in self._keyless and len(self._keyless) < _MAX_TABLES:
                    self._keyless.add(table)
                    self.inform(_without_key(change, tables))
            yield change

    def note_zoneless(self, changes: Iterable[Change], source: Format) -> Iterator[Change]:
        """Yield the changes, and report that their times are taken as UTC if they name no zone.

        The first time shows it for all, because a setting of the source names the zone.
        """
        iterator = iter(changes)
        for change in iterator:
            if change.time is not None and not change.time.endswith("Z"):
                self.inform(
                    f"the times of {source.name} name no zone, and are written as UTC: state their zone with"
                    " time-zone"
                )
            yield change
            if change.time is not None:
                break
        yield from iterator

    def sync_rejects(self) -> None:
        """Bring the rejected records safely to disk."""
        if self._rejects is not None:
            self._rejects.flush()
            with suppress(OSError, ValueError):  # it may be no file
                os.fsync(self._rejects.fileno())

    def refuse_change(self, refused: Refused) -> None:
        """Report a change that was counted and could not be written."""
        self.changes -= refused.fault
        self.refuse(refused)

    def count(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield the changes, and count them."""
        for change in changes:
            self.changes += 1
            yield change

    def add_changes(self, number: int) -> None:
        """Count changes that were converted."""
        self.changes += number

    def accepted(self, records: Iterable[Any]) -> Iterator[Any]:
        """Yield the records that were not refused."""
        for record in records:
            if isinstance(record, Refused):
                self.refuse(record)
            else:
                yield record


def _without_key(change: Change, tables: Tables) -> str:
    if change.raw is not None:
        words = f"row images of {change.table} could not be decoded: their changes are written without a key"
        if change.fact("tabnum_src") is None:
            return words
        return f"{words}; state a record layout that fits them in a tables file"
    if absent := _absent_from_key(change, tables):
        columns = " and ".join(absent)
        return (
            f"records of {change.table} lack {columns} of its key: their changes are written without one; let"
            f" the source capture {columns}"
        )
    values = [
        side for field in change.fields for side in field[1:] if side is not ABSENT and side is not None
    ]
    texts = " and its values are texts" if values and all(isinstance(side, str) for side in values) else ""
    words = f"no source describes the key of {change.table}: its changes are written without one{texts}"
    return f"{words}; state its key and types in a tables file"


def _absent_from_key(change: Change, tables: Tables) -> list[str]:
    """Return the columns of the key that the tables file states and the change does not contain."""
    table = tables.of(change.schema, change.table)
    present = {field.column for field in change.fields}
    return [] if table is None else [name for name in table.key if name not in present]


Prepare = Callable[[Iterable[Change]], Iterable[Change]]


def before_writing(
    source: Format,
    tables: Tables,
    report: Report,
    target: Format | None = None,
    current: CurrentFiles | None = None,
) -> Prepare:
    """Return the function that changes pass before they are written, as records of a target if it is one.

    With current rows of truncated tables, it turns each truncate into deletes of these rows.
    """

    def prepare(changes: Iterable[Change]) -> Iterable[Change]:
        if tables.shut and not source.folded:  # a fold has left out what may not leave
            changes = report.accepted(publish(changes, tables))
        if target is not None and target.takes_no_key:
            changes = report.note_keyless(changes, tables)
        if target is not None and target.writes_utc and hasattr(source.settings, "time_zone"):
            changes = report.note_zoneless(changes, source)
        if current is not None:
            changes = report.accepted(expand_truncates(changes, tables, current))
        return changes

    return prepare


def publish(changes: Iterable[Change], tables: Tables) -> Iterator[Change | Refused]:
    """Yield the changes without the columns that their tables' lists do not let leave."""
    published_columns = column_filter(tables)
    for change in changes:
        try:
            published_change = published_columns(change)
        except EventlogError as fault:
            yield refuse(change, fault)
            continue
        if published_change is not None:
            yield published_change


def expand_truncates(
    changes: Iterable[Change], tables: Tables, current: CurrentFiles
) -> Iterator[Change | Refused]:
    """Yield each truncate as the deletes of the rows that the table holds."""
    for change in changes:
        if change.op is not Op.TRUNCATE:
            yield change
            continue
        table = tables.of(change.schema, change.table)
        if table is not None and table in current.tables:
            yield from current.deletes(table, change)
        else:
            remedy = f"--current {quote(change.table)}=FILE must give the rows that it held"
            yield refuse(change, NotExpressible(remedy))
