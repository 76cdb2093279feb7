"""The rows of files by column, many at a time. Irregular pieces come row by row, with the same messages."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlog.core.errors import Refused
from eventlog.core.formats import Row
from eventlog.files import csv, parquet
from eventlog.files.limits import Limits
from eventlog.log_files.by_column import fast_csv

_PIECE = 4 << 20  # bytes
_ROWS = 8192  # of a slab that is read row by row

Ints = npt.NDArray[np.int64]


class RowBatch(NamedTuple):
    """A batch of rows by column, with their positions."""

    columns: dict[str, pa.Array]
    where: Ints
    rows: Callable[[], Iterable[Row]]  # the same one by one


Slabs = Iterator["RowBatch | list[Row] | Refused"]


def read(file: IO[bytes], name: str, container: str, limits: Limits) -> tuple[tuple[str, ...], Slabs]:
    """Return the column names, and the rows: by column where they are regular, else as they are."""
    if container == "csv":
        lines = csv.Lines(file, limits.max_record)
        columns = csv.header(lines, name)
        if lines.reads_again:  # its header has a quote that is never closed
            return columns, _batched(csv.rows(lines, name, len(columns)))
        return columns, _csv(file, lines.number, name, columns, limits.max_record)
    names, batches = parquet.read_batches(file, name)
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


def _csv(file: IO[bytes], line: int, name: str, columns: Sequence[str], longest: int) -> Slabs:
    data = b""
    read_rows = partial(_rows_again, name=name, width=len(columns), longest=longest)
    while octets := file.read(_PIECE):
        data += octets
        end = fast_csv.cut(data)
        regular = data[:end]
        piece = fast_csv.read(regular, columns, line + 1, longest) if end else None
        if piece is not None:
            yield RowBatch(piece.columns, piece.lines, partial(read_rows, regular, line))
            line += data.count(b"\n", 0, end)
            data = data[end:]
            continue
        begun = _Begun(data, file)
        lines = csv.Lines(begun, longest, line)
        yield from _until_taken(csv.rows(lines, name, len(columns)), begun, lines)
        line, data = lines.number, b""
    if data:
        piece = fast_csv.read(data, columns, line + 1, longest)
        if piece is not None:
            yield RowBatch(piece.columns, piece.lines, partial(read_rows, data, line))
        else:
            begun = _Begun(data, file)
            yield from _batched(csv.rows(csv.Lines(begun, longest, line), name, len(columns)))


def _rows_again(data: bytes, line: int, name: str, width: int, longest: int) -> Iterator[Row]:
    """Yield the records of a regular piece one by one."""
    for row in csv.rows(csv.Lines(io.BytesIO(data), longest, line), name, width):
        assert not isinstance(row, Refused)
        yield row


class _Begun:
    """A file whose first bytes were read already."""

    def __init__(self, data: bytes, file: IO[bytes]) -> None:
        self._data = data
        self._at = 0
        self._file = file

    @property
    def taken(self) -> bool:
        """Return whether everything that was read before was returned."""
        return self._at >= len(self._data)

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, up to so many bytes."""
        if self.taken:
            return self._file.readline(limit)
        end = self._data.find(b"\n", self._at, self._at + limit) + 1 or min(self._at + limit, len(self._data))
        line = self._data[self._at : end]
        self._at = end
        if not line.endswith(b"\n") and len(line) < limit:
            line += self._file.readline(limit - len(line))
        return line


def _until_taken(rows: Iterator[Row | Refused], begun: _Begun, lines: csv.Lines) -> Slabs:
    """Return the rows, until what was read before is used up, and no line is to be read again."""
    batch: list[Row] = []
    for row in rows:
        if isinstance(row, Refused):
            yield row
        else:
            batch.append(row)
        if begun.taken and not lines.reads_again:
            break
        if len(batch) >= _ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _batched(rows: Iterable[Row | Refused]) -> Slabs:
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
