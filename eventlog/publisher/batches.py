"""From events to documents, and to batches of documents.

A document is consecutive events of a table, no two of one object. Nor has a batch two of one object, so a
sink may send its documents together. Only a batch for a sink that keeps a record (Recording) may have
several. A batch is recorded, sent and finished as a whole. Its rows and event-ids are recorded, never its
content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from itertools import accumulate, chain, groupby, pairwise

from eventlog.core import tablekey
from eventlog.core.tables import Tables
from eventlog.fold import ObjectName
from eventlog.fold.event_table import EventTable, OutgoingEvent, document_sizes, integers
from eventlog.sinks.sink import Item, OutgoingDocument
from eventlog.sql.log.log_record import WorstAnswer, record_events, write_batch


class EventDocument(OutgoingDocument):
    """A document that is about to go out: consecutive events of a table."""

    def __init__(self, table: EventTable, span: tuple[int, int], rows: tuple[int, int], name: str) -> None:
        self.table = table
        self.first, self.last = span  # the positions of its first event, and after its last one
        self.lowest, self.highest = rows  # record_ids
        self.name = name

    def under(self, name: str) -> EventDocument:
        """Return the document under another name."""
        return EventDocument(self.table, (self.first, self.last), (self.lowest, self.highest), name)

    @property
    def size(self) -> int:
        """Return how many events it has."""
        return self.last - self.first

    @property
    def objects(self) -> Set[int]:
        """Return the numbers of its objects, which no two documents of a batch share."""
        return frozenset(self.table.objects[self.first : self.last].tolist())

    @cached_property
    def events(self) -> Sequence[OutgoingEvent]:
        """The events one by one."""
        return self.table.events(self.first, self.last)

    def alone(self, event: OutgoingEvent) -> str:
        """Return a document of one of its events alone."""
        before, after = self.table.around
        return f"{before}{event.text}{after}".removesuffix("\n")

    @property
    def event_ids(self) -> Iterable[str]:
        """The event-ids of its events."""
        return (event.event_id for event in self.events)

    @cached_property
    def items(self) -> Sequence[Item]:  # type: ignore[override]
        """The events as a sink needs them one by one."""
        tables = self.table.tables
        return [Item(e.event_id, e.text, association_of(tables, e.object), e.element) for e in self.events]

    @cached_property
    def data(self) -> bytes:
        """The document in UTF-8."""
        return self.table.document(self.first, self.last)

    @cached_property
    def text(self) -> str:
        """The document."""
        return self.data.decode()


def association_of(tables: Tables, name: ObjectName) -> str:
    """Return an object's association in the catalogue's names, however its events write it."""
    table = tables.find(name[0])
    schema = None if table is None else table.schema
    return tablekey.write_association(name[1], name[0] if table is None else table.name, schema)


def documents_of(table: EventTable, edges: Sequence[int], name: str | None = None) -> Iterator[EventDocument]:
    """Yield the documents of consecutive events between these positions. Each is called by its first and last
    record_id and the part of a cut event, unless it has a name already.
    """
    start, begins = edges[0], table.begins[edges[0] : edges[-1]]
    lows = table.rows[begins].tolist()
    highs = table.rows[begins + table.sizes[start : edges[-1]] - 1].tolist()
    for begin, end in pairwise(edges):
        first_rows = lows[begin - start : end - start]
        low, high = min(first_rows), max(highs[begin - start : end - start])
        part = table.parts[begin + first_rows.index(low)]
        own_name = f"{low}-{high}" if part == 1 else f"{low}.{part}-{high}"
        yield EventDocument(table, (begin, end), (low, high), name or own_name)


def pack(
    table: EventTable, batch_size: int, first: int = 0, last: int | None = None
) -> Iterator[EventDocument]:
    """Yield documents of up to so many events each, of a range of events; by default of all.

    Events that came back shrink their documents eightfold each time, until the bad event is alone.
    """
    last = len(table) if last is None else last
    tries = None if table.recorded is None else [facts.tries for facts in table.recorded[first:last]]
    for number, end in [(0, last)] if tries is None else _runs(tries, first):
        sizes = document_sizes(table.objects[first:end], max(1, batch_size >> 3 * number))
        edges = list(accumulate(sizes.tolist(), initial=first))
        if end > first:
            yield from documents_of(table, edges)
        first = end


def _runs(numbers: Sequence[int], first: int) -> Iterator[tuple[int, int]]:
    """Yield each run of equal numbers, and where it ends."""
    for number, run in groupby(numbers):
        first += len(list(run))
        yield number, first


def halves(document: EventDocument) -> list[EventDocument]:
    """Return the events of a document in two."""
    middle = document.first + document.size // 2
    return list(documents_of(document.table, [document.first, middle, document.last]))


def without(documents: Iterable[EventDocument], blocked: Set[ObjectName]) -> list[EventDocument]:
    """Return the documents without the events of some objects."""
    if not blocked:
        return list(documents)
    return [remaining for document in documents for remaining in _without(document, blocked)]


def _without(document: EventDocument, blocked: Set[ObjectName]) -> Iterator[EventDocument]:
    import numpy as np  # takes a while to load

    table, places = document.table, np.arange(document.first, document.last)
    names = [table.names[number] for number in table.objects[places].tolist()]
    places = places[np.array([name not in blocked for name in names], np.bool_)]
    if len(places) == document.size:
        yield document
    elif len(places):
        yield from documents_of(table.take(places), [0, len(places)])


def in_batches(
    documents: Iterable[EventDocument], next_size: Callable[[], float], *, objects_apart: bool = True
) -> Iterator[list[EventDocument]]:
    """Yield the documents in batches of at most so many, asked for before each; with `objects_apart` no batch
    has two events of one object.
    """
    batch: list[EventDocument] = []
    objects: set[int] = set()
    max_documents = next_size()
    for document in documents:
        next_objects = document.objects if objects_apart else frozenset[int]()
        if len(batch) >= max_documents or not objects.isdisjoint(next_objects):
            yield batch
            batch, objects, max_documents = [], set(), next_size()
        batch.append(document)
        objects |= next_objects
    if batch:
        yield batch


def further_parts(planned: Iterable[Sequence[EventDocument]], begun: Set[str]) -> list[EventDocument]:
    """Return documents of the further parts of these events alone, which come before any other event of their
    objects. Take batches until all parts are there.
    """
    unfinished, continuing = set(begun), list[EventDocument]()
    for document in chain.from_iterable(planned) if unfinished else ():
        numbered = enumerate(document.events, document.first)
        parts = {at: event for at, event in numbered if event.part > 1 and event.run_id in unfinished}
        if parts:
            continuing += documents_of(document.table.take(integers(parts)), [0, len(parts)])
            unfinished -= {event.run_id for event in parts.values() if event.part == event.parts}
        if not unfinished:
            break
    return continuing


def record_batch(documents: Iterable[EventDocument], worst: WorstAnswer) -> str:
    """Return what is recorded of a batch."""
    return write_batch((d.name, record_events(d.table, d.first, d.last, worst)) for d in documents)
