"""The state that a writer goes on from, read from its topics: published structures and the greatest
change_seq.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.numbering import SequenceMemory
from eventlog.sources.kafka import Topics
from eventlog.sources.kafka_settings import KafkaSettings

_TAIL = 100  # messages at the end of a partition: the last of them may be metadata, or marks of a transaction


def read_topic_state(tables: Tables, settings: MessageSettings, kafka: KafkaSettings) -> SequenceMemory:
    """Return the state of the topics to which messages will be written; a missing topic has none.

    Metadata messages are in a topic of their own, or among the data of each partition. Then one partition is
    read as a whole.
    """
    topics = {kafka.topic_of(table.schema, table.name) for table in tables} or {kafka.kafka}
    reading = TopicEnds(kafka, settings.encoding)
    try:
        existing_topics = reading.topic_names()
        published = reading.metadata() if kafka.kafka_metadata_topic in existing_topics else ()
        reader = MessageReader(tables, replace(settings, published=(*settings.published, *published)))
        last = settings.last_sequence
        for topic in topics:
            from_beginning = settings.metadata and not kafka.kafka_metadata_topic
            for source in reading.ends(topic, from_beginning) if topic in existing_topics else ():
                last = max([last, *_sequences(reader, source)])
    finally:
        reading.close()
    return SequenceMemory(last, reader.metadata_by_id.values())


class TopicEnds(Topics):
    """Reads the ends of topics, and commits nothing."""

    def topic_names(self) -> frozenset[str]:
        """Return the topics that there are."""
        return frozenset(self.all_topics())

    def ends(self, topic: str, from_beginning: bool) -> Iterator[Source[Object]]:
        """Yield the last messages of each partition; the first partition as a whole, where that is wanted."""
        for partition in self._partitions(topic):
            low, high = self._watermarks(partition)
            start = OFFSET_BEGINNING if from_beginning else max(low, high - _TAIL)
            from_beginning = False
            if high > low:
                yield self._source(TopicPartition(topic, partition.partition), start)


def _sequences(reader: MessageReader, source: Source[Object]) -> Iterator[str]:
    """Yield the change_seqs of a source; a message that cannot be read has none."""
    for item in reader.run([source]):
        if not isinstance(item, Refused) and item.position is not None:
            yield item.position
