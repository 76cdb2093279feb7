"""The metadata messages of Qlik that a topic of their own contains."""

from __future__ import annotations

from dataclasses import replace

from eventlog.clients.topic_reader import KafkaFault, Topics
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.metadata import Metadata


def with_metadata(topics: Topics, settings: MessageSettings) -> MessageSettings:
    """Return the settings with what the metadata topic has published, and with the names of topics."""
    published = (*settings.published, *published_metadata(topics))
    of_topic = not settings.table
    return replace(settings, published=published, encoding=topics.encoding, table_of_topic=of_topic)


def published_metadata(topics: Topics) -> tuple[Metadata, ...]:
    """Return the metadata of the metadata topic; none if no such topic is set.
    Raise KafkaFault if a message of it cannot be read.
    """
    no_tables = Tables()  # because metadata messages describe their tables themselves
    reader = MessageReader(no_tables, MessageSettings(encoding=topics.encoding))
    for item in reader.run(topics.metadata_messages()):
        if isinstance(item, Refused):
            raise KafkaFault(f"metadata topic: {item.where}: {item.reason}")
    return tuple(reader.metadata_by_id.values())
