"""One batch of log rows after another becomes a table of events, in the order in which they leave.

Objects whose result is certain are folded and written by column. The others go the plain way: through the
plain fold and the plain writer, row by row. Which current rows they all need follows from the rows alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.change import Op
from eventlog.core.identity import object_of
from eventlog.core.tables import Table, Tables
from eventlog.fold import Fate, Need, ObjectName, Outcome, Plan, Rules, plan
from eventlog.fold.by_column.batch import Batch, Rows, gather
from eventlog.fold.by_column.content import Content, RowContent, read_rows, with_current_rows
from eventlog.fold.by_column.current import NONE, CurrentAnswer, Keys, answers_of, find_keys, lookup_among
from eventlog.fold.by_column.fold import FATES, Folded, fold
from eventlog.fold.by_column.learn import Templates
from eventlog.fold.by_column.unanswerable import Unanswerable
from eventlog.fold.by_column.vectors import Flags, Ints, offsets
from eventlog.fold.by_column.write import event_ids, write
from eventlog.fold.event_table import (
    OPERATIONS,
    EventColumns,
    EventTable,
    WrittenEvent,
    integers,
    plain_columns,
)
from eventlog.fold.plain_events import NO_PLAIN_EVENTS, PlainEvents, write_plan
from eventlog.fold.understand import UnknownName
from eventlog.xds.skeleton import EventForm


class Needs(NamedTuple):
    """The current rows that log rows need, and these rows as they are understood without them."""

    keys: Keys  # whose rows are read by column
    alone: Sequence[Need]  # of objects in doubt
    rows: Rows
    batch: Batch
    templates: Templates
    content: RowContent
    doubtful: Flags  # of each object
    planned: Plan | None  # of the rows in doubt


class RefusedRows(NamedTuple):
    """The rows of a batch that cannot be understood: their positions among those that came, and why."""

    places: Ints
    reasons: list[str]


class BatchEvents(NamedTuple):
    """The events of a batch in the order of leaving, and what became of its rows."""

    events: EventTable
    texts: pa.Array  # of the events
    places: Ints  # of each event: that of a row among the rows as they came; it leaves in its place
    fates: Ints  # of each row as it came: an index of FATES
    refused: RefusedRows
    unwritten: Sequence[WrittenEvent]  # events that the form cannot express
    reasons: dict[int, Outcome]  # of record_ids that went the plain way
    column_ids: pa.Array  # the event-ids of the events by column, without the log's name
    plain_ids: Sequence[str]  # those of the other events
    order: Ints  # the positions of the events among both

    def event_ids(self) -> pa.Array:
        """Return the event-id of each event."""
        by_column = pc.binary_join_element_wise(self.events.log, self.column_ids, ":")
        ids = pa.concat_arrays([by_column, pa.array(self.plain_ids, pa.string())])
        return ids.take(pa.array(self.order))

    def among(self, places: Ints, unanswerable: RefusedRows, count: int) -> BatchEvents:
        """Return this result of the rows at these places as one of so many rows, the others unanswerable."""
        refused = RefusedRows(
            np.concatenate([places[self.refused.places], unanswerable.places]),
            [*self.refused.reasons, *unanswerable.reasons],
        )
        fates = np.full(count, FATES.index(Fate.REFUSED))
        fates[places] = self.fates
        return self._replace(places=places[self.places], fates=fates, refused=refused)


class ObjectNames(Sequence[ObjectName]):
    """The objects of a batch by their numbers: those by column, then those of plain events."""

    def __init__(self, tables: Tables, batch: Batch, plain_names: Sequence[ObjectName]) -> None:
        self._tables = tables
        self._batch = batch
        self._plain_names = plain_names

    def __len__(self) -> int:
        return len(self._batch.keys) + len(self._plain_names)

    def __getitem__(self, number: Any) -> Any:
        batch, count = self._batch, len(self._batch.keys)
        if number >= count:
            return self._plain_names[number - count]
        return object_of(self._tables, batch.tables[batch.table_of[number]], batch.keys[number].as_py())


class Engine:
    """Makes the events of batches that hold all rows of their objects, and remembers what it has learned."""

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        form: EventForm,
        *,
        answerable: Container[Table] = (),
        around: tuple[str, str] = ("", ""),  # the texts around each event
    ) -> None:
        self._tables = tables
        self._rules = rules
        self._form = form
        self._answerable = answerable
        self._around = around
        self._learn: Callable[[], Templates] = lambda: Templates(tables, rules, form, answerable, around)
        self._templates = self._learn()
        self._unanswerable = Unanswerable(tables, rules, answerable)
        self.unknown: set[UnknownName] = set()  # columns that rows named and their tables lack

    def fold(
        self, rows: Rows, read: Callable[[Needs], CurrentAnswer], size: int = sys.maxsize
    ) -> Iterator[BatchEvents]:
        """Yield the events of these rows in portions of about so many rows, at least one; what became of rows
        is the same in each. `read` returns the current rows that they need.
        """
        is_unanswerable = self._unanswerable.find(rows)
        if is_unanswerable.any():
            answerable, lost = np.flatnonzero(~is_unanswerable), np.flatnonzero(is_unanswerable)
            refused = RefusedRows(lost, self._unanswerable.reasons(rows.take(lost)).to_pylist())
            for result in self.fold(rows.take(answerable), read, size):
                yield result.among(answerable, refused, len(rows))
        elif len(rows):
            needs = self.needs(rows)
            yield from self.portions(needs, read(needs), size)
        else:
            yield self.nothing()

    def nothing(self) -> BatchEvents:
        """Return the result of no rows."""
        rules, texts = self._rules, pa.array([], pa.string())
        events = EventTable.from_plain([], rules.log_name, self._tables, self._form.around, rules.max_changes)
        return BatchEvents(events, texts, NONE, NONE, RefusedRows(NONE, []), [], {}, texts, [], NONE)

    def needs(self, rows: Rows) -> Needs:
        """Return the current rows that these log rows need.

        There is at least one row, and no other batch holds rows of their objects, or their ids.
        """
        if self._rules.whole_rows:
            rows = Rows(rows.ids, np.where(rows.kinds == 4, 4, 5), *rows[2:])
        if self._templates.is_full:
            self._templates = self._learn()
        templates, batch = self._templates, gather(rows)
        content = read_rows(batch, templates)
        keys, doubtful = find_keys(batch, templates, content.doubtful)
        planned = self._plan(rows, batch, doubtful)
        alone = planned.needs() if planned else ()
        return Needs(keys, alone, rows, batch, templates, content, doubtful, planned)

    def events(self, needs: Needs, current: CurrentAnswer) -> BatchEvents:
        """Return the events of these rows by the current rows that they need."""
        (result,) = self.portions(needs, current, sys.maxsize)
        return result

    def portions(self, needs: Needs, current: CurrentAnswer, size: int) -> Iterator[BatchEvents]:
        """Yield the events in portions of about so many rows; what became of rows is the same in each."""
        rows, batch, templates = needs.rows, needs.batch, needs.templates
        answers = answers_of(batch, needs.keys, current)
        row_content = needs.content._replace(doubtful=needs.doubtful)
        content = with_current_rows(batch, templates, row_content, answers)
        folded = fold(batch, templates, content, self._rules.max_changes)
        plain = NO_PLAIN_EVENTS
        if needs.planned is not None:
            plain = write_plan(needs.planned, current.lookup, self._form, self._around)
        by_values = folded.doubtful & ~needs.doubtful  # in doubt by what was read
        if by_values.any():
            lookup = lookup_among(needs.keys, current, answers, by_values)
            planned = self._plan(rows, batch, by_values)
            assert planned is not None
            plain = plain.joined(write_plan(planned, lookup, self._form, self._around))
        certain_codes = content.codes[~folded.doubtful[batch.objects]]
        named = (content.parts[code].unknown for code in np.unique(certain_codes).tolist())
        self.unknown.update(filter(None, named), plain.unknown)
        yield from self._in_order(needs, content, folded, plain, size)

    def _plan(self, rows: Rows, batch: Batch, objects: Flags) -> Plan | None:
        if not objects.any():
            return None
        chosen = rows.take(np.sort(batch.places[objects[batch.objects]]))
        entries = chosen.entries(self._rules.status)
        return plan(entries, self._tables, self._rules, answerable=self._answerable)

    def _in_order(
        self, needs: Needs, content: Content, folded: Folded, plain: PlainEvents, size: int
    ) -> Iterator[BatchEvents]:
        """Yield the events of both ways in the order of leaving."""
        rows, batch, runs = needs.rows, needs.batch, folded.runs
        plain_events = plain.with_text
        place_of = {row: place for place, row in enumerate(rows.ids.tolist())} if plain.outcomes else {}
        reasons: dict[int, str] = {}  # of refused rows, by their places
        for row, outcome in plain.outcomes.items():
            folded.fates[place_of[row]] = FATES.index(outcome.fate)
            if outcome.fate is Fate.REFUSED:
                reasons[place_of[row]] = outcome.reason
        numbers: dict[ObjectName, int] = {}
        plain_objects = integers(numbers.setdefault(w.event.object, len(numbers)) for w in plain_events)
        plain_places = integers(place_of[w.event.place[1]] for w in plain_events)
        columns = _columns_of(batch, folded).joined(plain_columns(plain_events))
        places = np.concatenate([batch.places[runs.places], plain_places])
        objects = np.concatenate([runs.owners, plain_objects + len(batch.keys)])
        names = ObjectNames(self._tables, batch, list(numbers))
        unwritten = [w for w in plain.written if w.fault is not None]
        ids = event_ids(batch.ids, folded.event_rows, runs)
        ordered = np.lexsort((columns.parts, places))
        lengths = np.concatenate([runs.lengths, np.ones(len(plain_events), np.int64)])[ordered]
        portion = (np.cumsum(lengths) - 1) // size
        orders = np.split(ordered, np.flatnonzero(np.diff(portion)) + 1)
        if len(orders) > 1:
            pa.default_memory_pool().release_unused()  # else Arrow holds what the ids took meanwhile
        for order in orders:
            is_plain = order >= len(ids)
            by_column, by_row = order[~is_plain], order[is_plain] - len(ids)
            column_ids, written = ids.take(pa.array(by_column)), [plain_events[at] for at in by_row.tolist()]
            texts = write(batch, needs.templates, content, runs.take(by_column), column_ids)
            order_of_both = np.arange(len(order))
            if written:
                order_of_both = np.argsort(np.argsort(is_plain, kind="stable"))
                texts = pa.concat_arrays([texts, pa.array([w.text for w in written], pa.string())])
                texts = texts.take(pa.array(order_of_both))
            events = EventTable(
                self._rules.log_name,
                self._tables,
                self._form.around,
                memoryview(texts.buffers()[2] or b""),
                offsets(texts),
                objects[order],
                names,
                max_changes=self._rules.max_changes,
                **columns.in_order(order)._asdict(),
            )
            yield BatchEvents(
                events,
                texts,
                places[order],
                folded.fates,
                RefusedRows(integers(reasons), list(reasons.values())),
                unwritten,
                plain.outcomes,
                column_ids,
                [w.event.event_id for w in written],
                order_of_both,
            )


def _columns_of(batch: Batch, folded: Folded) -> EventColumns:
    runs, rows = folded.runs, folded.event_rows
    events = runs.event_of_run
    return EventColumns(
        batch.ids[rows.rows],
        rows.begins[events],
        rows.sizes[events],
        runs.part_numbers,
        runs.part_counts,
        _operations(batch, folded),
        runs.ops,
    )


def _operations(batch: Batch, folded: Folded) -> Ints:
    """Return the operation of each folded event's change.

    Types 5 and 7 stay inserts, also where they are sent as a modify.
    """
    runs = folded.runs
    if not len(runs.rows):
        return runs.ops
    kinds = batch.kinds[runs.rows]
    inserts = np.logical_and.reduceat((kinds == 5) | (kinds == 7), runs.starts)
    operations: Ints = np.where(inserts, OPERATIONS.index(Op.INSERT), runs.ops)
    return operations
