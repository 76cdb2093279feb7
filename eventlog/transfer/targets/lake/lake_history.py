"""The history of a table: one row for each change of it, with the columns as that change supplied them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from eventlog.core.change import ABSENT, Change
from eventlog.transfer.targets.lake.lake_place import LakeCommit
from eventlog.transfer.targets.lake.lake_settings import BEFORE
from eventlog.transfer.targets.lake.lake_tables import HISTORY_FORM, LakeTable
from eventlog.transfer.targets.lake.lake_types import array_of
from eventlog.transfer.targets.tables.cells import Cells
from eventlog.transfer.targets.tables.table import KeyChange, RowKey, Step, TableTarget, Truncation


class _Entry(NamedTuple):
    """A change as the history has it."""

    number: int  # among the changes of the round
    change: Change
    cells: Cells
    key_before: RowKey | None  # of a row that took another key


class HistoryEffect:
    """The rows that the changes of a round add to a history."""

    unmet: Sequence[Change] = ()  # a history lacks no row
    absent = 0

    def __init__(
        self, table: LakeTable, steps: Mapping[int, Sequence[Step]], left_out: Iterable[Change] = ()
    ) -> None:
        self._table = table
        omitted = set(map(id, left_out))
        self._entries = [
            _entry(number, table.target, of_change)
            for number, of_change in steps.items()
            if of_change and id(of_change[0].change) not in omitted
        ]

    @property
    def is_nothing(self) -> bool:
        """Return whether the history stays as it is."""
        return not self._entries

    def commit(self, commit: LakeCommit) -> int:
        """Commit the rows, and return the version."""
        rows = {**self._cells(), **self._keys_before(), **self._facts(commit.number)}
        return self._table.snapshot.append(pa.table(rows), commit)

    def _cells(self) -> dict[str, pa.Array]:
        columns = zip(*(entry.cells for entry in self._entries), strict=True)
        named = zip(self._table.target.columns, self._table.types, columns, strict=True)
        return {name: array_of(of, cells) for name, of, cells in named}

    def _keys_before(self) -> dict[str, pa.Array]:
        target, types = self._table.target, self._table.types
        keys = [entry.key_before or (None,) * len(target.key) for entry in self._entries]
        named = zip(target.key, zip(*keys, strict=True), strict=True)
        return {f"{BEFORE}{target.columns[at]}": array_of(types[at], cells) for at, cells in named}

    def _facts(self, round_number: int) -> dict[str, pa.Array]:
        facts = zip(
            *(_facts(entry, round_number, self._table.target) for entry in self._entries), strict=True
        )
        named = zip(HISTORY_FORM, facts, strict=True)
        return {field.name: pa.array(values, field.type) for field, values in named}


def _entry(number: int, target: TableTarget, steps: Sequence[Step]) -> _Entry:
    first, last = steps[0], steps[-1]
    if isinstance(last, Truncation):
        return _Entry(number, last.change, [ABSENT] * len(target.columns), None)
    if isinstance(first, KeyChange):
        return _Entry(number, last.change, last.cells, first.key_before)
    assert not isinstance(first, Truncation)
    cells = last.cells or target.key_row(last.key)
    return _Entry(number, last.change, cells, first.key if first is not last else None)


def _facts(entry: _Entry, round_number: int, target: TableTarget) -> Sequence[Any]:
    """Return the facts about a change, in the order of the form."""
    change = entry.change
    supplied = [name for name, cell in zip(target.columns, entry.cells, strict=True) if cell is not ABSENT]
    place = round_number, entry.number + 1
    return str(change.op), change.position, *place, change.time, change.transaction, supplied
