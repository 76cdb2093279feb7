"""The rows of one file of a change table, by column in its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.core.errors import Refused
from eventlog.core.formats import Row
from eventlog.core.portions import portions
from eventlog.files import csv, parquet
from eventlog.files.inputs import Advance, Input, open_input
from eventlog.files.limits import Limits
from eventlog.fold.by_column.vectors import Ints
from eventlog.transfer.log_files.by_column.row_batches import MixedRows, RowBatch, read_pieces

_LINES: Final = 32 << 20  # bytes of what lines have besides values
_MARKUP: Final = 100  # bytes around a value
_ONE_BY_ONE: Final = 5_000  # records that are read so and become a chunk


class FileRows(NamedTuple):
    """The rows of a part of one file."""

    columns: Sequence[pa.Array]
    where: Ints
    records: pa.Array  # the rows as they came; null in a container without lines

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """Return the types of the columns."""
        return tuple(column.type for column in self.columns)

    def one_by_one(self, places: Ints) -> Iterator[Row]:
        """Yield the rows at these places."""
        at = pa.array(places)
        lists = [parquet.cells(column.take(at)) for column in self.columns]
        records = self.records.take(at).to_pylist()
        for where, record, *row in zip(self.where[places].tolist(), records, *lists, strict=True):
            yield Row(where, tuple(row), record)

    def slice(self, begin: int, end: int) -> FileRows:
        """Return a range of the rows."""
        columns = [column[begin:end] for column in self.columns]
        return FileRows(columns, self.where[begin:end], self.records[begin:end])

    def take(self, places: Ints) -> FileRows:
        """Return the rows at these places."""
        at = pa.array(places)
        columns = [column.take(at) for column in self.columns]
        return FileRows(columns, self.where[places], self.records.take(at))


def joined(parts: Sequence[FileRows]) -> FileRows:
    """Return consecutive rows of one file together."""
    if len(parts) == 1:
        return parts[0]
    columns = [pa.concat_arrays(column) for column in zip(*(part.columns for part in parts), strict=True)]
    records = pa.concat_arrays([part.records for part in parts])
    return FileRows(columns, np.concatenate([part.where for part in parts]), records)


class RowChunk(NamedTuple):
    """The next records of a file: rows by column, with one of nulls in place of each that is refused."""

    rows: FileRows
    refused: Mapping[int, Refused]  # by their places

    def __len__(self) -> int:
        return len(self.rows.where)

    @property
    def size(self) -> int:
        """Return the bytes of their cells."""
        return sum(column.nbytes for column in self.rows.columns)

    def records(self, places: Ints) -> Iterator[Row | Refused]:
        """Yield the records at these places."""
        are_rows = [place not in self.refused for place in places.tolist()]
        rows = self.rows.one_by_one(places[are_rows]) if any(are_rows) else iter(())
        for place, is_row in zip(places.tolist(), are_rows, strict=True):
            yield next(rows) if is_row else self.refused[place]

    def slice(self, begin: int, end: int) -> RowChunk:
        """Return a range of the records."""
        refused = {place - begin: fault for place, fault in self.refused.items() if begin <= place < end}
        return RowChunk(self.rows.slice(begin, end), refused)

    def followed_by(self, chunk: RowChunk) -> RowChunk:
        """Return these records and those of a chunk after them."""
        following = {place + len(self): fault for place, fault in chunk.refused.items()}
        return RowChunk(joined([self.rows, chunk.rows]), {**self.refused, **following})


class OpenedRows(NamedTuple):
    """The rows of an open file."""

    columns: tuple[str, ...]
    chunks: Iterator[RowChunk]


@contextmanager
def open_rows(file: Input, limits: Limits, advance: Advance) -> Iterator[OpenedRows]:
    """The rows of a file."""
    with open_input(file.name, advance) as opened:
        if file.container == "parquet":
            types = [t.value_type if pa.types.is_dictionary(t) else t for t in pq.read_schema(opened).types]
            names, batches = parquet.read_batches(opened, file.name)
            yield OpenedRows(names, (_chunk_of_batch(batch, types) for batch in batches))
            return
        lines = csv.Lines(opened, limits.max_record)
        columns = csv.header(lines, file.name)
        pieces = read_pieces(opened, lines.number, file.name, columns, limits.max_record)
        types = [pa.string()] * len(columns)
        yield OpenedRows(columns, chain.from_iterable(_chunks_of_piece(piece, types) for piece in pieces))


def _chunks_of_piece(
    piece: RowBatch | MixedRows | Iterator[Row | Refused], types: Sequence[pa.DataType]
) -> Iterator[RowChunk]:
    if isinstance(piece, RowBatch):
        assert piece.records is not None
        yield RowChunk(FileRows(list(piece.columns.values()), piece.where, piece.records()), {})
    elif isinstance(piece, MixedRows):
        as_they_came = pa.array(piece.records, pa.binary())
        rows = FileRows(list(piece.columns.values()), piece.where, as_they_came)
        yield _with_irregular(rows, piece.irregular, piece.places)
    else:
        for records in portions(piece, _ONE_BY_ONE):
            yield _with_irregular(by_column([], types), records, [0] * len(records))


def _chunk_of_batch(batch: parquet.PlacedBatch | Refused, types: Sequence[pa.DataType]) -> RowChunk:
    if isinstance(batch, Refused):
        return _with_irregular(by_column([], types), [batch], [0])
    columns, count = [parquet.decoded(column) for column in batch.columns.columns], batch.columns.num_rows
    where = np.arange(batch.first + 1, batch.first + 1 + count)
    return RowChunk(FileRows(columns, where, pa.nulls(count, pa.binary())), {})


def _with_irregular(rows: FileRows, irregular: Sequence[Row | Refused], places: Sequence[int]) -> RowChunk:
    """Return rows with what was read one by one; so many rows are before each of those."""
    read = joined([rows, by_column([record for record in irregular if isinstance(record, Row)], rows.types)])
    is_row = np.array([isinstance(record, Row) for record in irregular], np.bool_)
    count = len(rows.where)
    numbers = np.insert(np.arange(count), places, np.where(is_row, count + np.cumsum(is_row) - 1, -1))
    is_refused = numbers < 0
    at, where = pa.array(numbers, mask=is_refused), np.append(read.where, 0)[numbers]
    refused = [record for record in irregular if isinstance(record, Refused)]
    return RowChunk(
        FileRows([column.take(at) for column in read.columns], where, read.records.take(at)),
        dict(zip(np.flatnonzero(is_refused).tolist(), refused, strict=True)),
    )


def by_column(rows: Sequence[Row], types: Sequence[pa.DataType]) -> FileRows:
    """Return rows by column, of these types."""
    cells = zip(*(row.cells for row in rows), strict=True) if rows else [()] * len(types)
    columns = [pa.array(*column) for column in zip(cells, types, strict=True)]
    records = pa.array([row.raw for row in rows], pa.binary())
    return FileRows(columns, np.array([row.where for row in rows], np.int64), records)


def rows_at_once(names: Iterable[str], limit: int) -> int:
    """Return how many rows may become lines together if each line has these names; at most a limit."""
    return max(1, min(limit, _LINES // sum(len(name) + _MARKUP for name in names)))
