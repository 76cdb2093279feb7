"""A share of an audit: the rows, events and recorded events of some objects, each sorted by object.

Most objects are plain: each of their rows is in exactly one event, which came once, in order, and was a
success. Where contents are not judged that is seen for a whole share at once, in a tenth of the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.audit.laws import OPERATIONS, Arrival, AuditedRow, RecordedRows, event_name
from eventlog.fold.by_column.vectors import Flags, Ints, begins, encode_texts, flags

_NAMED = r"^(?P<log>.*?):(?P<first>[0-9]{1,18})(?:-(?P<last>[0-9]{1,18}):(?P<digest>[0-9a-f]{8}))?$"
_ROW_FACTS = ("record_id", "event_type", "letter", "table", "table_key", "column")
_EVENT_FACTS = ("content", "level", "event_id", "operation", "table", "table_key")
_ROW = (
    "record_id",
    "letter",
    "event_type",
    "column",
    "old_value",
    "new_value",
    "is_silent",
    "is_loopback",
    "time",
)
_ARRIVAL = ("place", "where", "event_id", "operation", "content", "level", "is_late", "at", "text")
_TYPES = range(1, 9)
_AT_ONCE = 2_000  # objects whose rows and events are in Python's hands together


class AuditedObject(NamedTuple):
    """An object with all that is known of it."""

    table: str
    table_key: str
    rows: Sequence[AuditedRow]
    deliveries: Sequence[Arrival]
    recorded: Mapping[str, RecordedRows]  # by the names of events
    present: bytes | None  # the present row as a document has it, if states are compared

    @property
    def name(self) -> str:
        """Return its name for people."""
        return f"{self.table} {self.table_key}"


class Share:
    """The rows and events of some objects, by object and by record_id or place."""

    def __init__(self, rows: pa.Table, events: pa.Table, present: pa.Table, journal: pa.Table) -> None:
        columns = (present[name].to_pylist() for name in ("table", "table_key", "text"))
        self._present = {(table, key): text for table, key, text in zip(*columns, strict=True)}
        names = pa.concat_arrays([_object_names(rows), _object_names(events)]).dictionary_encode()
        self.size = len(names.dictionary)
        rank = np.empty(self.size, np.int64)
        rank[pc.sort_indices(names.dictionary).to_numpy()] = np.arange(self.size)
        objects = rank[names.indices.to_numpy()]
        self.rows, self._row_objects = _sorted(rows, objects[: rows.num_rows], "record_id")
        self.events, self._event_objects = _sorted(events, objects[rows.num_rows :], "place")
        ids, entry_ids = self.rows["record_id"].to_numpy(), journal["record_id"].to_numpy()
        by_id = np.argsort(ids, kind="stable")
        places = np.minimum(np.searchsorted(ids[by_id], entry_ids), max(0, len(ids) - 1))
        owners = self._row_objects[by_id[places]] if len(ids) else entry_ids
        self._journal, self._entry_objects = _sorted(journal, owners, "entry")

    def digest(self) -> bytes:
        """Return a digest of all rows and events."""
        total = hashlib.sha256()
        for records, names in ((self.rows, _ROW_FACTS), (self.events, _EVENT_FACTS)):
            for name in names:
                column = records[name]
                if pa.types.is_string(column.type):
                    column = pc.fill_null(column, "\0")
                    total.update(pc.binary_length(column).cast(pa.int64()).to_numpy().tobytes())
                    total.update("".join(column.to_pylist()).encode("utf-8", "surrogatepass"))
                else:
                    total.update(column.to_numpy().tobytes())
        return total.digest()

    def objects(self, numbers: Sequence[int]) -> Iterator[AuditedObject]:
        """Yield some of the objects, whose numbers ascend."""
        for first in range(0, len(numbers), _AT_ONCE):
            yield from self._objects(numbers[first : first + _AT_ONCE])

    def _objects(self, numbers: Sequence[int]) -> Iterator[AuditedObject]:
        rows, of_row = _chosen(self.rows, self._row_objects, numbers)
        events, of_event = _chosen(self.events, self._event_objects, numbers)
        journal, of_entry = _chosen(self._journal, self._entry_objects, numbers)
        audited_rows = [*map(AuditedRow, *_lists(rows, _ROW))]
        deliveries = [*map(Arrival, *_lists(events, _ARRIVAL))]
        entries = [*zip(*_lists(journal, journal.schema.names), strict=True)]
        names = [[*zip(*_lists(records, ("table", "table_key")), strict=True)] for records in (rows, events)]
        for at in range(len(numbers)):
            of_log, of_receiver, of_record = (
                slice(*starts[at : at + 2]) for starts in (of_row, of_event, of_entry)
            )
            table, key = (names[0][of_log] or names[1][of_receiver])[0]
            recorded, without_event = _recorded(entries[of_record])
            own_rows = audited_rows[of_log]
            if without_event:
                own_rows = [row._replace(has_no_event=row.record_id in without_event) for row in own_rows]
            present = self._present.get((table, key))
            yield AuditedObject(table, key, own_rows, deliveries[of_receiver], recorded, present)

    def odd_objects(self, recorded: Ints) -> Sequence[int]:
        """Return the objects that are not plain; those of recorded rows are none."""
        row_objects, event_objects = self._row_objects, self._event_objects
        is_odd = np.ones(self.size, np.bool_)
        is_odd[event_objects] = False
        ids = self.rows["record_id"].to_numpy()
        unusual = ~flags(pc.equal(self.rows["letter"], "S")) | np.isin(ids, recorded)
        unusual |= ~np.isin(self.rows["event_type"].to_numpy(), _TYPES)
        unusual[1:] |= (ids[1:] == ids[:-1]) & (row_objects[1:] == row_objects[:-1])
        is_odd[row_objects[unusual]] = True
        named = pc.extract_regex(self.events["event_id"], _NAMED)
        is_odd[event_objects[~flags(named.is_valid())]] = True
        first, last = _first_and_last(named)
        starts, ends = (self._rows_of(ids, bounds) for bounds in (first, last))
        is_first = begins(event_objects)
        expected = np.where(is_first, np.searchsorted(row_objects, event_objects), np.roll(ends, 1) + 1)
        is_last = np.roll(is_first, -1)
        missing_end = is_last & (ends + 1 != np.searchsorted(row_objects, event_objects, "right"))
        failed = ~flags(pc.equal(self.events["level"], "success")) | flags(self.events["is_late"])
        is_odd[event_objects[(starts != expected) | (ends < starts) | missing_end | failed]] = True
        is_odd[np.setdiff1d(row_objects, event_objects)] = True
        self._check_events(is_odd, named, ids, starts, ends)
        odd: Sequence[int] = np.flatnonzero(is_odd).tolist()
        return odd

    def _rows_of(self, ids: Ints, bounds: Ints) -> Ints:
        """Return the place of the row with each event's first or last record_id; -2 if there is none."""
        distinct, numbers = np.unique(np.concatenate([ids, bounds]), return_inverse=True)
        width = len(distinct) + 1
        row_keys = self._row_objects * width + numbers[: len(ids)]
        event_keys = self._event_objects * width + numbers[len(ids) :]
        places = np.searchsorted(row_keys, event_keys)
        is_there = np.append(row_keys, -1)[np.minimum(places, len(row_keys))] == event_keys
        return np.where(is_there, places, -2)

    def _check_events(self, is_odd: Flags, named: pa.Array, ids: Ints, starts: Ints, ends: Ints) -> None:
        """Mark the objects of events with an operation or a digest that its rows do not explain."""
        plain = np.flatnonzero(~is_odd[self._event_objects])
        codes, operations = encode_texts(self.events["operation"])
        allowed = np.array([[name in OPERATIONS[kind] for kind in _TYPES] for name in operations])
        sizes = (ends - starts + 1)[plain]
        kinds = self.rows["event_type"].to_numpy() - _TYPES[0]
        rows_of_events = np.repeat(starts[plain] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        event_of_row = np.repeat(plain, sizes)
        if len(event_of_row):
            wrong = ~allowed[codes[event_of_row], kinds[rows_of_events]]
            is_odd[self._event_objects[event_of_row[wrong]]] = True
        several = plain[sizes > 1]
        chosen = pa.array(several)
        logs, event_ids = named.field("log").take(chosen), self.events["event_id"].take(chosen)
        record_ids, bounds = ids.tolist(), zip(starts[several].tolist(), ends[several].tolist(), strict=True)
        names = zip(logs.to_pylist(), event_ids.to_pylist(), bounds, several.tolist(), strict=True)
        for log, event_id, (start, end), place in names:
            if event_name(log, record_ids[start : end + 1]) != event_id:
                is_odd[self._event_objects[place]] = True


def _object_names(records: pa.Table) -> pa.Array:
    joined = pc.binary_join_element_wise(records["table"], records["table_key"], "\n")
    return pa.concat_arrays([pa.array([], pa.string()), *joined.chunks])


def _sorted(records: pa.Table, objects: Ints, order: str) -> tuple[pa.RecordBatch, Ints]:
    """Return the records by object and by a number, and the object of each."""
    numbers = records[order].to_numpy()
    by_object = np.lexsort((numbers, objects))
    together = records.take(pa.array(by_object)).combine_chunks()
    batches = together.to_batches() or [pa.record_batch([[]] * len(records.schema), schema=records.schema)]
    return batches[0], objects[by_object]


def _first_and_last(named: pa.Array) -> tuple[Ints, Ints]:
    """Return the first and the last record_id that each event-id names; 0 if it is none."""
    first, last = (pc.fill_null(named.field(name), "") for name in ("first", "last"))
    last = pc.if_else(pc.equal(last, ""), first, last)
    first, last = (pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64()) for texts in (first, last))
    return first.to_numpy(), last.to_numpy()


