"""The parts of two tables that differ, found by sums of hashes that each database makes of its segments.

A segment is a range of the key's first column, an integer. Two segments with equal sums have the same rows,
so only the others are read. Decision 65 has the reasons.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple, Protocol

import pyarrow as pa
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.compare.table_snapshot import read_table
from eventlog.core.tables import Column, Table
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal
from eventlog.sql.dialects import dialect_of
from eventlog.sql.queries import unbound
from eventlog.sql.readable import ReadableTable

_WIDTH = 64  # numbers of a segment at least
MAX_SEGMENTS = 1 << 18  # segments of a table
FEW = 4  # if more than a fourth of the segments differ, all rows are read
_LEVELS, _PARTS = 2, 8  # how often a segment of a database that differs is divided, and by how much
_ALL = "1 = 1"
_RANGES = 100  # in one query
_LARGEST = 1 << 63  # the first number that no database counts with
_HALF = 1 << 64
NO_KEY = -1  # the segment of rows whose key is null
ESCAPED, END, NULL = ",.", ",|", ",;"  # a comma, the end of a value, and a null
DIGEST = "digest"  # sums of SHA-256, which others than the database make, too


class SummedSide(Protocol):
    """A table that is compared by sums of its segments."""

    @property
    def summing(self) -> object:
        """Return what makes the sums, the same for sides that can be compared; None if nothing does."""

    @property
    def levels(self) -> int:
        """Return how often a segment that differs is worth being divided."""

    def bounds(self) -> tuple[int, int] | None:
        """Return the lowest and the highest number that a key begins with, None if there is no row."""

    def sums(self, segments: Segments, part: SegmentSelection | None = None, /) -> set[SegmentSum]:
        """Return the sums of each segment that has rows, of all or of those in a part of the table."""

    def rows(self, part: SegmentSelection | None = None, /) -> Iterator[pa.RecordBatch]:
        """Yield all rows, or those in a part of the table."""


class TableSide(NamedTuple):
    """A table in a snapshot, compared as the rows of `table`."""

    connection: Connection
    table: Table
    readable: ReadableTable
    catalogue_table: Table
    is_digested: bool = False  # the other side is no table of this product

    @property
    def summing(self) -> object:
        """Return what makes the sums; None if the database or the key does not allow them."""
        if not self.dialect.values.escaped or not by_number(self):
            return None
        return DIGEST if self.is_digested else self.dialect

    @property
    def levels(self) -> int:
        """Return how often a segment that differs is divided."""
        return _LEVELS

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of the table's database."""
        return dialect_of(self.connection)

    @property
    def first(self) -> str:
        """Return the first column of the key in a query."""
        return f"t.{self.dialect.quote(self.readable.table.key_columns[0].name)}"

    def rows(self, part: SegmentSelection | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows, or those in a part of the table."""
        for condition in _conditions(self, part):
            yield from read_table(self.connection, self.table, self.readable, condition)

    def sums(self, segments: Segments, part: SegmentSelection | None = None) -> set[SegmentSum]:
        """Return the sums of each segment that has rows, of all or of those in a part of the table."""
        return set().union(*(segments.sums(self, condition) for condition in _conditions(self, part)))

    def bounds(self) -> tuple[int, int] | None:
        """Return the lowest and the highest number that a key begins with, None if there is no row."""
        statement = f"select min({self.first}), max({self.first}) from {self.readable.source} t"  # noqa: S608
        ((low, high),) = self.connection.execute(text(unbound(statement)))
        return None if low is None else (int(low), int(high))


class SegmentSum(NamedTuple):
    """A segment, the number of its rows, and the sums of the halves of their hashes."""

    segment: int
    rows: int  # 0 if a row has no hash, because its text is too long
    first: int
    second: int

    def plus(self, addend: SegmentSum) -> SegmentSum:
        """Return the sum of the rows of both."""
        first, second = (self.first + addend.first) % _HALF, (self.second + addend.second) % _HALF
        return SegmentSum(self.segment, self.rows + addend.rows, first, second)

    def minus(self, part: SegmentSum) -> SegmentSum:
        """Return the sum without the rows of another."""
        return self.plus(SegmentSum(part.segment, -part.rows, -part.first, -part.second))


class Segments(NamedTuple):
    """A division of a key into ranges of `width` numbers from `start` on, with the salt of the hashes."""

    start: int
    width: int
    salt: str

    def cover(self, bounds: tuple[int, int]) -> bool:
        """Return whether keys between these bounds are in segments, and these are not too many."""
        low, high = bounds
        end = high + self.width
        return (
            self.start <= low
            and end < _LARGEST
            and end - self.start < min(_LARGEST, 2 * MAX_SEGMENTS * self.width)
        )

    def sums(self, state: TableSide, where: str) -> set[SegmentSum]:
        """Return the sums of each segment that has rows which satisfy a condition."""
        dialect, readable = state.dialect, state.readable
        distance = f"({state.first} - cast({self.start} as {dialect.values.integer}))"
        segment = dialect.values.quotient.format(column=distance, by=self.width)
        row_text = text_of_row(readable, dialect, self.salt)
        return sums(
            state.connection,
            readable.source,
            row_text,
            where,
            segment,
            readable.functions,
            is_digested=state.is_digested,
        )

    def conditions(self, state: TableSide, differing: Iterable[int]) -> Iterator[str]:
        """Yield conditions that the rows of these segments satisfy, each row one of them."""
        ranges = [
            f"{state.first} >= {self.start + first * self.width}"
            f" and {state.first} < {self.start + (last + 1) * self.width}"
            for first, last in _runs(sorted(differing))
        ]
        for at in range(0, len(ranges), _RANGES):
            yield " or ".join(ranges[at : at + _RANGES])


class SegmentSelection(NamedTuple):
    """A selection of the segments of a table."""

    segments: Segments
    numbers: set[int]


def _conditions(state: TableSide, part: SegmentSelection | None) -> Iterable[str]:
    return (_ALL,) if part is None else part.segments.conditions(state, part.numbers)


def sums(
    connection: Connection,
    source: str,
    row_text: str,
    where: str,
    segment: str = "0",
    functions: str = "",
    *,
    is_digested: bool = False,
) -> set[SegmentSum]:
    """Return the sums of each segment of a table `t`, by the text of each row that satisfies a condition."""
    dialect = dialect_of(connection)
    *settings, statement = templates.statements(
        dialect,
        "compare_digests" if is_digested else "compare_segments",
        {
            "functions": unbound(functions),
            "segment": unbound(segment),
            "row_text": unbound(row_text),
            "digest": unbound(dialect.values.digest.format(x=row_text)),
            "source": unbound(source),
            "within": unbound(where),
        },
    )
    for setting in settings:
        connection.execute(text(setting))
    return {
        SegmentSum(NO_KEY if at is None else int(at), int(count or 0), *(int(h or 0) % _HALF for h in halves))
        for at, count, *halves in connection.execute(text(statement))
    }


def differing_rows(
    old_side: SummedSide, new_side: SummedSide
) -> tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """Return the rows of both sides that can differ: all of them if segments do not help."""
    segments = _segments(old_side, new_side)
    if segments is None:
        return old_side.rows(), new_side.rows()
    before, after = (side.sums(segments) for side in (old_side, new_side))
    part = SegmentSelection(segments, differing_segments(before, after))
    if len(part.numbers) * FEW > max(len(before), len(after)):
        return old_side.rows(), new_side.rows()
    for _ in range(min(old_side.levels, new_side.levels)):
        part = _divided(part, old_side, new_side)
    return old_side.rows(part), new_side.rows(part)


def differing_segments(before: set[SegmentSum], after: set[SegmentSum]) -> set[int]:
    """Return the segments whose sums differ, or show nothing because a row has no hash."""
    without_hash = {part for part in before if not part.rows}
    return {part.segment for part in (before ^ after) | without_hash}


def _divided(part: SegmentSelection, old_side: SummedSide, new_side: SummedSide) -> SegmentSelection:
    """Return the parts of segments that differ."""
    segments = part.segments._replace(width=max(1, part.segments.width // _PARTS))
    before, after = (side.sums(segments, part) for side in (old_side, new_side))
    return SegmentSelection(segments, differing_segments(before, after))


def _segments(old_side: SummedSide, new_side: SummedSide) -> Segments | None:
    """Return the segments of two tables; None if one is empty, or if databases or keys do not allow them."""
    if old_side.summing is None or old_side.summing is not new_side.summing:
        return None
    before, after = old_side.bounds(), new_side.bounds()
    if before is None or after is None:
        return None
    bounds = min(before[0], after[0]), max(before[1], after[1])
    return segments_between(bounds, MAX_SEGMENTS, secrets.token_hex(16))


def segments_between(bounds: tuple[int, int], max_segments: int, salt: str) -> Segments | None:
    """Return at most so many segments of these keys; None if a database cannot count with them."""
    start, end = bounds
    segments = Segments(start, max(_WIDTH, (end - start) // max_segments + 1), salt)
    return segments if segments.cover(bounds) else None


def by_number(state: TableSide) -> bool:
    """Return whether segments can divide the key: it is that of the catalogue and begins with an integer."""
    catalogue_table, table = state.catalogue_table, state.readable.table
    has_key = not catalogue_table.view and set(catalogue_table.key) == set(table.key)
    return has_key and table.key_columns[0].bounds is not None


def text_of_row(readable: ReadableTable, dialect: Dialect, salt: str) -> str:
    """Return the expression of a text that no row with another key or other values has."""
    expressions, columns = dialect.values.expressions, (*readable.table.key_columns, *readable.table.data)
    texts = zip(columns, (*readable.key_texts, *readable.expressions), strict=True)
    parts = (literal(salt), *(_part(dialect, column, value) for column, value in texts))
    return expressions.wrapped.format(parts=expressions.joined.join(parts))


def _part(dialect: Dialect, column: Column, value: str) -> str:
    """Return the text of one value; null makes the whole part null."""
    expressions = dialect.values.expressions
    escaped = value if expressions.of(column.type).plain else dialect.values.escaped.format(x=value)
    ended = expressions.joined.join((escaped, literal(END)))
    return f"coalesce({expressions.wrapped.format(parts=ended)}, {literal(NULL)})"


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of consecutive numbers."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        yield members[0], members[-1]
