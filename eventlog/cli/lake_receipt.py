"""The receipt of a lake's tables: their rows at a round that is done, and what differs from their source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

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
from eventlog.compare.table_snapshot import TableSnapshot, at_hand, snapshot
from eventlog.core.errors import Misuse
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Kind, Precision
from eventlog.sql.connect import connect
from eventlog.transfer.targets.lake.lake_place import LakePlace, LakeSnapshot
from eventlog.transfer.targets.lake.lake_settings import DELETED, is_lake
from eventlog.transfer.targets.lake.lake_tables import KEY, SOURCE
from eventlog.transfer.targets.lake.lake_types import column_of
from eventlog.transfer.targets.lake.lakes import lake_at
from eventlog.transfer.targets.lake.rounds import Round

_SHOWN = 5  # keys of rows that differ
Batches = Iterator[pa.RecordBatch]
SourceOf = Callable[[LakeSnapshot], "TableSide | LakeSide"]


class TableReceipt(NamedTuple):
    """The rows of a table in one version, and how many differ from the source."""

    name: str
    version: int
    rows: int
    digest: str  # the sum of the digests of the rows, in any order
    differing: int
    keys: tuple[str, ...]  # the first of those that differ

    def __str__(self) -> str:
        differing = f"{self.differing} differ: {', '.join(self.keys)}" if self.differing else "equal"
        return f"{self.name}  version {self.version}  {self.rows} rows  digest {self.digest}  {differing}"


def receipts(place: LakePlace, this: Round, against: str) -> Iterator[TableReceipt]:
    """Yield the receipt of each table of a round, compared with a database or another lake."""
    with _source_at(against, place) as source_of:
        for name, version in sorted(this.versions.items()):
            table_snapshot = place.open(name, version)
            if table_snapshot is None:
                raise Misuse(f"the lake has no table {name}")
            if not table_snapshot.is_history:  # which no source has
                yield _receipt(table_snapshot, source_of(table_snapshot))


def _receipt(table_snapshot: LakeSnapshot, source: TableSide | LakeSide) -> TableReceipt:
    table, lake = source.table, LakeSide(table_snapshot, source.table)
    count, keys = 0, list[str]()
    source_rows, lake_rows = differing_rows(source, lake)
    for lines in differences(Tables([table]), table, _trimmed(table, source_rows), lake_rows):
        count += len(lines.keys)
        keys = sorted([*keys, *lines.keys.slice(0, _SHOWN).to_pylist()])[:_SHOWN]
    name, version = table_snapshot.name, table_snapshot.version
    return TableReceipt(name, version, lake.all_rows.count, lake.all_rows.digest, count, tuple(keys))


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


class LakeSide:
    """A lake's table in one version, compared as the rows of a table of its source."""

    levels = 0  # each level would read the files once more

    def __init__(self, table_snapshot: LakeSnapshot, table: Table) -> None:
        self.table = table
        self.all_rows = RowSum()  # as they were read last
        self._snapshot = table_snapshot
        fields = table_snapshot.fields
        names = tuple(field.name for field in fields)
        keys, data = places_of(table, names, table_snapshot.name)
        self._names = [names[at] for at in (*keys, *data)]
        self._by_number = table.key_columns[0].bounds is not None and pa.types.is_integer(
            fields[keys[0]].type.arrow
        )

    @property
    def summing(self) -> object:
        """Return what makes the sums; None if the key does not begin with an integer."""
        return DIGEST if self._by_number else None

    def bounds(self) -> tuple[int, int] | None:
        """Return the lowest and the highest number that a key begins with, None if there is no row."""
        ends = [pc.min_max(batch.column(0)).as_py() for batch in self._snapshot.batches(self._names[:1])]
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
            places = pa.array([self._snapshot.name] * len(texts[0]), pa.string())
            yield rows.batch(self.table, places, texts[:width], texts[width:])

    def _texts(self, part: SegmentSelection | None) -> Iterator[tuple[pa.Array, list[pa.Array]]]:
        """Yield the first column of rows, and the texts of all columns; those of the key come first."""
        if part is None:
            self.all_rows = RowSum()
        columns = [None] * len(self.table.key) + list(self.table.data)
        for batch in self._snapshot.batches(self._names):
            for name, values in zip(self.table.key, batch.columns, strict=False):
                if values.null_count:
                    raise rows.NullKey(self._snapshot.name, name, self.table)
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


@contextmanager
def _source_at(against: str, place: LakePlace) -> Iterator[SourceOf]:
    """Return what finds the table of a source, in another lake or in one moment of a database."""
    if is_lake(against):
        other_place = lake_at(against, place.options, "--against")
        yield lambda table_snapshot: _in_lake(other_place, table_snapshot)
        return
    with snapshot(connect(against)) as moment:
        yield lambda table_snapshot: _in_database(moment, table_snapshot)


def _in_database(moment: TableSnapshot, table_snapshot: LakeSnapshot) -> TableSide:
    readable = at_hand(moment.connection, table_snapshot.facts.get(SOURCE, table_snapshot.name))
    moment.add(readable)
    return TableSide(moment.connection, readable.table, readable, readable.table, is_digested=True)


def _in_lake(place: LakePlace, table_snapshot: LakeSnapshot) -> LakeSide:
    other_snapshot = place.open(table_snapshot.name)
    if other_snapshot is None:
        raise Misuse(f"{place.address} has no table {table_snapshot.name}")
    fields = [each for each in table_snapshot.fields if each.name != DELETED]
    columns = {each.name: column_of(each.name, each.type) for each in fields}
    key = tuple(json.loads(table_snapshot.facts.get(KEY, "[]")))
    if not key:
        raise Misuse(f"the key of {table_snapshot.name} is not known, because others made the table")
    return LakeSide(other_snapshot, Table(None, table_snapshot.name, columns, key))
