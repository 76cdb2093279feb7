"""From events to documents, and to batches of documents.

A document has no two events of one object. Nor has a batch, so a sink may send its documents together; only
a batch for a sink that stops at the first failure (Sequential) may have several. A batch is remembered, sent
and finished as a whole. Its rows and event-ids are remembered, never its content.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from eventlog.core import tablekey
from eventlog.core.tables import Tables
from eventlog.fold import ObjectName, event_id
from eventlog.sinks.sink import Item, OutgoingDocument
from eventlog.xds.answers import Level, Status

if TYPE_CHECKING:
    from eventlog.columnar.vectors import Ints


class OutgoingEvent(NamedTuple):
    """One event, or one part of a cut one, on its way."""

    event_id: str  # of this part
    run_id: str  # of the event as a whole
    object: ObjectName
    settles: tuple[int, ...]  # the record_ids that are done when it is
    text: str
    max_changes: int  # after how many values the event is cut
    part: int = 1
    parts: int = 1
    tries: int = 0  # how often it was answered with retry, or not at all


class RecordedEvent(NamedTuple):
    """The facts of an outgoing event that are needed after a crash; its content is read anew."""

    run_id: str
    settles: tuple[int, ...]
    max_changes: int  # after how many values the event was cut, whatever the setting is now
    part: int = 1
    has_more_parts: bool = False  # further parts of a cut event follow
    tries: int = 0
    worst: Status = Status(Level.SUCCESS)  # of the parts before this one


Worst = Callable[[str], Status]  # the worst answer so far to a cut event
# What is remembered of a document's events: a list for one event, a dict for many.
Memory = list[list[object] | dict[str, object]]


class Successes(NamedTuple):
    """The fates of a document's events after a plain success."""

    rows: Sequence[int]
    operations: Mapping[str, int]  # how many events, by the first letter of their element
    parts: Sequence[OutgoingEvent] = ()  # of changes that were cut: to be looked at one by one


class Draft(Protocol):
    """A document that is about to go out."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...  # how many events it has

    @property
    def lowest(self) -> int: ...  # record_id

    @property
    def highest(self) -> int: ...

    @property
    def objects(self) -> Set[object]: ...  # what no two documents of a batch share

    @property
    def sendings(self) -> Sequence[OutgoingEvent]: ...

    def document(self, tables: Tables) -> OutgoingDocument: ...

    def memory(self, worst: Worst) -> Memory: ...

    def successes(self) -> Successes | None: ...  # None where each event must be looked at


class EventsDraft(NamedTuple):
    """A document of single events."""

    name: str
    sendings: tuple[OutgoingEvent, ...]

    @property
    def size(self) -> int:
        """Return how many events it has."""
        return len(self.sendings)

    @property
    def lowest(self) -> int:
        """The lowest record_id that it settles."""
        return min(min(sending.settles) for sending in self.sendings)

    @property
    def highest(self) -> int:
        """The highest record_id that it settles."""
        return max(max(sending.settles) for sending in self.sendings)

    @property
    def objects(self) -> Set[object]:
        """The objects of its events."""
        return {sending.object for sending in self.sendings}

    def document(self, tables: Tables) -> OutgoingDocument:
        """Return what goes out."""
        new, name_of = tuple.__new__, partial(association_of, tables)
        items = [new(Item, (s.event_id, s.text, None, name_of(s.object))) for s in self.sendings]
        return OutgoingDocument(self.name, items)

    def memory(self, worst: Worst) -> Memory:
        """Return what is remembered of it."""
        return facts_of(self.sendings, worst)

    def successes(self) -> Successes | None:
        """Return the fates after a plain success; None if an event was cut, or tried before."""
        if any(sending.parts > 1 or sending.tries for sending in self.sendings):
            return None
        rows = [row for sending in self.sendings for row in sending.settles]
        return Successes(rows, Counter(sending.text[1:2] for sending in self.sendings))


def association_of(tables: Tables, name: ObjectName) -> str:
    """Return an object's association in the catalogue's names, however its events write it."""
    table = tables.find(name[0])
    schema = None if table is None else table.schema
    return tablekey.write_association(name[1], name[0] if table is None else table.name, schema)


def draft_of(sendings: Sequence[OutgoingEvent]) -> EventsDraft:
    """Return the document of some events, under its name: no two documents share one."""
    first = min(sendings, key=lambda sending: sending.settles[0])
    last = max([s.settles[-1] for s in sendings])
    return EventsDraft(document_name(first.settles[0], first.part, last), tuple(sendings))


def document_name(first: int, part: int, last: int) -> str:
    """Return the document's name: first and last record_id, with the part of a cut event."""
    return f"{first}-{last}" if part == 1 else f"{first}.{part}-{last}"


