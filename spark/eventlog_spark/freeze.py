"""A live log frozen into the job's folder: its pending rows and their current rows, of one snapshot.

A rerun after a crash reads what was frozen, so it delivers the same under the same event-ids.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog import tablekey
from eventlog.codec import Shape
from eventlog.entry import COLUMNS, read_event_time
from eventlog.errors import EventlogError
from eventlog.fold import Rules
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.readable import ReadableTable, readable
from eventlog.sql.snapshot import Cells, Choice, Snapshot
from eventlog.sql.store import Store
from eventlog.tables import Table, Tables
from eventlog_spark import rows
from eventlog_spark.current import objects_asked
from eventlog_spark.storage import expand

_CHUNK = 50_000  # rows of one statement
_FILE = 1_000_000  # rows of one file
_COMPLETE = "complete.json"
_EVENT_TIME = COLUMNS.index("event_time")

LOG = pa.schema(
    [(name, pa.int64() if name in ("record_id", "event_type") else pa.string()) for name in COLUMNS]
)


class Frozen:
    """The folder of what was frozen."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def complete(self) -> bool:
        return (self.path / _COMPLETE).exists()

    @property
    def logs(self) -> list[str]:
        return sorted(map(str, self.path.glob("log-*.parquet")))

    @property
    def current(self) -> list[tuple[str, str]]:
        """The tables and the files of their current rows."""
        told = json.loads((self.path / _COMPLETE).read_text("utf-8"))
        return [(table, str(self.path / file)) for table, file in told["current"].items()]

    def ids(self) -> Iterator[int]:
        """The record_ids of all rows."""
        for name in self.logs:
            for batch in pq.ParquetFile(name).iter_batches(columns=["record_id"]):
                yield from batch.column(0).to_pylist()


def known_tables(store: Store) -> Tables:
    """The tables that `track` put triggers on."""
    with store.engine.connect() as connection:
        catalogue = Catalogue(connection)
        named = catalogue.tracked(store.log.table)
        return Tables([catalogue.relation(*name).table for name in named], catalogue.dialect.name)


def freeze(spark: Any, store: Store, tables: Tables, rules: Rules, frozen: Frozen) -> None:
    """Rows and current rows as they are now; what an interrupted freeze left is dropped."""
    shutil.rmtree(frozen.path, ignore_errors=True)
    frozen.path.mkdir(parents=True)
    user = None if rules.allow_loopback else rules.driver_user
    with store.snapshot() as snapshot:
        cells = snapshot.every_pending(Choice(_CHUNK, user))
        if rules.handle_future_events:
            cells = _due(cells, read_event_time(snapshot.now()))
        _freeze_log(cells, frozen)
        files = _freeze_current(spark, store, snapshot, tables, rules, frozen)
    part = frozen.path / f".{_COMPLETE}"
    part.write_text(json.dumps({"current": files}))
    part.replace(frozen.path / _COMPLETE)


def _due(rows: Iterator[Cells], now: str) -> Iterator[Cells]:
    """The rows whose time has come."""
    return (cells for cells in rows if read_event_time(str(cells[_EVENT_TIME])) <= now)


def _freeze_log(cells: Iterator[Cells], frozen: Frozen) -> None:
    for number in range(1 << 30):
        chunk = list(islice(cells, _CHUNK))
        if not chunk and number:
            return
        with pq.ParquetWriter(frozen.path / f"log-{number:06d}.parquet", LOG) as writer:
            written = 0
            while chunk:
                columns = zip(*chunk, strict=True)
                arrays = [pa.array(c, f.type) for c, f in zip(columns, LOG, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=LOG))
                written += len(chunk)
                chunk = list(islice(cells, _CHUNK)) if written < _FILE else []


def _freeze_current(
    spark: Any, store: Store, snapshot: Snapshot, tables: Tables, rules: Rules, frozen: Frozen
) -> dict[str, str]:
    """The current rows of every object that a query-back row names; the file of each table."""
    files = rows.sort_out(expand(frozen.logs, Shape.ROWS, None))
    frame = rows.read(spark, files, rules, "1970-01-01 00:00:00", None, wide=False)
    asked = objects_asked(frame, tables).dropDuplicates(["asked"]).orderBy("table_name")
    named = ((row.table_name, row.table_key) for row in asked.toLocalIterator())
    found: dict[str, str] = {}
    answerable = [table for table in tables if table.key]
    with store.engine.connect() as connection:
        forms = {str(table): readable(connection, table, store.log.dialect) for table in answerable}
    writers: dict[str, pq.ParquetWriter] = {}
    try:
        for table in answerable:
            found[str(table)] = f"current-{len(found):04d}.parquet"
            writers[str(table)] = pq.ParquetWriter(frozen.path / found[str(table)], _schema(table))
        for name, group in groupby(named, key=lambda pair: pair[0]):
            table = tables.get(name)
            if str(table) in forms:
                keys = [key for _, key in group]
                for batch in _current(snapshot, forms[str(table)], keys):
                    writers[str(table)].write_batch(batch)
    finally:
        for writer in writers.values():
            writer.close()
    return found


def _schema(table: Table) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in (*table.key, *(c.name for c in table.data))])


def _current(snapshot: Snapshot, form: ReadableTable, table_keys: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The current rows of these keys, each with the key that asked for it."""
    remaining = iter(table_keys)
    while chunk := list(islice(remaining, _CHUNK)):
        sent, given = [], []
        for table_key in chunk:
            try:
                sent.append(form.load_key(table_key))
            except EventlogError:
                continue  # no row has it
            given.append(_key_texts(form.table, table_key))
        found = [(*given[row.place], *row.texts) for row in snapshot.current_rows(form, sent)]
        if found:
            schema = _schema(form.table)
            arrays = [pa.array(cells, pa.string()) for cells in zip(*found, strict=True)]
            yield pa.record_batch(arrays, schema=schema)


def _key_texts(table: Table, table_key: str) -> Sequence[str]:
    named = {}
    for name, text in tablekey.read(table_key):
        column = table.column(name)
        assert column is not None
        named[column.name] = text
    return [named[name] for name in table.key]
