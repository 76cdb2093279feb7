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
from eventlog_spark.input import cells
from eventlog_spark.input.batches import bounded
from eventlog_spark.input.current import FIRST
from eventlog_spark.input.kinds import CURRENT
from eventlog_spark.input.spelling import respelled
from eventlog_spark.input.storage import uri
from eventlog_spark.input.unreadable import unreadable_row
from eventlog_spark.live.access import Access
from eventlog_spark.live.frozen import write_parquet
from eventlog_spark.live.shares import FILES
from eventlog_spark.output.files import Files

ANSWER = pa.schema(
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
    """Files of current rows that have been asked for, each under the name of its object."""

    tables: frozenset[Table]
    files: Sequence[str]

    def forms(self, tables: Tables) -> Mapping[str, str]:
        """None: rows of every spelling were asked for."""
        return {}

    def attach(self, spark: Any, rows: Any, tables: Tables, log_rows: int | None, strays: bool) -> Any:
        """The rows, and the current rows beside them."""
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
    """The files of the current rows that these rows of a log ask for, whatever else they say."""
    asking = rows.where("event_type between 5 and 8").select("table_name", "table_key").dropna()
    named = respelled(asking, tables).drop("logged")
    apart = named.repartition(tasks, "table_name", "table_key").dropDuplicates()
    ordered = apart.sortWithinPartitions("table_name", "table_key")
    told = ordered.mapInArrow(_Ask(access, tables, readable, folder), FILES).collect()
    return [row.file for row in told]


class _Ask:
    """Asks the database for the objects of a partition."""

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
            answers = (
                answer
                for batch in chain([first], batches)
                for start in range(0, batch.num_rows, CHUNK)
                for answer in self._answers(snapshot, batch.slice(start, CHUNK))
            )
            name, rows = write_parquet(self._folder, bounded(answers, ANSWER), ANSWER)
        yield pa.record_batch([pa.array([name]), pa.array([rows])], names=["file", "rows"])

    def _answers(self, snapshot: Snapshot, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        """What the publisher would be told, for each object; as many at a time as can be held."""
        needs = dict(self._needs(batch))
        allowance = Allowance(NO_BOUND) if batch.num_rows == 1 else Allowance()
        current = CurrentRows(snapshot, self._readable, True, allowance)
        try:
            current.read(dict.fromkeys(needs.values()))
        except TooMuch:
            middle = batch.num_rows // 2
            yield from self._answers(snapshot, batch.slice(0, middle))
            yield from self._answers(snapshot, batch.slice(middle))
            return
        for name, need in needs.items():
            answer = current.lookup(*need)
            rows = [unreadable_row(str(answer))] if isinstance(answer, EventlogError) else answer
            for number, row in enumerate(rows):
                yield (*name, FIRST + number, CURRENT, *cells.pack(row))

    def _needs(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, str], Need]]:
        """What each object asks for; one whose key says nothing that can be asked is left out."""
        for name, key in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            try:
                table = self._tables.find(name)
                if table is not None and table in self._readable:
                    yield (name, key), Need(table, query_key(table, tablekey.read(key)))
            except EventlogError:
                continue
