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
from sqlalchemy.engine import Connection

from eventlog.compare.polling import ChangedPart, PolledChange, poll, why_here
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
from eventlog.sql.queries import Queries, unbound
from eventlog.sql.readable import ReadableTable

_SEGMENTS = 1 << 17  # of a table; their sums stay in memory, 32 bytes each
_SUMS = np.dtype([("segment", "<i8"), ("rows", "<i8"), ("first", "<u8"), ("second", "<u8")])
_OPEN = 50_000  # objects of a table; with more of them all rows are compared
_LISTED = 1_000  # objects in a query
_STATE = ("key_hash", "digest", "failed", "next_digest", "first_id")  # none contains a comma
_NULL = "';'"
_ALL = "1 = 1"
_NOTHING = SegmentSum(0, 0, 0, 0)


class _Seen(NamedTuple):
    """A table and its state in a snapshot."""

    table: Table
    names: tuple[str, ...]  # of its columns, in the order in which rows have them
    objects: int  # in the state, by its own record
    segments: Segments | None  # None: the table is one segment
    rows: bytes  # the sums of its segments
    state: SegmentSum  # the sum of all that the state has of it

    @property
    def sums(self) -> set[SegmentSum]:
        """Return the sums of its segments."""
        return {SegmentSum(*one) for one in np.frombuffer(self.rows, _SUMS).tolist()}

    @property
    def is_certain(self) -> bool:
        """Return whether every row has a key and a hash, and every object of the state a hash."""
        rows = all(one.rows and one.segment != NO_KEY for one in self.sums)
        return rows and (self.state.rows > 0 or not self.objects)


class _Compared(NamedTuple):
    """A table after a poll: only where something changed since, or where an object is open, it can differ."""

    seen: _Seen
    open: Mapping[str, str]  # hash and text of the key of each object whose state follows its event
    steady: SegmentSum  # the sum of the state without these


class UnchangedRows:
    """The rows without a difference, as they and their states were seen last."""

    def __init__(self) -> None:
        self._salt = secrets.token_hex(16)
        self._compared: dict[str, _Compared] = {}

    def forget(self, name: str) -> None:
        """Compare all rows of a table at the next poll."""
        self._compared.pop(name, None)

    def differences(
        self,
        connection: Connection,
        queries: Queries,
        name: str,
        source: ReadableTable,
        objects: int,
        memory: int,
    ) -> Iterator[PolledChange]:
        """Yield the differences that a poll finds in the connection's snapshot. Rows without a difference are
        left out if they and the state are as they were then.
        """
        look = _Look(connection, queries, name, source, objects, self._salt)
        before = self._compared.pop(name, None)
        now = None if before is None else look.again(before.seen)
        if before is not None and now == before.seen and not before.open:
            self._compared[name] = before
            return
        part = None if before is None or now is None else look.part(before, now)
        found: dict[str, str] = {}
        for one in poll(connection, queries, name, source, objects, memory, part=part):
            if len(found) <= _OPEN:
                found[one.key_hash] = one.key
            yield one
        waiting = {} if before is None else look.waiting(before.open)
        still_open = waiting | found
        if len(still_open) > _OPEN:
            return
        now = now or look.first()
        if now.is_certain:
            steady = now.state.minus(look.state_of(still_open))
            self._compared[name] = _Compared(now, still_open, steady)


