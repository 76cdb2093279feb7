"""A capture in a file as a source, read to its end or followed as it grows."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, InvalidValue, Misuse, Refused
from eventlog.core.formats import Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.inputs import Advance, open_sources
from eventlog.files.limits import Limits
from eventlog.files.ready import ready
from eventlog.formats.gbase.changes import ReadItem, StreamReader, read_source
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.transactions import START, Position
from eventlog.transfer.ordered import COMMITS
from eventlog.transfer.sources.stream_feed import StreamFeed

CHUNK: Final = 1 << 16
_REMEMBERED: Final = 256  # bytes of what was read last


class _Moved(Misuse):
    """{0} {1} while it was followed: start anew, with the same state file"""


def load_position(saved_position: Any) -> Position:
    """Return the position that was kept as JSON; raise InvalidValue if it is none."""
    if saved_position is None:
        return START
    try:
        return Position(int(saved_position["restart"]), int(saved_position["delivered"]))
    except (ValueError, KeyError, TypeError, OverflowError):
        raise InvalidValue(str(saved_position)[:40], "the state of a stream") from None


class Growing:
    """A stream that stays open: whenever it is asked, it gives what came since the last time."""

    def __init__(self, name: str, tables: Tables, settings: GbaseSettings, since: Position) -> None:
        if settings.framed:
            raise Misuse("--framed: a dump is read to its end: leave --follow out")
        self._name = name
        self._reader = StreamReader(tables, settings, name, since)
        self._stream = _open(name)
        self._grows = stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode)
        self._before = b""
        self.ended = False

    @property
    def position(self) -> Callable[[], dict[str, int]]:
        """Return a function for the position after everything that was taken."""
        return self._reader.position._asdict

    @property
    def over(self) -> EventlogError | None:
        """Return why the server ended its session, if it did."""
        return self._reader.over

    def answers(self, growing: bool) -> Iterator[ReadItem]:
        """Yield the changes of the bytes that are there by now."""
        while not self.ended and self._ready():
            piece = self._stream.read(CHUNK)
            if self._grows and piece:
                self._before = _checked(self._name, self._stream, self._before, piece)
            yield from self._reader.feed(piece or b"")
            if not piece or self._reader.lost or self.over is not None:
                self.ended = not self._grows or bool(piece)
                if self.ended:
                    yield from self._reader.close()
                else:
                    _check_place(self._name, self._stream)
                return

    def close(self) -> None:
        """Give back the stream."""
        self._stream.close()

    def _ready(self) -> bool:
        """Return whether a read returns at once; a read of a file always does."""
        return self._grows or any(ready([self._stream]))


def _open(name: str) -> io.RawIOBase:
    if name == "-":
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    return io.FileIO(name)


def _check_place(name: str, stream: io.RawIOBase) -> None:
    """Raise Misuse if the file became shorter or was replaced, because no more would come."""
    opened = os.fstat(stream.fileno())
    fault = ""
    if opened.st_size < stream.tell():
        fault = "became shorter"
    elif name != "-" and os.path.exists(name) and not os.path.samestat(os.stat(name), opened):
        fault = "was replaced"
    if fault:
        raise _Moved(name, fault)


def _checked(name: str, stream: io.RawIOBase, before: bytes, piece: bytes) -> bytes:
    """Return the end of what was read, including this piece.

    Raise Misuse if the last bytes are other ones now, because the file was emptied and written again.
    """
    place = stream.tell() - len(piece) - len(before)
    if os.pread(stream.fileno(), len(before), place) != before:
        raise _Moved(name, "was written anew")
    return (before + piece)[-_REMEMBERED:]


class CaptureReading:
    """One reading of a capture in a file."""

    ended, over = False, None  # it is opened anew in each round

    def __init__(
        self,
        name: str,
        tables: Tables,
        reading: GbaseSettings,
        position: Any,
        limits: Limits,
        advance: Advance,
    ) -> None:
        self._reading = reading
        self._sources = open_sources([name], Shape.BYTES, None, advance, limits)
        self._stream = StreamReader(tables, reading, name, load_position(position))

    @property
    def position(self) -> Callable[[], Any]:
        """Return a function for the position after what was taken."""
        return self._stream.position._asdict

    def close(self) -> None:
        """Do nothing, because no file is open between rounds."""

    def answers(self, growing: bool) -> Iterator[Change | Refused | None]:
        """Yield the changes of the capture after its position; None where all transactions before it are
        whole.
        """
        for source in self._sources:
            if isinstance(source, Refused):
                yield source
            elif self._reading.framed:
                yield from read_source(self._stream, source, self._reading, growing=growing)
            else:
                yield from self._by_piece(source, growing)

    def _by_piece(self, source: Source[bytes], growing: bool) -> Iterator[Change | Refused | None]:
        """Yield the changes of each piece: those of a transaction come with its commit, all of them."""
        for piece in source.records:
            if isinstance(piece, Refused):
                yield piece
                continue
            yield from self._stream.feed(piece)
            yield None
        yield from () if growing else self._stream.close()


def capture(
    name: str,
    tables: Tables,
    reading: GbaseSettings,
    since: str,
    state: str | None,
    *,
    follow: bool,
    limits: Limits,
    advance: Advance,
) -> StreamFeed:
    """Return the capture in a file, or in a pipe; one that is followed stays open between rounds."""
    growing: list[Growing] = []

    def open_stream(position: Any) -> CaptureReading | Growing:
        if not follow:
            return CaptureReading(name, tables, reading, position, limits, advance)
        if not growing:
            growing.append(Growing(name, tables, reading, load_position(position)))
        return growing[0]

    return StreamFeed(name, open_stream, COMMITS["gbase"], since, state)
