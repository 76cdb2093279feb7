"""The one model that every format shares: a change of one row or object.

Values are what JSON can distinguish: null, booleans, integers, finite floats, text and bytes. Decimals,
dates, times and intervals are canonical texts (ISO 8601 for times), because no Python type holds all that the
five systems can write. The type of the column, in `tables`, decides how to read them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from eventlog.core.errors import NotExpressible


class Op(enum.StrEnum):
    """The operation of a change."""

    INSERT = "insert"  # a row came into being
    UPDATE = "update"  # a row took other values, perhaps another key
    DELETE = "delete"  # a row is gone
    SNAPSHOT = "snapshot"  # a row of a first full load
    TRUNCATE = "truncate"  # every row of the table is gone


class Absent(enum.Enum):
    """The side of a field that was not captured; null, by contrast, is None."""

    ABSENT = "absent"

    __hash__ = object.__hash__  # an Enum's own is written in Python, and shapes are hashed often

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Undecoded:
    """A text whose bytes do not decode in the source's code set."""

    data: bytes


Scalar = bool | int | float | str | bytes | Undecoded
Value = Scalar | None | tuple[Scalar, ...]  # a tuple: the values of one multi-valued attribute
Side = Value | Absent
Key = tuple[tuple[str, Value], ...]
Fact = bool | int | float | str | None | tuple["Fact", ...]
Facts = tuple[tuple[str, Fact], ...]
EVENT_PART: Final = "event_part"  # the fact about a change that shares its position: the end of its event-id,
KEY_DIGEST: Final = "key"  # or this, which is for a digest of its key


def one_or_many(values: tuple[Scalar, ...]) -> Side:
    """Return the side that holds these values."""
    return values if len(values) > 1 else values[0] if values else None


def scalars(side: Side) -> tuple[Scalar, ...]:
    """Return the values that one side of a field holds, null and absent being none."""
    if side is None or side is ABSENT:
        return ()
    return side if isinstance(side, tuple) else (side,)


class Field(NamedTuple):
    """The value of one column before and after the change."""

    column: str
    before: Side = ABSENT
    after: Side = ABSENT


class Raw(NamedTuple):
    """The row images without a layout that explains them."""

    before: bytes | None = None
    after: bytes | None = None


class Change(NamedTuple):
    """One thing that happened to one row or object."""

    op: Op
    schema: str | None
    table: str
    key: Key = ()  # after the change; empty if the source does not contain it
    fields: tuple[Field, ...] = ()  # in source order; order and repetition have meaning
    position: str | None = None
    transaction: str | None = None
    time: str | None = None  # ISO 8601
    user: str | None = None
    current: bool = False  # the values were read back from the row as it was later
    extra: Facts = ()  # what only the source's own format needs for a round trip
    raw: Raw | None = None

    @property
    def before(self) -> dict[str, Value]:
        """The row before the change, as far as it was captured; a column may have changed several times."""
        row = {f.column: f.before for f in self.fields if f.before is not ABSENT}
        if len(row) == len(self.fields):
            return row
        first_values: dict[str, Side] = {}
        for column, before, _ in self.fields:
            first_values.setdefault(column, before)
        return {column: before for column, before in first_values.items() if before is not ABSENT}

    @property
    def after(self) -> dict[str, Value]:
        """The row after the change, as far as it was captured."""
        return {f.column: f.after for f in self.fields if f.after is not ABSENT}

    @property
    def key_before(self) -> Key:
        """Return the key before the change, from old values among the fields."""
        if self.op is not Op.UPDATE:
            return self.key
        before = self.before
        return tuple((column, before.get(column, value)) for column, value in self.key)

    def fact(self, name: str) -> Fact:
        """Return one fact of `extra`, None where it is not there."""
        return next((fact for fact_name, fact in self.extra if fact_name == name), None)


def position_text(change: Change) -> str:
    """Return the position of a change for messages."""
    return change.table if change.position is None else f"{change.table}:{change.position}"


def check_decoded(change: Change) -> None:
    """Raise NotExpressible if the row after a change, or before a delete, could not be decoded."""
    if change.raw is not None and (change.raw.after is not None or not change.after):
        raise NotExpressible("its row images could not be decoded")


def row_events(change: Change) -> Iterator[Change]:
    """Yield the change as events of single objects: a moved key is a delete and an insert."""
    key_before = change.key_before
    if change.op is Op.SNAPSHOT:
        yield change._replace(op=Op.INSERT)
    elif key_before == change.key:
        yield change
    else:
        extra = tuple(fact for fact in change.extra if fact[0] != "table_key")
        yield change._replace(op=Op.DELETE, key=key_before, fields=(), extra=extra)
        moved = tuple(Field(f.column, ABSENT, f.after) for f in change.fields)
        yield change._replace(op=Op.INSERT, fields=moved, extra=extra)
