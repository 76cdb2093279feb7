"""A state in files: the rows of each table in a file of its own, read and written."""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlog.compare import rows
from eventlog.core import tablekey
from eventlog.core.errors import InvalidDocument, InvalidTables, Misuse, Refused
from eventlog.core.formats import Row, Shape, Source, listed_columns
from eventlog.core.state_versions import ROWS
from eventlog.core.tables import Table, Tables
from eventlog.files import parquet
from eventlog.files.current_files import cell_text, cell_texts
from eventlog.files.inputs import CONTAINERS, Advance, container_of, open_input, source_in, stem_of
from eventlog.files.limits import LIMITS, Limits
from eventlog.files.output_files import OutputFile

_VERSION = b"eventlog rows"  # in the footer of a file that was kept
_AS_OURS = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)
_PLAIN_SCALE = 6  # from the seventh digit after the point on, Arrow writes small numbers with an exponent
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAYS = (dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH)  # that Python knows
_DAY = 86_400_000_000  # microseconds
_MOMENTS = ((_DAYS[0] + 1) * _DAY, _DAYS[1] * _DAY)  # that it knows in all zones


def files_of(name: str, tables: Tables, only: str | None = None) -> dict[Table, str]:
    """Return the files of a state by their tables: a file of one table, or a folder of files named after
    theirs.
    """
    path = Path(name)
    if not path.is_dir():
        return {table_of(name, tables, only): name}
    files: dict[Table, str] = {}
    for file in sorted(path.iterdir()):
        extension = Path(file.name.removesuffix(".gz")).suffix.removeprefix(".").lower()
        table = tables.find(stem_of(file.name)) if extension in CONTAINERS[Shape.ROWS] else None
        if table is not None:
            if table in files:
                raise Misuse(f"{files[table]} and {file} both hold {table}")
            files[table] = str(file)
    if not files:
        example = next((table.name for table in tables), "usr")
        raise Misuse(f"{name}: no file in this folder is named after a table, as in {example}.csv")
    return files


def table_of(name: str, tables: Tables, only: str | None) -> Table:
    """Return the table whose rows a file contains: as named, else by the file's name, else the only one."""
    if only is not None:
        return tables.get(only)
    table = tables.find(stem_of(name))
    if table is None and len(tables) == 1:
        (table,) = tables
    if table is None:
        raise Misuse(f"{name}: which table are these rows of? Give --table TABLE")
    return table


