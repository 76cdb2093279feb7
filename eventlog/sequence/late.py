"""Rows of change tables that became visible late: which they are, and what overtook them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from eventlog.core.change import Change, Key, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import Placed
from eventlog.core.plurals import quantity
from eventlog.qlik import sequence
from eventlog.qlik.sequenced import MetRows
from eventlog.sequence.progress import Progress
from eventlog.sequence.reread import Reread, Visibility

Row = tuple[str, str]  # a table, and a change_seq
CHANGE_TABLES: Final = "change tables"  # what reports name


class LaggingTables:
    """A counter of changes that become visible later than those of other tables."""

    def __init__(self, progress: Progress) -> None:
        self._highest = max(progress.last.values(), default="")
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def note(self, table: str, seq: str) -> None:
        """Count a change whose time is done, and which follows everything of its own table."""
        if seq < self._highest:
            self._counts[table] += 1
            self._first.setdefault(table, seq)

    def warnings(self) -> Iterator[Refused]:
        """Report each table that lags."""
        for table, count in self._counts.items():
            seconds = sequence.seconds_between(self._first[table], self._highest)
            changes = quantity(count, "change")
            yield Refused(
                CHANGE_TABLES,
                f"{table} lags: {changes} of it became visible after changes of other tables that are up to"
                f" {seconds:g} s newer were delivered (a greater --settle keeps them in one order)",
                fault=False,
            )


class LateRows:
    """The late rows of a round, each with the position of a delivered change that overtook it."""

    def __init__(self, progress: Progress) -> None:
        self._found: dict[Row, Visibility] = {}  # of what was not delivered as it is now
        self._overtaken: dict[Row, str] = {}  # by which change_seq, if by any
        self._done = progress.done
        self._again = Reread(progress, accept_late=True)
        self._rows: dict[tuple[str, Key], list[Row]] = {}  # that no later change overtook yet
        self._tables: dict[str, list[Row]] = {}
        self._unnamed: dict[str, list[Row]] = {}  # late rows that do not name their key
        self._last: dict[str, str] = {}  # what was delivered of a table last, of any row,
        self._all: dict[str, str] = {}  # and of all rows

    def look(self, rows: Iterable[MetRows]) -> None:
        """Read rows in their order, up to the time that is complete."""
        for met in rows:
            if met.seq[: sequence.TIME] > self._done:
                break
            visibility = self._again.meet(met.table, met.seq)
            if visibility is not Visibility.DELIVERED:
                self._found[met.table, met.seq] = visibility
            if visibility is Visibility.LATE:
                self._add(met)
            elif visibility is not Visibility.NEW and met.table in self._tables:
                self._overtake(met)
        self._again.close()
        self._mark(self._unnamed, self._last)
        self._mark(self._tables, self._all)
        self._mark(self._tables, self._again.lacking)

    def visibility(self, table: str, seq: str) -> Visibility:
        """Return what a change is, with the letters of its rows."""
        return self._found.get((table, seq), Visibility.DELIVERED)

    def marked(self, placed: Placed) -> Placed:
        """Return a change with a mark if it is late."""
        change = placed.change
        if _place(change) not in self._overtaken:
            return placed
        return placed._replace(change=change._replace(extra=(*change.extra, ("late", True))))

    def overtaken(self, changes: Iterable[Placed], time: str) -> str | None:
        """Return where late changes were overtaken, empty if they were not; None if none of them is late."""
        if not self._overtaken or time > self._done:
            return None
        found = (self._overtaken.get(_place(placed.change)) for placed in changes)
        return max((position for position in found if position is not None), default=None)

    def warnings(self) -> Iterator[Refused]:
        """Report what was late."""
        if self._overtaken:
            changes = quantity(len(self._overtaken), "change")
            said = f"{changes} became visible late, delivered now and marked late"
            yield Refused(CHANGE_TABLES, said, fault=False)
        for (table, seq), visibility in self._found.items():
            if visibility is Visibility.IMAGE:
                said = "its B row became visible after its U row was delivered, and is left out"
                yield Refused(f"{table}:{seq[: sequence.LENGTH]}", said, fault=False)

    def _add(self, met: MetRows) -> None:
        row = met.table, met.seq[: sequence.LENGTH]
        self._overtaken[row] = ""
        self._tables.setdefault(met.table, []).append(row)
        for change in met.changes():
            if _of_any_row(change):
                self._unnamed.setdefault(met.table, []).append(row)
            for key in _keys(change):
                self._rows.setdefault((met.table, key), []).append(row)

    def _overtake(self, met: MetRows) -> None:
        seq = self._last[met.table] = met.seq[: sequence.LENGTH]
        for change in met.changes():
            if _of_any_row(change):
                self._all[met.table] = seq
            for key in _keys(change):
                for row in self._rows.pop((met.table, key), ()):
                    self._overtaken[row] = seq

    def _mark(self, tables: Mapping[str, Iterable[Row]], positions: Mapping[str, str]) -> None:
        """Mark the rows of tables that are at or before these positions."""
        for table, position in positions.items():
            for row in tables.get(table, ()):
                if row[1][: len(position)] <= position:
                    self._overtaken[row] = self._overtaken[row] or position


def _place(change: Change) -> Row:
    table = f"{change.schema}.{change.table}" if change.schema else change.table
    return table, change.position or ""


def _keys(change: Change) -> set[Key]:
    return set() if _of_any_row(change) else {change.key, change.key_before}


def _of_any_row(change: Change) -> bool:
    return change.op is Op.TRUNCATE or not change.key
