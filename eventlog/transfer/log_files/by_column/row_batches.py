"""The rows of files by column; rows that are not regular come one by one.

Arrow reads pieces of a CSV file, if it reads them exactly as our own reader does. It is lenient about
quotes, takes a lone CR for the end of a line, and rejects a piece for one bad record. So a piece is checked
first. Records that are not regular go to our own reader, which reports what is wrong.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import IO, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pv

from eventlog.core.errors import Refused
from eventlog.core.formats import Row
from eventlog.files import csv, jsonlines, parquet
from eventlog.files.limits import Limits
from eventlog.transfer.log_files.by_column.csv_records import (
    COMMA,
    CR,
    LF,
    QUOTE,
    CsvRecords,
    records_of,
)

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_END = 2  # bytes of the end of a line


class PieceRecords(NamedTuple):
    """The records of a piece: on which line each begins, and its bytes."""

    lines: Ints
    begins: Ints
    ends: Ints


class PieceCells(NamedTuple):
    """The cells of a piece's records by column, and the records as they came."""

    columns: dict[str, pa.Array]
    records: PieceRecords


def complete_size(data: bytes) -> int:
    """Return how many bytes are whole records, if the quotes are regular; 0 if none are."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets == LF)
    outside = ends[np.searchsorted(np.flatnonzero(octets == QUOTE), ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def read_piece(data: bytes, names: Sequence[str], line: int, longest: int) -> PieceCells | None:
    """Return the records of a piece, whose first record is on this line.

    Return None if the piece is not regular, or if a record is nearly as long as the limit.
    """
    octets = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(octets == QUOTE).astype(np.int64)
    if len(quotes) % 2 or not _sound_quotes(octets, quotes) or not _sound_returns(octets, quotes):
        return None
    records, longest_record = _records(octets, quotes, line)
    if longest_record + _END >= longest:
        return None
    columns = _cells(data, names, len(records.lines), has_quotes=len(quotes) > 0)
    return None if columns is None else PieceCells(columns, records)


def _cells(data: bytes, names: Sequence[str], count: int, *, has_quotes: bool) -> dict[str, pa.Array] | None:
    """Return the cells of so many records; None if Arrow reads other ones."""
    try:
        table = pv.read_csv(
            pa.BufferReader(data if data.endswith(b"\n") else data + b"\n"),  # else a last null may be ""
            pv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(names)),
            pv.ParseOptions(newlines_in_values=has_quotes),
            pv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
    except pa.ArrowInvalid:
        return None
    return {name: _combined(table.column(name)) for name in names} if table.num_rows == count else None


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _sound_quotes(data: Bytes, quotes: Ints) -> bool:
    """Return whether every quote opens or closes a field, or is doubled."""
    if not len(quotes):
        return True
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, data[opening - 1], LF)
    after = data[np.minimum(closing + 1, len(data) - 1)]
    after = np.where(closing + 1 < len(data), after, LF)
    doubled = np.zeros(len(opening), np.bool_)
    doubled[1:] = opening[1:] == closing[:-1] + 1
    opens = (before == COMMA) | (before == LF) | doubled
    closes = (after == COMMA) | (after == LF) | (after == CR) | np.append(doubled[1:], False)
    return bool(opens.all() and closes.all())


def _sound_returns(data: Bytes, quotes: Ints) -> bool:
    """Return whether every CR outside of quotes is followed by a LF."""
    returns = np.flatnonzero(data == CR)
    if not len(returns):
        return True
    outside = returns[np.searchsorted(quotes, returns) % 2 == 0]
    return bool((outside + 1 < len(data)).all() and (data[outside + 1] == LF).all())


def _records(data: Bytes, quotes: Ints, line: int) -> tuple[PieceRecords, int]:
    """Return the records, and the bytes of the longest; empty lines are none."""
    ends = np.flatnonzero(data == LF)
    closing = np.searchsorted(quotes, ends) % 2 == 0
    numbers = np.arange(len(ends)) + line
    last = ends[closing]
    begins = np.concatenate([[0], last[:-1] + 1]) if len(last) else np.empty(0, np.int64)
    first = np.concatenate([[line], numbers[closing][:-1] + 1]) if len(last) else np.empty(0, np.int64)
    if not len(last) or last[-1] + 1 < len(data):  # the last record has no end of line
        begins = np.append(begins, last[-1] + 1 if len(last) else 0)
        first = np.append(first, numbers[closing][-1] + 1 if len(last) else line)
        last = np.append(last, len(data))
    sizes = last - begins
    empty = (sizes == 0) | ((sizes == 1) & (data[np.minimum(begins, len(data) - 1)] == CR))
    records = (each[~empty].astype(np.int64) for each in (first, begins, last + 1))
    return PieceRecords(*records), int(sizes.max())


_PIECE = 4 << 20  # bytes
_ROWS = 8192  # of a slab that is read row by row


class RowBatch(NamedTuple):
    """A batch of rows by column, with their positions."""

    columns: dict[str, pa.Array]
    where: Ints
    rows: Callable[[], Iterable[Row]]  # these rows, one by one
    records: Callable[[], pa.Array] | None = None  # these rows as they came, where they are lines


class MixedRows(NamedTuple):
    """The rows of a piece by column, and between them what the plain reader makes of irregular records."""

    columns: dict[str, pa.Array]
    where: Ints
    records: Sequence[bytes]  # the rows by column as they came
    irregular: Sequence[Row | Refused]
    places: Sequence[int]  # of the irregular ones: how many rows by column are before each

    def one_by_one(self) -> Iterator[Row | Refused]:
        """Yield all rows, and what was refused, in their order."""
        cells = zip(*(column.to_pylist() for column in self.columns.values()), strict=True)
        rows = map(Row, self.where.tolist(), cells, self.records)
        done = 0
        for place, record in zip(self.places, self.irregular, strict=True):
            yield from islice(rows, place - done)
            yield record
            done = place
        yield from rows


Slab = RowBatch | list[Row] | Refused
Slabs = Iterator[Slab]


class ByteSource(Protocol):
    """A source of bytes and lines."""

    def read(self, size: int, /) -> bytes: ...

    def readline(self, limit: int, /) -> bytes: ...


def read(
    file: IO[bytes],
    name: str,
    container: str,
    limits: Limits,
    groups: Container[int] | None = None,
) -> tuple[tuple[str, ...], Slabs]:
    """Return the column names, and the rows: by column where they are regular, else as they are.

    `groups` are the row groups of Parquet that are read; None reads all.
    """
    if container == "csv" and limits.csv_layout(name) is not None:
        columns, rows = csv.read(file, name, limits)
        return columns, batched(rows)
    if container == "csv":
        lines = csv.Lines(file, limits.max_record)
        columns = csv.header(lines, name)
        if lines.reads_again:  # its header has a quote that is never closed
            return columns, batched(csv.rows(lines, name, len(columns)))
        return columns, read_csv(file, lines.number, name, columns, limits.max_record)
    if container == "jsonl":
        columns, rows = jsonlines.read_rows(file, name, limits)
        return columns, batched(rows)
    names, batches = parquet.read_batches(file, name, groups)
    return names, _parquet(batches, names)


def _parquet(batches: Iterable[parquet.PlacedBatch | Refused], names: Sequence[str]) -> Slabs:
    for batch in batches:
        if isinstance(batch, Refused):
            yield batch
            continue
        columns = [parquet.decoded(column) for column in batch.columns.columns]
        if any(column is None for column in columns):
            yield list(parquet.rows_of(batch))
        else:
            where = np.arange(batch.first + 1, batch.first + 1 + batch.columns.num_rows)
            yield RowBatch(dict(zip(names, columns, strict=True)), where, partial(parquet.rows_of, batch))


def read_csv(file: ByteSource, line: int, name: str, columns: Sequence[str], longest: int) -> Slabs:
    """Yield the rows of a CSV file after its header, which has so many lines."""
    for rows in read_pieces(file, line, name, columns, longest):
        if isinstance(rows, RowBatch):
            yield rows
        else:
            yield from batched(rows.one_by_one() if isinstance(rows, MixedRows) else rows)


def read_pieces(
    file: ByteSource, line: int, name: str, columns: Sequence[str], longest: int
) -> Iterator[RowBatch | MixedRows | Iterator[Row | Refused]]:
    """Yield the rows of a CSV file in their order.

    Records over more bytes than a piece must be taken one by one.
    """
    data, is_last = b"", False
    read_rows = partial(_rows_of_piece, name=name, width=len(columns), longest=longest)
    while not is_last:
        octets = file.read(_PIECE)
        data, is_last = data + octets, not octets
        end = len(data) if is_last else complete_size(data)
        regular = data[:end]
        piece = read_piece(regular, columns, line + 1, longest) if end else None
        if piece is not None:
            yield _batch(piece, regular, partial(read_rows, regular, line))
            line, data = line + data.count(b"\n", 0, end), data[end:]
            continue
        records = records_of(data, len(columns), longest, is_last=is_last)
        if records.size:
            yield _mixed(data, records, line, name, columns, longest)
            line, data = line + records.line_count, data[records.size :]
        elif data:
            started = StartedFile(data, file)
            lines = csv.Lines(started, longest, line)
            yield _until_past_start(csv.rows(lines, name, len(columns)), started, lines)
            line, data = lines.number, b""


def _mixed(
    data: bytes, records: CsvRecords, line: int, name: str, columns: Sequence[str], longest: int
) -> MixedRows:
    """Return the rows of a piece some of whose records are not regular."""
    regular, begins = records.regular, records.begins.tolist()
    taken = [data[begins[at] : records.ends[at]] for at in np.flatnonzero(regular).tolist()]
    joined = b"".join(taken)
    cells = _cells(joined, columns, len(taken), has_quotes=b'"' in joined) if taken else None
    if cells is None:
        regular, taken = np.zeros(len(regular), np.bool_), []
        cells = {column: pa.array([], pa.string()) for column in columns}
    irregular, places = list[Row | Refused](), list[int]()
    rows_before = np.cumsum(regular)
    for at in np.flatnonzero(~regular).tolist():
        record = io.BytesIO(data[begins[at] : records.completed[at]])
        lines = csv.Lines(record, longest, line + int(records.lines[at]))
        irregular += islice(csv.rows(lines, name, len(columns)), 1)
        places += [int(rows_before[at])] * (len(irregular) - len(places))
    return MixedRows(cells, line + 1 + records.lines[regular], taken, irregular, places)


def _batch(piece: PieceCells, data: bytes, rows: Callable[[], Iterable[Row]]) -> RowBatch:
    """Return the rows of a piece of a file."""
    return RowBatch(piece.columns, piece.records.lines, rows, partial(_cut, data, piece.records))


def _cut(data: bytes, records: PieceRecords) -> pa.Array:
    """Return the bytes of each record; those of records that follow each other are not copied."""
    begins, ends = records.begins, np.minimum(records.ends, len(data))
    if (begins[1:] != ends[:-1]).any():
        pairs = zip(begins.tolist(), ends.tolist(), strict=True)
        return pa.array([data[begin:end] for begin, end in pairs], pa.binary())
    edges = np.append(begins, ends[-1:]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(begins), [None, pa.py_buffer(edges), pa.py_buffer(data)])


def _rows_of_piece(data: bytes, line: int, name: str, width: int, longest: int) -> Iterator[Row]:
    for row in csv.rows(csv.Lines(io.BytesIO(data), longest, line), name, width):
        assert not isinstance(row, Refused)
        yield row


class StartedFile:
    """A file whose first bytes were read already."""

    def __init__(self, data: bytes, file: ByteSource, at: int = 0) -> None:
        self._data = data
        self.at = at
        self._file = file
        self.lines = 0  # that were returned

    @property
    def is_past_start(self) -> bool:
        """Return whether everything that was read before was returned."""
        return self.at >= len(self._data)

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, up to so many bytes."""
        line = self._readline(limit)
        self.lines += line.endswith(b"\n")
        return line

    def _readline(self, limit: int) -> bytes:
        if self.is_past_start:
            return self._file.readline(limit)
        end = self._data.find(b"\n", self.at, self.at + limit) + 1 or min(self.at + limit, len(self._data))
        line = self._data[self.at : end]
        self.at = end
        if not line.endswith(b"\n") and len(line) < limit:
            line += self._file.readline(limit - len(line))
        return line


