"""The rows of whole objects become the rows of a DataFrame, with the current rows among them.

`FoldToDocuments` folds by column. `FoldToRows` folds row by row: it is the reference, and makes changes,
indented documents and refusals.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.entry import Entry
from eventlog.core.errors import Refused
from eventlog.core.tables import Table, Tables
from eventlog.fold import Answer, CurrentRow, Fate, ObjectName, QueryKey, plan, whole_objects
from eventlog.fold.by_column import BatchEvents, CurrentAnswer, CurrentColumns, Engine, Rows
from eventlog.fold.by_column.current import NONE, Keys
from eventlog.fold.by_column.vectors import Flags, Ints, codes_of, flags, offsets, spread
from eventlog.fold.event_table import OPERATIONS
from eventlog.xds.documents import HEAD, TAIL
from eventlog.xds.skeleton import Skeletons
from eventlog_spark.batches import bounded
from eventlog_spark.log_rows import LogReading
from eventlog_spark.packing import unpacked
from eventlog_spark.result_rows import Documents, FrameForm, FrameRow, document_columns, text_of
from eventlog_spark.shuffle import (
    ROWS,
    RowKind,
    ShuffledRow,
    answer_of,
    current_row_key,
    shuffled_rows,
    unpack_all_cells,
    unpack_name,
)
from eventlog_spark.unanswerable import Unanswerable, line_of

_COUNTED = [(str(op), pa.int64()) for op in OPERATIONS]
BRIEF = pa.schema([("document", pa.string()), ("refused", pa.string()), *_COUNTED])
_FACTS = ("event_time", "perpetrator")
# The columns of rows that are folded: those of other outputs, and of a brief one.
FOLDED = [
    pa.schema([*(field for field in ROWS if field.name not in unused), ("h", pa.int64())])
    for unused in (("event_type",), ("event_type", *_FACTS))
]
_LINES = 1 << 20  # bytes of documents that are one row
_IDS = 1 << 20  # record_ids of events that are one batch
_PORTION = 40_000  # rows whose events are written together


class FoldOutput(enum.Enum):
    """A choice of what the fold gives."""

    ROWS = enum.auto()  # a row for each document and each refused record
    BRIEF = enum.auto()  # rows with the lines of many documents, and a row for each reason of a refusal
    REFUSED = enum.auto()  # at least the rows of refused records


class FoldToDocuments:
    """A task that folds packed rows by column."""

    def __init__(self, reading: LogReading, form: Documents, output: FoldOutput = FoldOutput.ROWS) -> None:
        self._reading = reading
        self._form = form
        self._output = output

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that it gives."""
        return BRIEF if self._output is FoldOutput.BRIEF else self._form.schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reading = self._reading
        brief, unanswerable = self._output is FoldOutput.BRIEF, Unanswerable(reading)
        engine = Engine(
            reading.tables,
            reading.rules,
            Skeletons(reading.tables, self._form.settings),
            answerable=reading.answerable,
            around=(HEAD, f"{TAIL}\n" if brief else TAIL),
        )
        for batch in unpacked(batches, FOLDED[brief]):
            is_unanswerable = unanswerable.find(batch)
            if is_unanswerable.any():
                lost = batch.filter(pa.array(is_unanswerable))
                cells = {"refused": unanswerable.reasons(lost)} if brief else unanswerable.records(lost)
                yield with_nulls(cells, self.schema)
                batch = batch.filter(pa.array(~is_unanswerable))
            rows = SortedRows(batch, reading.tables)
            refused = list(self._unreadable(batch))
            if rows.log.num_rows:
                needs = engine.needs(rows.as_logged)
                for result in engine.portions(needs, rows.read_back(needs.keys), _PORTION):
                    if self._output is not FoldOutput.REFUSED:
                        yield from brief_rows(result) if brief else self._rows(rows.log, result)
                del needs
                refused += self._refused(rows.log, result)
            for records in bounded(refused, self._form.schema):
                yield with_nulls({"refused": records.column("refused")}, BRIEF) if brief else records

    def _unreadable(self, batch: pa.RecordBatch) -> Iterator[FrameRow]:
        unreadable = pc.equal(batch.column("kind"), int(RowKind.UNREADABLE))
        for row in shuffled_rows([batch.filter(unreadable)]):
            yield refused_row(self._form, row)

    def _refused(self, log: pa.RecordBatch, result: BatchEvents) -> Iterator[FrameRow]:
        """Yield what is refused of these log rows, and the events that cannot be written."""
        form, status = self._form, self._reading.rules.status
        wrong = {at: outcome.reason for at, outcome in result.reasons.items() if outcome.fate is Fate.REFUSED}
        is_wrong = np.isin(log.column("record_id").to_numpy(), list(wrong))
        for row in shuffled_rows([log.filter(pa.array(is_wrong))]):
            yield form.refused(wrong[row.record_id], line_of(row.entry(status)), (row.record_id,))
        for written in result.unwritten:
            for record in form.of_event(written.event):
                if isinstance(record, Refused):
                    yield form.refused(record.reason, text_of(record.raw), written.event.rows)

    def _rows(self, log: pa.RecordBatch, result: BatchEvents) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the events of these log rows; each part of an event has all its record_ids."""
        events, places = result.events, pa.array(result.places)
        facts = [
            result.texts,
            result.event_ids(),
            log.column("table_name").take(places),
            log.column("table_key").take(places),
            _ops(result),
            pa.array(events.rows[events.begins]),
            pa.array(events.rows[events.begins + events.sizes - 1]),
            *document_columns(log.column("record_id").to_numpy()[result.places], events.parts),
        ]
        cuts = np.flatnonzero(np.diff(np.cumsum(events.sizes) // _IDS)) + 1
        for first, end in pairwise([0, *cuts.tolist(), len(events)]):
            ends, ids = np.cumsum(events.sizes[first:end]), events.rows_of(slice(first, end))
            lists = pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]), pa.int32()), pa.array(ids))
            cells = [column[first:end] for column in facts]
            yield pa.record_batch([*cells[:7], lists, *cells[7:]], schema=self.schema)


def brief_rows(result: BatchEvents) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a batch as rows of many lines. The text of each document ends with its line."""
    edges, text = offsets(result.texts), result.texts.buffers()[2]
    operations = np.asarray(result.events.operations)
    first = 0
    while first < len(operations):
        end = max(first + 1, int(np.searchsorted(edges, edges[first] + _LINES, "right")) - 1)
        begin, size = int(edges[first]), int(edges[end] - edges[first])
        at = pa.py_buffer(np.array([0, size - 1], np.int32))  # the writer of lines ends the last one
        lines = pa.Array.from_buffers(pa.string(), 1, [None, at, text.slice(begin, size)])
        counts = np.bincount(operations[first:end], minlength=len(OPERATIONS))
        cells = [lines, pa.nulls(1, pa.string()), *(pa.array([count], pa.int64()) for count in counts)]
        yield pa.record_batch(cells, schema=BRIEF)
        first = end


