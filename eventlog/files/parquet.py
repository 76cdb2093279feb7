"""Parquet, through Arrow: batch by batch, typed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import IO, Any, NamedTuple

from eventlog.core.errors import InvalidDocument, Refused
from eventlog.core.formats import Cell, Row, SheetColumn
from eventlog.core.portions import portions

_BATCH = 8192  # rows that are read or written together
_MOST_READ = 256 << 20  # bytes that are read together, as the footer has them
_BUFFER = 1 << 20  # bytes
_MOST_DECODED = 64 << 20  # bytes of a column's values that may be in memory more than once
_MOST_HELD = 64 << 20  # letters of values that are written together
_READABLE_BY_DICTIONARY = frozenset(("PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"))


class PlacedBatch(NamedTuple):
    """A batch of rows by column, and how many rows of the file precede it."""

    first: int
    columns: Any


def read(file: IO[bytes], name: str) -> tuple[tuple[str, ...], Iterator[Row | Refused]]:
    """Return the column names, and the rows."""
    columns, batches = read_batches(file, name)
    return columns, _rows(batches)


def read_batches(
    file: IO[bytes], name: str, groups: Container[int] | None = None
) -> tuple[tuple[str, ...], Iterator[PlacedBatch | Refused]]:
    """Return the column names, and the rows by column; Refused where a row group breaks off.

    `groups` are the row groups that are read; None reads all.
    """
    parquet = _arrow().parquet
    try:
        metadata = parquet.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
        _check_plain(schema)
        opened = partial(parquet.ParquetFile, file, metadata=metadata, buffer_size=_BUFFER)
        by_dictionary = opened(read_dictionary=_dictionary_columns(metadata))
    except (ValueError, NotImplementedError, OSError) as fault:
        raise InvalidDocument(f"{name}: {fault}") from fault
    return tuple(schema.names), _batches(by_dictionary, opened, name, groups)


def plain_types(file: IO[bytes], name: str) -> dict[str, str]:
    """Return the types of the columns; none if a column has texts so long that it is read by dictionary."""
    parquet = _arrow().parquet
    try:
        metadata = parquet.read_metadata(file)
        opened = parquet.ParquetFile(file, metadata=metadata, read_dictionary=_dictionary_columns(metadata))
        if any(_long_columns(opened, group) for group in range(metadata.num_row_groups)):
            return {}
    except (ValueError, NotImplementedError, OSError) as fault:
        raise InvalidDocument(f"{name}: {fault}") from fault
    return {field.name: str(field.type) for field in metadata.schema.to_arrow_schema()}


def row_groups(file: IO[bytes], at_least: int) -> Iterator[frozenset[int]]:
    """Yield consecutive row groups that have so many bytes together; none if the footer cannot be read."""
    parquet = _arrow().parquet
    try:
        metadata = parquet.read_metadata(file)
    except (ValueError, OSError):
        return
    sizes = [metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups)]
    for groups in portions(range(len(sizes)), len(sizes), sizes.__getitem__, at_least):
        yield frozenset(groups)


def _batches(
    by_dictionary: Any, opened: Callable[..., Any], name: str, groups: Container[int] | None
) -> Iterator[PlacedBatch | Refused]:
    """Yield the rows of a file that is open with all texts by dictionary; `opened` opens it otherwise."""
    number = 0
    metadata, open_with = by_dictionary.metadata, cache(lambda names: opened(read_dictionary=names))
    for group in range(metadata.num_row_groups):
        first = number
        facts = metadata.row_group(group)
        if groups is not None and group not in groups:
            number += facts.num_rows
            continue
        try:
            reader = open_with(_long_columns(by_dictionary, group))
            for batch in reader.iter_batches(_rows_together(facts), [group]):
                batch.validate(full=True)
                yield PlacedBatch(number, batch)
                number += batch.num_rows
        except (InvalidDocument, ValueError, NotImplementedError, OSError) as fault:
            yield Refused(f"{name}:{number + 1}", f"the rest of the row group cannot be read: {fault}")
            number = first + facts.num_rows


def _rows_together(group: Any) -> int:
    """Return how many rows of a row group are read at once, by their size on average."""
    rows: int = group.num_rows
    return max(1, min(_BATCH, _MOST_READ * rows // max(1, int(group.total_byte_size))))


def _rows(batches: Iterable[PlacedBatch | Refused]) -> Iterator[Row | Refused]:
    for batch in batches:
        if isinstance(batch, Refused):
            yield batch
        else:
            yield from rows_of(batch)


def rows_of(batch: PlacedBatch) -> Iterator[Row]:
    """Yield the rows of a batch."""
    columns = [cells(column) for column in batch.columns.columns]
    for number, row in enumerate(zip(*columns, strict=True), batch.first + 1):
        yield Row(number, row)


def decoded(column: Any) -> Any:
    """Return a column without the dictionary of its values; None where that would take too much memory."""
    if not _arrow().types.is_dictionary(column.type):
        return column
    return column.dictionary_decode() if _decoded_size(column) <= _MOST_DECODED else None


def _check_plain(schema: Any) -> None:
    if len(set(schema.names)) < len(schema.names):
        raise InvalidDocument("a name of its columns is repeated")
    for field in schema:
        if _arrow().types.is_nested(field.type):
            raise InvalidDocument(f"column {field.name} is a {field.type}, and cells hold single values")


def _long_columns(by_dictionary: Any, group: int) -> tuple[str, ...]:
    """Return the columns that are read by dictionary, so that a repeated text is in memory once.

    The others have no such text: one row brings the whole dictionary of each column.
    """
    names = [field.name for field in by_dictionary.schema_arrow if _arrow().types.is_dictionary(field.type)]
    row = next(by_dictionary.iter_batches(1, [group], names), None) if names else None
    if row is None:
        return ()
    columns = zip(row.schema.names, row.columns, strict=True)
    return tuple(name for name, column in columns if _longest(column) * _BATCH > _MOST_DECODED)


def _longest(column: Any) -> int:
    """Return how many bytes the longest text of a dictionary has; 0 for a column without one."""
    arrow = _arrow()
    if not arrow.types.is_dictionary(column.type):
        return 0
    lengths = arrow.compute.binary_length(column.dictionary.cast(arrow.large_binary()))
    return arrow.compute.max(lengths).as_py() or 0


def _dictionary_columns(metadata: Any) -> list[str]:
    """Return the text columns that can be read by dictionary."""
    names = []
    for at in range(metadata.num_columns if metadata.num_row_groups else 0):
        columns = [metadata.row_group(group).column(at) for group in range(metadata.num_row_groups)]
        is_readable = all(_READABLE_BY_DICTIONARY.issuperset(column.encodings) for column in columns)
        if is_readable and columns[0].physical_type == "BYTE_ARRAY":
            names.append(columns[0].path_in_schema)
    return names


def cells(column: Any) -> list[Cell]:
    """Return the values of a column; what Python's datetime lacks, nanoseconds and far years, comes
    as text.
    """
    arrow = _arrow()
    if arrow.types.is_dictionary(column.type):
        return _dictionary_values(column)
    if arrow.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(arrow.string())
    try:
        values: list[Cell] = column.to_pylist()
    except (OverflowError, ValueError):
        if not arrow.types.is_temporal(column.type):
            raise
        return [_moment(*pair) for pair in zip(column, column.cast(arrow.string()).to_pylist(), strict=True)]
    return values


def _moment(value: Any, text: str | None) -> Cell:
    """Return a time or date; its text where Python has no such year."""
    try:
        cell: Cell = value.as_py()
    except (OverflowError, ValueError):
        return text
    return cell


def _dictionary_values(column: Any) -> list[Cell]:
    """Return the values of a dictionary column. If they are large, each is made once."""
    if _decoded_size(column) <= _MOST_DECODED:
        decoded_values: list[Cell] = column.dictionary_decode().to_pylist()
        return decoded_values
    used = column.indices.unique().drop_null()
    values = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
    return [values.get(number) for number in column.indices.to_pylist()]


def _decoded_size(column: Any) -> int:
    """Return how many bytes a dictionary column has without its dictionary."""
    arrow = _arrow()
    lengths = arrow.compute.binary_length(column.dictionary.cast(arrow.large_binary())).take(column.indices)
    return arrow.compute.sum(lengths).as_py() or 0


class ParquetWriter:
    """A writer of rows as Parquet."""

    def __init__(self, file: IO[bytes], columns: Sequence[SheetColumn]) -> None:
        arrow = _arrow()
        types = {
            "int": arrow.int64(),
            "float": arrow.float64(),
            "bool": arrow.bool_(),
            "bytes": arrow.binary(),
            "timestamp": arrow.timestamp("us"),
        }
        self._schema = arrow.schema([(c.name, types.get(c.type, arrow.string())) for c in columns])
        self._readers = [_READERS.get(c.type) for c in columns]
        self._writer = arrow.parquet.ParquetWriter(file, self._schema)
        self._rows: list[Sequence[Cell]] = []
        self._pending_size = 0

    def write(self, cells: Sequence[Cell]) -> None:
        self._rows.append(cells)
        self._pending_size += sum(len(cell) for cell in cells if isinstance(cell, str | bytes))
        if len(self._rows) >= _BATCH or self._pending_size > _MOST_HELD:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = [
            [read(cell) if isinstance(cell, str) else cell for cell in cells] if read else cells
            for cells, read in zip(zip(*self._rows, strict=True), self._readers, strict=True)
        ]
        arrow = _arrow()
        arrays = [arrow.array(cells, field.type) for cells, field in zip(columns, self._schema, strict=True)]
        self._writer.write_batch(arrow.record_batch(arrays, schema=self._schema))
        self._rows, self._pending_size = [], 0


# How texts in columns of a type are read; in a float column they are the names of special values.
_READERS: dict[str, Callable[[str], Cell]] = {"timestamp": dt.datetime.fromisoformat, "float": float}


@cache
def _arrow() -> Any:
    """Return Arrow, which takes a while to load."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    return pyarrow
