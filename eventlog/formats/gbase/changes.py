"""Readers of streams, which yield the changes of each transaction after its commit.

A source is the bytes of a stream, or a dump of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import BadFile, Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.formats.gbase.change_builder import ChangeBuilder
from eventlog.formats.gbase.faults import BadDump, SessionOver, error_name
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.hex_dump import DumpedRead, Frames, read_dump
from eventlog.formats.gbase.records import BeginTx, CommTx, Discard, RbTx, Timeout, Truncate
from eventlog.formats.gbase.stream import Failed, Fault, Item, RowRecord, Stream
from eventlog.formats.gbase.transactions import (
    COST,
    START,
    Committed,
    Complaint,
    Position,
    Transactions,
    Unseen,
)
from eventlog.transactions.open_transactions import Bounds

ReadItem = Change | Refused
_SESSION_INVALID = 1
_HEAD = 64  # bytes by which text is recognised
_BLANKS = dict.fromkeys(b"\t\n\r", " ")
_DEFAULTS = GbaseSettings()


class StreamReader:
    """A reader of one stream; the answers of a call must be consumed before the next call."""

    def __init__(
        self,
        tables: Tables,
        settings: GbaseSettings = _DEFAULTS,
        name: str = "",
        since: Position = START,
        unseen: Unseen = Unseen.REFUSED,
    ) -> None:
        """Begin after the position where an earlier run stopped; answers name the stream by its name."""
        spool = None if settings.spool is None else settings.spool()
        bounds = Bounds(settings.max_open, settings.open_bytes, COST)
        self._stream = Stream(settings.text, settings.max_record)
        self._maker = ChangeBuilder(tables, self._where)
        self._transactions = Transactions(since, spool, bounds, unseen, self._maker.key_of)
        self._read_frames = Frames(self._stream)
        self._name = f"{name}:" if name else ""
        self._frames = 0
        self._over: SessionOver | None = None
        self._idle = False
        self._handlers: dict[type, Callable[[Any], Complaint | Committed | Refused | None]] = {
            Truncate: self._transactions.add,
            Discard: self._transactions.add,
            BeginTx: self._transactions.begin,
            RbTx: self._transactions.roll_back,
            CommTx: self._transactions.commit,
            Fault: self._refuse,
            Failed: self._fail,
            Timeout: self._note_idle,
        }

    @property
    def position(self) -> Position:
        """Return the position after all changes so far."""
        return self._transactions.position

    @property
    def lost(self) -> bool:
        """Return whether the rest of the input cannot be read."""
        return self._stream.lost

    @property
    def idle(self) -> bool:
        """Return whether the server last reported that it has nothing more for now."""
        return self._idle

    @property
    def over(self) -> SessionOver | None:
        """Return the error with which the server ended the session, after its record was read."""
        return self._over

    def feed(self, data: bytes | memoryview) -> Iterator[ReadItem]:
        """Yield the changes that these bytes complete."""
        self._idle = False
        return self._answers(self._stream.feed(data))

    def frame(self, read: DumpedRead) -> Iterator[ReadItem]:
        """Yield the changes that the records of a dumped read complete."""
        self._frames += 1
        return self._answers(self._read_frames.read(read.data, read.counted))

    def close(self) -> Iterator[Refused]:
        """Yield the faults and unfinished transactions at the end of the input."""
        for fault in self._stream.close():
            yield self._refuse(fault)
        for complaint in self._transactions.close():
            yield Refused(self._where(), complaint.reason, fault=complaint.fault)

    def _answers(self, items: Iterable[Item]) -> Iterator[ReadItem]:
        handlers, add_row = self._handlers, self._transactions.add_row
        for item in items:
            if type(item) is RowRecord:
                if (complaint := add_row(item)) is not None:
                    yield Refused(self._where(), complaint.reason, fault=complaint.fault)
                continue
            handle = handlers.get(type(item))
            answer = handle(item) if handle is not None else None
            if answer is None:
                continue
            if isinstance(answer, Committed):
                yield from self._maker.changes(answer)
                answer.close()
            elif isinstance(answer, Complaint):
                yield Refused(self._where(), answer.reason, fault=answer.fault)
            else:
                yield answer

    def _note_idle(self, timeout: Timeout) -> None:
        self._idle = True

    def _refuse(self, fault: Fault) -> Refused:
        return Refused(self._where(), str(fault.corrupt), fault.record, not fault.note)

    def _fail(self, failed: Failed) -> Refused:
        flags, code = failed.head
        over = flags & _SESSION_INVALID
        reported = f"error {error_name(code)}, flags {flags}"
        if failed.text:
            reported += f": {failed.text[:200]}"
        if over:
            self._over = SessionOver(reported)
        state = "the session is over" if over else "the session continues"
        return Refused(self._where(), f"the server reports {reported}; {state}", fault=bool(over))

    def _where(self) -> str:
        read = f"read {self._frames}:" if self._frames else ""
        return f"{self._name}{read}{self._stream.offset}"


# --- sources


def read(
    sources: Iterable[Source[bytes]], tables: Tables, settings: GbaseSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of streams; each stream is read for itself."""
    for source in sources:
        yield from read_source(StreamReader(tables, settings, source.name), source, settings)


def read_source(
    stream: StreamReader, source: Source[bytes], settings: GbaseSettings, *, growing: bool = False
) -> Iterator[Change | Refused]:
    """Yield the changes of one stream, to its end; a growing one may be cut off there."""
    yield from _read_frames(stream, source, settings) if settings.framed else _read_bytes(stream, source)
    if not growing:
        yield from stream.close()


def _read_bytes(stream: StreamReader, source: Source[bytes]) -> Iterator[Change | Refused]:
    for number, chunk in enumerate(source.records):
        if isinstance(chunk, Refused):
            yield chunk
        elif not number and _begins_text(chunk):
            yield BadFile(source.name, "it is text, and no capture: a hex dump is read with --framed")
            return
        else:
            yield from stream.feed(chunk)


def _begins_text(data: bytes) -> bool:
    """Return whether bytes begin as text does; as a size they would be longer than any record."""
    head = data[:_HEAD]
    return len(head) > 3 and head.isascii() and head.decode().translate(_BLANKS).isprintable()


def _read_frames(
    stream: StreamReader, source: Source[bytes], settings: GbaseSettings
) -> Iterator[Change | Refused]:
    refused: list[Refused] = []
    for read in read_dump(_chunks(source, refused), settings.max_record):
        if isinstance(read, BadDump):
            yield Refused(source.at(read.args[0]), str(read))
        else:
            yield from stream.frame(read)
    yield from refused


def _chunks(source: Source[bytes], refused: list[Refused]) -> Iterator[bytes]:
    for chunk in source.records:
        if isinstance(chunk, Refused):
            refused.append(chunk)
        else:
            yield chunk
