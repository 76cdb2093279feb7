"""The sources of captures: streams of bytes, and dumps of streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.gbase.changes import StreamLimits, StreamReader
from eventlog.gbase.faults import BadDump
from eventlog.gbase.hex_dump import read_dump
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.transactions import START, Position, Unseen


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
