"""Many events at once on their way: documents are slices of one buffer, and an event is looked at by itself
only where its answer asks for that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from eventlog.columnar import Events
from eventlog.columnar.packing import documents
from eventlog.columnar.vectors import Ints, offsets
from eventlog.core.identity import object_of
from eventlog.core.tables import Tables
from eventlog.fold import event_id
from eventlog.publisher.batches import (
    Memory,
    OutgoingEvent,
    Successes,
    Worst,
    association_of,
    document_name,
    facts_of,
    remember_rows,
)
from eventlog.sinks.sink import Item, OutgoingDocument

_OPERATION = 1  # the position of the letter of an operation in an event's text


class PackedEvents:
    """The events of one reading, in the order in which they leave."""

    def __init__(
        self, events: Events, log: str, max_changes: int, tables: Tables, around: tuple[str, str]
    ) -> None:
        self.events = events
        self.log = log
        self.max_changes = max_changes
        self._tables = tables
        self._around = around
        self._last = -1  # the event whose name was asked for last
        self._last_run: tuple[str, tuple[int, ...]] = ("", ())

    def __len__(self) -> int:
        return len(self.events.places)

    @cached_property
    def operations(self) -> Ints:
        """Return the letter of the operation of each event."""
        texts = self.events.texts
        letters = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        return letters[offsets(texts)[:-1] + _OPERATION].astype(np.int64)

    def drafts(self, batch_size: int, start: int = 0) -> Iterator[PackedDraft]:
        """Yield documents of up to so many events, from an event on."""
        events = self.events
        if start >= len(self):
            return
        data, ends, sizes = documents(events.texts[start:], events.objects[start:], batch_size, self._around)
        firsts = start + np.cumsum(sizes) - sizes
        lows = events.settled[events.begins]
        lowest = np.minimum.reduceat(lows, firsts)
        highest = np.maximum.reduceat(events.settled[events.begins + events.sizes - 1], firsts)
        begin = 0
        columns = (column.tolist() for column in (firsts, sizes, lowest, highest, ends))
        for first, size, low, high, end in zip(*columns, strict=True):
            part = self._part(first, first + size, low)
            name = document_name(low, part, high)
            yield PackedDraft(self, name, low, high, first, first + size, data[begin : end - 1])
            begin = end

    def _part(self, first: int, last: int, row: int) -> int:
        """Return the part of the event among these that begins with that row."""
        if last - first == 1:
            return int(self.events.parts[first])
        return int(
            self.events.parts[first + np.argmax(self.events.settled[self.events.begins[first:last]] == row)]
        )

    def rows(self, first: int, last: int) -> Ints:
        """Return the rows that these events settle, in the order of the events."""
        return self.events.settled_by(slice(first, last))

    def sendings(self, first: int, last: int) -> tuple[OutgoingEvent, ...]:
        """Return these events one by one."""
        texts = self.events.texts[first:last].to_pylist()
        return tuple(self._sending(at, text) for at, text in enumerate(texts, first))

    def _sending(self, at: int, text: str) -> OutgoingEvent:
        part = int(self.events.parts[at])
        run_id, settles = self._run(at - part + 1)
        own_id = run_id if part == 1 else f"{run_id}.{part}"
        name = object_of(self._tables, *self.events.names(int(self.events.objects[at])))
        parts = int(self.events.part_counts[at])
        return OutgoingEvent(own_id, run_id, name, settles, text, self.max_changes, part, parts)

    def _run(self, at: int) -> tuple[str, tuple[int, ...]]:
        """Return the name of an event and the rows that it settles; its later parts, which follow it, share
        both.
        """
        if at != self._last:
            settles = tuple(self.rows(at, at + 1).tolist())
            self._last, self._last_run = at, (event_id(self.log, settles), settles)
        return self._last_run


@dataclass(eq=False)
class PackedDraft:
    """A document of consecutive events."""

    packed: PackedEvents
    name: str
    lowest: int
    highest: int
    first: int  # the position of its first event
    last: int  # that after its last one
    data: memoryview

    @property
    def size(self) -> int:
        """Return how many events it has."""
        return self.last - self.first

    @property
    def objects(self) -> Set[object]:
        """Return their objects, by numbers of their reading."""
        return frozenset(self.packed.events.objects[self.first : self.last].tolist())

    @cached_property
    def sendings(self) -> Sequence[OutgoingEvent]:
        """The events one by one."""
        return self.packed.sendings(self.first, self.last)

    def document(self, tables: Tables) -> OutgoingDocument:
        """Return what goes out."""
        return PackedDocument(self, tables, bytes(self.data))

    def memory(self, worst: Worst) -> Memory:
        """Return what is remembered of it; event-ids follow from rows, unless a change was cut."""
        sizes = self.packed.events.sizes
        same = {"log": self.packed.log, "max_changes": self.packed.max_changes}
        facts: Memory = []
        for first, last, cut in self._stretches:
            if cut:
                facts += facts_of(self._parts[first], worst)
            else:
                rows = remember_rows(self.packed.rows(first, last))
                facts.append({**same, "sizes": sizes[first:last].tolist(), **rows})
        return facts

    def successes(self) -> Successes:
        """Return the fates after a plain success."""
        rows: list[int] = []
        parts: list[OutgoingEvent] = []
        letters: Counter[int] = Counter()
        for first, last, cut in self._stretches:
            if cut:
                parts += self._parts[first]
            else:
                rows += self.packed.rows(first, last).tolist()
                letters.update(self.packed.operations[first:last].tolist())
        return Successes(rows, Counter({chr(letter): count for letter, count in letters.items()}), parts)

    @cached_property
    def _parts(self) -> Mapping[int, Sequence[OutgoingEvent]]:
        """The parts of changes that were cut, by the first of each stretch of them."""
        return {first: self.packed.sendings(first, last) for first, last, cut in self._stretches if cut}

    @cached_property
    def _stretches(self) -> Sequence[tuple[int, int, bool]]:
        """Yield its ranges of events, and whether they are parts of cut changes."""
        cut = self.packed.events.part_counts[self.first : self.last] > 1
        edges = [0, *(np.flatnonzero(cut[1:] != cut[:-1]) + 1).tolist(), self.size]
        return [(self.first + low, self.first + high, bool(cut[low])) for low, high in pairwise(edges)]


class PackedDocument(OutgoingDocument):
    """A document whose events are made one by one only when they are asked for."""

    def __init__(self, draft: PackedDraft, tables: Tables, data: bytes) -> None:
        self.name = draft.name
        self._draft = draft
        self._tables = tables
        self.data = data

    @cached_property
    def items(self) -> Sequence[Item]:  # type: ignore[override]
        """The events."""
        return [
            Item(s.event_id, s.text, None, association_of(self._tables, s.object))
            for s in self._draft.sendings
        ]

    @cached_property
    def text(self) -> str:
        """The document."""
        return self.data.decode()
