"""Messages of all topics and partitions, in the order of their sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Placed, Source
from eventlog.core.tables import Tables
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.numbering import transaction_of
from eventlog.qlik.sequenced import SequenceMark, SequencePlace, SourcePlaces, check_limits, repeats

MAX_EARLY = 100_000  # messages that wait for metadata; those beyond are read without it
_MESSAGE = 1000  # bytes that a message takes at least


class SequencedMessage(NamedTuple):
    """The content of a message, with its place in the sequence."""

    place: SequencePlace
    change: Change
    where: str
    raw: bytes | None
    source: str
    number: int  # in the source; for a topic the offset


class _Early(NamedTuple):
    """A message that came before the metadata that it names."""

    source: Source[Object]
    record: Object
    places: SourcePlaces
    mark: SequenceMark


class MessageSequencer:
    """Reads messages in two steps, between which they are sorted by their places."""

    def __init__(self, tables: Tables, settings: MessageSettings, since: str = "") -> None:
        check_limits(since, settings.until)
        self.reader = MessageReader(tables, settings)
        self._settings = settings
        self._since = since
        self._places: dict[str, SourcePlaces] = {}
        self._tables: dict[tuple[str | None, str], int] = {}  # their numbers
        self._early: list[_Early] = []
        self._repeats = repeats()

    def parse(self, source: Source[Object]) -> Iterator[SequencedMessage | Refused]:
        """Yield the changes of a source with their places; those of unknown metadata wait for `flush`."""
        places = self._places.get(source.name)
        if places is None:
            places = SourcePlaces(len(self._places), self._since, self._settings.until)
            self._places[source.name] = places
        for record in source.records:
            if isinstance(record, Refused):
                yield record
            elif len(self._early) < MAX_EARLY and self.reader.awaits(record.value) is not None:
                self._early.append(_Early(source, record, places, places.mark()))
            else:
                yield from self._read_change(source, record, places)
        yield from self.reader.notices()

    def flush(self) -> Iterator[SequencedMessage | Refused]:
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
        if change is None or isinstance(change, Refused):
            yield from () if change is None else (change,)
            return
        table = self._tables.setdefault((change.schema, change.table), len(self._tables))
        seq = sequence_of(change)
        place = places.place(seq, table) if mark is None else places.place_late(mark, seq, table)
        if place is not None:
            yield with_place(place, change, source, record)

    @staticmethod
    def size(message: SequencedMessage) -> int:
        """Return roughly how many bytes a message takes."""
        return _MESSAGE + 3 * len(message.raw or b"") + 200 * len(message.change.fields)

    def join(self, messages: Iterable[SequencedMessage]) -> Iterator[Placed | Refused]:
        """Yield the changes of sorted messages, each once; then what was repeated."""
        yield from self.join_sorted(messages)
        yield from self._repeats.warnings()

    def join_sorted(self, messages: Iterable[SequencedMessage]) -> Iterator[Placed | Refused]:
        """Yield the changes of sorted messages, each once, without reports."""
        for place, group in groupby(messages, key=_table_and_sequence):
            place_messages = list(group)
            if place[1] or len(place_messages) == 1:  # place[1]: without a sequence
                yield from map(_placed_change, place_messages)
            else:
                yield from self._of_sequence(place_messages)

    def _of_sequence(self, messages: list[SequencedMessage]) -> Iterator[Placed | Refused]:
        """Yield the messages of one table under one changeSequence: one change, or refused together."""
        by_op: dict[Op, SequencedMessage] = {}
        for message in messages:
            first = by_op.setdefault(message.change.op, message)
            if first is message:
                continue
            if not same_values(first.change, message.change):
                yield from _contradiction(messages, f"with different values as {message.change.op}")
                return
            yield self._repeats.add(_table(message.change), message.where, message.raw)
        deleted, inserted = by_op.get(Op.DELETE), by_op.get(Op.INSERT)
        if len(by_op) == 1:
            yield from map(_placed_change, by_op.values())
        elif len(by_op) == 2 and deleted and inserted and deleted.change.key != inserted.change.key:
            yield from map(_placed_change, (deleted, inserted))
        else:
            yield from _contradiction(messages, f"as {', '.join(sorted(by_op))}, which are no one change")


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


def _placed_change(message: SequencedMessage) -> Placed:
    return Placed(*message[1:])


def _table_and_sequence(message: SequencedMessage) -> tuple[Any, ...]:
    """Return what messages share that are handled together; those without a sequence are alone."""
    place = message.place
    return place if place.without_sequence else place[:3]


def _table(change: Change) -> str:
    return f"{change.schema}.{change.table}" if change.schema else change.table


def _contradiction(messages: Iterable[SequencedMessage], difference: str) -> Iterator[Refused]:
    for message in messages:
        change = message.change
        reason = f"changeSequence {change.position} of {_table(change)} is there {difference}"
        yield Refused(message.where, reason, message.raw, spoils=transaction_of(change))