def _chosen(
    records: pa.RecordBatch, objects: Ints, numbers: Sequence[int]
) -> tuple[pa.RecordBatch, list[int]]:
    """Return the records of some objects, which are in order, and where those of each begin."""
    starts, ends = (np.searchsorted(objects, numbers, side) for side in ("left", "right"))
    within, ends_here = slice(int(starts[0]), int(ends[-1])), np.cumsum(ends - starts)
    records = records.slice(within.start, within.stop - within.start)
    if ends_here[-1] < records.num_rows:
        records = records.filter(pa.array(np.isin(objects[within], numbers)))
    return records, [0, *ends_here.tolist()]


def _lists(records: pa.RecordBatch, names: Iterable[str]) -> list[list[Any]]:
    return [records[name].to_pylist() for name in names]


def _recorded(entries: Sequence[tuple[Any, ...]]) -> tuple[dict[str, RecordedRows], set[int]]:
    """Return the events of an object that are on record, by their names, and its rows without an event."""
    recorded: dict[str, RecordedRows] = {}
    for _, group in groupby((entry for entry in entries if entry[5]), itemgetter(1)):
        rows, _, sizes, since, until, _, has_more, logs, names = zip(*group, strict=True)
        if len(rows) < sizes[0]:  # the log lacks one of them
            continue
        event = RecordedRows(sorted(rows), since[0], until[0], has_more[0])
        name = names[0] or event_name(logs[0], event.rows)
        former = recorded.get(name, event)
        recorded[name] = RecordedRows(
            max(former.rows, event.rows, key=len),
            min(former.since, event.since),
            max(former.until, event.until),
            former.has_more_parts or event.has_more_parts,
        )
    return recorded, {entry[0] for entry in entries if not entry[5]}