class _Look(NamedTuple):
    """A look at a table and its state in the snapshot of a connection."""

    connection: Connection
    queries: Queries
    name: str
    source: ReadableTable
    objects: int
    salt: str

    @property
    def _side(self) -> TableSide:
        return TableSide(self.connection, self.source.table, self.source, self.source.table)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(column.name for column in (*self.source.table.key_columns, *self.source.table.data))

    def first(self) -> _Seen:
        """Return what is seen, by segments where the key has them."""
        return self._seen(self._segments(self._bounds()))

    def again(self, seen: _Seen) -> _Seen | None:
        """Return what is seen by the same segments; None if they do not suit the table any more."""
        if (self.source.table, self._names) != (seen.table, seen.names):
            return None
        bounds, segments = self._bounds(), seen.segments
        if segments is None:  # as a table without rows, and perhaps not for good
            return None if self._segments(bounds) else self._seen(None)
        return self._seen(segments) if bounds is not None and segments.cover(bounds) else None

    def _bounds(self) -> tuple[int, int] | None:
        return self._side.bounds() if by_number(self._side) else None

    def _segments(self, bounds: tuple[int, int] | None) -> Segments | None:
        return None if bounds is None else segments_between(bounds, _SEGMENTS, self.salt)

    def _seen(self, segments: Segments | None) -> _Seen:
        source = self.source
        if segments is None:
            row_text = text_of_row(source, self.queries.log.dialect, self.salt)
            rows = sums(self.connection, source.source, row_text, _ALL, functions=source.functions)
        else:
            rows = segments.sums(self._side, _ALL)
        packed = np.array(sorted(rows), _SUMS).tobytes()
        return _Seen(source.table, self._names, self.objects, segments, packed, self._state(_ALL))

    def part(self, before: _Compared, now: _Seen) -> ChangedPart | None:
        """Return the rows that can differ since a poll; None if all can."""
        segments = now.segments
        if segments is None or not now.is_certain:
            return None
        if now.state.minus(self.state_of(before.open)) != before.steady:
            return None
        sums_now = now.sums
        changed = differing_segments(before.seen.sums, sums_now)
        try:
            first = (int(self.source.load_key(key)[0]) for key in before.open.values())
            changed |= {(number - segments.start) // segments.width for number in first}
        except (EventlogError, ValueError):
            return None
        if len(changed) * FEW > len(sums_now):
            return None
        return ChangedPart([*segments.conditions(self._side, changed)], sum(one.rows for one in sums_now))

    def state_of(self, keys: Iterable[str]) -> SegmentSum:
        """Return the sum of what the state has of these objects."""
        found = _NOTHING
        for hashes in _listed(keys):
            found = found.plus(self._state(f"t.key_hash in ({hashes})"))
        return found

    def _state(self, condition: str) -> SegmentSum:
        row_text = _text_of_state(self.queries.log.dialect, self.salt)
        own = f"t.object_table = {literal(self.name)} and t.key_hash <> 'base' and {condition}"
        return next(iter(sums(self.connection, self.queries.name("known"), row_text, own)), _NOTHING)

    def waiting(self, objects: Mapping[str, str]) -> dict[str, str]:
        """Return those of these objects whose event is on its way."""
        found: dict[str, str] = {}
        for hashes in _listed(objects):
            known = self.queries.name("known")
            statement = self.queries.filled("compare_waiting", known=unbound(known), hashes=unbound(hashes))
            rows = self.connection.execute(text(statement), {"object_table": self.name})
            found |= {str(key_hash): objects[str(key_hash)] for (key_hash,) in rows}
        return found


def can_sum(dialect: Dialect, table: Table) -> bool:
    """Return whether the database makes the sums of a table."""
    return bool(dialect.escaped) and why_here(dialect, table) is None


def _listed(keys: Iterable[str]) -> Iterator[str]:
    """Yield the keys' hashes as lists in SQL."""
    hashes = [*map(literal, keys)]
    for at in range(0, len(hashes), _LISTED):
        yield ", ".join(hashes[at : at + _LISTED])


def _text_of_state(dialect: Dialect, salt: str) -> str:
    """Return the expression of a text for a row of the state."""
    own = dialect.expressions
    texts = (dialect.text.format(column=f"t.{name}") for name in _STATE)
    parts = (literal(salt), *(f"coalesce({text}, {_NULL})" for text in texts))
    return own.wrapped.format(parts=f"{own.joined}','{own.joined}".join(parts))
