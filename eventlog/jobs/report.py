"""What was left out on the way, and what was decided without being asked."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

from eventlog.core.change import ABSENT, Change, Op
from eventlog.core.errors import NotExpressible, Refused, Stopped
from eventlog.core.formats import Format
from eventlog.files.outputs import Output

LOGGER = logging.getLogger(__name__)
# formats that take changes without a key; the others refuse each of them
TAKING_NO_KEY = frozenset(("changes", "qlik-table", "qlik-message"))
_MAX_TABLES = 10_000  # tables that are remembered


class Report:
    """Reports what was left out, counts it and keeps it."""

    def __init__(
        self,
        show: Callable[[Refused], None],
        rejects: IO[bytes] | None = None,
        strict: bool = False,
        inform: Callable[[str], None] = LOGGER.warning,
    ) -> None:
        self.refused = 0
        self._show = show
        self._rejects = rejects
        self._strict = strict
        self._keyless: set[tuple[str | None, str]] = set()  # tables that were reported
        self.inform = inform  # of what was decided without being asked

    def refuse(self, refused: Refused) -> None:
        """Report a record that was left out, and keep it; what is no fault is only reported."""
        if not refused.grouped or self._strict:
            self._show(refused)
        if not refused.fault:
            return
        self.refused += 1
        if self._rejects is not None and refused.raw is not None:
            self._rejects.write(refused.raw)
        if self._strict:
            raise Stopped

    def keyless(self, changes: Iterable[Change], target: Format) -> Iterable[Change]:
        """Return the changes, and report each table whose key no source describes."""
        return self._note_keyless(changes) if target.name in TAKING_NO_KEY else changes

    def _note_keyless(self, changes: Iterable[Change]) -> Iterator[Change]:
        for change in changes:
            if not change.key and change.op is not Op.TRUNCATE:
                named = change.schema, change.table
                if named not in self._keyless and len(self._keyless) < _MAX_TABLES:
                    self._keyless.add(named)
                    self.inform(_without_key(change))
            yield change

    def flush(self) -> None:
        """Bring what was kept safely to disk."""
        if self._rejects is not None:
            self._rejects.flush()
            with suppress(OSError, ValueError):  # it may be no file
                os.fsync(self._rejects.fileno())

    def write(self, records: Iterable[Any], output: Output) -> int:
        """Write the records that were not refused; how many of them there were."""
        count = 0
        for record in self.good(records):
            try:
                output.write(record)
            except NotExpressible as fault:
                self.refuse(Refused(record.sheet.name, str(fault)))
            else:
                count += 1
        return count

    def good(self, records: Iterable[Any]) -> Iterator[Any]:
        """Yield the records that were not refused."""
        for record in records:
            if isinstance(record, Refused):
                self.refuse(record)
            else:
                yield record


def _without_key(change: Change) -> str:
    values = [
        side for field in change.fields for side in field[1:] if side is not ABSENT and side is not None
    ]
    texts = " and its values are texts" if values and all(isinstance(side, str) for side in values) else ""
    words = f"no source describes the key of {change.table}: its changes are written without one{texts}"
    return f"{words}; state its key and types in a tables file (--tables)"
