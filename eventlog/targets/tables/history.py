"""Versions of rows: one for each change, where each begins and ends, and what it has from the one before.

A version contains what was supplied since the last one in the target. The rest comes from that one, which is
found by its key and by the position at which it was closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from eventlog.core.change import ABSENT, Change, Op
from eventlog.targets.tables.cells import Cells
from eventlog.targets.tables.table_target import Act, Moved, RowAction, RowKey, TableTarget

Named = tuple[str, str | None]  # the position of a change in the sequence, and its time


@dataclass(slots=True)
class Version:
    """One version of a row."""

    key: RowKey
    cells: Cells
    begun: Named
    op: str
    base: RowKey | None  # whose version in the target has what is not supplied
    expected: bool = False  # that version must be there
    ended: Named | None = None


@dataclass(slots=True)
class Closing:
    """The version that the target has of a key ends."""

    ended: Named
    asked: bool  # it is missed if it was not there


@dataclass(slots=True)
class HistoryResult:
    """The result of steps on one table."""

    versions: list[Version] = field(default_factory=list)
    closings: dict[RowKey, Closing] = field(default_factory=dict)
    unmet: list[Change] = field(default_factory=list)  # updates of rows that are not there
    absent: int = 0  # deletes of rows that are not there


_GONE = "gone"


class HistoryWriter:
    """A writer of the versions of one table's rows."""

    def __init__(self, goal: TableTarget, missing: Collection[RowKey], *, insert: bool) -> None:
        self.result = HistoryResult()
        self._missing = missing
        self._insert = insert
        self._now: dict[RowKey, Version | str] = {}  # as the steps so far leave it; else as the target has it

    def take(self, step: Act | Moved, at: Named) -> None:
        """Take one step at its position in the sequence."""
        if isinstance(step, Moved):
            self._update(step, step.old, at)
        elif step.deed is RowAction.DELETE:
            self._delete(step, at)
        elif step.deed is RowAction.UPDATE:
            self._update(step, step.key, at)
        else:
            self._write(step, at)

    def _write(self, step: Act | Moved, at: Named) -> None:
        """The row is there afterwards, whether it was before or not."""
        before = self._before(step.key)
        if before is None:
            self._close(step.key, at, asked=False)
            self._open(step, at, step.cells, step.key, expected=False)
        elif isinstance(before, Version):
            before.ended = at
            self._open(step, at, _merged(before.cells, step.cells), before.base, expected=before.expected)
        else:
            self._open(step, at, step.cells, None, expected=False)

    def _update(self, step: Act | Moved, old: RowKey, at: Named) -> None:
        """The row, which is there, takes other values, and perhaps another key."""
        before = self._before(old)
        if before == _GONE:
            if self._insert:
                self._write(step, at)
            else:
                self.result.unmet.append(step.change)
            return
        if old != step.key:
            self._end(step.key, at)
        if isinstance(before, Version):
            before.ended = at
            cells, base, expected = _merged(before.cells, step.cells), before.base, before.expected
        else:
            self._close(old, at, asked=False)
            cells, base, expected = step.cells, old, True
        self._now[old] = _GONE
        self._open(step, at, cells, base, expected=expected)

    def _delete(self, step: Act, at: Named) -> None:
        before = self._before(step.key)
        asked = step.change.op is Op.DELETE
        if before == _GONE:
            self.result.absent += asked
        else:
            self._end(step.key, at, asked=asked)

    def _end(self, key: RowKey, at: Named, *, asked: bool = False) -> None:
        """The row of a key, if there is one, is gone."""
        before = self._before(key)
        if isinstance(before, Version):
            before.ended = at
        elif before is None:
            self._close(key, at, asked=asked)
        self._now[key] = _GONE

    def _before(self, key: RowKey) -> Version | str | None:
        """Return the version that a step meets; None for the one that the target has, if it has one."""
        return self._now.get(key, _GONE if key in self._missing else None)

    def _close(self, key: RowKey, at: Named, *, asked: bool) -> None:
        self.result.closings[key] = Closing(at, asked)

    def _open(
        self, step: Act | Moved, at: Named, cells: Cells, base: RowKey | None, *, expected: bool
    ) -> None:
        made = Version(step.key, cells, at, step.change.op.value, base, expected)
        self._now[step.key] = made
        self.result.versions.append(made)


def versions(
    goal: TableTarget,
    steps: Iterable[tuple[Act | Moved, Named]],
    missing: Collection[RowKey] = (),
    *,
    insert: bool = False,
) -> HistoryResult:
    """Return the versions that steps on one table make, and those that they end.

    `missing` are keys without a current version in the target.
    """
    writer = HistoryWriter(goal, missing, insert=insert)
    for step, at in steps:
        writer.take(step, at)
    return writer.result


def _merged(before: Cells, supplied: Cells) -> Cells:
    return [old if new is ABSENT else new for old, new in zip(before, supplied, strict=True)]
