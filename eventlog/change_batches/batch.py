"""The changes of one table as columns: the states of both sides, and the texts of their values."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from eventlog.core.change import Op
from eventlog.fold.by_column.vectors import Flags, Ints

OPS = (Op.INSERT, Op.UPDATE, Op.DELETE, Op.SNAPSHOT)  # by their numbers in a batch


class SideState(enum.IntEnum):
    """The state of one side of a field."""

    ABSENT = 0
    NULL = 1
    VALUE = 2


class ValueKind(enum.Enum):
    """The type of a column's values; values of others are odd."""

    TEXT = "text"
    INT = "integer"
    FLOAT = "float"
    BOOL = "boolean"
    BYTES = "bytes"


class BatchTable(NamedTuple):
    """The table of a batch."""

    schema: str | None
    name: str
    columns: tuple[str, ...]
    kinds: tuple[ValueKind, ...]
    key: tuple[int, ...]  # the places of its columns


class Sides(NamedTuple):
    """The sides of one column."""

    values: pa.Array  # the texts of values, as JSON holds them without quotes
    old_at: Ints  # of each change, where its value before is among them
    new_at: Ints
    had: Ints  # its state before
    has: Ints
    same: Flags  # both are one value


class ChangeBatch(NamedTuple):
    """The changes in their order; each has a key whose values are those of its row."""

    table: BatchTable
    ops: Ints
    key: Sequence[pa.Array]
    columns: Sequence[Sides]
    positions: pa.Array
    transactions: pa.Array
    times: pa.Array
    facts: Mapping[str, pa.Array]  # texts, integers or booleans, by their names
