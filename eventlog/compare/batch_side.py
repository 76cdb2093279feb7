"""A table that gives its rows in batches, compared by sums of SHA-256: decision 109 has the reasons.

The pass that makes the sums also counts all rows and makes their digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.compare import rows
from eventlog.compare.files import places_of, texts_of
from eventlog.compare.lines import differences
from eventlog.compare.segments import (
    DIGEST,
    END,
    ESCAPED,
    NULL,
    Segments,
    SegmentSelection,
    SegmentSum,
    TableSide,
    differing_rows,
)
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Kind, Precision

_SHOWN = 5  # keys of rows that differ
Batches = Iterator[pa.RecordBatch]


class Differences(NamedTuple):
    """The rows of a table that gives them in batches, and how many differ from another table."""

    rows: int
    digest: str  # the sum of the digests of the rows, in any order
    differing: int
    keys: tuple[str, ...]  # the first of those that differ


def compare(side: TableSide | BatchSide, batched: BatchSide) -> Differences:
    """Compare two sides of a table."""
    table, count, keys = side.table, 0, list[str]()
    side_rows, batched_rows = differing_rows(side, batched)
    for lines in differences(Tables([table]), table, _trimmed(table, side_rows), batched_rows):
        count += len(lines.keys)
        keys = sorted([*keys, *lines.keys.slice(0, _SHOWN).to_pylist()])[:_SHOWN]
    return Differences(batched.all_rows.count, batched.all_rows.digest, count, tuple(keys))


def _trimmed(table: Table, batches: Batches) -> Batches:
    """Yield rows with trimmed texts."""
    for batch in batches:
        texts = [_trim(column, of) for column, of in zip(table.data, batch.columns[2:], strict=True)]
        yield pa.record_batch([*batch.columns[:2], *texts], schema=batch.schema)


def _trim(column: Column, texts: pa.Array) -> pa.Array:
    """Return texts of times and floats without noughts at the end, which databases write or not."""
    if column.kind in (Kind.TIME, Kind.TIMESTAMP):
        return pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+\z|\.0+\z", r"\1")
    if column.number is not None and column.number is not Precision.EXACT:
        return pc.replace_substring_regex(texts, r"\.0\z", "")
    return texts


class RowSum:
    """The number of rows, and the sum of their digests."""

    def __init__(self) -> None:
        self.count = self._total = 0

    @property
    def digest(self) -> str:
        """The sum, in hexadecimal digits."""
        return f"{self._total % (1 << 128):032x}"

    def add(self, row_texts: Sequence[str]) -> None:
        """Add rows."""
        self.count += len(row_texts)
        quarters = _digests(row_texts, ">u4")[:, :4].astype(np.uint64).sum(axis=0).tolist()
        self._total += sum(quarter << 32 * at for at, quarter in enumerate(reversed(quarters)))


def _digests(texts: Iterable[str], form: str) -> Any:
    """Return SHA-256 of each text as a row of numbers."""
    size = hashlib.sha256().digest_size
    digests = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
    return np.frombuffer(digests, form).reshape(-1, size // np.dtype(form).itemsize)


class BatchedTable(Protocol):
    """A table that gives its rows in batches."""

    name: str

    def batches(self, columns: Sequence[str], /) -> Batches:
        """Yield some columns of all rows, batch by batch."""


class BatchSide:
    """A table that gives its rows in batches, compared as the rows of another table."""

    levels = 0  # each level would read the files once more

    def __init__(self, batched: BatchedTable, types: Mapping[str, pa.DataType], table: Table) -> None:
        self.table = table
        self.all_rows = RowSum()  # as they were read last
        self._batched = batched
        names = tuple(types)
        keys, data = places_of(table, names, batched.name)
        self._names = [names[at] for at in (*keys, *data)]
        is_integer = pa.types.is_integer(types[self._names[0]])
        self._by_number = is_integer and table.key_columns[0].bounds is not None

    @property
    def summing(self) -> object:
        """Return what makes the sums; None if the key does not begin with an integer."""
        return DIGEST if self._by_number else None

    def bounds(self) -> tuple[int, int] | None:
        """Return the lowest and the highest number that a key begins with, None if there is no row."""
        ends = [pc.min_max(batch.column(0)).as_py() for batch in self._batched.batches(self._names[:1])]
        numbers = [number for end in ends for number in end.values() if number is not None]
        return (min(numbers), max(numbers)) if numbers else None

    def sums(self, segments: Segments, part: SegmentSelection | None = None) -> set[SegmentSum]:
        """Return the sums of each segment that has rows, of all or of those in a part of the table."""
        by_segment: dict[int, SegmentSum] = {}
        for firsts, texts in self._texts(part):
            row_texts = _row_texts(texts)
            if part is None:
                self.all_rows.add(row_texts)
            halves = _digests((segments.salt + row_text for row_text in row_texts), ">u8")[:, :2]
            for each in _sums(_segments_of(firsts, segments), halves.astype(np.uint64)):
                before = by_segment.get(each.segment)
                by_segment[each.segment] = each if before is None else before.plus(each)
        return set(by_segment.values())

    def rows(self, part: SegmentSelection | None = None) -> Batches:
        """Yield all rows, or those in a part of the table."""
        width = len(self.table.key)
        for _, texts in self._texts(part):
            if part is None:
                self.all_rows.add(_row_texts(texts))
            places = pa.array([self._batched.name] * len(texts[0]), pa.string())
            yield rows.batch(self.table, places, texts[:width], texts[width:])

    def _texts(self, part: SegmentSelection | None) -> Iterator[tuple[pa.Array, list[pa.Array]]]:
        """Yield the first column of rows, and the texts of all columns; those of the key come first."""
        if part is None:
            self.all_rows = RowSum()
        columns = [None] * len(self.table.key) + list(self.table.data)
        for batch in self._batched.batches(self._names):
            for name, values in zip(self.table.key, batch.columns, strict=False):
                if values.null_count:
                    raise rows.NullKey(self._batched.name, name, self.table)
            if part is not None:
                numbers = _segments_of(batch.column(0), part.segments)
                batch = batch.filter(pa.array(np.isin(numbers, list(part.numbers))))
            texts = [texts_of(values) for values in batch.columns]
            pairs = zip(columns, texts, strict=True)
            yield batch.column(0), [of if column is None else _trim(column, of) for column, of in pairs]


def _row_texts(texts: Sequence[pa.Array]) -> list[str]:
    """Return one text for each row, as a database makes it."""
    escaped = (pc.replace_substring(of, ",", ESCAPED) for of in texts)
    parts = [pc.fill_null(pc.binary_join_element_wise(of, END, ""), NULL) for of in escaped]
    row_texts: list[str] = pc.binary_join_element_wise(*parts, "").to_pylist()
    return row_texts


def _segments_of(firsts: pa.Array, segments: Segments) -> Any:
    """Return the segments of rows with these numbers at the beginning of their keys."""
    return (firsts.cast(pa.int64()).to_numpy() - segments.start) // segments.width


def _sums(segments: Any, halves: Any) -> Iterator[SegmentSum]:
    """Yield the sums of rows in these segments, from the halves of their hashes."""
    numbers, places, counts = np.unique(segments, return_inverse=True, return_counts=True)
    totals = np.zeros((len(numbers), 2), np.uint64)  # which are modulo 2^64
    np.add.at(totals, places, halves)
    for number, count, (first, second) in zip(
        numbers.tolist(), counts.tolist(), totals.tolist(), strict=True
    ):
        yield SegmentSum(number, count, first, second)
