"""The messages of pgoutput, PostgreSQL's own plugin for logical decoding. Pure.

PostgreSQL documentation, "Logical Replication Message Formats": version 1 of the protocol, in which whole
transactions come in the order of their commits. Integers are big-endian, names end with a zero byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from struct import Struct, error
from typing import Final, NamedTuple

from eventlog.core.errors import EventlogError

VERSION: Final = 1
EPOCH: Final = 946_684_800  # 2000-01-01 in seconds of Unix; times count microseconds from there

_BEGIN = Struct("!8xqI")  # the end of the commit record, time, xid without its epoch
_COMMIT = Struct("!9xQ8x")  # flags and the commit record, end of the transaction, time
_NUMBER, _SHORT, _SIZE = Struct("!I"), Struct("!H"), Struct("!i")
_TRUNCATE = Struct("!Ix")  # number of tables, options


class BrokenOutput(EventlogError):
    """a message of the replication stream cannot be read: {0}"""


class NotSent:
    """The type of a value that was not sent, because it is stored apart and did not change."""


NOT_SENT: Final = NotSent()
Value = str | None | NotSent
StreamRow = tuple[Value, ...]


class BeginRead(NamedTuple):
    """A transaction begins."""

    time: int  # microseconds since 2000
    xid: int  # without its epoch


class CommitRead(NamedTuple):
    """A transaction ends."""

    end: int


class TableDescribed(NamedTuple):
    """The columns of a table, as the following changes have them."""

    table: int
    schema: str
    name: str
    columns: tuple[str, ...]
    identity: tuple[str, ...]  # those that name old rows


class RowChanged(NamedTuple):
    """A changed row, before and after; an update has no row before unless its identity changed or is full."""

    table: int
    kind: bytes  # I, U or D
    before: StreamRow | None
    new: StreamRow | None


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
        self.kind = data[:1]

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

    def row(self) -> StreamRow:
        return tuple(self._values(self.number(_SHORT)))

    def _values(self, count: int) -> Iterator[Value]:
        for _ in range(count):
            form = self.take(1)
            if form == b"t":
                yield self.take(self.number(_SIZE)).decode()
            elif form in b"nu":
                yield None if form == b"n" else NOT_SENT
            else:
                raise IndexError(f"a value has the form {form!r}")

    def parts(self) -> Mapping[bytes, StreamRow]:
        """Return the rows of a change by their letters: K or O before it, N after it."""
        rows: dict[bytes, StreamRow] = {}
        while self._at < len(self._data):
            letter = self.take(1)
            if letter not in b"KON":
                raise IndexError(f"a change has the part {letter!r}")
            rows[letter] = self.row()
        return rows


def _described(data: _Bytes) -> TableDescribed:
    table, schema, name, _ = data.number(), data.name(), data.name(), data.take(1)  # the identity
    columns: list[str] = []
    identity: list[str] = []
    for _ in range(data.number(_SHORT)):
        is_of_identity = data.take(1) == b"\1"
        columns.append(data.name())
        identity += columns[-1:] if is_of_identity else ()
        data.take(8)  # its type and modifier
    return TableDescribed(table, schema or "pg_catalog", name, tuple(columns), tuple(identity))


def _changed(data: _Bytes) -> RowChanged:
    table, rows = data.number(), data.parts()
    new = rows.get(b"N")
    if not rows or (new is None) != (data.kind == b"D"):
        raise IndexError("a row is missing")
    return RowChanged(table, data.kind, rows.get(b"K", rows.get(b"O")), new)


def _truncated(data: _Bytes) -> TablesTruncated:
    (count,) = data.numbers(_TRUNCATE)
    return TablesTruncated(tuple(data.number() for _ in range(count)))


def _message_read(data: _Bytes) -> MessageRead | None:
    is_transactional, _ = data.take(1) == b"\1", data.take(8)  # its position
    message = MessageRead(data.name(), data.take(data.number()).decode(errors="replace"))
    return message if is_transactional else None


def _nothing(data: _Bytes) -> None:
    return None


_READERS: Mapping[bytes, Callable[[_Bytes], OutputMessage | None]] = {
    b"B": lambda data: BeginRead(*data.numbers(_BEGIN)),
    b"C": lambda data: CommitRead(*data.numbers(_COMMIT)),
    b"R": _described,
    **dict.fromkeys((b"I", b"U", b"D"), _changed),
    b"T": _truncated,
    b"M": _message_read,
    **dict.fromkeys((b"O", b"Y"), _nothing),
}
