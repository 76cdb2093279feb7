"""The rows of whole objects become the rows of a DataFrame, with the current rows among them.

`FoldToDocuments` folds by column. `FoldToRows` folds row by row: it is the reference, and makes changes,
indented documents and refusals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core import tablekey
from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import Refused
from eventlog.core.tables import Table, Tables
from eventlog.fold import CurrentOrError, Fate, ObjectName, QueryKey, plan, query_key
from eventlog.fold.by_column import (
    BatchEvents,
    CurrentAnswer,
    CurrentColumns,
    Engine,
    Needs,
    Rows,
)
from eventlog.fold.by_column.current import NONE
from eventlog.fold.by_column.key_patterns import current_form, current_key
from eventlog.fold.by_column.objects import object_names
from eventlog.fold.by_column.vectors import Ints, codes_of, flags, match_keys, offsets, spread
from eventlog.fold.event_table import OPERATIONS
from eventlog.transfer.change_files.sorted_batches import filled
from eventlog.transfer.log_files.by_column.object_spool import sorted_by
from eventlog.xds.documents import HEAD, TAIL
from eventlog.xds.skeleton import Skeletons
from eventlog_spark.batches import bounded
from eventlog_spark.log_rows import LogReading
from eventlog_spark.packing import unpacked
from eventlog_spark.result_rows import REFUSAL, Documents, FrameForm, FrameRow, document_columns, text_of
from eventlog_spark.shuffle import CURRENT, LOG, NAMES, RowKind, answers_by_name, entries

_COUNTED = [pa.field(str(op), pa.int64()) for op in OPERATIONS]
BRIEF = pa.schema([("document", pa.string()), *REFUSAL, *_COUNTED])
_FACTS = ("event_time", "perpetrator")
# The columns of rows that are folded: those of other outputs, and of a brief one.
FOLDED = [
    pa.schema([field for field in LOG if field.name not in unused])
    for unused in (("event_type",), ("event_type", *_FACTS))
]
_LINES = 1 << 20  # bytes of documents that are one row
_IDS = 1 << 20  # record_ids of events that are one batch
_PORTION = 40_000  # rows whose events are written together
_ALONE = 10_000  # rows that are folded one by one together


class FoldToDocuments:
    """A task that folds packed rows by column. If it is brief, its rows have the lines of many documents."""

    def __init__(self, reading: LogReading, form: Documents, *, brief: bool = False) -> None:
        self._reading = reading
        self._form = form
        self._brief = brief

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that it gives."""
        return BRIEF if self._brief else self._form.schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reading = self._reading
        engine = Engine(
            reading.tables,
            reading.rules,
            Skeletons(reading.tables, self._form.settings),
            answerable=reading.answerable,
            around=(HEAD, f"{TAIL}\n" if self._brief else TAIL),
        )
        for log, current in unpacked(batches, FOLDED[self._brief], CURRENT):
            log, unreadable = divided(log)
            refused = list(refused_rows(self._form, unreadable))
            read_back = CurrentRowsOfShare(current, reading.tables).read_back
            for result in engine.fold(rows_of(log), read_back, _PORTION):
                yield from brief_rows(result) if self._brief else self._rows(log, result)
            places, reasons = result.refused
            if len(places):
                lost = self._lost(log.take(pa.array(places)), pa.array(reasons, pa.string()))
                yield filled(lost, len(places), self.schema)
            refused += self._unwritten(result)
            for records in bounded(refused, self._form.schema):
                cells = dict(zip(records.schema.names, records.columns, strict=True))
                yield filled(cells, len(records), self.schema)

    def _lost(self, log: pa.RecordBatch, reasons: pa.Array) -> Mapping[str, pa.Array]:
        """Return the columns of rows that are refused for these reasons."""
        ids = log.column("record_id")
        ends = pa.array(np.arange(len(ids) + 1), pa.int32())
        records: Iterable[str | None] = map(line_of, entries(log, self._reading.rules.status))
        if self._reading.in_files:
            records = [None] * len(ids)
        return {
            "first_record_id": ids,
            "last_record_id": ids,
            "record_ids": pa.ListArray.from_arrays(ends, ids),
            "refused": reasons,
            "record": pa.array(records, pa.string()),
        }

    def _unwritten(self, result: BatchEvents) -> Iterator[FrameRow]:
        """Yield the events that cannot be written."""
        for written in result.unwritten:
            for record in self._form.of_event(written.event):
                if isinstance(record, Refused):
                    yield self._form.refused(
                        f"{record.where}: {record.reason}", text_of(record.raw), written.event.rows
                    )

    def _rows(self, log: pa.RecordBatch, result: BatchEvents) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the events of these log rows; each part of an event has all its record_ids."""
        events, of_events = result.events, log.take(pa.array(result.places))
        facts = [
            result.texts,
            result.event_ids(),
            *object_names(self._reading.tables, *map(of_events.column, NAMES[:2]))[:2],
            _ops(result),
            pa.array(events.rows[events.begins]),
            pa.array(events.rows[events.begins + events.sizes - 1]),
            *document_columns(of_events.column("record_id").to_numpy(), events.parts),
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
        counted = {of.name: pa.array([count], of.type) for of, count in zip(_COUNTED, counts, strict=True)}
        yield filled({"document": lines} | counted, 1, BRIEF)
        first = end


def divided(log: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the rows of a log by record_id, and those that are unreadable."""
    is_readable = log.column("kind").to_numpy() != RowKind.UNREADABLE
    unreadable = log.filter(pa.array(~is_readable))
    return sorted_by(log if is_readable.all() else log.filter(pa.array(is_readable)), "record_id"), unreadable


