"""The records of a stream: each a table of header fields, from which both directions are made.

Change Data Capture API Programmer's Guide, "Data record formats": all integers of the headers are
in network order. The one exception, the sizes of variable columns, is in `schema`.
"""

from __future__ import annotations

import datetime as dt
import enum
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

SCHEME: Final = 66  # CDC_PKTSCHEME_LRECBINARY, "the packetization scheme is always 66"
COMMON: Final = struct.Struct(">iiii")  # header size, payload size, scheme, record number
COMMON_SIZE: Final = COMMON.size


class Number(enum.IntEnum):
    """syscdcv1:syscdcrectypes. The catalogue has TABSCHEM for the manual's TABSCHEMA."""

    BEGINTX = 1
    COMMTX = 2
    RBTX = 3
    INSERT = 40
    DELETE = 41
    UPDBEF = 42
    UPDAFT = 43
    DISCARD = 62
    TRUNCATE = 119
    TABSCHEM = 200
    TIMEOUT = 201
    ERROR = 202


class BeginTx(NamedTuple):
    sequence: int
    transaction: int  # a slot that is used again, never a key of its own
    time: int
    user: int


class CommTx(NamedTuple):
    sequence: int
    transaction: int
    time: int


class RbTx(NamedTuple):
    sequence: int
    transaction: int


class Discard(NamedTuple):
    sequence: int  # this record and all later ones of the transaction are void
    transaction: int


class RowHead(NamedTuple):
    sequence: int
    transaction: int
    table: int  # the "user data" that the client gave to cdc_startcapture
    flags: int


class Truncate(NamedTuple):
    sequence: int
    transaction: int
    table: int


class TabSchem(NamedTuple):
    table: int
    flags: int
    fixed_bytes: int
    fixed_columns: int
    variable_columns: int


class Timeout(NamedTuple):
    sequence: int


class Error(NamedTuple):
    flags: int  # 1: the session is no longer valid, only cdc_closesess may follow
    code: int


Head = BeginTx | CommTx | RbTx | Discard | RowHead | Truncate | TabSchem | Timeout | Error


class RecordLayout(NamedTuple):
    """The fields that follow the common header of one kind of record."""

    number: Number
    make: Callable[[Any], Head]
    fields: tuple[str, ...]
    struct: struct.Struct
    payload: bool  # whether bytes may follow the header

    @property
    def size(self) -> int:
        return COMMON_SIZE + self.struct.size

    def offset(self, field: str) -> int:
        """Return the position of a field from the start of the record."""
        codes = self.struct.format[1 : 1 + self.fields.index(field)]
        return COMMON_SIZE + struct.calcsize(">" + codes)

    def pack(self, head: Head, extra_header: bytes = b"", payload: bytes = b"") -> bytes:
        """Return the record of these header fields, further header bytes and payload."""
        common = COMMON.pack(self.size + len(extra_header), len(payload), SCHEME, self.number)
        return b"".join((common, self.struct.pack(*head), extra_header, payload))


def _layout(number: Number, head: Any, payload: bool = False, **codes: str) -> tuple[Number, RecordLayout]:
    packing = struct.Struct(">" + "".join(codes.values()))
    return number, RecordLayout(number, head._make, tuple(codes), packing, payload)


_ROW = {"sequence": "Q", "transaction": "I", "table": "i", "flags": "I"}

LAYOUTS: Final = dict(
    (
        _layout(Number.BEGINTX, BeginTx, sequence="Q", transaction="I", time="q", user="I"),
        _layout(Number.COMMTX, CommTx, sequence="Q", transaction="I", time="q"),
        _layout(Number.RBTX, RbTx, sequence="Q", transaction="I"),
        _layout(Number.INSERT, RowHead, payload=True, **_ROW),
        _layout(Number.DELETE, RowHead, payload=True, **_ROW),
        _layout(Number.UPDBEF, RowHead, payload=True, **_ROW),
        _layout(Number.UPDAFT, RowHead, payload=True, **_ROW),
        _layout(Number.DISCARD, Discard, sequence="Q", transaction="I"),
        _layout(Number.TRUNCATE, Truncate, sequence="Q", transaction="I", table="i"),
        _layout(
            Number.TABSCHEM,
            TabSchem,
            payload=True,
            table="i",
            flags="I",
            fixed_bytes="i",
            fixed_columns="i",
            variable_columns="i",
        ),
        _layout(Number.TIMEOUT, Timeout, sequence="Q"),
        _layout(Number.ERROR, Error, payload=True, flags="I", code="i"),
    )
)

ROWS: Final = frozenset((Number.INSERT, Number.DELETE, Number.UPDBEF, Number.UPDAFT))
ROW_SIZE: Final = LAYOUTS[Number.INSERT].size
ROW_HEAD: Final = LAYOUTS[Number.INSERT].struct

_EPOCH: Final = dt.datetime(1970, 1, 1)
_FIRST: Final = int((dt.datetime.min - _EPOCH).total_seconds())
_LAST: Final = int((dt.datetime.max - _EPOCH).total_seconds())


def moment(seconds: int) -> str | None:
    """Return a count of seconds since 1970 UTC as ISO 8601; None outside the years 1 to 9999."""
    if not _FIRST <= seconds <= _LAST:
        return None
    return (_EPOCH + dt.timedelta(seconds=seconds)).isoformat() + "Z"


def seconds_of(text: str) -> int:
    """Return the inverse of `moment`; fractions of a second have no place in a stream."""
    at = dt.datetime.fromisoformat(text)
    at = at.replace(tzinfo=None) - (at.utcoffset() or dt.timedelta())
    return int((at - _EPOCH) // dt.timedelta(seconds=1))
