"""A state in files: the rows of each table in a file of its own."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from eventlog.compare import rows
from eventlog.compare.texts import texts_of
from eventlog.core.errors import InvalidDocument, InvalidTables, Misuse, Refused
from eventlog.core.formats import Row, Shape, Source, listed_columns
from eventlog.core.tables import Table, Tables
from eventlog.files import parquet
from eventlog.files.inputs import CONTAINERS, Advance, container_of, open_input, open_source, stem_of
from eventlog.files.limits import LIMITS, Limits
from eventlog.log_files.current import cell_texts


def files_of(name: str, tables: Tables, only: str | None = None) -> dict[Table, str]:
    """Return the files of a state by their tables: a file of one table, or a folder of files named after
    theirs.
    """
    path = Path(name)
    if not path.is_dir():
        return {table_of(name, tables, only): name}
    found: dict[Table, str] = {}
    for file in sorted(path.iterdir()):
        extension = Path(file.name.removesuffix(".gz")).suffix.removeprefix(".").lower()
        table = tables.find(stem_of(file.name)) if extension in CONTAINERS[Shape.ROWS] else None
        if table is not None:
            if table in found:
                raise Misuse(f"{found[table]} and {file} both hold {table}")
            found[table] = str(file)
    if not found:
        raise Misuse(f"{name}: no file in this folder is named after a table, as in {_example(tables)}.csv")
    return found


def _example(tables: Tables) -> str:
    return next((table.name for table in tables), "usr")


def table_of(name: str, tables: Tables, only: str | None) -> Table:
    """Return the table whose rows a file contains: as named, else by the file's name, else the only one."""
    if only is not None:
        return tables.get(only)
    found = tables.find(stem_of(name))
    if found is None and len(tables) == 1:
        (found,) = tables
    if found is None:
        raise Misuse(f"{name}: which table are these rows of? Give --rows-of TABLE")
    return found


def read_file(
    table: Table,
    name: str,
    container: str | None = None,
    advance: Advance = lambda size: None,
    limits: Limits = LIMITS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file; one that cannot be read spoils the state, for its object would seem gone."""
    form = container_of(name, Shape.ROWS, container)
    try:
        with open_input(name, advance) as file:
            if form == "parquet":
                columns, batches = parquet.read_batches(file, name)
                yield from _of_columns(table, name, columns, batches)
            else:
                source = open_source(file, name, Shape.ROWS, form, limits)
                yield from rows.in_batches(table, _of_rows(table, source))
    except (OSError, EOFError, zlib.error) as fault:
        raise InvalidDocument(f"{name}: {fault}") from None


def _of_rows(table: Table, source: Source[Row]) -> Iterator[tuple[str, rows.Cells, rows.Cells]]:
    keys, data = places_of(table, source.columns, source.name)
    for row in source.records:
        if isinstance(row, Refused):
            raise InvalidTables(f"{row.where}: {row.reason}: the rows of a state cannot be read")
        yield source.at(row.where), cell_texts(source, row, keys), cell_texts(source, row, data)


def _of_columns(
    table: Table, name: str, columns: tuple[str, ...], batches: Iterator[parquet.PlacedBatch | Refused]
) -> Iterator[pa.RecordBatch]:
    keys, data = places_of(table, columns, name)
    for one in batches:
        if isinstance(one, Refused):
            raise InvalidTables(f"{one.where}: {one.reason}: the rows of a state cannot be read")
        found = one.columns
        last = one.first + found.num_rows
        places = pa.array([f"{name}:{number}" for number in range(one.first + 1, last + 1)], pa.string())
        texts = {at: texts_of(found.column(at)) for at in {*keys, *data}}
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
