"""The records of a stream: each a table of header fields, from which both directions are made.

A record has a common header, the fields of its kind, the sizes of variable columns if it is a row, and a
payload. So this is the rollback (record number 3) of transaction 7, with the sequence 5:

0000001c 00000000 00000042 00000003  common header: 28 bytes of headers, 0 of payload, scheme, record number
00000000 00000005 00000007           fields of RbTx: sequence, transaction

Change Data Capture API Programmer's Guide, "Data record formats": all integers of the headers are
in network order. Only the sizes of variable columns may have another order: see `schema`.
"""

from __future__ import annotations

import datetime as dt
import enum
import struct
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

SCHEME: Final = 66  # CDC_PKTSCHEME_LRECBINARY, "the packetization scheme is always 66"
COMMON: Final = struct.Struct(">iiii")  # header size, payload size, scheme, record number
COMMON_SIZE: Final = COMMON.size

I32 = Annotated[int, "i"]  # the integers of the headers, each with its code in `struct`
U32 = Annotated[int, "I"]
I64 = Annotated[int, "q"]
U64 = Annotated[int, "Q"]


class Number(enum.IntEnum):
    """syscdcv1:syscdcrectypes. The catalogue has TABSCHEM for the manual's TABSCHEMA."""

    BEGINTX = 1
    COMMTX = 2
    RBTX = 3
    INSERT = 40
    DELETE = 41
    UPDBEF = 42  # a row before an update
    UPDAFT = 43  # and after it
    DISCARD = 62  # a rollback to a savepoint
    TRUNCATE = 119
    TABSCHEM = 200
    TIMEOUT = 201
    ERROR = 202


class BeginTx(NamedTuple):
    sequence: U64
    transaction: U32  # a slot that is used again, never a key of its own
    time: I64  # seconds since 1970, in UTC
    user: U32


class CommTx(NamedTuple):
    sequence: U64
    transaction: U32
    time: I64


class RbTx(NamedTuple):
    sequence: U64
    transaction: U32


class Discard(NamedTuple):
    sequence: U64  # this record and all later ones of the transaction are void
    transaction: U32


class RowHead(NamedTuple):
    sequence: U64
    transaction: U32
    table: I32  # the "user data" that the client gave to cdc_startcapture
    flags: U32


class Truncate(NamedTuple):
    sequence: U64
    transaction: U32
    table: I32


class TabSchem(NamedTuple):
    table: I32
    flags: U32
    fixed_bytes: I32  # of all fixed columns of a row
    fixed_columns: I32
    variable_columns: I32


class Timeout(NamedTuple):
    sequence: U64


class Error(NamedTuple):
    flags: U32  # 1: the session is no longer valid, only cdc_closesess may follow
    code: I32


Head = BeginTx | CommTx | RbTx | Discard | RowHead | Truncate | TabSchem | Timeout | Error


class RecordLayout(NamedTuple):
    """The fields that follow the common header of one kind of record, as its class declares them."""

    number: Number
    make: Callable[[Any], Head]
    fields: tuple[str, ...]
    packing: struct.Struct
    has_payload: bool  # bytes may follow the header

    @property
    def size(self) -> int:
        return COMMON_SIZE + self.packing.size

    def offset(self, field: str) -> int:
        """Return the position of a field from the start of the record."""
        codes = self.packing.format[1 : 1 + self.fields.index(field)]
        return COMMON_SIZE + struct.calcsize(">" + codes)

    def pack(self, head: Head, extra_header: bytes = b"", payload: bytes = b"") -> bytes:
        """Return the record of these header fields, further header bytes and payload."""
        common = COMMON.pack(self.size + len(extra_header), len(payload), SCHEME, self.number)
        return b"".join((common, self.packing.pack(*head), extra_header, payload))


def _layout(number: Number, head: Any, has_payload: bool = False) -> tuple[Number, RecordLayout]:
    types = get_type_hints(head, include_extras=True)
    packing = struct.Struct(">" + "".join(types[name].__metadata__[0] for name in head._fields))
    return number, RecordLayout(number, head._make, head._fields, packing, has_payload)


LAYOUTS: Final = dict(
    (
        _layout(Number.BEGINTX, BeginTx),
        _layout(Number.COMMTX, CommTx),
        _layout(Number.RBTX, RbTx),
        _layout(Number.INSERT, RowHead, has_payload=True),
        _layout(Number.DELETE, RowHead, has_payload=True),
        _layout(Number.UPDBEF, RowHead, has_payload=True),
        _layout(Number.UPDAFT, RowHead, has_payload=True),
        _layout(Number.DISCARD, Discard),
        _layout(Number.TRUNCATE, Truncate),
        _layout(Number.TABSCHEM, TabSchem, has_payload=True),
        _layout(Number.TIMEOUT, Timeout),
        _layout(Number.ERROR, Error, has_payload=True),
    )
)

ROWS: Final = frozenset((Number.INSERT, Number.DELETE, Number.UPDBEF, Number.UPDAFT))
ROW_HEAD_SIZE: Final = LAYOUTS[Number.INSERT].size  # with the common header
ROW_PACKING: Final = LAYOUTS[Number.INSERT].packing

_EPOCH: Final = dt.datetime(1970, 1, 1)
_FIRST: Final = (dt.datetime.min - _EPOCH) // dt.timedelta(seconds=1)
_LAST: Final = (dt.datetime.max - _EPOCH) // dt.timedelta(seconds=1)


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
