"""A stream that is followed as it grows."""

from __future__ import annotations

import io
import json
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, InvalidValue, Misuse, Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.gbase.changes import Answer, StreamReader
from eventlog.gbase.faults import BadDump
from eventlog.gbase.hex_dump import read_dump
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.stream_sources import reader
from eventlog.gbase.transactions import START, Position
from eventlog.sequence.delivery import Delivery

CHUNK: Final = 1 << 16
POLL: Final = 0.5  # seconds between two looks at a file that has not grown
_REMEMBERED: Final = 256  # bytes of what was read last


class _Moved(Misuse):
    """{0} {1} while it was followed: start anew, with the same state file"""


def load_position(found: Any) -> Position:
    """Return the position that was kept as JSON."""
    return Position(int(found["restart"]), int(found["delivered"]))


def read_position(state: str) -> Position:
    """Return the position of an earlier run; InvalidValue if the state is another one."""
    try:
        return load_position(json.loads(state))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise InvalidValue(state[:40], "the state of a stream") from None


class FollowedStream:
    """One stream as a source: its changes are handed out piece by piece, as they come.

    A followed file ends when `wait` returns False; it is called whenever there is nothing new. A followed
    stream ends with an error if the server ended its session.
    """

    waits, ended, tables = True, True, None

    def __init__(
        self,
        name: str,
        tables: Tables,
        settings: GbaseSettings,
        state: str | None,
        refused: Callable[[Refused], None],
        wait: Callable[[], bool] | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._refused = refused
        self._wait = wait
        self._chunks: Generator[bytes] | None = None
        self._source: Source[bytes] = Source(name, name, (), ())
        since = START if state is None else read_position(state)
        self._stream = reader(settings, tables, self._source, since)

    @property
    def state(self) -> str:
        """The state after what was handed out."""
        return json.dumps(self._stream.position._asdict())

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return the changes of each piece; the stream is given back at the end, though more may come."""
        self._chunks = pieces(self._name, endless=follow, wait=self._wait)
        source = self._source._replace(records=self._chunks)
        with closing(self._chunks):
            for answers in _batches(self._stream, source, self._settings.framed, self._settings.max_record):
                yield Delivery(self._changes(answers), lambda: self.state, pause=True)
                if follow and self._stream.over is not None:
                    raise self._stream.over

    def kept(self) -> None:
        """Do nothing, because no one else keeps a copy of the state."""

    def close(self) -> None:
        """Give the stream back."""
        if self._chunks is not None:
            self._chunks.close()

    def _changes(self, answers: Iterator[Answer]) -> Iterator[Change]:
        for answer in answers:
            if isinstance(answer, Refused):
                self._refused(answer)
            else:
                yield answer


def _batches(
    stream: StreamReader, source: Source[bytes], framed: bool, max_record: int
) -> Iterator[Iterator[Answer]]:
    chunks = (chunk for chunk in source.records if isinstance(chunk, bytes))
    if framed:
        for read in read_dump(chunks, max_record):
            if isinstance(read, BadDump):
                yield iter((Refused(source.at(read.args[0]), str(read)),))
            else:
                yield stream.frame(read)
    else:
        for chunk in chunks:
            yield stream.feed(chunk)
            if stream.lost:  # nothing that still comes could be read
                break
    yield stream.close()


class Growing:
    """A stream that stays open: whenever it is asked, it gives what came since the last time."""

    def __init__(self, name: str, tables: Tables, settings: GbaseSettings, since: Position) -> None:
        if settings.framed:
            raise Misuse("--framed: a dump that is followed is not written in parts: name a file with -o")
        source: Source[bytes] = Source(name, name, (), ())
        self._name = name
        self._reader = reader(settings, tables, source, since)
        self._stream = _open(name)
        self._grows = _is_file(self._stream)
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

    def answers(self, growing: bool) -> Iterator[Answer]:
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
        return self._grows or bool(select.select([self._stream], [], [], 0)[0])


def pieces(name: str, *, endless: bool = False, wait: Callable[[], bool] | None = None) -> Generator[bytes]:
    """Yield the bytes of a file, `-` or a pipe, as they come.

    A file ends at its end or, if `endless`, when `wait` returns False. A pipe ends when the other side closes
    it.
    """
    with _open(name) as stream:
        grows = endless and _is_file(stream)
        before = b""
        while True:
            piece = stream.read(CHUNK)
            if piece:
                if grows:
                    before = _checked(name, stream, before, piece)
                yield piece
            elif not grows or not (wait or _sleep)():
                return
            else:
                _check_place(name, stream)


def _open(name: str) -> io.RawIOBase:
    if name == "-":
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    return io.FileIO(name)


def _is_file(stream: io.RawIOBase) -> bool:
    return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


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


def _sleep() -> bool:
    time.sleep(POLL)
    return True
