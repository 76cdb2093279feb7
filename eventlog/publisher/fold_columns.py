"""Many rows of one snapshot as events: the same as row by row, in columns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar import CurrentColumns, Engine, Events, Rows, one_by_one
from eventlog.columnar.current import FEW, no_current_rows
from eventlog.columnar.texts import key_values
from eventlog.columnar.vectors import Flags, Ints
from eventlog.core.entry import EVENT_TYPES, read_entry
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.identity import object_of
from eventlog.core.tables import Table, Tables
from eventlog.fold import Fate, Need, Rules
from eventlog.fold.plan import Lookup
from eventlog.publisher.packed_events import PackedEvents
from eventlog.publisher.read_back import Allowance, CurrentRows
from eventlog.publisher.reading import FoldedPickUp
from eventlog.sql.columns import OddBytes, PickedColumns
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.current_rows import TableKeys
from eventlog.sql.log.position import IdAhead
from eventlog.sql.log.snapshot import HeldObjects, Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.xds.skeleton import EventForm

_OBJECT = ("table_name", "table_key")
_TEXTS = ("table_name", "table_key", "column_name", "old_value", "new_value")
_PER_FIELD = [number for number, kind in EVENT_TYPES.items() if kind.per_field]


class ColumnReader:
    """A reader that folds rows by column, and reads their current rows."""

    def __init__(
        self,
        tables: Tables,
        readable: Mapping[Table, ReadableTable],
        rules: Rules,
        form: EventForm,
    ) -> None:
        self._tables = tables
        self._rules = rules
        self._around = form.around
        self._current = _CurrentColumns(readable)
        self._engine = Engine(
            tables,
            replace(rules, driver_user=None),
            form,
            answerable=readable,
            read_back=self._current.read_back,
            ask=self._current.ask,
        )

    def canonical(self, tables: pa.Array, keys: pa.Array) -> pa.Array:
        """Return one text for each object, whatever rows call it."""
        return self._engine.canonical(tables, keys)

    def read(
        self,
        snapshot: Snapshot,
        picked: PickedColumns,
        allowance: Allowance,
        bound: int,
        thorough: bool,
        reading: FoldedPickUp,
    ) -> None:
        """Add the events of rows to a reading; TooMuch if there is no room for the current rows."""
        self._current.begin(snapshot, allowance, thorough)
        waiting = self._waiting(picked, snapshot.held_objects())
        sound, refused = _understood(snapshot, picked, bound)
        taking_part = picked.subset(sound & ~waiting)
        events = self._engine.events(
            Rows(taking_part.ids, taking_part.kinds, *(taking_part.texts[name] for name in _TEXTS))
        )
        wrong = _refused_rows(events)
        if any(refused_event.event.parts > 1 for refused_event in events.unwritten):
            events = _without_parts(events, {row for row, _ in wrong})
        held_rows = picked.subset(sound & waiting)
        names = zip(*(held_rows.texts[name].to_pylist() for name in _OBJECT), strict=True)
        reading.packed = PackedEvents(
            events, self._rules.log_name, self._rules.max_changes, self._tables, self._around
        )
        reading.rows_without_event = _rows_without_event(taking_part, events, wrong)
        reading.rows_without_event += _swallowed_inserts(taking_part, reading.packed)
        reading.refused = [*refused, *wrong]
        reading.spellings = [(object_of(self._tables, *name), name) for name in names]
        reading.query_back = self._current.seconds
        reading.tables_may_be_stale = bool(wrong) or self._current.refused
        reading.unknown = frozenset(self._engine.unknown)

    def _waiting(self, picked: PickedColumns, held_objects: HeldObjects) -> Flags:
        """Return whether each row is of a waiting object under a name that was not on record."""
        if not held_objects.hashes or not picked.size:
            return np.zeros(picked.size, np.bool_)
        names = self.canonical(*(picked.texts[name] for name in _OBJECT)).dictionary_encode()
        waits = [tuple(text.split("\0", 1)) in held_objects for text in names.dictionary.to_pylist()]
        waiting: Flags = np.array(waits)[names.indices.to_numpy()]
        return waiting


class _CurrentColumns:
    """Reads the current rows of one pick-up after another, each in its snapshot."""

    def __init__(self, readable: Mapping[Table, ReadableTable]) -> None:
        self._readable = readable
        self._refused = False
        self.seconds = 0.0

    def begin(self, snapshot: Snapshot, allowance: Allowance, thorough: bool) -> None:
        """Read in this snapshot from now on."""
        self._snapshot = snapshot
        self._allowance = allowance
        self._rows = CurrentRows(snapshot, self._readable, thorough, allowance)
        self._refused = False
        self.seconds = 0.0

    @property
    def refused(self) -> bool:
        """Return whether the database refused a statement."""
        return self._refused or self._rows.refused

    def ask(self, needs: Sequence[Need]) -> Lookup:
        """Return the current rows of objects, one by one."""
        begun = time.monotonic()
        self._rows.read(needs)
        self.seconds += time.monotonic() - begun
        return self._rows.lookup

    def read_back(self, tables: Sequence[Table], keys: Sequence[pa.Array]) -> CurrentColumns:
        """Return the current rows of the objects with these keys, which are in their plain form.

        Tables whose statement is refused are read one by one, so that one table costs only itself.
        """
        begun, read_each = time.monotonic(), one_by_one(self._read_alone)
        try:
            return self._read(tables, keys) if len(tables) > 1 else read_each(tables, keys)
        except (DatabaseFailed, OddBytes):
            return read_each(tables, keys)
        finally:
            self.seconds += time.monotonic() - begun

    def _read_alone(self, table: Table, keys: pa.Array) -> CurrentColumns:
        try:
            return self._read([table], [keys])
        except (DatabaseFailed, OddBytes) as fault:
            self._refused = self._refused or isinstance(fault, DatabaseFailed)
            return no_current_rows([table], [keys])

    def _read(self, tables: Sequence[Table], keys: Sequence[pa.Array]) -> CurrentColumns:
        """Return the rows by one statement."""
        sources = [self._readable[table] for table in tables]
        bound = list(map(_bound, sources, tables, keys))
        firsts = accumulate(map(len, keys), initial=0)
        places = np.concatenate([first + at for first, (at, _) in zip(firsts, bound, strict=False)])
        table_keys = [TableKeys(source, values) for source, (_, values) in zip(sources, bound, strict=True)]
        with self._snapshot.attempt():
            key_numbers, columns = self._snapshot.current_columns(table_keys, self._allowance.remaining)
        self._allowance.used += sum(column.nbytes for column in columns)
        return CurrentColumns(
            places[key_numbers], columns, np.setdiff1d(np.arange(sum(map(len, keys))), places)
        )


def _value_rows(table: Table, keys: pa.Array) -> Iterator[list[str]]:
    """Yield the values of each key. For few keys this costs less than the steps by column."""
    for text in keys.to_pylist():
        parts = text.split("+") if len(table.key) > 1 else (text,)
        yield [part[len(name) + 1 :] for name, part in zip(table.key, parts, strict=True)]


def _bound(source: ReadableTable, table: Table, keys: pa.Array) -> tuple[Ints, Sequence[Sequence[str]]]:
    """Return which keys have values of their columns' types, and the bound values by column."""
    together = source.load_columns(key_values(table.key, keys)) if len(keys) > FEW else None
    if together is not None:
        return np.arange(len(keys)), together
    places, rows = [], []
    for place, values in enumerate(_value_rows(table, keys)):
        try:
            rows.append(source.load_values(values))
            places.append(place)
        except WrongRow:
            pass
    return np.array(places, np.int64), list(zip(*rows, strict=True))


