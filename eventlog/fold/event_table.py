"""Events in the order of leaving, as columns: the same whether rows were folded one by one or by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

from eventlog.core.change import Op
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Tables
from eventlog.core.text_digest import digest_each
from eventlog.fold import Event, ObjectName, event_id

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

OPERATIONS = (Op.INSERT, Op.UPDATE, Op.DELETE)
ELEMENTS = ("add", "modify", "delete", "none")  # of a document; the first three are those of OPERATIONS
ADD, MODIFY, DELETE, NONE = range(len(ELEMENTS))
_ELEMENT_NUMBERS = {name: number for number, name in enumerate(ELEMENTS)}


class WrittenEvent(NamedTuple):
    """An event of the plain fold with its text and its element; or why it cannot be written."""

    event: Event
    text: str
    element: str
    fault: EventlogError | None = None


class OutgoingEvent(NamedTuple):
    """One event of a table, or one part of an event that was cut."""

    event_id: str  # of this part
    run_id: str  # of the event as a whole
    object: ObjectName
    rows: tuple[int, ...]  # the record_ids that its answer decides
    text: str
    element: str
    max_changes: int  # after how many values the event is cut
    part: int = 1
    parts: int = 1
    tries: int = 0  # how often it was answered with retry, or not at all


class EventColumns(NamedTuple):
    """The columns of events as an EventTable has them."""

    rows: Ints
    begins: Ints
    sizes: Ints
    parts: Ints
    part_counts: Ints
    operations: Ints
    elements: Ints

    def joined(self, addition: EventColumns) -> EventColumns:
        """Return these events, and after them others."""
        import numpy as np  # takes a while to load

        moved = addition._replace(begins=addition.begins + len(self.rows))
        return EventColumns(*map(np.concatenate, zip(self, moved, strict=True)))

    def in_order(self, order: Ints) -> EventColumns:
        """Return the events at these positions."""
        return EventColumns(self.rows, *(column[order] for column in self[1:]))


class RecordedFacts(NamedTuple):
    """The facts of an event that went out before: its name, how it was cut, and how often it was tried."""

    run_id: str
    max_changes: int
    tries: int


@dataclass(frozen=True)
class EventTable:
    """The events of some rows. The parts of an event that was cut follow one another and share its rows."""

    log: str
    tables: Tables
    around: tuple[str, str]  # the texts around the events of a document
    text: bytes | memoryview  # of all events, in UTF-8
    edges: npt.NDArray[Any]  # where the text of each begins, and where the last one ends
    objects: Ints  # the number of the object of each
    names: Sequence[ObjectName]  # of the objects, by their numbers
    rows: Ints  # record_ids
    begins: Ints  # where the rows of each event begin
    sizes: Ints  # how many rows it has
    parts: Ints  # 1, or the part of an event that was cut
    part_counts: Ints
    operations: Ints  # of the change: an index of OPERATIONS
    elements: Ints  # of the document: an index of ELEMENTS
    max_changes: int  # after how many values an event is cut
    recorded: Sequence[RecordedFacts] | None = None  # of events on record; the ids of others follow from rows

    @classmethod
    def from_plain(
        cls,
        written: Sequence[WrittenEvent],
        log: str,
        tables: Tables,
        around: tuple[str, str],
        max_changes: int,
    ) -> EventTable:
        """Return the events of the plain fold that have a text or are parts of a cut one."""
        events = [each.event for each in written]
        texts = [each.text.encode() for each in written]
        numbers: dict[ObjectName, int] = {}
        objects = integers(numbers.setdefault(event.object, len(numbers)) for event in events)
        return cls(
            log,
            tables,
            around,
            b"".join(texts),
            integers(accumulate(map(len, texts), initial=0)),
            objects,
            list(numbers),
            max_changes=max_changes,
            **plain_columns(written)._asdict(),
        )

    def __len__(self) -> int:
        return len(self.objects)

    @cached_property
    def digests(self) -> bytes:
        """The digests of the events' texts, one after another."""
        return digest_each(bytes(self.text), self.edges.tolist())

    def rows_of(self, events: slice | Ints) -> Ints:
        """Return the record_ids of these events, event by event."""
        import numpy as np  # takes a while to load

        sizes, begins = self.sizes[events], self.begins[events]
        if len(sizes) == 1:
            return self.rows[begins[0] : begins[0] + sizes[0]]
        ends = np.cumsum(sizes)
        places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begins - ends + sizes, sizes)
        record_ids: Ints = self.rows[places]
        return record_ids

    def take(self, places: Ints) -> EventTable:
        """Return the events at these positions."""
        texts = [bytes(self.text[begin:end]) for begin, end in self._spans(places)]
        names = ("objects", "begins", "sizes", "parts", "part_counts", "operations", "elements")
        columns = {name: getattr(self, name)[places] for name in names}
        recorded = None if self.recorded is None else [self.recorded[at] for at in places.tolist()]
        edges = integers(accumulate(map(len, texts), initial=0))
        return replace(self, text=b"".join(texts), edges=edges, recorded=recorded, **columns)

    def named(self, names: Sequence[ObjectName]) -> EventTable:
        """Return the events, each under this name of its object."""
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return replace(self, objects=integers(numbers[name] for name in names), names=list(numbers))

    def document(self, first: int, last: int) -> bytes:
        """Return the document of consecutive events."""
        before, after = self.around
        begin, end = int(self.edges[first]), int(self.edges[last])
        return b"".join((before.encode(), self.text[begin:end], after.encode())).removesuffix(b"\n")

    def events(self, first: int = 0, last: int | None = None) -> list[OutgoingEvent]:
        """Return consecutive events one by one; all of them if no range is named."""
        return list(self.at(range(first, len(self) if last is None else last)))

    def at(self, places: Sequence[int]) -> Iterator[OutgoingEvent]:
        """Yield the events at these positions one by one."""
        last_begin, run_id, rows = -1, "", tuple[int, ...]()
        for at in places:
            begin = int(self.begins[at])
            if begin != last_begin:  # the parts of an event that was cut share the rows and the name
                rows = tuple(self.rows[begin : begin + int(self.sizes[at])].tolist())
                run_id = event_id(self.log, rows) if self.recorded is None else self.recorded[at].run_id
                last_begin = begin
            yield self._event(at, run_id, rows)

    def _event(self, at: int, run_id: str, rows: tuple[int, ...]) -> OutgoingEvent:
        part, max_changes, tries = int(self.parts[at]), self.max_changes, 0
        if self.recorded is not None:
            _, max_changes, tries = self.recorded[at]
        return OutgoingEvent(
            run_id if part == 1 else f"{run_id}.{part}",
            run_id,
            self.names[int(self.objects[at])],
            rows,
            str(self.text[self.edges[at] : self.edges[at + 1]], "utf-8"),
            ELEMENTS[self.elements[at]],
            max_changes,
            part,
            int(self.part_counts[at]),
            tries,
        )

    def _spans(self, places: Ints) -> Iterator[tuple[int, int]]:
        return zip(self.edges[places].tolist(), self.edges[places + 1].tolist(), strict=True)


