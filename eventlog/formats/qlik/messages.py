"""Messages of a Kafka target: an envelope each, with the structure of a table or with one change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Object, Shape, Source
from eventlog.core.tables import Tables
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.numbering import load_memory
from eventlog.formats.qlik.sequenced import with_second_events

if TYPE_CHECKING:
    from eventlog.formats.qlik.message_writer import Message


def read(
    sources: Iterable[Source[Object]], tables: Tables, settings: MessageSettings
) -> Iterator[Change | Refused]:
    """Yield the changes in messages; metadata messages describe the later ones."""
    from eventlog.formats.qlik.message_reader import MessageReader

    if settings.until:
        sequence.check(settings.until)
    return with_second_events(MessageReader(tables, settings).run(sources))


def write(
    changes: Iterable[Change], tables: Tables, settings: MessageSettings
) -> Iterator[Message | Refused]:
    """Yield the messages: before the first of a structure its metadata message."""
    from eventlog.formats.qlik.message_writer import MessageWriter, WrittenMessage

    for written in MessageWriter(tables, settings).write(changes):
        yield written.message if isinstance(written, WrittenMessage) else written


FORMAT: Format = Format(
    name="qlik-message",
    shape=Shape.OBJECTS,
    settings=MessageSettings,
    read=read,
    write=write,
    remember=load_memory,
    takes_no_key=True,
    writes_utc=True,
)
