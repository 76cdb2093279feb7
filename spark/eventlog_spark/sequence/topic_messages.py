"""Messages of a task, read piece by piece and joined range by range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.sequenced import WantedStretch
from eventlog.qlik.sequenced_messages import (
    MessageSequencer,
    Numbers,
    SequencedMessage,
    sequence_of,
    stated,
    with_place,
)
from eventlog_spark.io.batches import pack, unpack
from eventlog_spark.sequence.range_join import RangeJoin
from eventlog_spark.sequence.sorted_items import FACTS, GroupPlaces, SequenceItem, placed, refused, unpacked

MessageTable = tuple[str, str | None, str]  # the task, the schema, the table
_UNNAMED_TASK: Final = (0, "")  # the inputs of no named task


@dataclass(frozen=True)
class ReadMessages:
    """Reads the messages of one source, when all metadata are known."""

    tables: Tables
    settings: MessageSettings

    def items(self, piece: int, source: Source[Object]) -> Iterator[SequenceItem]:
        """Yield the changes with their places, then their tables and tasks."""
        groups: dict[MessageTable, int] = {}
        for number, record in enumerate(self.changes(self.reader(), source, self.stretch())):
            if isinstance(record, Refused):
                yield refused(piece, number, record)
                continue
            table, message = record
            group = groups.setdefault(table, len(groups))
            if message is not None:
                yield placed(piece, group, message.place, True, tuple(message[1:]))
        yield SequenceItem(piece, FACTS, item=pack(list(groups)))

    def reader(self) -> MessageReader:
        """Return what reads messages, with the metadata."""
        return MessageReader(self.tables, self.settings)

    def stretch(self) -> WantedStretch:
        """Return what gives the messages of a source their places."""
        return WantedStretch(0, 0, "", self.settings.until)

    @staticmethod
    def changes(
        reader: MessageReader, source: Source[Object], stretch: WantedStretch
    ) -> Iterator[tuple[MessageTable, SequencedMessage | None] | Refused]:
        """Yield the changes of a source, each after its table; None is one beyond `until`."""
        for record in source.records:
            if isinstance(record, Refused):
                yield record
                continue
            change = stated(reader, source, record)
            if isinstance(change, Refused):
                yield change
            elif change is not None:
                place = stretch.place(sequence_of(change), 0)
                message = None if place is None else with_place(place, change, source, record)
                yield (reader.task, change.schema, change.table), message

    def metadata(self, source: Source[Object]) -> list[Metadata]:
        """Return the metadata that are among the messages of a source."""
        reader = self.reader()
        before = dict(reader.known)
        for record in source.records:
            if not isinstance(record, Refused) and reader.is_metadata(record.value):
                stated(reader, source, record)
        return [known for name, known in reader.known.items() if before.get(name) != known]


class Messages:
    """All messages of a task."""

    def __init__(self, tables: Tables, settings: MessageSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._numbers = Numbers()
        self._numbers.given(_UNNAMED_TASK)

    def describes_others(self, stem: str) -> bool:
        """Return False, because metadata may be in any source."""
        return False

    def read_control(self, source: Source[Any]) -> Iterator[Refused]:
        """Read nothing: there are no control messages."""
        return iter(())

    def learn(self, metadata: Iterable[Metadata]) -> None:
        """Add metadata; of two with one schemaId the later counts."""
        self._settings = replace(self._settings, published=(*self._settings.published, *metadata))

    def reading(self) -> ReadMessages:
        """Return what reads a source."""
        return ReadMessages(self._tables, self._settings)

    def add_piece(self, piece: int, facts: bytes) -> list[GroupPlaces]:
        """Number the tasks and tables of a piece; pieces come in their order."""
        places = []
        for group, (name, schema, table) in enumerate(unpack(facts)):
            task = self._numbers.task(_UNNAMED_TASK, name)
            places.append(GroupPlaces(piece, group, task, self._numbers.table(task, schema, table), piece))
        return places

    def numbers(self, metadata: Iterable[Metadata]) -> dict[str, int]:
        """Return the numbers of the tasks that metadata name, in their order."""
        return {known.task: self._numbers.task(_UNNAMED_TASK, known.task) for known in metadata}

    @property
    def tasks(self) -> list[str]:
        """The tasks that were read, in their order."""
        return self._numbers.tasks

    def join(self, ordered: Any) -> RangeJoin:
        """Return what joins the messages of a range; each contains all that is needed to read it."""
        sequencer = MessageSequencer(self._tables, self._settings)
        records = partial(unpacked, SequencedMessage)
        return RangeJoin(sequencer, records, self._tables, self._settings.whole_transactions)
