"""The rows of one file of a change table, by column in its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.core.errors import Refused
from eventlog.core.formats import Row
from eventlog.files import csv, parquet
from eventlog.files.inputs import Advance, Input, open_input
from eventlog.files.limits import Limits
from eventlog.fold.by_column.vectors import Ints
from eventlog.transfer.log_files.by_column.row_batches import RowBatch, read_pieces

_LINES: Final = 32 << 20  # bytes of what lines have besides values
_MARKUP: Final = 100  # bytes around a value
T = TypeVar("T")
OneByOne = Iterator[Row | Refused]  # rows that are not regular


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


class OpenedRows(NamedTuple):
    """The rows of an open file; those that are not regular come one by one."""

    columns: tuple[str, ...]
    types: Sequence[pa.DataType]
    slabs: Iterator[FileRows | OneByOne]


@contextmanager
def open_rows(file: Input, limits: Limits, advance: Advance) -> Iterator[OpenedRows]:
    """The rows of a file."""
    with open_input(file.name, advance) as opened:
        if file.container == "parquet":
            types = [t.value_type if pa.types.is_dictionary(t) else t for t in pq.read_schema(opened).types]
            names, batches = parquet.read_batches(opened, file.name)
            yield OpenedRows(names, types, map(_rows_of_batch, batches))
            return
        lines = csv.Lines(opened, limits.max_record)
        columns = csv.header(lines, file.name)
        pieces = read_pieces(opened, lines.number, file.name, columns, limits.max_record)
        yield OpenedRows(columns, [pa.string()] * len(columns), map(_rows_of_piece, pieces))


def _rows_of_piece(piece: RowBatch | OneByOne) -> FileRows | OneByOne:
    if not isinstance(piece, RowBatch):
        return piece
    assert piece.records is not None
    return FileRows(list(piece.columns.values()), piece.where, piece.records())


def _rows_of_batch(batch: parquet.PlacedBatch | Refused) -> FileRows | OneByOne:
    if isinstance(batch, Refused):
        return iter([batch])
    columns, count = [parquet.decoded(column) for column in batch.columns.columns], batch.columns.num_rows
    return FileRows(
        columns, np.arange(batch.first + 1, batch.first + 1 + count), pa.nulls(count, pa.binary())
    )


def by_column(rows: Sequence[Row], types: Sequence[pa.DataType]) -> FileRows:
    """Return rows by column, of these types."""
    columns = [
        pa.array(*column)
        for column in zip(zip(*(row.cells for row in rows), strict=True), types, strict=True)
    ]
    records = pa.array([row.raw for row in rows], pa.binary())
    return FileRows(columns, np.array([row.where for row in rows], np.int64), records)


def rows_at_once(names: Iterable[str], limit: int) -> int:
    """Return how many rows may become lines together if each line has these names; at most a limit."""
    return max(1, min(limit, _LINES // sum(len(name) + _MARKUP for name in names)))
