"""Changes that the snapshot of a table may show already.

A target that replaces rows takes such a change again, marked `overlap`. A target of events gets each event
once: the rows of the snapshot are kept by key until the stream is past the snapshot.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eventlog.core.change import ABSENT, Change, Key, Op, Side, row_events
from eventlog.gbase.records import seconds_of
from eventlog.gbase.snapshot import ReadSpan

_MARK = (("overlap", True),)
_NO_ROW = b""


class SnapshotRows:
    """The rows of a snapshot, on disk, by key."""

    def __init__(self, path: Path | None) -> None:
        self._rows = sqlite3.connect(str(path) if path else "")
        self._rows.execute(
            "create table if not exists shown (tab text, object text, held blob, primary key (tab, object))"
        )

    def forget(self, table: str) -> None:
        """A table is read anew."""
        self._rows.execute("delete from shown where tab = ?", (table,))

    def put(self, table: str, key: Key, held: bytes) -> None:
        """The row under a key, as it is now; no bytes where there is none."""
        self._rows.execute("replace into shown values (?, ?, ?)", (table, _text(key), held))

    def get(self, table: str, key: Key) -> bytes:
        """Return the row under a key."""
        found = self._rows.execute(
            "select held from shown where tab = ? and object = ?", (table, _text(key))
        ).fetchone()
        return found[0] if found else _NO_ROW

    def keep(self) -> None:
        """Commit the rows to disk."""
        self._rows.commit()

    def close(self) -> None:
        self._rows.close()


class Overlap:
    """A comparison of each change with the snapshot of its table."""

    def __init__(self, spans: Mapping[int, ReadSpan], shown: SnapshotRows | None) -> None:
        self._spans = spans  # by the number of the table
        self._shown = shown  # for a writer of events

    def snapshot(self, change: Change) -> None:
        """A row of a snapshot goes out."""
        if self._shown is not None:
            self._shown.put(_table(change), change.key, _digest(change, after=True))

    def of(self, change: Change) -> Iterator[Change]:
        """Yield what leaves for a change.

        That is the change, marked if the snapshot may show it; for events, only the parts that the snapshot
        does not show.
        """
        span = self._spans.get(_number(change))
        if span is None or not _within(change, span):
            yield change
        elif self._shown is None or not change.key:
            yield change._replace(extra=change.extra + _MARK)
        elif change.op is Op.TRUNCATE:
            if _sequence(change) > span.before.sequence:
                yield change
        else:
            yield from self._continuing(change, self._shown)

    def _continuing(self, change: Change, shown: SnapshotRows) -> Iterator[Change]:
        """Yield the events of a change that continue the row as the snapshot and earlier events show it."""
        table = _table(change)
        for event in row_events(change):
            before = _NO_ROW if event.op is Op.INSERT else _digest(change, after=False)
            if before == shown.get(table, event.key):
                after = _NO_ROW if event.op is Op.DELETE else _digest(change, after=True)
                shown.put(table, event.key, after)
                yield event


def _within(change: Change, span: ReadSpan) -> bool:
    """Return whether a change was committed before its table had been read."""
    if _sequence(change) <= span.after.sequence:
        return True
    return change.time is not None and seconds_of(change.time) <= span.after.seconds


def _sequence(change: Change) -> int:
    commit = change.fact("commit")
    return commit if isinstance(commit, int) else 0


def _number(change: Change) -> int:
    number = change.fact("number")
    return number if isinstance(number, int) else -1


def _table(change: Change) -> str:
    return f"{change.schema}.{change.table}"


def _text(key: Key) -> str:
    return json.dumps([_plain(value) for _, value in key])


def _digest(change: Change, after: bool) -> bytes:
    """Return one side of a row, in few bytes."""
    sides = {f.column: f.after if after else f.before for f in change.fields}
    row = sorted((column, _plain(side)) for column, side in sides.items() if side is not ABSENT)
    return hashlib.sha256(json.dumps(row).encode()).digest()[:16]


def _plain(side: Side) -> Any:
    return side if isinstance(side, bool | int | float | str) or side is None else repr(side)
