"""The receipt of a lake's tables: their rows at a round that is done, and what differs from their source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.compare import rows
from eventlog.compare.files import places_of, texts_of
from eventlog.compare.lines import differences
from eventlog.compare.table_snapshot import TableSnapshot, at_hand, read_table, snapshot
from eventlog.core.errors import Misuse
from eventlog.core.tables import Table, Tables
from eventlog.core.values import Kind
from eventlog.sql.connect import connect
from eventlog.transfer.targets.lake.delta_table import DeltaPlace, DeltaSnapshot
from eventlog.transfer.targets.lake.lake_settings import DELETED, read_place
from eventlog.transfer.targets.lake.lake_tables import KEY, SOURCE
from eventlog.transfer.targets.lake.lake_types import column_of, lake_type
from eventlog.transfer.targets.lake.rounds import Round

_SHOWN = 5  # keys of rows that differ
_MODULUS = 1 << 128
Batches = Iterator[pa.RecordBatch]
SourceOf = Callable[[DeltaSnapshot], tuple[Table, Batches]]


class TableReceipt(NamedTuple):
    """The rows of a table in one version, and how many differ from the source."""

    name: str
    version: int
    rows: int
    digest: str  # the sum of the digests of the rows, in any order
    differing: int
    keys: tuple[str, ...]  # the first of those that differ

    def __str__(self) -> str:
        differing = f"{self.differing} differ: {', '.join(self.keys)}" if self.differing else "equal"
        return f"{self.name}  version {self.version}  {self.rows} rows  digest {self.digest}  {differing}"


def receipts(place: DeltaPlace, this: Round, against: str) -> Iterator[TableReceipt]:
    """Yield the receipt of each table of a round, compared with a database or another lake."""
    with _source_at(against, place) as source_of:
        for name, version in sorted(this.versions.items()):
            table_snapshot = place.open(name, version)
            if table_snapshot is None:
                raise Misuse(f"the lake has no table {name}")
            if not table_snapshot.is_history:  # which no source has
                yield _receipt(table_snapshot, *source_of(table_snapshot))


def _receipt(table_snapshot: DeltaSnapshot, table: Table, source_batches: Batches) -> TableReceipt:
    row_sum = _RowSum()
    lake_batches = row_sum.passing(_trimmed(table, _rows_of(table_snapshot, table)))
    count, first_keys = 0, list[str]()
    for lines in differences(Tables([table]), table, _trimmed(table, source_batches), lake_batches):
        count += len(lines.keys)
        first_keys += lines.keys.slice(0, _SHOWN).to_pylist()
    name, version = table_snapshot.name, table_snapshot.version
    keys = tuple(sorted(first_keys)[:_SHOWN])
    return TableReceipt(name, version, row_sum.rows, f"{row_sum.total:032x}", count, keys)


def _trimmed(table: Table, batches: Batches) -> Batches:
    """Yield rows whose times have no noughts at the end of a fraction, which databases write or not."""
    places = [at for at, column in enumerate(table.data, 2) if column.kind in (Kind.TIME, Kind.TIMESTAMP)]
    for batch in batches:
        columns = list(batch.columns)
        for at in places:
            columns[at] = pc.replace_substring_regex(columns[at], r"(\.[0-9]*[1-9])0+\z|\.0+\z", r"\1")
        yield pa.record_batch(columns, schema=batch.schema)


class _RowSum:
    """The number of the rows that pass, and the sum of their digests."""

    def __init__(self) -> None:
        self.rows = self.total = 0

    def passing(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            cells = [batch.column(at).to_pylist() for at in range(batch.num_columns) if at != 1]  # no places
            for row in zip(*cells, strict=True):
                digest = hashlib.sha256(json.dumps(row).encode()).digest()
                self.total = (self.total + int.from_bytes(digest[:16])) % _MODULUS
            self.rows += batch.num_rows
            yield batch


def _rows_of(table_snapshot: DeltaSnapshot, table: Table) -> Batches:
    """Yield the rows of a lake's table as those of a table of its source."""
    names = tuple(field.name for field in table_snapshot.fields)
    keys, data = places_of(table, names, table_snapshot.name)
    for batch in table_snapshot.batches([names[at] for at in (*keys, *data)]):
        texts = [texts_of(column) for column in batch.columns]
        places = pa.array([table_snapshot.name] * batch.num_rows, pa.string())
        yield rows.batch(table, places, texts[: len(keys)], texts[len(keys) :])


@contextmanager
def _source_at(against: str, place: DeltaPlace) -> Iterator[SourceOf]:
    """Return what finds the table of a source, in another lake or in one moment of a database."""
    if against.startswith("delta:"):
        other_place = place._replace(address=read_place(against))
        yield lambda table_snapshot: _in_lake(other_place, table_snapshot)
        return
    with snapshot(connect(against)) as moment:
        yield lambda table_snapshot: _in_database(moment, table_snapshot)


def _in_database(moment: TableSnapshot, table_snapshot: DeltaSnapshot) -> tuple[Table, Batches]:
    name = table_snapshot.facts.get(SOURCE, table_snapshot.name)
    readable = at_hand(moment.connection, name)
    moment.add(readable)
    return readable.table, read_table(moment.connection, readable.table, readable)


def _in_lake(place: DeltaPlace, table_snapshot: DeltaSnapshot) -> tuple[Table, Batches]:
    other_snapshot = place.open(table_snapshot.name)
    if other_snapshot is None:
        raise Misuse(f"{place.address} has no table {table_snapshot.name}")
    fields = [each for each in table_snapshot.fields if each.name != DELETED]
    columns = {each.name: column_of(each.name, lake_type(each.type_name)) for each in fields}
    key = tuple(json.loads(table_snapshot.facts.get(KEY, "[]")))
    if not key:
        raise Misuse(f"the key of {table_snapshot.name} is not known, because others made the table")
    table = Table(None, table_snapshot.name, columns, key)
    return table, _rows_of(other_snapshot, table)
