"""What the formats of a lake have in common: tables in versions, and commits that take the number of a round.

A commit has rows, the number of its round and the source's position, or nothing. It is tried once: if another
one came between, it raises `AnotherCommit`, and its caller reads the table again.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import pyarrow as pa

from eventlog.core.errors import EventlogError
from eventlog.core.redaction import one_line, without_secrets
from eventlog.transfer.targets.lake.lake_settings import DELETED, SUPPLIED
from eventlog.transfer.targets.lake.lake_types import LakeType


class LakeFailed(EventlogError):
    """the table {0} of the lake: {1}"""


class AnotherCommit(EventlogError):
    """another commit of {0} came between"""


def failure_of(name: str, cause: str) -> LakeFailed:
    """Return the error for a table of a lake, with the words of its cause, without their secrets."""
    return LakeFailed(name, one_line(without_secrets(cause))[:500])


class LakeCommit(NamedTuple):
    """The facts that a commit has besides its rows."""

    application: str  # which counts the numbers
    number: int
    position: str
    run: str  # the process that commits
    facts: Mapping[str, str] = {}

    @property
    def properties(self) -> dict[str, str]:
        """Return the facts by name."""
        named = {APPLICATION: self.application, ROUND: str(self.number), POSITION: _short(self.position)}
        return {**named, RUN: self.run, **self.facts}


def _short(position: str) -> str:
    """Return a position, or the digest of a long one, which the table of rounds has."""
    if len(position) <= _LONG:
        return position
    return f"sha256:{hashlib.sha256(position.encode()).hexdigest()}"


APPLICATION, ROUND, POSITION = "eventlog.application", "eventlog.round", "eventlog.position"
RUN = "eventlog.run"
_LONG = 1_000  # characters of a position: every reader of the table reads those of its last commits


class LakeField(NamedTuple):
    """A column of a table."""

    name: str
    type: LakeType
    nullable: bool


class RowChanges(NamedTuple):
    """The rows that are changed, inserted and deleted by their keys.

    A column of `rows` is `c` and the number of a name, or `s` and that number: whether its value is supplied.
    What is not supplied stays. The column `w` has what is done: "w" for a row that is there then, "u" for one
    that is changed, and "" for one that is deleted.
    """

    rows: pa.Table
    key: Mapping[int, str]  # names by number
    supplied: Mapping[int, str]
    is_emptied: bool  # the other rows are deleted

    @property
    def names(self) -> Mapping[int, str]:
        """Return all names by number."""
        return {**self.key, **self.supplied}


class LakeSnapshot(ABC):
    """One version of a table, and the commits that follow it."""

    name: str

    @property
    @abstractmethod
    def version(self) -> int:
        """Return the version; it is that of the last commit, once there was one."""

    @cached_property
    @abstractmethod
    def fields(self) -> Sequence[LakeField]:
        """The columns."""

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Return the properties of the table."""

    @cached_property
    def keeps_deleted(self) -> bool:
        """Return whether deleted rows stay, and are marked."""
        return any(field.name == DELETED for field in self.fields)

    @cached_property
    def is_history(self) -> bool:
        """Return whether the rows are changes."""
        return any(field.name == SUPPLIED for field in self.fields)

    @abstractmethod
    def number(self, application: str) -> int:
        """Return the last number that was committed for an application; 0 without one."""

    @abstractmethod
    def run_of(self, application: str, number: int) -> str:
        """Return the process that committed a number; empty if its commit is long ago."""

    @abstractmethod
    def version_of(self, application: str, number: int) -> int:
        """Return the version that the commit of a number made; this one if that is long ago."""

    @abstractmethod
    def kept_since(self, version: int) -> int:
        """Return the newest version that has the rows of an earlier one, because its owner only tidied up."""

    @abstractmethod
    def count_rows(self) -> int:
        """Return the number of rows that are not deleted."""

    @abstractmethod
    def rows(self, columns: Sequence[str], within: Mapping[str, pa.Array] | None = None) -> pa.Table:
        """Return some columns of all rows, or of those that have one of these values in each of these
        columns; no rows that are deleted.
        """

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of all rows that are not deleted, batch by batch."""

    @abstractmethod
    def note(self, name: str, fact: str) -> None:
        """Leave a fact in the properties of the table, by a commit of its own."""

    @abstractmethod
    def add_columns(self, fields: Iterable[pa.Field]) -> None:
        """Add columns, by a commit of its own."""

    @abstractmethod
    def append(self, rows: pa.Table, commit: LakeCommit) -> int:
        """Add rows, and return the version."""

    @abstractmethod
    def replace(self, rows: pa.Table, commit: LakeCommit) -> int:
        """Put rows in place of all that are there, and return the version."""

    @abstractmethod
    def forget(self) -> None:
        """Let go of former versions, if they are a burden to each commit; this needs a commit of its own."""

    @abstractmethod
    def merge(self, changes: RowChanges, commit: LakeCommit) -> int:
        """Change, insert and delete rows by their keys, and return the version."""


class LakePlace(ABC):
    """A place with the tables of a lake, which is closed when its context ends."""

    address: str
    options: Mapping[str, str]  # of the store or the catalogue
    no_names: ClassVar[frozenset[str]] = frozenset()  # characters that names of columns cannot have

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *fault: object) -> None: ...

    @abstractmethod
    def open(self, name: str, version: int | None = None) -> LakeSnapshot | None:
        """Return a version of a table, the newest by default; None if there is no such table."""

    @abstractmethod
    def create(self, name: str, schema: pa.Schema, facts: Mapping[str, str]) -> None:
        """Make a table, unless somebody else makes it at the same moment."""

    @abstractmethod
    def stored_as(self, value_type: pa.DataType) -> pa.DataType:
        """Return the type of a column that holds the values of this one."""