def plain_columns(written: Sequence[WrittenEvent]) -> EventColumns:
    """Return the columns of plain events."""
    import numpy as np  # takes a while to load

    rows_of = {each.event.rows[0]: each.event.rows for each in written}  # which the parts of one share
    begins = dict(zip(rows_of, accumulate(map(len, rows_of.values()), initial=0), strict=False))
    numbers = [
        (
            begins[event.rows[0]],
            len(event.rows),
            event.part,
            event.parts,
            OPERATIONS.index(event.change.op),
            _ELEMENT_NUMBERS[element] if text else NONE,
        )
        for event, text, element, _ in written
    ]
    columns = np.array(numbers, np.int64).reshape(len(numbers), len(EventColumns._fields) - 1).T
    return EventColumns(integers(chain.from_iterable(rows_of.values())), *columns)


def document_sizes(objects: Ints, max_events: int) -> Ints:
    """Return how many events each document has: at most so many, and never two of one object."""
    import numpy as np  # takes a while to load

    count = len(objects)
    if 1 in (max_events, count):
        return np.ones(count, np.int64)
    order = np.argsort(objects, kind="stable")
    repeats = np.full(count, -1)
    same = objects[order][1:] == objects[order][:-1]
    repeats[order[1:][same]] = order[:-1][same]
    latest = np.maximum.accumulate(repeats)  # of all events so far, the latest that one of them repeats
    sizes = []
    start = 0
    while start < count:
        end = min(start + max_events, int(np.searchsorted(latest, start)), count)
        sizes.append(end - start)
        start = end
    return np.array(sizes, np.int64)


def integers(numbers: Iterable[int]) -> Ints:
    """Return numbers as a vector."""
    import numpy as np  # takes a while to load

    return np.fromiter(numbers, np.int64)
