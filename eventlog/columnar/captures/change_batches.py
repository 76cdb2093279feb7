"""Captures as batches of changes, in the order of the commits."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlog.columnar.captures.column_values import (
    Bytes,
    Flags,
    Ints,
    NotPlain,
    VariableCells,
    fixed_column,
    variable_column,
)
from eventlog.columnar.captures.record_scan import Scan, Spans, matrix, places_of, scan, spans, whole
from eventlog.columnar.change_batch import HEADS, ChangeBatch
from eventlog.core.change import Change, Facts, Op
from eventlog.core.errors import Refused
from eventlog.gbase.change_builder import NamedTable
from eventlog.gbase.changes import StreamReader
from eventlog.gbase.records import COMMON, COMMON_SIZE, ROW_SIZE, Number, moment
from eventlog.gbase.schema import Schema

MOST_WAITING: Final = 64 << 20  # bytes that wait for the end of a transaction, before it is read by record
LEAST_ROWS: Final = 128  # of whole transactions, from which columns are faster than records
_RUNS: Final = 8  # of changes of one table, by which so many rows may be divided
_AMBIGUOUS: Final = 1 << 24  # a size that may add up in both byte orders
_NO_ROW: Final = -1


Answer = ChangeBatch | Change | Refused


class BatchReader:
    """A reader of a capture that yields batches, and single changes where the capture is not plain.

    What it yields are the changes and refusals of the record-wise reader, in the same order.
    """

    def __init__(self, records: StreamReader, least_rows: int = LEAST_ROWS) -> None:
        self._records = records
        self._least_rows = least_rows
        self._pending = b""
        self._wanted = 0  # bytes from which another look at what is pending is worth its time

    def feed(self, data: bytes) -> Iterator[Answer]:
        """Yield what these bytes complete."""
        self._pending += data
        if len(self._pending) < self._wanted:
            return
        at, pending = 0, memoryview(self._pending)
        while at < len(pending) and (size := (yield from self._take(pending[at:]))):
            at += size
        self._pending = self._pending[at:]
        self._wanted = 2 * len(self._pending)

    def close(self) -> Iterator[Answer]:
        """Yield what the end of the input leaves."""
        self._wanted = 0
        yield from self.feed(b"")
        yield from self._records.feed(self._pending)
        self._pending = b""
        yield from self._records.close()

    def _take(self, data: memoryview) -> Generator[Answer, None, int]:
        """Yield the answers of the first bytes, and return how many these are; 0 if more are needed."""
        records = self._records
        if records.lost or not records.between:
            end = len(data) if records.lost else _end_of_transaction(data, records.max_record)
            yield from records.feed(data[:end])
            return end
        places = places_of(data, records.max_record)
        other = _first_other(data, places[-1], records.max_record)
        size, batches = 0, None
        if len(places) > self._least_rows or not other:
            size, batches = self._batches(data, places)
        if batches is not None:
            records.skip(size)
            yield from batches
            return size
        size = size or other
        yield from records.feed(data[:size])
        return size

    def _batches(self, data: memoryview, places: list[int]) -> tuple[int, list[ChangeBatch] | None]:
        """Return the bytes of whole plain transactions and their batches, else bytes to read by record.

        These are all that were looked at, so that no record is looked at many times.
        """
        found = scan(data, places)
        spanned, limit = spans(found)
        limit = min(limit, self._first_unknown(found, spanned))
        plain = whole(found, limit)
        if not plain:
            return places[-1] if limit < len(places) - 1 else 0, None
        if len(found.first(plain).rows()) < self._least_rows:
            return places[plain], None
        piece = _Piece(found.first(plain), self._records, self._least_rows)
        try:
            batches = piece.batches()
        except NotPlain:
            return places[plain], None
        return places[plain], batches

    def _first_unknown(self, found: Scan, spanned: Spans) -> int:
        """Return the first row that no schema explains as it is, or the first commit that is not new."""
        rows = found.rows()
        tables, flags = found.tables(rows)
        unsound = flags != 0
        for table in np.unique(tables).tolist():
            schema = self._records.schema_of(table)
            least = schema.header_size if schema is not None and schema.columns else MOST_WAITING
            unsound |= (tables == table) & (found.header[rows] < least)
        old = spanned.ends[found.sequence[spanned.ends] <= self._records.seen]
        return min(int(rows[unsound].min(initial=len(found))), int(old.min(initial=len(found))))


class _Piece:
    """A piece of a capture that has whole plain transactions."""

    def __init__(self, found: Scan, records: StreamReader, least_rows: int) -> None:
        self._found = found
        self._least_rows = least_rows
        self._records = records
        self._spans, _ = spans(found)
        self._rows = found.rows()
        self._tables, _ = found.tables(self._rows)

    def batches(self) -> list[ChangeBatch]:
        """Return the changes of the committed transactions; NotPlain if these need the other reader."""
        of, before, after = self._changes()
        tables = self._tables[np.maximum(before, after)]
        starts = np.flatnonzero(np.diff(tables, prepend=tables[:1] + 1)).tolist()
        if _RUNS * len(of) < self._least_rows * len(starts):
            raise NotPlain
        sides = {table: self._side(table) for table in np.unique(self._tables).tolist()}
        heads = self._heads(of, before, after) if starts else []
        batches = []
        for start, end in pairwise([*starts, len(of)]):
            table = int(tables[start])
            side = sides[table]
            rows = [column[start:end] for column in heads]
            rows += [side.taken(before[start:end]), side.taken(after[start:end])]
            batches.append(_batch(side.named, table, pa.RecordBatch.from_arrays(rows, _NAMES)))
        ended = self._spans.ends[self._committed]
        self._records.pass_over(
            self._found.transaction[self._spans.ends].tolist(),
            int(self._found.sequence[ended].max(initial=0)),
        )
        return batches

    @property
    def _committed(self) -> Flags:
        found: Flags = self._found.number[self._spans.ends] == Number.COMMTX
        return found

    def _changes(self) -> tuple[Ints, Ints, Ints]:
        """Return for each change its transaction and the numbers of its old and its new row."""
        span = self._spans.of[self._rows]
        order = np.lexsort((self._rows, self._spans.ends[span]))
        order = order[self._committed[span[order]]]
        number = self._found.number[self._rows[order]]
        first, second = number == Number.UPDBEF, number == Number.UPDAFT
        halves = order[first], order[second]
        if not np.array_equal(np.flatnonzero(first) + 1, np.flatnonzero(second)) or any(
            not np.array_equal(facts[halves[0]], facts[halves[1]])
            for facts in (span, self._tables, self._found.sequence[self._rows])
        ):
            raise NotPlain
        before, after = np.full(len(order), _NO_ROW), np.full(len(order), _NO_ROW)
        deleted, new = number == Number.DELETE, (number == Number.INSERT) | second
        before[deleted], after[new] = order[deleted], order[new]
        before[second] = halves[0]
        return span[order][~first], before[~first], after[~first]

    def _heads(self, of: Ints, before: Ints, after: Ints) -> list[pa.Array]:
        """Return the columns that do not depend on the table."""
        found, spanned = self._found, self._spans
        last = self._rows[np.where(after == _NO_ROW, before, after)]
        op = np.where(before == _NO_ROW, 0, np.where(after == _NO_ROW, 2, 1))
        commits = np.where(self._committed, spanned.ends, spanned.ends[self._committed][:1])
        begun, ended = (
            [moment(time) for time in found.field(number, "time", at).tolist()]
            for number, at in ((Number.BEGINTX, spanned.begins), (Number.COMMTX, commits))
        )
        users = found.field(Number.BEGINTX, "user", spanned.begins).tolist()
        ids = found.transaction[spanned.begins].tolist(), found.sequence[spanned.begins].tolist()
        names = [f"{number}@{sequence}" for number, sequence in zip(*ids, strict=True)]
        return [
            _coded(op, [Op.INSERT.value, Op.UPDATE.value, Op.DELETE.value]),
            pa.array(found.sequence[last]).cast(pa.string()),
            _coded(of, names),
            _coded(of, ended),
            _coded(of, list(map(str, users))),
            _coded(of, begun),
            pa.array(found.sequence[spanned.ends[of]]),
        ]

    def _side(self, table: int) -> _Side:
        """Return the rows of a table, each as a struct."""
        schema = self._records.schema_of(table)
        assert schema is not None
        at = np.flatnonzero(self._tables == table)
        places = np.empty(len(self._rows), np.int64)
        places[at] = np.arange(len(at))
        struct = pa.StructArray.from_arrays(_columns(schema, self._found, self._rows[at]), schema.names)
        return _Side(self._records.named(table, schema), struct, places)


class _Side(NamedTuple):
    """The rows of a table, and their numbers among all rows of a piece."""

    named: NamedTable
    struct: pa.StructArray
    places: Ints

    def taken(self, rows: Ints) -> pa.Array:
        """Return the rows of these numbers, null where there is none."""
        none = rows == _NO_ROW
        if none.all():
            return pa.nulls(len(rows), self.struct.type)
        places = np.where(none, 0, self.places[rows])
        if not none.any() and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
            return self.struct.slice(int(places[0]), len(places))
        return self.struct.take(pa.array(places, mask=none))


_NAMES: Final = [*HEADS, "begin", "commit", "before", "after"]


def _coded(of: Ints, texts: list[Any]) -> pa.Array:
    """Return the text of each number."""
    return pa.DictionaryArray.from_arrays(of.astype(np.int32), pa.array(texts, pa.string()))


def _batch(named: NamedTable, table: int, rows: pa.RecordBatch) -> ChangeBatch:
    key = tuple(name for name, _ in named.key)
    described = "" if named.schema is None else named.schema.text
    facts: Facts = (("number", table), ("columns", described))
    return ChangeBatch(named.owner, named.name, key, facts, rows)


def _columns(schema: Schema, found: Scan, rows: Ints) -> list[pa.Array]:
    """Return the columns of rows of one table."""
    fixed_bytes, fixed, variable = schema.shape
    starts = found.places[rows] + found.header[rows]
    room = found.places[rows + 1] - starts - fixed_bytes
    sizes = _sizes(found.buffer, found.places[rows] + ROW_SIZE, variable, room)
    kinds = [column.type for column in schema.columns]
    image = matrix(found.buffer, starts, fixed_bytes) if fixed else np.empty((len(rows), 0), np.uint8)
    at, columns = 0, []
    for kind in kinds[:fixed]:
        width = kind.size or 0
        columns.append(fixed_column(kind, image[:, at : at + width]))
        at += width
    ends = np.cumsum(sizes, axis=1) + (starts + fixed_bytes)[:, None]
    for number, kind in enumerate(kinds[fixed:]):
        own = np.ascontiguousarray(sizes[:, number])
        columns.append(variable_column(kind, VariableCells(found.buffer, ends[:, number] - own, own)))
    return columns


def _sizes(buffer: Bytes, places: Ints, variable: int, room: Ints) -> npt.NDArray[np.int64]:
    """Return the sizes of the variable columns of each row; NotPlain if they do not add up."""
    if not variable:
        if room.any():
            raise NotPlain
        return np.empty((len(places), 0), np.int64)
    array = np.ascontiguousarray(matrix(buffer, places, 4 * variable))
    big, little = (array.view(f"{order}u4").astype(np.int64) for order in "><")
    added = big.sum(1) == room
    sizes = np.where(added[:, None], big, little)
    if (sizes.sum(1) != room).any() or (room >= _AMBIGUOUS).any():
        raise NotPlain
    return sizes


# --- what is left to the other reader


def _first_other(data: memoryview, end: int, most: int) -> int:
    """Return the end of the record here, which is not plain; 0 if more bytes are needed to see it."""
    size = _size(data, end, most)
    if size is None:  # it is cut, and may be plain
        return end if len(data) >= MOST_WAITING else 0
    return end + size


def _end_of_transaction(data: memoryview, most: int) -> int:
    """Return the end of the first record that ends a transaction, or else of the last whole record."""
    at = 0
    while (size := _size(data, at, most)) is not None:
        ends = len(data) - at >= COMMON_SIZE and COMMON.unpack_from(data, at)[3] in _ENDS
        at += size
        if ends or at >= len(data):
            break
    return at


def _size(data: memoryview, at: int, most: int) -> int | None:
    """Return the bytes of the record here, all bytes where it is unsound; None if it is cut."""
    if len(data) - at < COMMON_SIZE:
        return None
    header, payload, _, _ = COMMON.unpack_from(data, at)
    if header < COMMON_SIZE or payload < 0 or header + payload > most:
        return len(data) - at
    return header + payload if at + header + payload <= len(data) else None


_ENDS: Final = frozenset((int(Number.COMMTX), int(Number.RBTX)))