def pack(sendings: Iterable[OutgoingEvent], batch_size: int) -> Iterator[EventsDraft]:
    """Yield documents of up to so many events."""
    batch: list[OutgoingEvent] = []
    objects: set[ObjectName] = set()
    for sending in sendings:
        if batch and (len(batch) >= _limit(sending, batch_size) or sending.object in objects):
            yield draft_of(batch)
            batch, objects = [], set()
        batch.append(sending)
        objects.add(sending.object)
    if batch:
        yield draft_of(batch)


def halves(draft: Draft) -> list[Draft]:
    """Return the events of a document in two."""
    middle = draft.size // 2
    return [draft_of(draft.sendings[:middle]), draft_of(draft.sendings[middle:])]


def without(drafts: Iterable[Draft], blocked: Set[ObjectName]) -> list[Draft]:
    """Return the documents without the events of some objects."""
    return [remaining for draft in drafts if (remaining := _without(draft, blocked)) is not None]


def _without(draft: Draft, blocked: Set[ObjectName]) -> Draft | None:
    sendings = [sending for sending in draft.sendings if sending.object not in blocked] if blocked else None
    if sendings is None or len(sendings) == draft.size:
        return draft
    return draft_of(sendings) if sendings else None


def _limit(sending: OutgoingEvent, batch_size: int) -> int:
    """Return the most events of a document.

    Documents that came back shrink eightfold each time, until the bad event is alone.
    """
    return max(1, batch_size >> 3 * sending.tries)


def in_batches(
    drafts: Iterable[Draft], max_documents: int, *, objects_apart: bool = True
) -> Iterator[list[Draft]]:
    """Yield the documents in batches of at most so many; with `objects_apart` no batch has two events of one
    object.
    """
    batch: list[Draft] = []
    objects: set[object] = set()
    for draft in drafts:
        next_objects = draft.objects if objects_apart else frozenset[object]()
        if len(batch) >= max_documents or not objects.isdisjoint(next_objects):
            yield batch
            batch, objects = [], set()
        batch.append(draft)
        objects |= next_objects
    if batch:
        yield batch


def further_parts(drafts: Iterable[Draft], begun: Set[str]) -> list[Draft]:
    """Return the documents with the further parts of these events, which come before any other event of their
    objects.
    """
    unfinished, continuing = set(begun), list[Draft]()
    for draft in drafts if unfinished else ():
        parts = [sending for sending in draft.sendings if sending.part > 1 and sending.run_id in unfinished]
        if parts:
            continuing.append(draft)
            unfinished -= {sending.run_id for sending in parts if sending.part == sending.parts}
        if not unfinished:
            break
    return continuing


def write_memory(drafts: Iterable[Draft], worst: Worst) -> str:
    """Return what is remembered of a batch; the rows of a cut change are kept with its first part alone."""
    listed = set[object]()
    documents = [[draft.name, [_once(fact, listed) for fact in draft.memory(worst)]] for draft in drafts]
    return json.dumps(documents, separators=(",", ":"))


