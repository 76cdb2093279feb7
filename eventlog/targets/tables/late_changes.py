"""The rows that later changes have changed, so that a late change leaves them alone."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog.core.change import Change, Key, Op

_Named = tuple[str | None, str]
_MAX_ROWS = 1_000_000  # rows that are remembered


class LateChanges:
    """The rows that a run changed, each with the last position at which it did."""

    def __init__(self, max_rows: int = _MAX_ROWS) -> None:
        self._max_rows = max_rows
        self._rows: dict[tuple[_Named, Key], str] = {}
        self._tables: dict[_Named, str] = {}  # tables in which any row may have changed
        self._newest: dict[_Named, str] = {}  # of any row
        self._forgotten = ""  # to which position rows are no longer remembered

    def note(self, changes: Iterable[Change]) -> None:
        """Note that these changes are applied."""
        for change in changes:
            named, position = (change.schema, change.table), change.position or ""
            self._newest[named] = max(position, self._newest.get(named, ""))
            if change.op is Op.TRUNCATE or not change.key:
                self._tables[named] = max(position, self._tables.get(named, ""))
                continue
            for key in {change.key, change.key_before}:
                row = named, key
                self._rows[row] = max(position, self._rows.get(row, ""))
        if len(self._rows) + len(self._tables) > self._max_rows:
            positions = (*self._rows.values(), *self._tables.values())
            self._forgotten = max(self._forgotten, *positions)
            self._rows.clear()
            self._tables.clear()

    def allow(self, changes: Iterable[Change]) -> bool:
        """Return whether no row of late changes was changed by what follows them."""
        return self.overtaking(changes) is None

    def overtaking(self, changes: Iterable[Change]) -> str | None:
        """Return where a row of late changes was changed, or may have been, by what follows them."""
        return next((at for at in map(self._overtaking, changes) if at is not None), None)

    def _overtaking(self, change: Change) -> str | None:
        named, position = (change.schema, change.table), change.position or ""
        if change.op is Op.TRUNCATE or not change.key:
            return self._newest.get(named, self._forgotten)
        if position <= self._forgotten:
            return self._forgotten
        rows = ((named, key) for key in (change.key, change.key_before))
        last = max(self._tables.get(named, ""), *(self._rows.get(row, "") for row in rows))
        return last if last > position else None
