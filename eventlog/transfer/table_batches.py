"""Change tables in files as batches of changes: by column while all rows are plain, then row by row."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.change_batch import ChangeBatch
from eventlog.columnar.change_tables import NotPlain, table_batch
from eventlog.core.change import Change
from eventlog.core.errors import InvalidDocument, Refused
from eventlog.core.formats import Row, Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.inputs import BY_COLUMN, container_of, open_input, stem_of
from eventlog.files.limits import LIMITS
from eventlog.log_files.by_column import row_batches
from eventlog.log_files.by_column.row_batches import RowBatch
from eventlog.qlik import tables
from eventlog.qlik.control import control_table
from eventlog.qlik.ordering import Finder
from eventlog.qlik.rows import ChangeRow, RowReader


class _Part(NamedTuple):
    """A part of the rows of one file, and their reader."""

    reader: RowReader
    rows: RowBatch | list[Row]

    def parsed(self) -> Iterator[ChangeRow | Refused]:
        """Yield the rows one by one."""
        rows = self.rows.rows() if isinstance(self.rows, RowBatch) else self.rows
        return tables.read_rows(self.reader, rows)


def read_table_batches(
    names: Sequence[str], known: Tables, settings: tables.TableSettings
) -> Iterator[ChangeBatch | Change | Refused]:
    """Yield the changes of change tables; files of one table that follow each other are its parts."""
    for table, files in groupby(names, lambda name: settings.table or stem_of(name)):
        yield from _read_table(_parts(table, files, known, settings), settings)


def by_column(names: Sequence[str], settings: tables.TableSettings) -> bool:
    """Return whether change tables in these files can be read by column."""
    return not (settings.until or any(control_table(settings.table or stem_of(name)) for name in names)) and (
        all(container_of(name, Shape.ROWS) in BY_COLUMN for name in names) and "-" not in names
    )


def _parts(
    table: str, names: Iterable[str], known: Tables, settings: tables.TableSettings
) -> Iterator[_Part | Refused]:
    """Yield the rows of the files of one table by column, as far as these are regular."""
    for name in names:
        with open_input(name) as file:
            try:
                columns, slabs = row_batches.read(file, name, container_of(name, Shape.ROWS), LIMITS)
                reader = tables.row_reader(table, Source(name, stem_of(name), columns, ()), known, settings)
            except (InvalidDocument, OSError, EOFError, zlib.error) as fault:
                yield Refused(name, str(fault).removeprefix(f"{name}: "))
                continue
            if isinstance(reader, Refused):
                yield reader
                continue
            try:
                yield from (slab if isinstance(slab, Refused) else _Part(reader, slab) for slab in slabs)
            except (OSError, EOFError, zlib.error) as fault:
                yield Refused(name, f"the rest of the file cannot be read: {fault}")


def _read_table(
    parts: Iterator[_Part | Refused], settings: tables.TableSettings
) -> Iterator[ChangeBatch | Change | Refused]:
    finder = tables.finder_of(settings)
    tail: _Part | None = None  # whose last row the next part may go on
    for part in parts:
        if isinstance(part, Refused):
            finder.pass_over(1, None)
            yield part
            continue
        try:
            batch, left = _batch(tail, part, finder)
        except NotPlain:
            rows = chain(_last(tail), part.parsed(), _all_parsed(parts))
            yield from tables.changes_of(rows, finder)
            return
        tail = part if left else None
        if batch is not None:
            yield batch
    yield from tables.changes_of(_last(tail), finder)


def _batch(tail: _Part | None, part: _Part, finder: Finder) -> tuple[ChangeBatch | None, int]:
    """Return the changes of a part with the last row of the part before, and how many rows are left."""
    rows = part.rows
    if not isinstance(rows, RowBatch) or (tail is not None and tail.reader is not part.reader):
        raise NotPlain
    if tail is None:
        return table_batch(part.reader, finder, rows.columns, rows.where)
    assert isinstance(tail.rows, RowBatch)
    before = {name: column[-1:] for name, column in tail.rows.columns.items()}
    if any(column.type != before[name].type for name, column in rows.columns.items()):
        raise NotPlain
    columns = {name: pa.concat_arrays([before[name], column]) for name, column in rows.columns.items()}
    return table_batch(part.reader, finder, columns, np.append(tail.rows.where[-1:], rows.where))


def _last(part: _Part | None) -> list[ChangeRow | Refused]:
    """Return the last row of a part."""
    return [] if part is None else list(part.parsed())[-1:]


def _all_parsed(parts: Iterable[_Part | Refused]) -> Iterator[ChangeRow | Refused]:
    for part in parts:
        if isinstance(part, Refused):
            yield part
        else:
            yield from part.parsed()
