"""The rows of tables in which the poll before found no difference: sums show whether they changed since.

What a poll finds follows from the rows of a table and from the state alone. So where both are as they were
when nothing was found, nothing is found again. Decision 71 has the reasons.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from sqlalchemy import text

from eventlog.compare.polling import ChangedPart, PolledChange, PolledTable, poll, why_here
from eventlog.compare.segments import (
    FEW,
    NO_KEY,
    Segments,
    SegmentSum,
    TableSide,
    by_number,
    differing_segments,
    segments_between,
    sums,
    text_of_row,
)
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal
from eventlog.sql.queries import unbound

_SEGMENTS = 1 << 17  # of a table; their sums stay in memory, 32 bytes each
_SUMS = np.dtype([("segment", "<i8"), ("rows", "<i8"), ("first", "<u8"), ("second", "<u8")])
_OPEN = 50_000  # objects of a table; with more of them all rows are compared
_LISTED = 1_000  # objects in a query
_STATE = ("key_hash", "digest", "failed", "next_digest", "first_id")  # none contains a comma
_NULL = "';'"
_ALL = "1 = 1"
_NOTHING = SegmentSum(0, 0, 0, 0)


class _TableSums(NamedTuple):
    """The sums of a table and its state in a snapshot."""

    table: Table
    names: tuple[str, ...]  # of its columns, in the order in which rows have them
    objects: int  # in the state, by its own record
    segments: Segments | None  # None: the table is one segment
    rows: bytes  # the sums of its segments
    state: SegmentSum  # the sum of all that the state has of it

    @property
    def sums(self) -> set[SegmentSum]:
        """Return the sums of its segments."""
        return {SegmentSum(*values) for values in np.frombuffer(self.rows, _SUMS).tolist()}

    @property
    def is_certain(self) -> bool:
        """Return whether every row has a key and a hash, and every object of the state a hash."""
        rows = all(segment.rows and segment.segment != NO_KEY for segment in self.sums)
        return rows and (self.state.rows > 0 or not self.objects)


class _Compared(NamedTuple):
    """A table after a poll: only where something changed since, or where an object is open, it can differ."""

    table_sums: _TableSums
    open: Mapping[str, str]  # hash and text of the key of each object whose state follows its event
    steady: SegmentSum  # the sum of the state without these


class UnchangedRows:
    """The sums of rows without a difference, and of their states."""

    def __init__(self) -> None:
        self._salt = secrets.token_hex(16)
        self._compared: dict[str, _Compared] = {}

    def forget(self, name: str) -> None:
        """Compare all rows of a table at the next poll."""
        self._compared.pop(name, None)

    def differences(self, table: PolledTable, memory: int) -> Iterator[PolledChange]:
        """Yield the differences that a poll finds. Rows without a difference are left out if they and the
        state are as they were then.
        """
        name, reader = table.name, _SumReader(table, self._salt)
        before = self._compared.pop(name, None)
        sums_now = None if before is None else reader.read_same(before.table_sums)
        if before is not None and sums_now == before.table_sums and not before.open:
            self._compared[name] = before
            return
        part = None if before is None or sums_now is None else reader.part(before, sums_now)
        differing: dict[str, str] = {}
        for difference in poll(table, memory, part=part):
            if len(differing) <= _OPEN:
                differing[difference.key_hash] = difference.key
            yield difference
        waiting = {} if before is None else reader.waiting(before.open)
        still_open = waiting | differing
        if len(still_open) > _OPEN:
            return
        sums_now = sums_now or reader.read()
        if sums_now.is_certain:
            steady = sums_now.state.minus(reader.state_of(still_open))
            self._compared[name] = _Compared(sums_now, still_open, steady)


class _SumReader(NamedTuple):
    """Reads the sums of a table and its state in the snapshot of a connection."""

    table: PolledTable
    salt: str

    @property
    def _side(self) -> TableSide:
        return TableSide(
            self.table.connection, self.table.source.table, self.table.source, self.table.source.table
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(
            column.name for column in (*self.table.source.table.key_columns, *self.table.source.table.data)
        )

    def read(self) -> _TableSums:
        """Return the sums, by segments where the key has them."""
        return self._sum(self._segments(self._bounds()))

    def read_same(self, table_sums: _TableSums) -> _TableSums | None:
        """Return the present sums of earlier segments; None if these do not suit the table any more."""
        if (self.table.source.table, self._names) != (table_sums.table, table_sums.names):
            return None
        bounds, segments = self._bounds(), table_sums.segments
        if segments is None:  # as a table without rows, and perhaps not for good
            return None if self._segments(bounds) else self._sum(None)
        return self._sum(segments) if bounds is not None and segments.cover(bounds) else None

    def _bounds(self) -> tuple[int, int] | None:
        return self._side.bounds() if by_number(self._side) else None

    def _segments(self, bounds: tuple[int, int] | None) -> Segments | None:
        return None if bounds is None else segments_between(bounds, _SEGMENTS, self.salt)

    def _sum(self, segments: Segments | None) -> _TableSums:
        source = self.table.source
        if segments is None:
            row_text = text_of_row(source, self.table.queries.log.dialect, self.salt)
            rows = sums(self.table.connection, source.source, row_text, _ALL, functions=source.functions)
        else:
            rows = segments.sums(self._side, _ALL)
        packed = np.array(sorted(rows), _SUMS).tobytes()
        return _TableSums(source.table, self._names, self.table.objects, segments, packed, self._state(_ALL))

    def part(self, before: _Compared, now: _TableSums) -> ChangedPart | None:
        """Return the rows that can differ since a poll; None if all can."""
        segments = now.segments
        if segments is None or not now.is_certain:
            return None
        if now.state.minus(self.state_of(before.open)) != before.steady:
            return None
        sums_now = now.sums
        changed = differing_segments(before.table_sums.sums, sums_now)
        try:
            numbers = (int(self.table.source.load_key(key)[0]) for key in before.open.values())
            changed |= {(number - segments.start) // segments.width for number in numbers}
        except (EventlogError, ValueError):
            return None
        if len(changed) * FEW > len(sums_now):
            return None
        rows = sum(segment.rows for segment in sums_now)
        return ChangedPart([*segments.conditions(self._side, changed)], rows)

    def state_of(self, keys: Iterable[str]) -> SegmentSum:
        """Return the sum of what the state has of these objects."""
        total = _NOTHING
        for hashes in _listed(keys):
            total = total.plus(self._state(f"t.key_hash in ({hashes})"))
        return total

    def _state(self, condition: str) -> SegmentSum:
        row_text = _text_of_state(self.table.queries.log.dialect, self.salt)
        of_table = f"t.object_table = {literal(self.table.name)} and t.key_hash <> 'base' and {condition}"
        return next(
            iter(sums(self.table.connection, self.table.queries.name("known"), row_text, of_table)), _NOTHING
        )

    def waiting(self, objects: Mapping[str, str]) -> dict[str, str]:
        """Return those of these objects whose event is on its way."""
        waiting: dict[str, str] = {}
        for hashes in _listed(objects):
            state_table = self.table.queries.name("known")
            statement = self.table.queries.filled(
                "compare_waiting", known=unbound(state_table), hashes=unbound(hashes)
            )
            rows = self.table.connection.execute(text(statement), {"object_table": self.table.name})
            waiting |= {str(key_hash): objects[str(key_hash)] for (key_hash,) in rows}
        return waiting


def can_sum(dialect: Dialect, table: Table) -> bool:
    """Return whether the database makes the sums of a table."""
    return bool(dialect.values.escaped) and why_here(dialect, table) is None


def _listed(keys: Iterable[str]) -> Iterator[str]:
    """Yield the keys' hashes as lists in SQL."""
    hashes = [*map(literal, keys)]
    for at in range(0, len(hashes), _LISTED):
        yield ", ".join(hashes[at : at + _LISTED])


def _text_of_state(dialect: Dialect, salt: str) -> str:
    """Return the expression of a text for a row of the state."""
    expressions = dialect.values.expressions
    texts = (dialect.values.text.format(column=f"t.{name}") for name in _STATE)
    parts = (literal(salt), *(f"coalesce({text}, {_NULL})" for text in texts))
    return expressions.wrapped.format(parts=f"{expressions.joined}','{expressions.joined}".join(parts))