def _understood(snapshot: Snapshot, picked: PickedColumns, bound: int) -> tuple[Flags, list[tuple[int, str]]]:
    """Return whether each row can be understood with its table, and why the others cannot."""
    if not picked.size:
        return np.zeros(0, np.bool_), []
    beyond_bound = picked.ids > bound
    right = picked.timely & (picked.ids > 0) & np.isin(picked.kinds, list(EVENT_TYPES))
    named = pc.fill_null(pc.greater(pc.binary_length(picked.texts["column_name"]), 0), False)
    right &= ~np.isin(picked.kinds, _PER_FIELD) | named.to_numpy(zero_copy_only=False)
    for name in _OBJECT:
        right &= picked.texts[name].is_valid().to_numpy(zero_copy_only=False)
    odd = picked.ids[~right & ~beyond_bound].tolist()
    refused = [(row, str(IdAhead(row, bound))) for row in picked.ids[beyond_bound].tolist()]
    right_after_all = []
    for cells in snapshot.rows(odd) if odd else ():
        record_id = int(str(cells[0]))
        try:
            read_entry(cells)
        except EventlogError as fault:
            refused.append((record_id, str(fault)))
        else:
            right_after_all.append(record_id)
    right |= np.isin(picked.ids, right_after_all)
    right &= ~beyond_bound
    return _without_duplicates(picked, right, refused), refused


