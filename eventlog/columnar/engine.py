"""One batch of log rows after another becomes the texts of events, in the order in which they leave.

Objects whose result is certain are folded and written by column. The others go the plain way: through the
plain fold and the plain writer, row by row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence, Set
from functools import partial
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar import learn
from eventlog.columnar.batch import Batch, Rows, gather
from eventlog.columnar.content import read_content
from eventlog.columnar.current import ReadBack, no_current_rows
from eventlog.columnar.fold import FATES, Folded, Runs, fold
from eventlog.columnar.learn import ELEMENTS, OPS, Templates
from eventlog.columnar.texts import Replacements, take_texts
from eventlog.columnar.vectors import Ints, offsets, reorder_runs, spread
from eventlog.columnar.write import Written, write
from eventlog.core.change import Change, Op
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.fold import Event, Need, ObjectName, Outcome, Rules, plan
from eventlog.fold.plan import Lookup
from eventlog.fold.understand import UnknownName
from eventlog.xds.skeleton import EventForm
from eventlog.xds.write import EventWriter


class WrittenEvent(NamedTuple):
    """One event, and its text; or why it cannot be written."""

    event: Event
    text: str
    association: str
    element: str
    fault: EventlogError | None = None


class PlainEvents(NamedTuple):
    """The result of the plain way: the events in the order of leaving, and the fate of each row."""

    written: list[WrittenEvent]
    outcomes: dict[int, Outcome]
    unknown: Set[UnknownName] = frozenset()  # columns that rows named and their tables lack

    @property
    def with_text(self) -> list[WrittenEvent]:
        """The events that have a text: not those that change nothing, or cannot be written."""
        return [written for written in self.written if written.text]

    @property
    def texts(self) -> list[str]:
        """Return their texts."""
        return [written.text for written in self.with_text]


PlainWay = Callable[[Iterable[Entry]], PlainEvents]
Ask = Callable[[Sequence[Need]], Lookup]  # reads the current rows that are needed, and answers with them


def plain_way(
    tables: Tables,
    rules: Rules,
    answerable: Container[Table],
    ask: Ask,
    writer: EventWriter | EventForm,
    around: tuple[str, str] = ("", ""),
) -> PlainWay:
    """Return the plain way, with these texts around that of each event."""

    def fold_and_write(entries: Iterable[Entry]) -> PlainEvents:
        planned = plan(entries, tables, rules, answerable=answerable)
        events = planned.events(ask(planned.needs()))
        return PlainEvents(
            [_write_event(writer, event, around) for event in events], planned.outcomes, planned.unknown
        )

    return fold_and_write


def _write_event(writer: EventWriter | EventForm, event: Event, around: tuple[str, str]) -> WrittenEvent:
    change: Change = event.change
    element = writer.element(change)
    try:
        text = writer.write(change, event.event_id)
        return WrittenEvent(event, text and text.join(around), writer.association(change), element)
    except EventlogError as fault:
        return WrittenEvent(event, "", "", element, fault)


class Events(NamedTuple):
    """The events of a batch in the order of leaving, and what became of its rows."""

    texts: pa.Array
    objects: Ints  # of each event, a number: that of two events of one association is the same
    places: Ints  # of each: that of a row among the rows as they came; it leaves in its place
    parts: Ints  # 1, or the part of a change that was cut
    part_counts: Ints  # how many parts that has
    settled: Ints  # record_ids that whole events settle; the parts of one share them
    begins: Ints  # where those of each event begin
    sizes: Ints  # how many each event settles
    fates: Ints  # of each row as it came: an index of FATES
    unwritten: Sequence[WrittenEvent]  # events that XDS cannot express
    reasons: dict[int, Outcome]  # of record_ids that went the plain way
    counted: Counter[tuple[str, str]]  # events by class and element, those that cannot be written included
    names: Callable[[int], ObjectName]  # of the number of an object: its table and key, as rows have them
    event_ids: Callable[[], pa.Array]  # of each event
    ops: Callable[[], Ints]  # of each: an index of OPS, that of its change

    def settled_by(self, events: slice | Ints) -> Ints:
        """Return the record_ids that each of these events settles, event by event."""
        event, place = spread(self.sizes[events])
        record_ids: Ints = self.settled[self.begins[events][event] + place]
        return record_ids


_NONE = np.empty(0, np.int64)
_NO_TEXTS = pa.array([], pa.string())
# fmt: off
_NO_EVENTS = Events(
    _NO_TEXTS, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, (), {}, Counter(),
    lambda number: ("", ""), lambda: _NO_TEXTS, lambda: _NONE,
)
# fmt: on


def _no_answers(needs: Sequence[Need]) -> Lookup:
    return lambda table, key: ()


class Engine:
    """Makes the events of batches that hold all rows of their objects, and remembers what it has learned."""

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        form: EventForm,
        *,
        answerable: Container[Table] = (),
        read_back: ReadBack = no_current_rows,
        ask: Ask = _no_answers,
        around: tuple[str, str] = ("", ""),  # the texts around each event
    ) -> None:
        self._rules = rules
        self._read_back = read_back
        self._learn: Callable[[], Templates] = lambda: Templates(tables, rules, form, answerable, around)
        self._templates = self._learn()
        self.unknown: set[UnknownName] = set()  # columns that rows named and their tables lack
        self._plain_way = plain_way(tables, rules, answerable, ask, form, around)

    def canonical(self, tables: pa.Array, keys: pa.Array) -> pa.Array:
        """Return one text for each object, whatever rows call it."""
        return learn.canonical(self._templates, tables, keys)

    def events(self, rows: Rows) -> Events:
        """Return the events of rows that take part; no other batch holds rows of their objects, or
        their ids.
        """
        if not len(rows):
            return _NO_EVENTS
        if self._rules.whole_rows:
            rows = Rows(rows.ids, np.where(rows.kinds == 4, 4, 5), *rows[2:])
        if self._templates.is_full:
            self._templates = self._learn()
        templates, batch = self._templates, gather(rows)
        content = read_content(batch, templates, self._read_back)
        folded = fold(batch, templates, content, self._rules.max_changes)
        is_doubtful = folded.doubtful[batch.objects]
        plain = PlainEvents([], {})
        if is_doubtful.any():
            doubtful_rows = rows.take(np.sort(batch.places[is_doubtful]))
            plain = self._plain_way(doubtful_rows.entries(self._rules.status))
        named = (content.parts[code].unknown for code in np.unique(content.codes[~is_doubtful]).tolist())
        self.unknown.update(filter(None, named), plain.unknown)
        written = write(batch, templates, content, folded, plain.texts)
        counted = _count(batch, templates, folded.runs, plain)
        return _in_order(
            self._rules.log_name, rows, batch, folded, written, plain, content.replacements, counted
        )


def _count(batch: Batch, templates: Templates, runs: Runs, plain: PlainEvents) -> Counter[tuple[str, str]]:
    """Return how many events each class and element has."""
    counted = Counter((written.event.change.table, written.element) for written in plain.written)
    frames, counts = np.unique(batch.table_of[runs.owners] * len(OPS) + runs.ops, return_counts=True)
    for frame, count in zip(frames.tolist(), counts.tolist(), strict=True):
        of = templates.named(batch.tables[frame // len(OPS)]).object
        assert of is not None
        counted[of.reader.name, ELEMENTS[OPS[frame % len(OPS)]]] += count
    return counted


class _Vectors(NamedTuple):
    """The vectors of some events, as in `Events`, in any order."""

    objects: Ints
    places: Ints
    parts: Ints
    part_counts: Ints
    begins: Ints
    sizes: Ints
    settled: Ints


def _by_column(batch: Batch, folded: Folded) -> _Vectors:
    runs, settled = folded.runs, folded.settled
    events = runs.events
    return _Vectors(
        runs.owners,
        batch.places[runs.places],
        runs.parts,
        runs.part_counts,
        settled.begins[events],
        settled.sizes[events],
        batch.ids[settled.rows],
    )


def _plain(written: Sequence[WrittenEvent], objects: Ints, place_of: dict[int, int]) -> _Vectors:
    """Return the vectors of plain events; the parts of a cut one share what they settle."""
    events = [event.event for event in written]
    settled = {event.settles[0]: event.settles for event in events}
    starts = dict(zip(settled, accumulate(map(len, settled.values()), initial=0), strict=False))
    return _Vectors(
        objects,
        _ints(place_of[event.place[1]] for event in events),
        _ints(event.part for event in events),
        _ints(event.parts for event in events),
        _ints(starts[event.settles[0]] for event in events),
        _ints(len(event.settles) for event in events),
        _ints(chain.from_iterable(settled.values())),
    )


def _in_order(
    log: str,
    rows: Rows,
    batch: Batch,
    folded: Folded,
    written: Written,
    plain: PlainEvents,
    replacements: Sequence[Replacements],
    counted: Counter[tuple[str, str]],
) -> Events:
    """Return the events of both ways in the order of leaving."""
    plain_events = plain.with_text
    place_of = {row: place for place, row in enumerate(rows.ids.tolist())} if plain.outcomes else {}
    for row, outcome in plain.outcomes.items():
        folded.fates[place_of[row]] = FATES.index(outcome.fate)
    associations: dict[str, int] = {}
    numbers = [associations.setdefault(event.association, len(associations)) for event in plain_events]
    by_column = _by_column(batch, folded)
    row_wise = _plain(plain_events, _ints(numbers) + len(batch.keys), place_of)
    row_wise = row_wise._replace(begins=row_wise.begins + len(by_column.settled))
    vectors = _Vectors(*map(np.concatenate, zip(by_column, row_wise, strict=True)))
    order = np.lexsort((vectors.parts, vectors.places))
    objects, places, parts, part_counts, begins, sizes = (vector[order] for vector in vectors[:-1])
    object_names = {number: event.event.object for number, event in zip(numbers, plain_events, strict=True)}
    return Events(
        _join_pieces(written, order, replacements),
        objects,
        places,
        parts,
        part_counts,
        vectors.settled,
        begins,
        sizes,
        folded.fates,
        [event for event in plain.written if event.fault is not None],
        plain.outcomes,
        counted,
        partial(_name, batch, object_names),
        partial(_event_ids, log, written.ids, plain_events, order),
        partial(_ops, batch, folded.runs, plain_events, order),
    )


def _join_pieces(written: Written, order: Ints, replacements: Sequence[Replacements]) -> pa.Array:
    """Return the texts of events in this order."""
    pieces, sizes = reorder_runs(written.pieces, written.sizes, order)
    texts = take_texts(written.pool, pieces, replacements)
    ends = offsets(texts)[np.concatenate([[0], np.cumsum(sizes)])]
    return pa.Array.from_buffers(
        pa.string(), len(order), [None, pa.py_buffer(ends.astype(np.int32)), texts.buffers()[2]]
    )


def _event_ids(log: str, ids: pa.Array, plain: Sequence[WrittenEvent], order: Ints) -> pa.Array:
    """Return the event-id of each event."""
    by_column = pc.binary_join_element_wise(log, ids, ":")
    plain_ids = pa.array([written.event.event_id for written in plain], pa.string())
    return pa.concat_arrays([by_column, plain_ids]).take(pa.array(order))


def _ops(batch: Batch, runs: Runs, plain: Sequence[WrittenEvent], order: Ints) -> Ints:
    """Return the operation of each event; types 5 and 7 stay inserts, also where they are sent as a
    modify.
    """
    kinds = batch.kinds[runs.rows]
    ops = runs.ops
    if len(kinds):
        inserts = np.logical_and.reduceat((kinds == 5) | (kinds == 7), runs.first)
        ops = np.where(inserts, OPS.index(Op.INSERT), ops)
    plain_ops = _ints(OPS.index(written.event.change.op) for written in plain)
    in_order: Ints = np.concatenate([ops, plain_ops])[order]
    return in_order


def _name(batch: Batch, plain: dict[int, ObjectName], number: int) -> ObjectName:
    """Return the table and the key of an object."""
    if number >= len(batch.keys):
        return plain[number - len(batch.keys)]
    return batch.tables[batch.table_of[number]], batch.keys[number].as_py()


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
