"""Current rows as query-backs read them, each with the key by which an object finds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.errors import InvalidTables, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Table, Tables
from eventlog.files.current_files import places_of, read_current
from eventlog.fold import CurrentRow
from eventlog.fold.by_column.key_patterns import current_form, current_key
from eventlog.fold.by_column.vectors import flags
from eventlog.transfer.log_files.by_column.row_batches import RowBatch, Slab, batch_of
from eventlog_spark.batches import gather, task_number
from eventlog_spark.packing import RowFeed
from eventlog_spark.shuffle import CURRENT


def by_number(frame: Any) -> Any:
    """Return the columns called c0, c1, …: names may hold a dot, differ by case alone, or not
    differ at all.
    """
    return frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))


def current_rows(frame: Any, tables: Tables, table: Table) -> RowFeed:
    """Return the rows of a table as those of the log meet them."""
    places = places_of(table, Source(f"current {table}", table.name, tuple(frame.columns), []))
    used = [at for of in places for at in of]
    source: Source[Row] = Source(f"current {table}", table.name, tuple(frame.columns[at] for at in used), ())
    rows = by_number(frame).select(*(f"c{at}" for at in used))
    return RowFeed(rows, PackRows(tables.name_of(table), table, source))


@dataclass(frozen=True)
class PackRows:
    """A task for the rows of a table of this name, which are those of a source."""

    name: str
    table: Table
    source: Source[Row]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        slabs = (batch_of(self.source.columns, batch) for batch in batches)
        return self.rows(task_number(), slabs)

    def rows(self, part: int, slabs: Iterable[Slab]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part of the source."""
        number, form = part << 40, current_form(self.table)
        columns = self.source.columns
        used = [columns[at] for places in places_of(self.table, self.source) for at in places]
        for slab in slabs:
            if isinstance(slab, Refused):
                raise InvalidTables(f"{slab.where}: {slab.reason}: the current rows cannot be read")
            batch = slab
            if not isinstance(batch, RowBatch):
                batch = RowBatch({}, np.arange(len(batch)), partial(iter, batch))
            is_plain = np.zeros(len(batch.where), np.bool_)
            cells = [batch.columns[name] for name in used if batch.columns]
            if cells and form is not None and all(any(is_it(of.type) for is_it in _PLAIN) for of in cells):
                texts = [cell.cast(pa.string()) for cell in cells]
                keys = _key_texts(self.table, texts)
                is_plain = flags(pc.match_substring_regex(keys, form))
                rows = self._plain_rows(number, keys, texts[len(self.table.key) :])
                yield rows if is_plain.all() else rows.filter(pa.array(is_plain))
            if not is_plain.all():
                numbered = enumerate(batch.rows(), number)
                yield from gather(self._odd_rows(compress(numbered, ~is_plain)), CURRENT)
            number += len(is_plain)

    def _odd_rows(self, numbered: Iterable[tuple[int, Row]]) -> Iterator[tuple[Any, ...]]:
        for number, row in numbered:
            for keyed in read_current(self.table, self.source._replace(records=[row])):
                yield current_row(number, self.name, current_key(self.table, keyed.key), keyed.cells)

    def _plain_rows(self, first: int, keys: pa.Array, texts: Sequence[pa.Array]) -> pa.RecordBatch:
        """Return rows whose keys are plain, by column."""
        count, width = len(keys), len(texts)
        at = np.arange(count * width)
        column_by_column = pa.concat_arrays(texts) if texts else pa.array([], pa.string())
        row_by_row = column_by_column.take(pa.array(at % width * count + at // width if width else at))
        ends = pa.array(np.arange(count + 1) * width, pa.int32())
        numbers = pa.array(np.arange(first, first + count))
        names = pa.array([self.name]).take(pa.array(np.zeros(count, np.int64)))
        cells = pa.ListArray.from_arrays(ends, row_by_row)
        return pa.record_batch([numbers, names, keys, pa.nulls(count, pa.string()), cells], schema=CURRENT)


def _key_texts(table: Table, texts: Sequence[pa.Array]) -> pa.Array:
    """Return keys as a log has them; null where a value is null."""
    named = zip(table.key, texts[: len(table.key)], strict=True)
    pairs = [pc.binary_join_element_wise(f"{name}=", text, "") for name, text in named]
    return pc.binary_join_element_wise(*pairs, "+") if len(pairs) > 1 else pairs[0]


_PLAIN = (pa.types.is_signed_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_large_string)


def current_row(
    number: int, table: str, key: str, cells: CurrentRow, fault: str | None = None
) -> tuple[Any, ...]:
    """Return a current row of a table of this name as the shuffle takes it."""
    return number, table, key, fault, list(cells)
