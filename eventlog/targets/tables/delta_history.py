"""Delta tables with history: every change makes a version of its row, and ends the one before.

The versions of the rows that a group is about are read, and written anew with those that it makes, in one
commit.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from eventlog.core.change import ABSENT, Change
from eventlog.core.errors import Refused
from eventlog.targets.tables import history
from eventlog.targets.tables.delta_rows import rows_of
from eventlog.targets.tables.errors import TwoVersions, refuse
from eventlog.targets.tables.history import Named
from eventlog.targets.tables.table_target import Act, Emptied, Moved, RowKey, Step, TableTarget
from eventlog.targets.tables.validity import FROM_SEQ, FROM_TIME, OP, TO_SEQ, TO_TIME

_MOMENT = pa.timestamp("us", tz="UTC")
FIELDS = (
    pa.field(FROM_SEQ, pa.string(), nullable=False),
    pa.field(TO_SEQ, pa.string()),
    pa.field(FROM_TIME, _MOMENT),
    pa.field(TO_TIME, _MOMENT),
    pa.field(OP, pa.string(), nullable=False),
)
Row = dict[str, Any]


class Versions:
    """The versions of the rows that steps are about, and what becomes of them."""

    def __init__(self, table: Any, goal: TableTarget, steps: Sequence[Step], *, insert: bool) -> None:
        self.unmet: list[Change] = []
        self.absent = 0
        self.whole = any(isinstance(step, Emptied) for step in steps)
        self._goal = goal
        self._insert = insert
        self._schema = pa.schema(table.schema().to_arrow())
        keyed = [step for step in steps if not isinstance(step, Emptied)]
        self.first_keys = {step.key[0] for step in keyed}
        self.first_keys |= {step.old[0] for step in keyed if isinstance(step, Moved)}
        names = self._schema.names
        found = rows_of(table, goal, None if self.whole else self.first_keys, names)
        self._rows: list[Row] = [dict(zip(names, row, strict=True)) for row in found]
        self._now = {self._key(row): row for row in self._rows if row[TO_SEQ] is None}
        self._begun = {(self._key(row), row[FROM_SEQ]) for row in self._rows}

    def take(
        self, steps: Sequence[Step], place: Callable[[Change], Named], refused: list[Refused]
    ) -> list[Step]:
        """Return the steps in their order; those that were taken. One that would make a second version of a
        row at one place is refused with its change.
        """
        taken: list[Step] = []
        held: list[tuple[Act | Moved, Named]] = []
        bad: set[int] = set()
        for step in steps:
            at = place(step.change)
            if isinstance(step, Emptied):
                self._settle(held)
                held = []
                for row in self._now.values():
                    _end(row, at)
                self._now.clear()
            elif id(step.change) in bad:
                continue
            elif isinstance(step, Act) and not step.cells:
                held.append((step, at))
            elif (step.key, at[0]) in self._begun:
                bad.add(id(step.change))
                refused.append(refuse(step.change, TwoVersions(at[0])))
                held = [one for one in held if one[0].change is not step.change]
                taken = [one for one in taken if one.change is not step.change]
                continue
            else:
                self._begun.add((step.key, at[0]))
                held.append((step, at))
            taken.append(step)
        self._settle(held)
        return taken

    def table(self) -> pa.Table:
        """Return the versions as they are now."""
        arrays = [pa.array([row[f.name] for row in self._rows], f.type) for f in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _settle(self, steps: Sequence[tuple[Act | Moved, Named]]) -> None:
        keys = {step.key for step, _ in steps} | {s.old for s, _ in steps if isinstance(s, Moved)}
        made = history.versions(self._goal, steps, keys - self._now.keys(), insert=self._insert)
        self.unmet += made.unmet
        self.absent += made.absent
        closed = {key: self._now.pop(key) for key in made.closings}
        for key, closing in made.closings.items():
            _end(closed[key], closing.ended)
        for version in made.versions:
            row: Row = dict.fromkeys(self._schema.names)
            if version.base is not None:
                row |= {name: closed[version.base][name] for name in self._goal.columns}
            cells = zip(self._goal.columns, version.cells, strict=True)
            row |= {name: cell for name, cell in cells if cell is not ABSENT}
            row |= {FROM_SEQ: version.begun[0], FROM_TIME: _moment(version.begun[1]), OP: version.op}
            if version.ended is None:
                self._now[version.key] = row
            else:
                _end(row, version.ended)
            self._rows.append(row)

    def _key(self, row: Row) -> RowKey:
        return tuple(row[self._goal.columns[place]] for place in self._goal.key)


def _end(row: Row, at: Named) -> None:
    row[TO_SEQ], row[TO_TIME] = at[0], _moment(at[1])


def _moment(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