def read_file(
    table: Table,
    name: str,
    container: str | None = None,
    advance: Advance = lambda size: None,
    limits: Limits = LIMITS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file. Raise if one cannot be read, because its object would seem to be gone."""
    form = container_of(name, Shape.ROWS, container)
    try:
        with open_input(name, advance) as file:
            if form == "parquet":
                _check_version(name, file)
                columns, batches = parquet.read_batches(file, name)
                yield from _of_columns(table, name, columns, batches)
            else:
                source = source_in(file, name, Shape.ROWS, form, limits)
                yield from rows.in_batches(table, _of_rows(table, source))
    except (OSError, EOFError, zlib.error) as fault:
        raise InvalidDocument(f"{name}: {fault}") from None


def _check_version(name: str, file: IO[bytes]) -> None:
    """Raise NewerState if a newer version kept the state. Files that no version kept have no version."""
    with suppress(ValueError):
        version = (pq.read_metadata(file).metadata or {}).get(_VERSION)
        if version is not None:
            ROWS.check(name, int(version) if version.isdigit() else None)


def _of_rows(table: Table, source: Source[Row]) -> Iterator[tuple[str, rows.RowTexts, rows.RowTexts]]:
    keys, data = places_of(table, source.columns, source.name)
    for row in source.records:
        if isinstance(row, Refused):
            raise InvalidTables(f"{row.where}: {row.reason}: the rows of a state cannot be read")
        yield source.at(row.where), cell_texts(source, row, keys), cell_texts(source, row, data)


def _of_columns(
    table: Table, name: str, columns: tuple[str, ...], batches: Iterator[parquet.PlacedBatch | Refused]
) -> Iterator[pa.RecordBatch]:
    keys, data = places_of(table, columns, name)
    for placed in batches:
        if isinstance(placed, Refused):
            raise InvalidTables(f"{placed.where}: {placed.reason}: the rows of a state cannot be read")
        columns_of_batch = placed.columns
        last = placed.first + columns_of_batch.num_rows
        places = pa.array([f"{name}:{number}" for number in range(placed.first + 1, last + 1)], pa.string())
        texts = {at: texts_of(columns_of_batch.column(at)) for at in {*keys, *data}}
        yield rows.batch(table, places, [texts[at] for at in keys], [texts[at] for at in data])


def places_of(table: Table, columns: tuple[str, ...], source: str) -> tuple[list[int], list[int]]:
    """Return the positions of a table's key columns in a source, and those of its others."""
    keys = [_column(columns, source, table, name) for name in table.key]
    return keys, [_column(columns, source, table, column.name) for column in table.data]


def _column(columns: tuple[str, ...], source: str, table: Table, name: str) -> int:
    """Return the position of a column: under exactly its name, else the only one that differs in case."""
    folded = [column.lower() for column in columns]
    if name in columns:
        return columns.index(name)
    if folded.count(name.lower()) == 1:
        return folded.index(name.lower())
    raise InvalidTables(f"{source} lacks column {name} of table {table}; it has {listed_columns(columns)}")


def texts_of(column: pa.Array) -> pa.Array:
    """Return the texts of a column's values."""
    plain = parquet.decoded(column)
    if plain is not None and plain is not column:
        return texts_of(plain)
    texts = _by_column(column)
    if texts is not None:
        return texts
    return pa.array([cell_text(cell) for cell in parquet.cells(column)], pa.string())


def _by_column(column: pa.Array) -> pa.Array | None:
    """Return the texts as Arrow writes them, None where they may be others than ours."""
    kind = column.type
    if any(is_type(kind) for is_type in _AS_OURS):
        return column.cast(pa.string())
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= _PLAIN_SCALE:
        return column.cast(pa.string())
    if pa.types.is_date32(kind) and _within(column.cast(pa.int32()), _DAYS):
        return column.cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.unit == "us" and _within(column.cast(pa.int64()), _MOMENTS):
        return _moments(column)
    return None


def _moments(column: pa.Array) -> pa.Array:
    """Write timestamps of microseconds in UTC, with a fraction unless it is zero."""
    numbers = column.cast(pa.int64())
    moments = numbers.cast(pa.timestamp("us"))
    if not np.any(pc.fill_null(numbers, 0).to_numpy() % 1_000_000):
        return moments.cast(pa.timestamp("s")).cast(pa.string())
    return pc.replace_substring_regex(moments.cast(pa.string()), r"\.000000\z", "")


def _within(numbers: pa.Array, bounds: tuple[int, int]) -> bool:
    limits = pc.min_max(numbers).as_py()
    return limits["min"] is None or (bounds[0] <= limits["min"] and limits["max"] <= bounds[1])


class StateFile:
    """Writes rows that pass through it to a Parquet file, which takes its place when the block ends well."""

    def __init__(self, name: str, table: Table) -> None:
        self._table = table
        columns = (*table.key, *(column.name for column in table.data))
        version = {_VERSION: str(ROWS.version).encode()}
        self._form = pa.schema([(column, pa.string()) for column in columns], version)
        self._target = OutputFile(str(Path(name).absolute()))
        self._writer = pq.ParquetWriter(self._target.stream, self._form)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._writer.close()
            if kind is None:
                self._target.complete()
        finally:
            self._target.discard()

    def write_through(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield these batches, each once it is written."""
        for passed in batches:
            pairs = [tablekey.read(key) for key in passed.column("key").to_pylist()]
            values = zip(*([text for _, text in key] for key in pairs), strict=True)
            keys = [pa.array(column, pa.string()) for column in values]
            self._writer.write_batch(pa.record_batch([*keys, *passed.columns[2:]], schema=self._form))
            yield passed
