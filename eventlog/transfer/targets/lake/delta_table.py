"""Tables of Delta Lake: each commit has rows, the number of its round and the source's position, or nothing.

The library commits one number twice if it is asked to, so `LakeCommit` asks first. It never tries a commit
again by itself: it raises `AnotherCommit` if one came between, and its caller reads the table again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from eventlog.core.errors import EventlogError
from eventlog.core.redaction import one_line, without_secrets
from eventlog.transfer.targets.lake.lake_settings import DELETED, SUPPLIED

_RUN, _POSITION, _ROUND = "eventlog.run", "eventlog.position", "eventlog.round"
_UPKEEP = frozenset(("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "FSCK"))
_MARK = {f"`{DELETED}`": "true"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # in messages of the library
_CHECK, _BROKEN = "delta.constraints.", "failed validation check"
_LOOK_BACK = 100  # commits in which that of a round is looked for
_LONG = 1_000  # characters of a position: every reader of the table reads those of its last commits


class LakeFailed(EventlogError):
    """the table {0} of the lake: {1}"""


class BrokenCheck(LakeFailed):
    """the table {0} of the lake: a row of the round breaks one of its checks: {1}. Delta Lake refuses the \
whole commit then; drop this check of the table, and run again"""


class AnotherCommit(EventlogError):
    """another commit of {0} came between"""


class LakeCommit(NamedTuple):
    """The facts that a commit has besides its rows."""

    application: str  # under which Delta keeps the number
    number: int
    position: str
    run: str  # the process that commits
    facts: Mapping[str, str] = {}

    @property
    def properties(self) -> CommitProperties:
        """Return them as the library takes them."""
        named = {_ROUND: str(self.number), _POSITION: _short(self.position), _RUN: self.run}
        transaction = Transaction(self.application, self.number)
        return CommitProperties(
            custom_metadata={**named, **self.facts}, max_commit_retries=0, app_transactions=[transaction]
        )


def _short(position: str) -> str:
    """Return a position, or the digest of a long one, which the table of rounds has."""
    if len(position) <= _LONG:
        return position
    return f"sha256:{hashlib.sha256(position.encode()).hexdigest()}"


class DeltaPlace(NamedTuple):
    """A folder of tables, on a disk or in a store."""

    address: str
    options: Mapping[str, str] = {}

    def address_of(self, name: str) -> str:
        """Return the address of a table."""
        return f"{self.address.rstrip('/')}/{name}"

    def open(self, name: str, version: int | None = None) -> DeltaSnapshot | None:
        """Return a version of a table, the newest by default; None if there is no such table."""
        with _failing(name):
            try:
                options = dict(self.options)
                table = deltalake.DeltaTable(self.address_of(name), version, storage_options=options)
                return DeltaSnapshot(name, table)
            except TableNotFoundError:
                return None

    def create(self, name: str, schema: pa.Schema, facts: Mapping[str, str]) -> None:
        """Make a table, unless somebody else makes it at the same moment."""
        with _failing(name):
            deltalake.DeltaTable.create(
                self.address_of(name),
                schema,
                mode="ignore",
                configuration=dict(facts),
                storage_options=dict(self.options),
                raise_if_key_not_exists=False,
            )


class DeltaField(NamedTuple):
    """A column of a table."""

    name: str
    type_name: str  # as Delta spells it; `array`, `map` or `struct` of a nested one
    nullable: bool
    arrow: pa.DataType


class DeltaSnapshot:
    """One version of a table, and the commits that follow it."""

    def __init__(self, name: str, table: Any) -> None:
        self.name = name
        self._table = table

    @property
    def version(self) -> int:
        return int(self._table.version())

    @cached_property
    def fields(self) -> Sequence[DeltaField]:
        """The columns."""
        schema = self._table.schema()
        types = pa.schema(schema.to_arrow()).types
        return [
            DeltaField(field.name, str(field.type.type), field.nullable, arrow)
            for field, arrow in zip(schema.fields, types, strict=True)
        ]

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the properties of the table."""
        return dict(self._table.metadata().configuration)

    def number(self, application: str) -> int:
        """Return the last number that was committed for an application; 0 without one."""
        return int(self._table.transaction_version(application) or 0)

    def run_of(self, number: int) -> str:
        """Return the process that committed a number; empty if its commit is long ago."""
        return str(self._commit_of(number).get(_RUN, ""))

    def version_of(self, number: int) -> int:
        """Return the version that the commit of a number made; this one if that is long ago."""
        return int(self._commit_of(number).get("version", self.version))

    def _commit_of(self, number: int) -> Mapping[str, Any]:
        with _failing(self.name):
            commits = self._table.history(_LOOK_BACK)
        return next((commit for commit in commits if commit.get(_ROUND) == str(number)), {})

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

    @cached_property
    def keeps_deleted(self) -> bool:
        """Return whether deleted rows stay, and are marked."""
        return any(field.name == DELETED for field in self.fields)

    @cached_property
    def is_history(self) -> bool:
        """Return whether the rows are changes."""
        return any(field.name == SUPPLIED for field in self.fields)

    def count_rows(self) -> int:
        """Return the number of rows that are not deleted."""
        with _failing(self.name):
            return int(self._dataset().count_rows(filter=self._present()))

    def rows(self, columns: Sequence[str], first: str = "", values: pa.Array | None = None) -> pa.Table:
        """Return some columns of all rows, or of those whose first key column has one of these values."""
        with _failing(self.name):
            present = self._present()
            within = present if values is None else pc.field(first).isin(values)
            both = within if present is None or values is None else within & present
            return self._dataset().to_table(columns=list(columns), filter=both)

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
            deltalake.write_deltalake(self._table, rows, mode=mode, commit_properties=commit.properties)
            return self.version

    def merge(self, rows: pa.Table, merging: Merging, commit: LakeCommit) -> int:
        """Change, insert and delete rows by their keys, and return the version."""
        with _failing(self.name, self._checks):
            merge = self._table.merge(
                rows,
                merging.on,
                source_alias="s",
                target_alias="t",
                streamed_exec=False,  # so that files without a key between the bounds are not read
                commit_properties=commit.properties,
            )
            if self.keeps_deleted:
                merge = merge.when_matched_update(_MARK, merging.deleted)
            else:
                merge = merge.when_matched_delete(merging.deleted)
            if merging.is_emptied:
                merge = merge.when_not_matched_by_source_update(_MARK)
            merge = merge.when_matched_update(dict(merging.updates))
            merge.when_not_matched_insert(dict(merging.inserts), merging.inserted).execute()
            return self.version


class Merging(NamedTuple):
    """The expressions of a merge of rows `s` into a table `t`."""

    on: str
    deleted: str
    inserted: str
    updates: Mapping[str, str]
    inserts: Mapping[str, str]
    is_emptied: bool  # the other rows are marked as deleted


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
        words = one_line(without_secrets(_COLOUR.sub("", str(fault))))
        raise LakeFailed(name, words[:500]) from None  # the words of the cause, without its secrets
