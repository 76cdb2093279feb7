"""The format `gbase` of `convert`: a stream of bytes, or the dump of one."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format, Shape, Source
from eventlog.core.settings import setting
from eventlog.core.tables import Tables
from eventlog.gbase.changes import StreamLimits, StreamReader
from eventlog.gbase.columns import Text
from eventlog.gbase.faults import BadDump
from eventlog.gbase.hex_dump import read_dump
from eventlog.gbase.open_records import RecordStore
from eventlog.gbase.stream import MAX_RECORD
from eventlog.gbase.transactions import MAX_OPEN, MAX_STORED, START, Position, Unseen
from eventlog.gbase.writer import write_changes


@dataclass(frozen=True, slots=True)
class GbaseSettings:
    framed: bool = setting(
        False, "The input is a hex dump: a read of the stream a line, lines of xxd, or typed out with notes."
    )
    code_set: str = setting(
        "utf-8", "Code set of the database (DB_LOCALE), as Python names it.", metavar="NAME"
    )
    trim_char: bool = setting(True, "Take from CHAR values the blanks that pad them.")
    max_record: int = setting(MAX_RECORD, "The longest record in bytes; a longer length counts as corrupt.")
    max_open: int = setting(MAX_OPEN, "Bytes that unfinished transactions may take in memory together.")
    open_bytes: int = setting(
        MAX_STORED, "Bytes of unfinished transactions that may wait on disk.", metavar="BYTES"
    )
    size_order: str = setting(
        "big", "Byte order in which the sizes of variable columns are written.", choices=("big", "little")
    )
    varchar_prefix: int = setting(
        1, "Bytes of the length before a VARCHAR that is written: 1 Informix, 2 GBase 8s."
    )

    store: Callable[[], RecordStore] | None = None  # makes the place on disk

    @property
    def text(self) -> Text:
        """Return the settings for reading and writing character columns."""
        try:
            "".encode(codecs.lookup(self.code_set).name)
        except LookupError:
            raise Misuse(
                f"unknown code set {self.code_set!r}: name it as Python does, such as gb18030"
            ) from None
        if self.varchar_prefix not in (1, 2):
            raise Misuse(f"varchar-prefix is {self.varchar_prefix}, not 1 or 2")
        return Text(self.code_set, self.trim_char, self.varchar_prefix)


def reader(
    settings: GbaseSettings,
    tables: Tables,
    source: Source[bytes],
    since: Position = START,
    unseen: Unseen = Unseen.REFUSED,
) -> StreamReader:
    """Return the reader of one source, where an earlier run of it stopped."""
    limits = StreamLimits(settings.max_record, settings.max_open, settings.open_bytes)
    store = None if settings.store is None else settings.store()
    return StreamReader(tables, source.at, settings.text, limits, since, store, unseen)


def read(
    sources: Iterable[Source[bytes]], tables: Tables, settings: GbaseSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of streams; each stream is read for itself."""
    for source in sources:
        yield from read_source(reader(settings, tables, source), source, settings)


def read_source(
    stream: StreamReader, source: Source[bytes], settings: GbaseSettings, *, growing: bool = False
) -> Iterator[Change | Refused]:
    """Yield the changes of one stream, to its end; what is cut off there is no fault of one that is
    growing.
    """
    yield from _read_frames(stream, source, settings) if settings.framed else _read_bytes(stream, source)
    if not growing:
        yield from stream.close()


def _read_bytes(stream: StreamReader, source: Source[bytes]) -> Iterator[Change | Refused]:
    for chunk in source.records:
        if isinstance(chunk, Refused):
            yield chunk
        else:
            yield from stream.feed(chunk)


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


def write(changes: Iterable[Change], tables: Tables, settings: GbaseSettings) -> Iterator[bytes | Refused]:
    """Yield a stream that contains these changes."""
    return write_changes(changes, tables, settings.text, settings.size_order)


FORMAT: Format = Format(
    name="gbase",
    help="GBase 8s / Informix change data capture stream",
    shape=Shape.BYTES,
    settings=GbaseSettings,
    read=read,
    write=write,
)