def _until_past_start(
    rows: Iterator[Row | Refused], started: StartedFile, lines: csv.Lines
) -> Iterator[Row | Refused]:
    """Yield the rows until the first bytes are used up, and no line is to be read again."""
    for row in rows:
        yield row
        if started.is_past_start and not lines.reads_again:
            return


def batch_of(columns: Sequence[str], cells: pa.RecordBatch) -> RowBatch:
    """Return the rows of a batch without places."""
    rows = partial(parquet.rows_of, parquet.PlacedBatch(-1, cells))
    return RowBatch(dict(zip(columns, cells.columns, strict=True)), np.arange(cells.num_rows), rows)


def by_column(columns: Sequence[str], rows: Sequence[Row]) -> RowBatch | None:
    """Return rows by column; None if a column has cells of several types, or half of a character."""
    try:
        cells = [pa.array(column) for column in zip(*(row.cells for row in rows), strict=True)]
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return None
    where = np.array([row.where for row in rows], np.int64)
    return RowBatch(dict(zip(columns, cells, strict=True)), where, lambda: rows)


def one_by_one(rows: RowBatch | Sequence[Row]) -> Iterable[Row]:
    """Return the rows of a slab one by one."""
    return rows.rows() if isinstance(rows, RowBatch) else rows


def batched(rows: Iterable[Row | Refused]) -> Slabs:
    """Yield rows in lists, and what was refused in its place."""
    batch: list[Row] = []
    for row in rows:
        if isinstance(row, Refused):
            yield row
            continue
        batch.append(row)
        if len(batch) >= _ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
