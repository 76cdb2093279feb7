"""Messages of all topics and partitions, in the order of their sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Placed, Source
from eventlog.core.tables import Tables
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.numbering import transaction_of
from eventlog.formats.qlik.sequenced import SequenceMark, SequencePlace, Sequencer, SourcePlaces

MAX_EARLY = 100_000  # messages that wait for metadata; those beyond are read without it
_MESSAGE = 1000  # bytes that a message takes at least


_LETTERS = {Op.INSERT: "I", Op.UPDATE: "U", Op.DELETE: "D", Op.SNAPSHOT: "I"}


class SequencedMessage(NamedTuple):
    """The content of a message, with its place in the sequence."""

    place: SequencePlace
    change: Change
    at: str
    raw: bytes | None
    source: str
    number: int  # in the source; for a topic the offset

    @property
    def letter(self) -> str:
        return _LETTERS[self.change.op]

    @property
    def seq(self) -> str | None:
        return self.change.position

    @property
    def table_name(self) -> str:
        change = self.change
        return f"{change.schema}.{change.table}" if change.schema else change.table

    def has_same_values(self, record: SequencedMessage) -> bool:
        """Return whether two messages have the same content."""
        return same_values(self.change, record.change)

    def placed(self, image: SequencedMessage | None = None) -> Placed:
        """Return the change; a message contains its values before itself."""
        return Placed(*self[1:])

    def image_fault(self, image: SequencedMessage) -> str | None:
        """Return None, because no message is the image of another."""
        return None

    def refused(self, reason: str, *, with_transaction: bool = False) -> Refused:
        """Return the message left out, as it came."""
        spoils = transaction_of(self.change) if with_transaction else None
        return Refused(self.at, reason, self.raw, spoils=spoils)


class _Early(NamedTuple):
    """A message that came before the metadata that it names."""

    source: Source[Object]
    record: Object
    places: SourcePlaces
    mark: SequenceMark


class MessageSequencer(Sequencer):
    """The sequencer of messages; its items are their changes."""

    def __init__(
        self,
        tables: Tables,
        settings: MessageSettings,
        since: str = "",
        on_metadata: Callable[[str, int, Metadata], object] = lambda source, number, message: None,
    ) -> None:
        """Call `on_metadata` with each metadata message that is read, its source and its place there."""
        super().__init__(since, settings.until)
        self._on_metadata = on_metadata
        self.reader = MessageReader(tables, settings)
        self._settings = settings
        self._since = since
        self._places: dict[str, SourcePlaces] = {}
        self._early: list[_Early] = []

    def parse(self, source: Source[Object]) -> Iterator[SequencedMessage | Refused]:
        """Yield the changes of a source with their places; those of unknown metadata wait for `flush`."""
        places = self.places_of(source.name)
        for record in source.records:
            if isinstance(record, Refused):
                yield record
            elif len(self._early) < MAX_EARLY and self.reader.awaits(record.value) is not None:
                self._early.append(_Early(source, record, places, places.mark()))
            else:
                yield from self._read_change(source, record, places)
        yield from self.reader.notices()

    def places_of(self, name: str) -> SourcePlaces:
        """Return the places of the source of this name."""
        new = SourcePlaces(len(self._places), self._since, self._settings.until)
        return self._places.setdefault(name, new)

    def release_waiting(self) -> Iterator[SequencedMessage | Refused]:
        """Yield the messages that waited for metadata, after everything was read."""
        for early in self._early:
            yield from self._read_change(*early)
        self._early.clear()
        yield from self.reader.notices()

    def _read_change(
        self,
        source: Source[Object],
        record: Object,
        places: SourcePlaces,
        mark: SequenceMark | None = None,
    ) -> Iterator[SequencedMessage | Refused]:
        change = self.reader.read_record(source, record)
        if change is None:
            self._on_metadata(source.name, record.where, self.reader.last_metadata)
            return
        if isinstance(change, Refused):
            yield change
            return
        table = self.table_number(change.schema, change.table)
        seq = sequence_of(change)
        place = places.place(seq, table) if mark is None else places.place_late(mark, seq, table)
        if place is not None:
            yield with_place(place, change, source, record)

    def size(self, message: SequencedMessage) -> int:
        """Return roughly how many bytes a message takes."""
        return _MESSAGE + 3 * len(message.raw or b"") + 200 * len(message.change.fields)

    def record(self, message: SequencedMessage) -> SequencedMessage:
        """Return the message itself."""
        return message


def sequence_of(change: Change) -> str | None:
    """Return the change_seq of a change; None for a row of a full load."""
    return None if change.op is Op.SNAPSHOT else change.position


def with_place(
    place: SequencePlace, change: Change, source: Source[Object], record: Object
) -> SequencedMessage:
    """Return a change of a source with its place."""
    return SequencedMessage(place, change, source.at(record.where), record.raw, source.name, record.where)


def same_values(first: Change, second: Change) -> bool:
    """Return whether two changes have the same content; when and where they were sent does not count."""
    return _content(first) == _content(second)


def _content(change: Change) -> str:
    return repr((change.op, change.schema, change.table, change.key, change.fields))
