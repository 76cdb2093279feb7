"""What becomes of a life of one shape: constants, with gaps for keys, ids and values.

The fold and the writer look at a value only to see whether it is null, or whether a type 2 changes
anything. So the plain fold and the plain writer make the template, from a life whose values are
marks: a second, columnar form of the step, not a second meaning.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.core.entry import Entry
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Kind
from eventlog.fold import Event, Fate, plan
from eventlog.xds.documents import document
from eventlog.xds.text import attribute, content
from eventlog.xds.write import EventWriter
from eventlog_spark.task import Task

ASSOCIATION_END, MODIFY_END = "</association>", "</modify>"
OPEN, CLOSE = '<value type="string">', "</value>"
_HUGE = 1 << 62
_GAP = re.compile("\ue000([a-z])([0-9]*)\ue001")


class Segment(enum.IntEnum):
    """Where a piece of a document comes from; the pool of a batch holds the segments in this order."""

    CONSTANT = 0
    KEY = 1  # of the life's object
    OLD = 2  # of the life's n-th row
    NEW = 3
    ID = 4
    CURRENT = 5  # n-th cell of the object's current row
    DIGEST = 6  # of the life's n-th event of several rows


class Treatment(enum.IntEnum):
    """How a column's text becomes what stands in a document."""

    TEXT = 0  # escaped
    PADDED = 1  # without the blanks at its end
    INT = 2  # as it is, under another type
    ELEMENT = 3  # rendered one by one, with its element


def treatment(column: Column | None) -> Treatment:
    """The treatment of a column; one that nobody described is text."""
    if column is None:
        return Treatment.TEXT
    if column.reference is not None:
        return Treatment.ELEMENT
    return _TREATMENTS.get(column.kind, Treatment.ELEMENT)


_TREATMENTS = {Kind.STRING: Treatment.TEXT, Kind.PADDED: Treatment.PADDED, Kind.INT: Treatment.INT}


class RowShape(NamedTuple):
    """What of a row decides about documents, beside its object."""

    kind: int
    column: str | None
    old: bool  # whether there is one
    new: bool
    same: bool  # old and new mean the same


class Piece(NamedTuple):
    segment: Segment
    at: int


@dataclass
class Template:
    """The documents of a life: their pieces, and what is to be counted."""

    segments: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    digests: list[tuple[int, ...]]  # the rows that each event of several rows settles, by their number
    documents: int
    fates: Counter[str]
    events: Counter[str]


class Form(NamedTuple):
    """The pieces of a part of a document."""

    segments: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]


class Body(NamedTuple):
    """What a row of type 2 or 3 adds to a document: whole, and as two halves where a cut goes through it."""

    values: int  # removed or added; 0 for a row that says nothing
    forms: tuple[Form, Form, Form]


