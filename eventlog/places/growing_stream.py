"""A stream that is followed as it grows, and the file that remembers how far it was delivered."""

from __future__ import annotations

import io
import os
import select
import socket
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.files.statefile import read_state, write_state
from eventlog.gbase.changes import Answer, StreamReader
from eventlog.gbase.faults import BadDump
from eventlog.gbase.format import GbaseSettings, reader
from eventlog.gbase.hex_dump import read_dump
from eventlog.gbase.transactions import START, Position

CHUNK: Final = 1 << 16
POLL: Final = 0.5  # seconds between two looks at a file that has not grown
_CONNECT: Final = 30.0
_REMEMBERED: Final = 256  # bytes of what was read last


class Unconnected(EventlogError):
    """{0}: {1}"""


class _Moved(Misuse):
    """{0} {1} while it was followed: start anew, with the same state file"""


class StateFile:
    """Keeps a position; a write is whole or did not happen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: Position | None = None

    def load(self) -> Position:
        """The position of an earlier run, else the beginning."""
        return read_state(self._path, load_position, Position())

    def save(self, position: Position) -> None:
        if position != self._written:
            write_state(self._path, position._asdict())
            self._written = position


def load_position(found: Any) -> Position:
    """The position that was kept as JSON."""
    return Position(int(found["restart"]), int(found["delivered"]))


def follow(
    name: str,
    tables: Tables,
    settings: GbaseSettings,
    *,
    state: StateFile | None = None,
    chunks: Generator[bytes],
    live: bool = False,
) -> Generator[Iterator[Answer]]:
    """The answers to an input: an iterator for each piece of it, to be read to its end before the next.

    The position is saved when the next is asked for: whoever asks has what came before safely out by then.
    A live input ends with an error where the server ended its session. The input is given back at the end,
    also where more of it could have been read.
    """
    since = state.load() if state is not None else START
    source: Source[bytes] = Source(name, name, (), chunks)
    stream = reader(settings, tables, source, since)
    with closing(chunks):
        for answers in _batches(stream, source, settings.framed, settings.max_record):
            yield answers
            if state is not None:
                state.save(stream.position)
            if live and stream.over is not None:
                raise stream.over


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
        """What gives the position behind everything that was taken."""
        return self._reader.position._asdict

    @property
    def over(self) -> EventlogError | None:
        """Why the server ended its session, once it has."""
        return self._reader.over

    def answers(self, growing: bool) -> Iterator[Answer]:
        """What the bytes tell that are there by now; that it grows is known."""
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
        """Whether reading waits for nobody: a file always answers."""
        return self._grows or bool(select.select([self._stream], [], [], 0)[0])


def pieces(name: str, *, endless: bool = False, wait: Callable[[], bool] | None = None) -> Generator[bytes]:
    """The bytes of a file, `-`, pipe, `tcp://host:port` or `unix:/path`, as they come.

    A file is at its end where it ends or, if `endless`, when `wait`, which is asked whenever there is
    nothing new, says False. Pipes and sockets end when the other side closes them.
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
    if not name.startswith(("unix:", "tcp://")):
        return io.FileIO(name)
    try:
        connection = _connected(name)
    except OSError as fault:
        raise Unconnected(name, fault.strerror or fault) from fault
    with connection:  # what was made of it keeps it open
        return connection.makefile("rb", buffering=0)


def _connected(name: str) -> socket.socket:
    if name.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(name.removeprefix("unix:"))
    else:
        connection = socket.create_connection(_host_and_port(name), _CONNECT)
        connection.settimeout(None)
    return connection


def _host_and_port(name: str) -> tuple[str, int]:
    try:
        place = urlsplit(name)
        host, port = place.hostname, place.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise Misuse(f"{name} is not tcp://host:port")
    return host, port


def _is_file(stream: io.RawIOBase) -> bool:
    return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def _check_place(name: str, stream: io.RawIOBase) -> None:
    """Misuse where what is read became shorter, or another file has its name now: no more would come."""
    opened = os.fstat(stream.fileno())
    fault = ""
    if opened.st_size < stream.tell():
        fault = "became shorter"
    elif name != "-" and os.path.exists(name) and not os.path.samestat(os.stat(name), opened):
        fault = "was replaced"
    if fault:
        raise _Moved(name, fault)


def _checked(name: str, stream: io.RawIOBase, before: bytes, piece: bytes) -> bytes:
    """The end of what was read, with this piece; Misuse where the file has other bytes now where the last
    ones stood: it was emptied and written again beyond its old length."""
    place = stream.tell() - len(piece) - len(before)
    if os.pread(stream.fileno(), len(before), place) != before:
        raise _Moved(name, "was written anew")
    return (before + piece)[-_REMEMBERED:]


def _sleep() -> bool:
    time.sleep(POLL)
    return True
