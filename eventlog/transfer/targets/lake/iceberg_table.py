"""Tables of Apache Iceberg, in any catalogue that pyiceberg knows; the only module that imports it.

A commit puts files in place of others, and sets the number of its round and the position as properties of
the table, all in one transaction. Its snapshot has them, too, so that a table that its owner set back to an
earlier snapshot has the number of that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotInstalledError,
    RESTError,
    SignError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThanOrEqual,
    Or,
)
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.snapshots import Operation, Snapshot
from sqlalchemy.exc import SQLAlchemyError

from eventlog.core.errors import Misuse
from eventlog.core.redaction import one_line, without_secrets
from eventlog.transfer.targets.lake.lake_place import (
    APPLICATION,
    POSITION,
    ROUND,
    RUN,
    AnotherCommit,
    LakeCommit,
    LakeField,
    LakePlace,
    LakeSnapshot,
    RowChanges,
    failure_of,
)
from eventlog.transfer.targets.lake.lake_settings import DELETED
from eventlog.transfer.targets.lake.lake_types import UUID, lake_type
from eventlog.transfer.targets.lake.row_merge import merged

_OF_NEW_TABLES = {
    TableProperties.FORMAT_VERSION: "2",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "20",  # each commit copies the list of them
}
_PLAIN = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
_EMPTY = 0  # the version of a table that has no snapshot
_FEW = 200  # values by which the library skips files; by more it skips none
_HELD_BYTES = 64 << 20  # of rows of former files that one new file has
_MOST_SPENT = 20  # manifests without files that a table has
_CAUSES = (
    NoSuchNamespaceError,
    NoSuchTableError,
    NotImplementedError,
    NotInstalledError,
    OSError,
    RESTError,
    SQLAlchemyError,
    SignError,
    ValueError,
    pa.ArrowException,
)


class NoCatalogue(Misuse):
    """the catalogue {0} cannot be opened: {1}. Its settings have the names of pyiceberg: in --lake-options, \
