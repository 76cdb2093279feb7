"""The current rows of a live log's objects, asked for by the tasks and frozen as they join the shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.fold import Need, query_key
from eventlog.publisher.read_back import CHUNK, Allowance, CurrentRows
from eventlog.sql.current import NO_BOUND, TooMuch
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog_spark.backlog.frozen import write_parquet
from eventlog_spark.backlog.shares import Access
from eventlog_spark.io.batches import answer, answers_of, bounded
from eventlog_spark.io.current_files import FIRST
from eventlog_spark.io.folder_files import Files
from eventlog_spark.io.shuffle import CURRENT, pack_cells, unreadable_row
from eventlog_spark.io.spelling import respelled
from eventlog_spark.io.storage import uri

CURRENT_ROWS = pa.schema(
    [
        ("table_name", pa.string()),
        ("table_key", pa.string()),
        ("record_id", pa.int64()),
        ("kind", pa.int8()),
        ("old_value", pa.string()),  # the cells, as they travel
        ("new_value", pa.string()),
    ]
)


@dataclass(frozen=True)
class FrozenRows:
    """The files of current rows that were read, each under the name of its object."""

    tables: frozenset[Table]
    files: Sequence[str]

    def forms(self, tables: Tables) -> Mapping[str, str]:
        """Return nothing, because rows of every spelling were read."""
        return {}

    def attach(self, spark: Any, rows: Any, tables: Tables, log_rows: int | None, strays: bool) -> Any:
        """Return the rows together with the current rows."""
        if not self.files:
            return rows
        frozen = spark.read.parquet(*map(uri, self.files))
        return rows.unionByName(frozen, allowMissingColumns=True)


def ask(
    rows: Any,
    access: Access,
    tables: Tables,
    readable: Mapping[Table, ReadableTable],
    folder: Files,
    tasks: int,
) -> list[str]:
    """Return the files of the current rows that these rows of a log need."""
    asking = rows.where("event_type between 5 and 8").select("table_name", "table_key").dropna()
    named = respelled(asking, tables).drop("logged")
    apart = named.repartition(tasks, "table_name", "table_key").dropDuplicates()
    ordered = apart.sortWithinPartitions("table_name", "table_key")
    return answers_of(ordered, _Ask(access, tables, readable, folder))


class _Ask:
    """A task that reads the objects of a partition from the database; it returns the name of their file."""

    def __init__(
        self, access: Access, tables: Tables, readable: Mapping[Table, ReadableTable], folder: Files
    ) -> None:
        self._access = access
        self._tables = tables
        self._readable = readable
        self._folder = folder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = iter(batches)
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return  # and no connection is opened
        with self._access.snapshot() as snapshot:
            current = (
                row
                for batch in chain([first], batches)
                for start in range(0, batch.num_rows, CHUNK)
                for row in self._current(snapshot, batch.slice(start, CHUNK))
            )
            name, _ = write_parquet(self._folder, bounded(current, CURRENT_ROWS), CURRENT_ROWS)
        yield answer(name)

    def _current(self, snapshot: Snapshot, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that the publisher would get for each object, as many at a time as memory
        can hold.
        """
        needs = dict(self._needs(batch))
        allowance = Allowance(NO_BOUND) if batch.num_rows == 1 else Allowance()
        current = CurrentRows(snapshot, self._readable, True, allowance)
        try:
            current.read(dict.fromkeys(needs.values()))
        except TooMuch:
            middle = batch.num_rows // 2
            yield from self._current(snapshot, batch.slice(0, middle))
            yield from self._current(snapshot, batch.slice(middle))
            return
        for name, need in needs.items():
            reply = current.lookup(*need)
            rows = [unreadable_row(str(reply))] if isinstance(reply, EventlogError) else reply
            for number, row in enumerate(rows):
                yield (*name, FIRST + number, CURRENT, *pack_cells(row))

    def _needs(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, str], Need]]:
        """Return what each object needs; an object whose key cannot be queried is left out."""
        for name, key in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            try:
                table = self._tables.find(name)
                if table is not None and table in self._readable:
                    yield (name, key), Need(table, query_key(table, tablekey.read(key)))
            except EventlogError:
                continue