def _without_duplicates(picked: PickedColumns, right: Flags, refused: list[tuple[int, str]]) -> Flags:
    """Return the same without rows that share a record_id: none of them can be believed."""
    ids, counts = np.unique(picked.ids[right], return_counts=True)
    for record_id, count in zip(ids[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        refused += [(record_id, f"{count} rows have record_id {record_id}")]
    unique: Flags = right & ~np.isin(picked.ids, ids[counts > 1])
    return unique


def _refused_rows(events: Events) -> list[tuple[int, str]]:
    """Return the rows that took part and were refused, and why."""
    refused = [
        (row, outcome.reason) for row, outcome in events.reasons.items() if outcome.fate is Fate.REFUSED
    ]
    faults = {
        unwritten.event.settles[0]: unwritten for unwritten in reversed(events.unwritten)
    }  # the first of a change's parts
    refused += [
        (row, str(unwritten.fault)) for unwritten in faults.values() for row in unwritten.event.settles
    ]
    return refused


def _without_parts(events: Events, rows: Set[int]) -> Events:
    """Return the events without the parts of changes that settle these rows, for one of them cannot be
    written.
    """
    first = np.isin(events.settled[events.begins], list(rows))
    places = np.flatnonzero(~(first & (events.part_counts > 1)))
    return events._replace(
        texts=events.texts.take(pa.array(places)),
        objects=events.objects[places],
        places=events.places[places],
        parts=events.parts[places],
        part_counts=events.part_counts[places],
        begins=events.begins[places],
        sizes=events.sizes[places],
    )


def _rows_without_event(rows: PickedColumns, events: Events, refused: Sequence[tuple[int, str]]) -> list[int]:
    """Return the rows that are handled without an event."""
    first_parts = np.unique(events.begins, return_index=True)[1]
    has_event = np.isin(rows.ids, events.settled_by(first_parts)) | np.isin(
        rows.ids, [row for row, _ in refused]
    )
    record_ids: list[int] = rows.ids[~has_event].tolist()
    return record_ids


def _swallowed_inserts(rows: PickedColumns, packed: PackedEvents) -> list[int]:
    """Return rows of inserts whose columns a modify reads back. Such a row could become a second add."""
    if not (rows.kinds > 4).any():
        return []
    modifies = (packed.operations == ord("m")) & (
        packed.events.parts == 1
    )  # further parts of an add are some
    settled = packed.events.settled_by(np.flatnonzero(modifies))
    swallowed: list[int] = rows.ids[np.isin(rows.ids, settled) & (rows.kinds == 1)].tolist()
    return swallowed