class Compiler:
    """Makes templates, and keeps the constants of all of them."""

    def __init__(self, task: Task) -> None:
        self.constants: list[str] = []
        self._known: dict[str, int] = {}
        self._task = task
        twins = {str(table): _twin(table) for table in task.tables}
        self._tables = Tables(twins.values(), task.tables.dialect)
        self._answerable = frozenset(twins[str(table)] for table in task.answerable)
        self._rules = replace(
            task.rules, status="N", driver_user=None, handle_future_events=False, max_value=_HUGE
        )
        self._writer = EventWriter(self._tables, task.target_settings)
        self._log = attribute(task.rules.log_name)

    def compile(self, name: str, rows: Sequence[RowShape], current: Sequence[bool] | None) -> Template | None:
        """The template of a life; None where a row is refused, for a reason of its own each time."""
        if any("\ue000" in text for text in (name, *(row.column or "" for row in rows))):
            return None
        table = self._tables.find(name)
        key = (
            "+".join(f"{column}=\ue000k\ue001" for column in table.key)
            if table and table.key
            else "k=\ue000k\ue001"
        )
        entries = [_entry(n, name, key, row) for n, row in enumerate(rows)]
        planned = plan(entries, self._tables, self._rules, answerable=self._answerable)
        answer = (
            []
            if current is None
            else [[f"\ue000c{n}\ue001" if there else None for n, there in enumerate(current)]]
        )
        events = planned.events(lambda table, key: answer)
        fates = Counter(outcome.fate.value for outcome in planned.outcomes.values())
        if Fate.REFUSED.value in fates:
            return None
        return self._template(name, rows, key, events, fates)

    def body(self, name: str, row: RowShape) -> Body | None:
        """The body of a row alone in its life; None where no template is."""
        none = _form([])
        if row.kind == 4:
            return Body(0, (none, none, none))
        whole = self.compile(name, [row], None)
        if whole is None or whole.documents > 1:
            return None
        if not whole.documents:
            return Body(0, (none, none, none))
        values = (row.kind == 3 or row.old) + row.new
        if values == 1:
            return Body(1, (self._inside(whole), none, none))
        halves = row._replace(new=False), RowShape(2, row.column, False, True, False)
        first, second = (self.compile(name, [half], None) for half in halves)
        if first is None or second is None:
            return None
        return Body(2, (self._inside(whole), self._inside(first), self._inside(second)))

    def _inside(self, template: Template) -> Form:
        """The pieces between the association and the end of the event."""
        pieces = list(map(Piece, map(Segment, template.segments.tolist()), template.at.tolist()))
        inside = pieces[pieces.index(Piece(Segment.KEY, 0)) + 1 :]
        texts = [self.constants[p.at] if p.segment is Segment.CONSTANT else None for p in inside]
        if texts[0] is not None:
            texts[0] = texts[0].partition(ASSOCIATION_END)[2]
        if texts[-1] is not None:
            texts[-1] = texts[-1].rpartition(MODIFY_END)[0]
        return _form(
            p if t is None else self._constant(t) for p, t in zip(inside, texts, strict=True) if t != ""
        )

    def _template(
        self, name: str, rows: Sequence[RowShape], key: str, events: Sequence[Event], fates: Counter[str]
    ) -> Template:
        pieces: list[Piece] = []
        digests: list[tuple[int, ...]] = []
        counted: Counter[str] = Counter()
        documents = 0
        for event in events:
            counted[f"{event.change.table} {self._task.operation(event.change)}"] += 1
            text = self._writer.write(event.change, "\ue000e\ue001")
            if text:
                documents += 1
                whole = document([text.replace(content(key), "\ue000k\ue001", 1)]) + "\n"
                pieces += self._pieces(name, rows, event, whole, digests)
        segments, at = zip(*pieces, strict=True) if pieces else ((), ())
        return Template(
            np.array(segments, np.int64), np.array(at, np.int64), digests, documents, fates, counted
        )

    def _pieces(
        self, name: str, rows: Sequence[RowShape], event: Event, text: str, digests: list[tuple[int, ...]]
    ) -> Iterator[Piece]:
        """The text cut at its marks."""
        table = self._task.tables.find(name)
        constant, *rest = _GAP.split(text)
        for gap, number, behind in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
            if gap in "onc":
                opening, behind = _wrapped(self._treatment(table, rows, gap, int(number)), behind)
                constant = constant.removesuffix(OPEN) + opening
            if constant:
                yield self._constant(constant)
            yield from (
                self._event_id(event, digests) if gap == "e" else (Piece(_SEGMENTS[gap], int(number or 0)),)
            )
            constant = behind
        yield self._constant(constant)

    def _treatment(self, table: Table | None, rows: Sequence[RowShape], gap: str, number: int) -> Treatment:
        if table is None:
            return Treatment.TEXT
        if gap == "c":
            return treatment(table.data[number])
        return treatment(table.column(rows[number].column or ""))

    def _event_id(self, event: Event, digests: list[tuple[int, ...]]) -> Iterator[Piece]:
        rows = tuple(row - 1 for row in event.settles)
        yield self._constant(f"{self._log}:")
        yield Piece(Segment.ID, rows[0])
        if len(rows) > 1:
            yield self._constant("-")
            yield Piece(Segment.ID, rows[-1])
            yield self._constant(":")
            yield Piece(Segment.DIGEST, len(digests))
            digests.append(rows)
        if event.part > 1:
            yield self._constant(f".{event.part}")

    def _constant(self, text: str) -> Piece:
        if text not in self._known:
            self._known[text] = len(self.constants)
            self.constants.append(text)
        return Piece(Segment.CONSTANT, self._known[text])


def _form(pieces: Iterable[Piece]) -> Form:
    segments, at = zip(*pieces, strict=True) if (pieces := list(pieces)) else ((), ())
    return Form(np.array(segments, np.int64), np.array(at, np.int64))


_SEGMENTS = {"k": Segment.KEY, "o": Segment.OLD, "n": Segment.NEW, "c": Segment.CURRENT}


def _wrapped(how: Treatment, behind: str) -> tuple[str, str]:
    """What stands before a value, and what follows it."""
    if how is Treatment.ELEMENT:
        return "", behind.removeprefix(CLOSE)
    return '<value type="int">' if how is Treatment.INT else OPEN, behind


def _entry(number: int, name: str, key: str, row: RowShape) -> Entry:
    old = f"\ue000o{number}\ue001" if row.old else None
    new = f"\ue000n{number}\ue001" if row.new else None
    return Entry(number + 1, "N", row.kind, "", None, name, key, row.column, new if row.same else old, new)


def _twin(table: Table) -> Table:
    """The table as if all its values were text, which marks are."""
    columns = {
        name: replace(column, kind=Kind.STRING, bounds=None, number=None, reference=None)
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns, max_value=None)