in .pyiceberg.yaml, or in variables such as PYICEBERG_CATALOG__{2}__URI"""


class IcebergPlace(LakePlace):
    """A namespace of a catalogue."""

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        self.address = address
        self.options = options
        catalogue, _, namespace = address.partition("/")
        self._namespace = tuple(namespace.split("."))
        try:
            self._catalogue = load_catalog(catalogue, **options)
        except (*_CAUSES, AttributeError, KeyError) as fault:
            words = one_line(without_secrets(str(fault)))[:500]
            raise NoCatalogue(catalogue, words, catalogue.upper()) from None

    def __exit__(self, *fault: object) -> None:
        self._catalogue.close()

    def open(self, name: str, version: int | None = None) -> IcebergSnapshot | None:
        """Return a version of a table, the newest by default; None if there is no such table."""
        with _failing(name):
            try:
                return IcebergSnapshot(name, self._catalogue.load_table((*self._namespace, name)), version)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def create(self, name: str, schema: pa.Schema, facts: Mapping[str, str]) -> None:
        """Make a table, unless somebody else makes it at the same moment."""
        identifier, properties = (*self._namespace, name), {**_OF_NEW_TABLES, **facts}
        with _failing(name):
            try:
                self._catalogue.create_namespace_if_not_exists(self._namespace)
                self._catalogue.create_table(identifier, schema, properties=properties)
            except (NamespaceAlreadyExistsError, TableAlreadyExistsError):
                pass

    def stored_as(self, value_type: pa.DataType) -> pa.DataType:
        """Return the type of a column that holds the values of this one."""
        return value_type


class IcebergSnapshot(LakeSnapshot):
    """One version of a table, which is named by its snapshot, and the commits that follow it."""

    def __init__(self, name: str, table: Table, version: int | None) -> None:
        self.name = name
        self._table = table
        self._version = version

    @property
    def version(self) -> int:
        """Return the version; it is that of the last commit, once there was one."""
        if self._version is not None:
            return self._version
        newest = self._table.current_snapshot()
        return _EMPTY if newest is None else newest.snapshot_id

    @cached_property
    def fields(self) -> Sequence[LakeField]:
        """The columns."""
        schema = self._table.scan(snapshot_id=self._version or None).projection()
        return [
            LakeField(field.name, lake_type(_PLAIN.get(field.type, field.type)), field.nullable)
            for field in schema_to_pyarrow(schema, include_field_ids=False)
        ]

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the properties of the table."""
        return dict(self._table.properties)

    def number(self, application: str) -> int:
        """Return the last number that was committed for an application; 0 without one."""
        last = next(self._commits(application), None)
        return int(self.facts.get(_named(application, ROUND), 0) if last is None else _of(last, ROUND))

    def run_of(self, application: str, number: int) -> str:
        """Return the process that committed a number; empty if its commit is long ago."""
        commit = self._commit_of(application, number)
        return "" if commit is None else _of(commit, RUN)

    def version_of(self, application: str, number: int) -> int:
        """Return the version that the commit of a number made; this one if that is long ago."""
        commit = self._commit_of(application, number)
        return self.version if commit is None else commit.snapshot_id

    def _commit_of(self, application: str, number: int) -> Snapshot | None:
        """Return the last snapshot of a number; a commit may have several."""
        commits = self._commits(application)
        return next((commit for commit in commits if _of(commit, ROUND) == str(number)), None)

    def _commits(self, application: str) -> Iterator[Snapshot]:
        """Yield the snapshots of an application that lead to this version, the newest first."""
        return (snapshot for snapshot in self._lineage() if _of(snapshot, APPLICATION) == application)

    def _lineage(self) -> Iterator[Snapshot]:
        by_id = {snapshot.snapshot_id: snapshot for snapshot in self._table.snapshots()}
        snapshot = by_id.get(self.version)
        while snapshot is not None:
            yield snapshot
            snapshot = by_id.get(snapshot.parent_snapshot_id)

    def kept_since(self, version: int) -> int:
        """Return the newest version that has the rows of an earlier one, because its owner only tidied up.

        If an expiry took that one, the compactions that remain count.
        """
        later_snapshots: list[Snapshot] = []
        for snapshot in self._lineage():
            if snapshot.snapshot_id == version:
                break
            later_snapshots.append(snapshot)
        newest = version
        for snapshot in reversed(later_snapshots):
            if snapshot.summary is None or snapshot.summary.operation is not Operation.REPLACE:
                break
            newest = snapshot.snapshot_id
        return newest

    def count_rows(self) -> int:
        """Return the number of rows that are not deleted."""
        with _failing(self.name):
            return int(self._scan(self._present()).count())

    def rows(self, columns: Sequence[str], within: Mapping[str, pa.Array] | None = None) -> pa.Table:
        """Return some columns of rows that are not deleted: of all, or with one of these values in each of
        these columns.
        """
        within = within or {}
        names = list(dict.fromkeys((*columns, *within)))
        with _failing(self.name):
            parts = self._parts(And(self._present(), _within(within)), names)
            of_values = [part.filter(_is_within(part, within)) for part in parts]
            return pa.concat_tables([self._form(names).empty_table(), *of_values]).select(columns)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of all rows that are not deleted, batch by batch."""
        with _failing(self.name):
            for part in self._parts(self._present(), columns):
                yield from part.to_batches()

    def _parts(self, condition: BooleanExpression, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield some columns of rows that meet a condition, part by part."""
        reader = self._scan(condition, columns).to_arrow_batch_reader()
        return (self._plain(pa.table(batch), columns) for batch in reader)

    def _present(self) -> BooleanExpression:
        """Return the condition of rows that are not deleted."""
        return Or(IsNull(DELETED), EqualTo(DELETED, False)) if self.keeps_deleted else AlwaysTrue()

    def _scan(self, condition: BooleanExpression, columns: Sequence[str] = ("*",)) -> Any:
        """Return a scan of this version, which a commit of ours has moved."""
        if self._version == _EMPTY:
            condition = AlwaysFalse()
        return self._table.scan(condition, tuple(columns), snapshot_id=self._version or None)

    def _form(self, columns: Sequence[str]) -> pa.Schema:
        """Return some columns with the types of a lake's columns."""
        types = {field.name: field.type.arrow for field in self.fields}
        return pa.schema([(name, types[name]) for name in columns])

    def _plain(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return some columns of rows with the types of a lake's columns."""
        form = self._form(columns)
        return pa.table([rows[field.name].cast(field.type) for field in form], schema=form)

    def note(self, name: str, fact: str) -> None:
        """Leave a fact in the properties of the table, by a commit of its own."""
        with _failing(self.name), self._table.transaction() as transaction:
            transaction.set_properties({name: fact})

    def add_columns(self, fields: Iterable[pa.Field]) -> None:
        """Add columns, by a commit of its own."""
        with _failing(self.name), self._table.update_schema() as update:
            update.union_by_name(pa.schema(list(fields)))

    def append(self, rows: pa.Table, commit: LakeCommit) -> int:
        """Add rows, and return the version."""
        return self._commit(rows, commit)

    def replace(self, rows: pa.Table, commit: LakeCommit) -> int:
        """Put rows in place of all that are there, and return the version."""
        with _failing(self.name):
            exchange = _Exchange([task.file for task in self._scan(AlwaysTrue()).plan_files()])
        return self._commit(rows, commit, exchange)

    def forget(self) -> None:
        """Let go of former versions: the metadata has a list of them, which each commit writes anew."""
        former = [
            snapshot.snapshot_id for snapshot in self._lineage() if snapshot.snapshot_id != self.version
        ]
        with _failing(self.name):
            self._table.maintenance.expire_snapshots().by_ids(former).commit()

    def merge(self, changes: RowChanges, commit: LakeCommit) -> int:
        """Change, insert and delete rows by their keys, and return the version."""
        key = {} if changes.is_emptied else changes.key
        keys = {name: changes.rows[f"c{place}"] for place, name in key.items()}
        names = [field.name for field in self.fields]
        exchange, met_rows, other_rows = _Exchange(), [self._form(names).empty_table()], list[pa.Table]()
        with _failing(self.name):
            for task in self._scan(_within(keys)).plan_files():
                rows = self._plain(self._read(task), names)
                is_met = _is_within(rows, keys)
                if not pc.any(is_met).as_py():
                    continue
                exchange.former_files.append(task.file)
                met_rows.append(rows.filter(is_met))
                other_rows.append(rows.filter(pc.invert(is_met)))
                if sum(part.nbytes for part in other_rows) > _HELD_BYTES:
                    exchange.new_files += self._written(pa.concat_tables(other_rows))
                    other_rows.clear()
            rows = pa.concat_tables([*other_rows, merged(pa.concat_tables(met_rows), changes)])
        return self._commit(rows, commit, exchange)

    def _read(self, task: Any) -> pa.Table:
        """Return the rows of a file."""
        metadata = self._table.metadata
        return ArrowScan(metadata, self._table.io, metadata.schema(), AlwaysTrue()).to_table([task])

    def _written(self, rows: pa.Table) -> list[DataFile]:
        """Write files of rows, which a commit adds to the table."""
        if not rows.num_rows:
            return []
        return list(_dataframe_to_data_files(self._table.metadata, self._complete(rows), self._table.io))

    def _commit(self, rows: pa.Table, commit: LakeCommit, exchange: _Exchange | None = None) -> int:
        """Add rows, put files in place of others, and note the facts, in one transaction."""
        table, facts = _for_commit(self._table), commit.properties
        with _failing(self.name):
            with table.transaction() as transaction:
                if exchange is None or not exchange.former_files:
                    transaction.append(self._complete(rows), facts)
                else:
                    exchange.new_files += self._written(rows)
                    exchange.stage(transaction, facts)
                    if self._has_spent_manifests():
                        transaction.append(self._complete(rows.slice(0, 0)), facts)
                transaction.set_properties(
                    {_named(commit.application, name): facts[name] for name in (ROUND, POSITION)}
                )
            self._table = table
            return self.version

    def _has_spent_manifests(self) -> bool:
        """Return whether many manifests have no files any more; an append leaves them out."""
        newest = self._table.current_snapshot()
        manifests = [] if newest is None else newest.manifests(self._table.io)
        spent = [each for each in manifests if not (each.has_added_files() or each.has_existing_files())]
        return len(spent) >= _MOST_SPENT

    def _complete(self, rows: pa.Table) -> pa.Table:
        """Return rows with all columns of the table, as the library writes them."""
        schema = schema_to_pyarrow(self._table.schema(), include_field_ids=False)
        columns = [
            rows[field.name].cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)


@dataclass
class _Exchange:
    """The files that a commit takes out of a table, and those that it puts in place of them."""

    former_files: list[DataFile] = field(default_factory=list)
    new_files: list[DataFile] = field(default_factory=list)

    def stage(self, transaction: Transaction, facts: Mapping[str, str]) -> None:
        """Make the exchange a snapshot of a transaction."""
        with transaction.update_snapshot(dict(facts)).overwrite() as update:
            update.delete_by_predicate(AlwaysTrue())  # any manifest may have the files
            for file in self.former_files:
                update.delete_data_file(file)
            for file in self.new_files:
                update.append_data_file(file)


def _for_commit(table: Table) -> Table:
    """Return a table such that the library tries a commit once, and copies only the newest snapshot.

    It copies all metadata for each step of a commit; that of the table is in the catalogue.
    """
    newest = table.current_snapshot()
    lean = {
        "properties": {**table.properties, TableProperties.COMMIT_NUM_RETRIES: "0"},
        "snapshots": [] if newest is None else [newest],
        "snapshot_log": [],
    }
    metadata = table.metadata.model_copy(update=lean)
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog, table.config)


