"""Tables of Delta Lake.

The library commits one number twice if it is asked to, so callers look for it first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from eventlog.transfer.targets.lake.lake_place import (
    APPLICATION,
    ROUND,
    RUN,
    AnotherCommit,
    LakeCommit,
    LakeFailed,
    LakeField,
    LakePlace,
    LakeSnapshot,
    RowChanges,
    failure_of,
)
from eventlog.transfer.targets.lake.lake_settings import DELETED
from eventlog.transfer.targets.lake.lake_types import UUID, lake_type

_UPKEEP = frozenset(("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "FSCK"))
_MARK = {f"`{DELETED}`": "true"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # in messages of the library
_CHECK, _BROKEN = "delta.constraints.", "failed validation check"
_LOOK_BACK = 100  # commits in which that of a round is looked for


class BrokenCheck(LakeFailed):
    """the table {0} of the lake: a row of the round breaks one of its checks: {1}. Delta Lake refuses the \
whole commit then; drop this check of the table, and run again"""


class DeltaPlace(LakePlace):
    """A folder of tables, on a disk or in a store."""

    no_names = frozenset(" ,;{}()\n\t=`")  # columns have them only by another name

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        self.address = address
        self.options = options

    def __exit__(self, *fault: object) -> None:
        """Do nothing: no file stays open."""

    def open(self, name: str, version: int | None = None) -> DeltaSnapshot | None:
        """Return a version of a table, the newest by default; None if there is no such table."""
        with _failing(name):
            try:
                options = dict(self.options)
                table = deltalake.DeltaTable(self._address_of(name), version, storage_options=options)
                return DeltaSnapshot(name, table)
            except TableNotFoundError:
                return None

    def create(self, name: str, schema: pa.Schema, facts: Mapping[str, str]) -> None:
        """Make a table, unless somebody else makes it at the same moment."""
        with _failing(name):
            deltalake.DeltaTable.create(
                self._address_of(name),
                schema,
                mode="ignore",
                configuration=dict(facts),
                storage_options=dict(self.options),
                raise_if_key_not_exists=False,
            )

    def stored_as(self, value_type: pa.DataType) -> pa.DataType:
        """Return the type of a column that holds the values of this one; times of day are texts."""
        return pa.string() if value_type == UUID or pa.types.is_time(value_type) else value_type

    def _address_of(self, name: str) -> str:
        return f"{self.address.rstrip('/')}/{name}"


class DeltaSnapshot(LakeSnapshot):
    """One version of a table, and the commits that follow it."""

    def __init__(self, name: str, table: Any) -> None:
        self.name = name
        self._table = table

    @property
    def version(self) -> int:
        return int(self._table.version())

    @cached_property
    def fields(self) -> Sequence[LakeField]:
        """The columns."""
        schema = pa.schema(self._table.schema().to_arrow())
        return [LakeField(field.name, lake_type(field.type), field.nullable) for field in schema]

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the properties of the table."""
        return dict(self._table.metadata().configuration)

    def number(self, application: str) -> int:
        """Return the last number that was committed for an application; 0 without one."""
        return int(self._table.transaction_version(application) or 0)

    def run_of(self, application: str, number: int) -> str:
        """Return the process that committed a number; empty if its commit is long ago."""
        return str(self._commit_of(application, number).get(RUN, ""))

    def version_of(self, application: str, number: int) -> int:
        """Return the version that the commit of a number made; this one if that is long ago."""
        return int(self._commit_of(application, number).get("version", self.version))

    def _commit_of(self, application: str, number: int) -> Mapping[str, Any]:
        with _failing(self.name):
            commits = self._table.history(_LOOK_BACK)
        named = {APPLICATION: application, ROUND: str(number)}
        return next((commit for commit in commits if named.items() <= commit.items()), {})

    def kept_since(self, version: int) -> int:
        """Return the newest version that has the rows of an earlier one, because its owner only tidied up."""
        with _failing(self.name):
            commits = self._table.history(max(self.version - version, 0)) if self.version > version else []
        newest = version
        for commit in sorted(commits, key=lambda commit: int(commit["version"])):
            if commit.get("operation") not in _UPKEEP or int(commit["version"]) != newest + 1:
                break
            newest += 1
        return newest

    def count_rows(self) -> int:
        """Return the number of rows that are not deleted."""
        with _failing(self.name):
            return int(self._dataset().count_rows(filter=self._present()))

    def rows(self, columns: Sequence[str], within: Mapping[str, pa.Array] | None = None) -> pa.Table:
        """Return some columns of rows that are not deleted: of all, or with one of these values in each of
        these columns.
        """
        with _failing(self.name):
            condition = self._present()
            for name, values in (within or {}).items():
                is_one = pc.field(name).isin(values)
                condition = is_one if condition is None else is_one & condition
            return self._dataset().to_table(columns=list(columns), filter=condition)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of all rows, batch by batch."""
        with _failing(self.name):
            yield from self._dataset().to_batches(columns=list(columns), filter=self._present())

    def note(self, name: str, fact: str) -> None:
        """Leave a fact in the properties of the table, by a commit of its own."""
        with _failing(self.name):
            self._table.alter.set_table_properties({name: fact}, raise_if_not_exists=False)

    def _present(self) -> Any:
        """Return the condition of rows that are not deleted; None if deleted rows do not stay."""
        deleted = pc.field(DELETED)
        return deleted.is_null() | ~deleted if self.keeps_deleted else None

    def _dataset(self) -> Any:
        return self._table.to_pyarrow_dataset()  # of the version now, which a commit of ours has moved

    def add_columns(self, fields: Iterable[pa.Field]) -> None:
        """Add columns, by a commit of its own."""
        with _failing(self.name):
            schema = deltalake.Schema.from_arrow(pa.schema(list(fields)))
            self._table.alter.add_columns(
                schema.fields, commit_properties=CommitProperties(max_commit_retries=0)
            )

    @property
    def _checks(self) -> str:
        checks = {name: words for name, words in self.facts.items() if name.startswith(_CHECK)}
        return ", ".join(f"{name.removeprefix(_CHECK)} ({words})" for name, words in sorted(checks.items()))

    def append(self, rows: pa.Table, commit: LakeCommit) -> int:
        """Add rows, and return the version."""
        return self._write(rows, commit, "append")

    def replace(self, rows: pa.Table, commit: LakeCommit) -> int:
        """Put rows in place of all that are there, and return the version."""
        return self._write(rows, commit, "overwrite")

    def _write(self, rows: pa.Table, commit: LakeCommit, mode: Any) -> int:
        with _failing(self.name, self._checks):
            deltalake.write_deltalake(self._table, rows, mode=mode, commit_properties=_properties(commit))
            return self.version

    def forget(self) -> None:
        """Do nothing: the library takes old entries of the log away by itself."""

    def merge(self, changes: RowChanges, commit: LakeCommit) -> int:
        """Change, insert and delete rows by their keys, and return the version."""
        names = {place: f"`{name}`" for place, name in changes.names.items()}
        or_deleted = f" or t.`{DELETED}`" if self.keeps_deleted else ""  # nothing of such a row stays
        updates = {
            names[place]: f"case when s.s{place}{or_deleted} then s.c{place} else t.{names[place]} end"
            for place in changes.supplied
        }
        inserts = {name: f"s.c{place}" for place, name in names.items()}
        if self.keeps_deleted:
            updates[f"`{DELETED}`"] = inserts[f"`{DELETED}`"] = "false"
        with _failing(self.name, self._checks):
            merge = self._table.merge(
                changes.rows,
                " and ".join(f"t.{names[place]} = s.c{place}" for place in changes.key),
                source_alias="s",
                target_alias="t",
                streamed_exec=False,  # so that files without a key between the bounds are not read
                commit_properties=_properties(commit),
            )
            if self.keeps_deleted:
                merge = merge.when_matched_update(_MARK, "s.w = ''")
            else:
                merge = merge.when_matched_delete("s.w = ''")
            if changes.is_emptied:
                merge = merge.when_not_matched_by_source_update(_MARK)
            merge = merge.when_matched_update(updates)
            merge.when_not_matched_insert(inserts, "s.w = 'w'").execute()
            return self.version


def _properties(commit: LakeCommit) -> CommitProperties:
    """Return the facts of a commit as the library takes them."""
    transaction = Transaction(commit.application, commit.number)
    return CommitProperties(
        custom_metadata=commit.properties, max_commit_retries=0, app_transactions=[transaction]
    )


@contextmanager
def _failing(name: str, checks: str = "") -> Iterator[None]:
    """Raise AnotherCommit for a commit that came between, LakeFailed for other errors of the library.

    What it reports of a broken check has values of rows, which are left out.
    """
    try:
        yield
    except CommitFailedError as fault:
        raise AnotherCommit(name) from fault
    except (deltalake.exceptions.DeltaError, pa.ArrowException, OSError, ValueError) as fault:
        if checks and _BROKEN in str(fault):
            raise BrokenCheck(name, checks) from None
        raise failure_of(name, _COLOUR.sub("", str(fault))) from None
