"""The messages of pgoutput, PostgreSQL's own plugin for logical decoding. Pure.

PostgreSQL documentation, "Logical Replication Message Formats": version 1 of the protocol, in which whole
transactions come in the order of their commits. Integers are big-endian, names end with a zero byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct, error
from typing import Final, NamedTuple

from eventlog.core.errors import EventlogError

VERSION: Final = 1
EPOCH: Final = 946_684_800  # 2000-01-01 in seconds of Unix; times count microseconds from there

_BEGIN = Struct("!QqI")  # end of the commit record, time, xid
_COMMIT = Struct("!BQQq")  # flags, commit record, end of the transaction, time
_NUMBER, _SHORT, _LSN = Struct("!I"), Struct("!H"), Struct("!Q")
_SIZE = Struct("!i")
_TRUNCATE = Struct("!IB")  # number of tables, options
_COLUMN_TYPE = Struct("!Ii")  # type, its modifier


class BrokenOutput(EventlogError):
    """a message of the replication stream cannot be read: {0}"""


class NotSent:
    """The type of a value that was not sent, because it is stored apart and did not change."""


NOT_SENT: Final = NotSent()
Value = str | None | NotSent
Row = tuple[Value, ...]


class BeginRead(NamedTuple):
    """A transaction begins."""

    lsn: int
    time: int
    xid: int  # without its epoch


class CommitRead(NamedTuple):
    """A transaction ends."""

    end: int
    time: int  # microseconds since 2000


@dataclass(frozen=True, slots=True)
class TableDescribed:
    """The columns of a table, as the following changes have them."""

    table: int
    schema: str
    name: str
    columns: tuple[str, ...]


class RowChanged(NamedTuple):
    """A changed row, before and after; an update has no row before unless its identity changed or is full."""

    table: int
    before: Row | None
    new: Row | None
    is_update: bool = False


class TablesTruncated(NamedTuple):
    """A message about tables that were emptied."""

    tables: tuple[int, ...]


class MessageRead(NamedTuple):
    """A message of the application within its transaction."""

    prefix: str
    content: str


OutputMessage = BeginRead | CommitRead | TableDescribed | RowChanged | TablesTruncated | MessageRead


def read(data: bytes) -> OutputMessage | None:
    """Return a message; None for one that has nothing for us: the origin, or the name of a type."""
    kind = data[:1]
    if kind not in _READERS:
        raise BrokenOutput(f"its kind is {kind!r}")
    try:
        return _READERS[kind](_Bytes(data))
    except (error, IndexError, UnicodeDecodeError) as fault:
        raise BrokenOutput(f"kind {kind!r}: {fault}") from fault


class _Bytes:
    """The bytes of a message, read from the second on."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 1

    def numbers(self, form: Struct) -> tuple[int, ...]:
        values = form.unpack_from(self._data, self._at)
        self._at += form.size
        return values

    def number(self, form: Struct = _NUMBER) -> int:
        return self.numbers(form)[0]

    def name(self) -> str:
        name, end, _ = self._data[self._at :].partition(b"\0")
        if not end:
            raise IndexError("a name has no end")
        self._at += len(name) + 1
        return name.decode()

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise IndexError(f"{size} bytes are announced, and fewer follow")
        self._at += size
        return self._data[self._at - size : self._at]

    def letter(self) -> bytes:
        return self.take(1)

    def row(self) -> Row:
        return tuple(self._values(self.number(_SHORT)))

    def _values(self, count: int) -> Iterator[Value]:
        for _ in range(count):
            form = self.letter()
            if form == b"t":
                yield self.take(self.number(_SIZE)).decode()
            elif form == b"n":
                yield None
            elif form == b"u":
                yield NOT_SENT
            else:
                raise IndexError(f"a value has the form {form!r}")


def _begin(data: _Bytes) -> BeginRead:
    return BeginRead(*data.numbers(_BEGIN))


def _commit(data: _Bytes) -> CommitRead:
    _, _, end, time = data.numbers(_COMMIT)
    return CommitRead(end, time)


def _described(data: _Bytes) -> TableDescribed:
    table, schema, name = data.number(), data.name(), data.name()
    data.letter()  # the identity
    columns = []
    for _ in range(data.number(_SHORT)):
        data.letter()  # whether it is of the identity
        columns.append(data.name())
        data.numbers(_COLUMN_TYPE)
    return TableDescribed(table, schema or "pg_catalog", name, tuple(columns))


def _inserted(data: _Bytes) -> RowChanged:
    table, _ = data.number(), data.letter()
    return RowChanged(table, None, data.row())


def _updated(data: _Bytes) -> RowChanged:
    table, form, before = data.number(), data.letter(), None
    if form in (b"K", b"O"):
        before, form = data.row(), data.letter()
    if form != b"N":
        raise IndexError(f"an update has the part {form!r}")
    return RowChanged(table, before, data.row(), is_update=True)


def _deleted(data: _Bytes) -> RowChanged:
    table, _ = data.number(), data.letter()
    return RowChanged(table, data.row(), None)


def _truncated(data: _Bytes) -> TablesTruncated:
    count, _ = data.numbers(_TRUNCATE)
    return TablesTruncated(tuple(number for (number,) in _NUMBER.iter_unpack(data.take(4 * count))))


def _message_read(data: _Bytes) -> MessageRead | None:
    is_transactional = data.letter() == b"\1"
    data.number(_LSN)
    message = MessageRead(data.name(), data.take(data.number()).decode(errors="replace"))
    return message if is_transactional else None


def _nothing(data: _Bytes) -> None:
    return None


_READERS: Mapping[bytes, Callable[[_Bytes], OutputMessage | None]] = {
    b"B": _begin,
    b"C": _commit,
    b"R": _described,
    b"I": _inserted,
    b"U": _updated,
    b"D": _deleted,
    b"T": _truncated,
    b"M": _message_read,
    b"O": _nothing,
    b"Y": _nothing,
}