def rows_of(log: pa.RecordBatch) -> Rows:
    """Return the rows of a log as the fold by column takes them."""
    return Rows(*(log.column(at).to_numpy() for at in (0, 1)), *(log.column(name) for name in COLUMNS[5:]))


class CurrentRowsOfShare:
    """The current rows that the rows of whole objects need."""

    def __init__(self, rows: pa.RecordBatch, tables: Tables) -> None:
        self._tables = tables
        self._rows = sorted_by(rows, "number")

    def read_back(self, needs: Needs) -> CurrentAnswer:
        """Return the current rows that log rows need."""
        keys = needs.keys
        groups, single_keys, first = list[CurrentColumns](), [NONE], 0
        for table, texts in zip(keys.tables, keys.keys, strict=True):
            columns, uncertain = self._read_table(table, texts, first)
            groups.append(columns)
            single_keys.append(uncertain)
            first += len(texts)
        return CurrentAnswer(groups, np.concatenate(single_keys), self.lookup)

    def _read_table(self, table: Table, keys: pa.Array, first_number: int) -> tuple[CurrentColumns, Ints]:
        """Return the current rows of these keys of a table, and the keys whose rows do not come by column."""
        is_of_table = pc.equal(self._rows.column("table_name"), self._tables.name_of(table))
        rows = self._rows.filter(is_of_table)
        numbered = codes_of(pa.concat_arrays([current_keys(table, keys), rows.column("table_key")]))
        needed, current = numbered[: len(keys)], numbered[len(keys) :]
        order = np.argsort(current, kind="stable")
        begin, end = (np.searchsorted(current[order], needed, side) for side in ("left", "right"))
        objects, place = spread(end - begin)
        return by_column(table, objects + first_number, rows.take(pa.array(order[begin[objects] + place])))

    def lookup(self, table: Table, key: QueryKey) -> CurrentOrError:
        """Return the current rows of one object, for the plain fold."""
        return self._answers.get((self._tables.name_of(table), current_key(table, key)), ())

    @cached_property
    def _answers(self) -> dict[ObjectName, CurrentOrError]:
        return answers_by_name(self._rows)


def current_keys(table: Table, keys: pa.Array) -> pa.Array:
    """Return the `current_key` of each key that certainly names a row of the table."""
    is_odd = ~match_keys(keys, np.zeros(len(keys), np.int64), [current_form(table)])
    if not is_odd.any():
        return keys
    odd_keys = map(tablekey.read, keys.filter(pa.array(is_odd)).to_pylist())
    texts = [current_key(table, query_key(table, pairs)) for pairs in odd_keys]
    return pc.replace_with_mask(keys, pa.array(is_odd), pa.array(texts, pa.string()))


def by_column(table: Table, numbers: Ints, rows: pa.RecordBatch) -> tuple[CurrentColumns, Ints]:
    """Return the cells of these current rows by column, and the keys whose rows cannot be read.

    The numbers are those of the rows' keys, and ascend.
    """
    has_fault, lists = flags(rows.column("fault").is_valid()), rows.column("cells")
    counts = pc.list_value_length(lists).to_numpy()
    cells, begins = lists.flatten(), (np.cumsum(counts) - counts)[~has_fault]
    columns = [cells.take(pa.array(begins + at)) for at in range(len(table.data))]
    return CurrentColumns(numbers[~has_fault], columns), np.unique(numbers[has_fault])


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
        folded = map(self._fold, unpacked(batches, FOLDED[False], CURRENT, portion_rows=_ALONE))
        return bounded(chain.from_iterable(folded), self._form.schema)

    def _fold(self, kinds: Sequence[pa.RecordBatch]) -> Iterator[FrameRow]:
        reading = self._reading
        log, unreadable = divided(kinds[0])
        yield from refused_rows(self._form, unreadable)
        entry_by_id = {entry.record_id: entry for entry in entries(log, reading.rules.status)}
        planned = plan(
            entry_by_id.values(),
            reading.tables,
            reading.rules,
            now=reading.now,
            answerable=reading.answerable,
        )
        for event in planned.events(CurrentRowsOfShare(kinds[1], reading.tables).lookup):
            for record in self._form.of_event(event):
                if isinstance(record, Refused):
                    yield self._form.refused(
                        f"{record.where}: {record.reason}", text_of(record.raw), event.rows
                    )
                else:
                    yield record
        for record_id, outcome in planned.outcomes.items():
            if outcome.fate is Fate.REFUSED:
                line = None if reading.in_files else line_of(entry_by_id[record_id])
                yield self._form.refused(outcome.reason, line, (record_id,))


def refused_rows(form: FrameForm, unreadable: pa.RecordBatch) -> Iterator[FrameRow]:
    """Yield what becomes of unreadable rows."""
    for row in entries(unreadable, ""):
        yield form.refused(row.old_value or "", row.new_value, (row.record_id,) if row.record_id else ())


def line_of(entry: Entry) -> str:
    """Return a refused row as the text that is written with its reason."""
    return _json(dict(zip(COLUMNS, entry, strict=True)))


_json = json.JSONEncoder(ensure_ascii=False).encode
