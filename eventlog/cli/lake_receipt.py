"""The receipt of a lake's tables: their rows at a round that is done, and what differs from their source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from eventlog.compare.batch_side import BatchSide, compare
from eventlog.compare.segments import TableSide
from eventlog.compare.table_snapshot import TableSnapshot, at_hand, snapshot
from eventlog.core.errors import Misuse
from eventlog.core.tables import Table
from eventlog.sql.connect import connect
from eventlog.transfer.targets.lake.lake_place import LakePlace, LakeSnapshot
from eventlog.transfer.targets.lake.lake_settings import DELETED, is_lake
from eventlog.transfer.targets.lake.lake_tables import KEY, SOURCE
from eventlog.transfer.targets.lake.lake_types import column_of
from eventlog.transfer.targets.lake.lakes import lake_at

Side = TableSide | BatchSide
SourceOf = Callable[[LakeSnapshot], Side]


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


def receipts(place: LakePlace, versions: Mapping[str, int], against: str) -> Iterator[TableReceipt]:
    """Yield the receipt of each of these tables in its version, compared with a database or another lake."""
    with _source_at(against, place) as source_of:
        for name, version in sorted(versions.items()):
            table_snapshot = place.open(name, version)
            if table_snapshot is None:
                raise Misuse(f"the lake has no table {name}")
            if not table_snapshot.is_history:  # which no source has
                source = source_of(table_snapshot)
                comparison = compare(source, _side_of(table_snapshot, source.table))
                yield TableReceipt(name, table_snapshot.version, *comparison)


def _side_of(table_snapshot: LakeSnapshot, table: Table) -> BatchSide:
    types = {field.name: field.type.arrow for field in table_snapshot.fields}
    return BatchSide(table_snapshot, types, table)


@contextmanager
def _source_at(against: str, place: LakePlace) -> Iterator[SourceOf]:
    """Return what finds the table of a source, in another lake or in one moment of a database."""
    if is_lake(against):
        with lake_at(against, place.options, "--against") as other_place:
            yield lambda table_snapshot: _in_lake(other_place, table_snapshot)
        return
    with snapshot(connect(against)) as moment:
        yield lambda table_snapshot: _in_database(moment, table_snapshot)


def _in_database(moment: TableSnapshot, table_snapshot: LakeSnapshot) -> TableSide:
    readable = at_hand(moment.connection, table_snapshot.facts.get(SOURCE, table_snapshot.name))
    moment.add(readable)
    return TableSide(moment.connection, readable.table, readable, readable.table, is_digested=True)


def _in_lake(place: LakePlace, table_snapshot: LakeSnapshot) -> BatchSide:
    other_snapshot = place.open(table_snapshot.name)
    if other_snapshot is None:
        raise Misuse(f"{place.address} has no table {table_snapshot.name}")
    fields = [each for each in table_snapshot.fields if each.name != DELETED]
    columns = {each.name: column_of(each.name, each.type) for each in fields}
    key = tuple(json.loads(table_snapshot.facts.get(KEY, "[]")))
    if not key:
        raise Misuse(f"the key of {table_snapshot.name} is not known, because others made the table")
    return _side_of(other_snapshot, Table(None, table_snapshot.name, columns, key))