def with_nulls(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of this schema whose other columns are null."""
    count = len(next(iter(columns.values())))
    cells = [columns.get(field.name, pa.nulls(count, field.type)) for field in schema]
    return pa.record_batch(cells, schema=schema)


class SortedRows:
    """The rows of whole objects, and the current rows that these need."""

    def __init__(self, batch: pa.RecordBatch, tables: Tables) -> None:
        self._tables = tables
        kinds = batch.column("kind").to_numpy()
        is_log = kinds > RowKind.CURRENT
        self.log = _by_id(batch if is_log.all() else batch.filter(pa.array(is_log)))
        self._current = _by_id(batch.filter(pa.array(kinds == RowKind.CURRENT)))

    @cached_property
    def as_logged(self) -> Rows:
        """Return the log rows, each under the names by which it was logged."""
        return log_rows(self.log)

    def read_back(self, keys: Keys) -> CurrentAnswer:
        """Return the current rows of these keys; each is that of a log row that needs its current row."""
        groups, single_keys, first = list[CurrentColumns](), [NONE], 0
        for table, texts in zip(keys.tables, keys.keys, strict=True):
            columns, uncertain = self._read_table(table, texts, first)
            groups.append(columns)
            single_keys.append(uncertain)
            first += len(texts)
        return CurrentAnswer(groups, np.concatenate(single_keys), self.lookup)

    def _read_table(self, table: Table, keys: pa.Array, first_number: int) -> tuple[CurrentColumns, Ints]:
        """Return the current rows of these keys of a table, and the keys whose rows do not come by column."""
        rows = self.as_logged
        asking = np.flatnonzero((rows.kinds > 4) & self._is_of(table, self.log))
        asking_keys = rows.keys.take(pa.array(asking))
        first = pc.index_in(keys, value_set=asking_keys).to_numpy(zero_copy_only=False).astype(np.int64)
        met_keys = pc.coalesce(self.log.column("meets"), self.log.column("table_key"))
        meets = met_keys.take(pa.array(asking[first]))
        current_rows = self._current.filter(pa.array(self._is_of(table, self._current)))
        numbered = codes_of(pa.concat_arrays([meets, current_rows.column("table_key")]))
        needed, current = numbered[: len(keys)], numbered[len(keys) :]
        order = np.argsort(current, kind="stable")
        begin, end = (np.searchsorted(current[order], needed, side) for side in ("left", "right"))
        objects, place = spread(end - begin)
        met_rows = current_rows.take(pa.array(order[begin[objects] + place]))
        return unpack_current(table, objects + first_number, met_rows)

    def _is_of(self, table: Table, rows: pa.RecordBatch) -> Flags:
        """Return whether rows are of objects of this table."""
        return flags(pc.equal(rows.column("table_name"), self._tables.name_of(table)))

    def lookup(self, table: Table, key: QueryKey) -> Answer:
        """Return the current rows of one object, for the plain fold."""
        name = self._tables.name_of(table), current_row_key(table, key)
        return answer_of(self._rows_by_name.get(name, ()))

    @cached_property
    def _rows_by_name(self) -> dict[ObjectName, list[CurrentRow]]:
        rows_by_name: dict[ObjectName, list[CurrentRow]] = {}
        for row in shuffled_rows([self._current]):
            rows_by_name.setdefault((row.table_name, row.table_key), []).append(row.current)
        return rows_by_name


def _by_id(rows: pa.RecordBatch) -> pa.RecordBatch:
    ids = rows.column("record_id").to_numpy()
    return rows if (ids[1:] >= ids[:-1]).all() else rows.take(pa.array(np.argsort(ids, kind="stable")))


def unpack_current(table: Table, numbers: Ints, rows: pa.RecordBatch) -> tuple[CurrentColumns, Ints]:
    """Return the cells of these current rows by column, and the keys whose rows have other columns than the
    table.
    """
    order = np.argsort(numbers, kind="stable")
    cells, counts = unpack_all_cells(rows.column("old_value"), rows.column("new_value"))
    begins = np.cumsum(counts) - counts
    fitting = order[counts[order] == len(table.data)]
    columns = [cells.take(pa.array(begins[fitting] + at)) for at in range(len(table.data))]
    return CurrentColumns(numbers[fitting], columns), np.unique(numbers[counts != len(table.data)])


def log_rows(batch: pa.RecordBatch) -> Rows:
    """Return the log rows of a batch that has no others, each under the names by which it was logged."""
    column = batch.column
    ids, kinds = (column(name).to_numpy() for name in ("record_id", "kind"))
    tables, keys = column("table_name"), column("table_key")
    if column("logged").null_count < batch.num_rows:
        logged = column("logged").to_pylist()
        own_names = [packed and unpack_name(packed) for packed in logged]
        tables, keys = (
            pc.coalesce(pa.array([name and name[at] for name in own_names], pa.string()), texts)
            for at, texts in enumerate((tables, keys))
        )
    return Rows(ids, kinds, tables, keys, column("column_name"), column("old_value"), column("new_value"))


def _ops(result: BatchEvents) -> pa.Array:
    """Return the operation of each event."""
    numbered, names = pa.array(result.events.operations), pa.array([str(op) for op in OPERATIONS])
    return pa.DictionaryArray.from_arrays(numbered, names).cast(pa.string())


# --- row by row


class FoldToRows:
    """A task that folds the rows of whole objects one by one, some thousands at a time."""

    def __init__(self, reading: LogReading, form: FrameForm) -> None:
        self._reading = reading
        self._form = form

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that it gives."""
        return self._form.schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(unpacked(batches, FOLDED[False])), self._form.schema)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        hashed = (
            pair
            for batch in map(_by_object, batches)
            for pair in zip(batch.column("h").to_pylist(), shuffled_rows([batch]), strict=True)
        )
        for chunk in whole_objects(hashed, itemgetter(0), lambda pair: size_of(pair[1])):
            yield from self._fold(row for _, row in chunk)

    def _fold(self, rows: Iterable[ShuffledRow]) -> Iterator[FrameRow]:
        current: dict[ObjectName, list[CurrentRow]] = {}
        entries: dict[int, Entry] = {}
        reading = self._reading
        for row in rows:
            if row.kind == RowKind.CURRENT:
                current.setdefault((row.table_name, row.table_key), []).append(row.current)
            elif row.kind == RowKind.UNREADABLE:
                yield refused_row(self._form, row)
            else:
                entries[row.record_id] = row.entry(reading.rules.status)

        def lookup(table: Table, key: QueryKey) -> Answer:
            name = reading.tables.name_of(table), current_row_key(table, key)
            return answer_of(current.get(name, ()))

        planned = plan(
            entries.values(), reading.tables, reading.rules, now=reading.now, answerable=reading.answerable
        )
        for event in planned.events(lookup):
            for record in self._form.of_event(event):
                if isinstance(record, Refused):
                    yield self._form.refused(record.reason, text_of(record.raw), event.rows)
                else:
                    yield record
        for record_id, outcome in planned.outcomes.items():
            if outcome.fate is Fate.REFUSED:
                yield self._form.refused(outcome.reason, line_of(entries[record_id]), (record_id,))


def refused_row(form: FrameForm, row: ShuffledRow) -> FrameRow:
    """Return what becomes of an unreadable row."""
    return form.refused(row.old_value or "", row.new_value, (row.record_id,) if row.record_id else ())


def _by_object(rows: pa.RecordBatch) -> pa.RecordBatch:
    ids = pc.fill_null(rows.column("record_id"), 0).to_numpy()
    return rows.take(pa.array(np.lexsort([ids, rows.column("h").to_numpy()])))


def size_of(row: ShuffledRow) -> int:
    """Return how many characters a row's values have."""
    return len(row.old_value or "") + len(row.new_value or "")
