"""Messages of a task, read piece by piece and joined range by range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Placed, Source
from eventlog.core.tables import Tables
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.sequenced import SequencePlace, WantedStretch
from eventlog.qlik.sequenced_messages import (
    MessageSequencer,
    Numbers,
    SequencedMessage,
    sequence_of,
    stated,
    with_place,
)
from eventlog_spark.sequence.items import (
    TOLD,
    Counting,
    KnownPlaces,
    SequenceItem,
    pack,
    placed,
    refused,
    unpack,
)

Group = tuple[str, str | None, str]  # the task, the schema, the table
_GIVEN = (0, "")  # the inputs of no named task


@dataclass(frozen=True)
class ReadMessages:
    """Reads the messages of one source, when all metadata are known."""

    tables: Tables
    settings: MessageSettings

    def items(self, piece: int, source: Source[Object]) -> Iterator[SequenceItem]:
        """The changes with their places, then of which tables and tasks they are."""
        groups: dict[Group, int] = {}
        for number, found in enumerate(self.changes(self.reader(), source, self.stretch())):
            if isinstance(found, Refused):
                yield refused(piece, number, found)
                continue
            known, told = found
            group = groups.setdefault(known, len(groups))
            if told is not None:
                yield placed(piece, group, told.place, True, tuple(told[1:]))
        yield SequenceItem(piece, TOLD, item=pack(list(groups)))

    def reader(self) -> MessageReader:
        """What reads messages, and knows the metadata."""
        return MessageReader(self.tables, self.settings)

    def stretch(self) -> WantedStretch:
        """What gives the messages of a source their places."""
        return WantedStretch(0, 0, "", self.settings.until)

    @staticmethod
    def changes(
        reader: MessageReader, source: Source[Object], stretch: WantedStretch
    ) -> Iterator[tuple[Group, SequencedMessage | None] | Refused]:
        """The changes of a source, each behind its task and table; None stands for one beyond `until`."""
        for record in source.records:
            if isinstance(record, Refused):
                yield record
                continue
            change = stated(reader, source, record)
            if isinstance(change, Refused):
                yield change
            elif change is not None:
                place = stretch.place(sequence_of(change), 0)
                told = None if place is None else with_place(place, change, source, record)
                yield (reader.task, change.schema, change.table), told

    def metadata(self, source: Source[Object]) -> list[Metadata]:
        """The metadata that stand among the messages of a source."""
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
        self._numbers.given(_GIVEN)

    def speaks_of_others(self, stem: str) -> bool:
        """Metadata may stand in any source."""
        return False

    def ahead(self, sources: Iterable[Source[Any]]) -> Iterator[Refused]:
        """Hear of all sources what some say of the others: nothing."""
        return iter(())

    def learn(self, metadata: Iterable[Metadata]) -> None:
        """Metadata that were found; of two with one schemaId the later counts."""
        self._settings = replace(self._settings, published=(*self._settings.published, *metadata))

    def reading(self) -> ReadMessages:
        """What reads a source."""
        return ReadMessages(self._tables, self._settings)

    def know(self, piece: int, told: bytes) -> list[KnownPlaces]:
        """Take over what was found in a piece; pieces come in their order."""
        found = []
        for group, (name, schema, table) in enumerate(unpack(told)):
            task = self._numbers.task(_GIVEN, name)
            found.append(KnownPlaces(piece, group, task, self._numbers.table(task, schema, table), piece))
        return found

    def numbers(self, metadata: Iterable[Metadata]) -> dict[str, int]:
        """The numbers of the tasks that metadata tell, in their order."""
        return {known.task: self._numbers.task(_GIVEN, known.task) for known in metadata}

    @property
    def tasks(self) -> list[str]:
        """The tasks that were read, in their order."""
        return self._numbers.tasks

    def look(self, ordered: Any) -> None:
        """Each message says all that is needed to read it."""

    def joining(self) -> JoinMessages:
        """What joins the messages of a range."""
        return JoinMessages(MessageSequencer(self._tables, self._settings))


class JoinMessages(Counting):
    """Joins sorted messages to changes."""

    def __init__(self, sequencer: MessageSequencer) -> None:
        super().__init__(sequencer.tallies)
        self._sequencer = sequencer

    def joined(self, items: Iterable[tuple[SequencePlace, Any]]) -> Iterator[Placed | Refused]:
        return self._sequencer.joined(SequencedMessage(place, *rest) for place, rest in items)