def _named(application: str, name: str) -> str:
    """Return the name of an application's fact among the properties of a table."""
    return f"{application}.{name.rpartition('.')[2]}"


def _of(snapshot: Snapshot, name: str) -> str:
    """Return a fact of a snapshot."""
    return "" if snapshot.summary is None else snapshot.summary.additional_properties.get(name, "")


def _within(values_by_name: Mapping[str, pa.Array]) -> BooleanExpression:
    """Return a condition by which the library skips files without rows that have one of some values in each
    column. It skips none by many values, only by the least and the greatest.
    """
    conditions: list[BooleanExpression] = []
    for name, array in values_by_name.items():
        values = _literals(array)
        if len(values) <= _FEW:
            conditions.append(In(name, values))
        elif array.type not in (UUID, pa.bool_()):
            conditions += [GreaterThanOrEqual(name, min(values)), LessThanOrEqual(name, max(values))]
    return reduce(And, conditions, AlwaysTrue())


def _is_within(rows: pa.Table, values_by_name: Mapping[str, pa.Array]) -> pa.Array:
    """Return for each row whether it has one of some values in each column."""
    masks = (
        pc.is_in(_storage(rows[name]), value_set=_storage(values)) for name, values in values_by_name.items()
    )
    return reduce(pc.and_, masks, pa.repeat(True, rows.num_rows))


def _storage(values: Any) -> Any:
    """Return values as Arrow compares them: it compares a uuid by its bytes only."""
    return values.cast(pa.binary(16)) if values.type == UUID else values


def _literals(array: pa.Array) -> list[Any]:
    """Return different values as the library takes them in conditions; moments are numbers."""
    distinct = _storage(array).unique().cast(array.type)
    if pa.types.is_temporal(array.type):
        return list(distinct.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64()).to_pylist())
    return list(distinct.to_pylist())


@contextmanager
def _failing(name: str) -> Iterator[None]:
    """Raise AnotherCommit for a commit that came between, LakeFailed for other errors of the library."""
    try:
        yield
    except (CommitFailedException, CommitStateUnknownException, ValidationException) as fault:
        raise AnotherCommit(name) from fault
    except _CAUSES as fault:
        raise failure_of(name, str(fault)) from None