def _once(fact: list[object] | dict[str, object], listed: set[object]) -> list[object] | dict[str, object]:
    """Return the fact without its rows, if an earlier fact of its event has them."""
    if isinstance(fact, dict):
        return fact
    run_id, _, *parameters = fact
    if run_id in listed:
        return [run_id, (), *parameters]
    listed.add(run_id)
    return fact


def read_memory(content: str) -> list[tuple[str, list[RecordedEvent]]]:
    """Return the documents that were remembered, by their names."""
    settled: dict[str, tuple[int, ...]] = {}  # by events that were cut
    return [
        (name, [_with_rows(fact, settled) for fact in _facts(memory)]) for name, memory in json.loads(content)
    ]


def _with_rows(fact: RecordedEvent, settled: dict[str, tuple[int, ...]]) -> RecordedEvent:
    """Return the fact with its rows, which may be kept with an earlier part."""
    if not fact.settles:
        return fact._replace(settles=settled[fact.run_id])
    if fact.has_more_parts:
        settled[fact.run_id] = fact.settles
    return fact


def still_to_go(
    documents: Iterable[tuple[str, Sequence[RecordedEvent]]], out: Container[str]
) -> list[RecordedEvent]:
    """Return the events of remembered documents that are not out yet, each once; a cut event begins with its
    next part.
    """
    unsent: dict[str, RecordedEvent] = {}
    for name, fact in ((name, fact) for name, facts in documents for fact in facts):
        if name not in out:
            unsent.setdefault(fact.run_id, fact)
        elif fact.has_more_parts:
            unsent[fact.run_id] = fact._replace(part=fact.part + 1)
        else:
            unsent.pop(fact.run_id, None)
    return list(unsent.values())


def facts_of(sendings: Iterable[OutgoingEvent], worst: Worst) -> Memory:
    """Return what is remembered of events, one by one."""
    return [_fact(sending, worst(sending.run_id)) for sending in sendings]


def remember_rows(rows: Ints) -> dict[str, object]:
    """Return rows as ranges of neighbours: the first row of each, and their number."""
    breaks = [0, *((rows[1:] - rows[:-1] != 1).nonzero()[0] + 1).tolist(), len(rows)]
    if 4 * len(breaks) > len(rows):
        return {"rows": rows.tolist()}
    return {"ranges": [number for low, high in pairwise(breaks) for number in (int(rows[low]), high - low)]}


def remembered_rows(memory: Mapping[str, Any]) -> Iterable[int]:
    """Return the rows that were remembered."""
    if "rows" in memory:
        rows: Iterable[int] = memory["rows"]
        return rows
    firsts, sizes = memory["ranges"][::2], memory["ranges"][1::2]
    return chain.from_iterable(range(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _facts(memory: Any) -> Iterator[RecordedEvent]:
    """Yield the events of a document's memory, in which an entry is one event or many of one log."""
    for fact in memory:
        if isinstance(fact, list):
            yield _remembered(*fact)
            continue
        rows = iter(remembered_rows(fact))
        for size in fact["sizes"]:
            settles = tuple(islice(rows, size))
            yield RecordedEvent(event_id(fact["log"], settles), settles, fact["max_changes"])


def _fact(sending: OutgoingEvent, worst: Status) -> list[object]:
    own_id, run_id, _, settles, _, max_changes, part, parts, tries = sending
    if parts == 1 and not tries:
        return [own_id, settles, max_changes]
    fact = [run_id, settles, max_changes, part, part < parts, tries]
    return fact if worst.level is Level.SUCCESS else [*fact, worst.level.name, worst.text]


def _remembered(
    run_id: str,
    settles: list[int],
    max_changes: int,
    part: int = 1,
    has_more_parts: bool = False,
    tries: int = 0,
    level: str = "SUCCESS",
    text: str = "",
) -> RecordedEvent:
    worst = Status(Level[level], None, text)
    return RecordedEvent(run_id, tuple(settles), max_changes, part, has_more_parts, tries, worst)
