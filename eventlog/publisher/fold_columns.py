"""Folds many rows of one snapshot by column. The events equal those of the fold row by row."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.entry import EVENT_TYPES, read_entry, record_id_of
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.identity import object_of
from eventlog.core.tables import Table, Tables
from eventlog.fold import Fate, Rules
from eventlog.fold.by_column import BatchEvents, CurrentAnswer, CurrentColumns, Engine, Rows
from eventlog.fold.by_column.current import NONE, Keys
from eventlog.fold.by_column.key_patterns import key_values
from eventlog.fold.by_column.vectors import Flags, Ints
from eventlog.fold.event_table import EventTable
from eventlog.publisher.read_back import Allowance, CurrentRows
from eventlog.publisher.reading import FoldedPickUp, rows_without_event
from eventlog.sql.columns import OddBytes, PickedColumns
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.current_rows import TableKeys
from eventlog.sql.log.position import IdAhead
from eventlog.sql.log.snapshot import HeldObjects, Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.xds.skeleton import EventForm

FEW = 200  # objects of a table that is read together with others
TOGETHER = 1_000  # columns of tables that are read together
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
        self._readable = readable
        self._engine = Engine(tables, replace(rules, driver_user=None), form, answerable=readable)

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
        waiting = self._waiting(picked, snapshot.held_objects())
        sound, reading.refused = _understood(snapshot, picked, bound)
        held_rows = picked.subset(sound & waiting)
        names = zip(*(held_rows.texts[name].to_pylist() for name in _OBJECT), strict=True)
        reading.spellings = [(object_of(self._tables, *name), name) for name in names]
        taking_part = picked.subset(sound & ~waiting)
        if not taking_part.size:
            return
        current = CurrentRows(snapshot, self._readable, thorough, allowance)
        rows = Rows(taking_part.ids, taking_part.kinds, *(taking_part.texts[name] for name in _TEXTS))
        needs = self._engine.needs(rows)
        begun = time.monotonic()
        answer = read_by_column(current, needs.keys)
        current.read(needs.alone)
        reading.query_back = time.monotonic() - begun
        result = self._engine.events(needs, answer)
        wrong = _refused_rows(result)
        reading.events = _without_parts(result, {row for row, _ in wrong})
        reading.refused += wrong
        ids, kinds = taking_part.ids.tolist(), taking_part.kinds.tolist()
        reading.rows_without_event = rows_without_event(ids, kinds, reading)
        reading.tables_may_be_stale = bool(wrong) or current.refused
        reading.unknown = frozenset(self._engine.unknown)

    def _waiting(self, picked: PickedColumns, held_objects: HeldObjects) -> Flags:
        """Return whether each row is of a waiting object under a name that was not on record."""
        if not held_objects.hashes or not picked.size:
            return np.zeros(picked.size, np.bool_)
        names = self.canonical(*(picked.texts[name] for name in _OBJECT)).dictionary_encode()
        waits = [tuple(text.split("\0", 1)) in held_objects for text in names.dictionary.to_pylist()]
        waiting: Flags = np.array(waits)[names.indices.to_numpy()]
        return waiting


class AskedKeys(NamedTuple):
    """The keys of one table that are read."""

    table: Table
    keys: pa.Array
    numbers: Ints  # among all keys


def read_by_column(current: CurrentRows, keys: Keys) -> CurrentAnswer:
    """Return the current rows of these keys by column.

    Where the statement of several tables is refused, each of them is read alone. Where that of one is
    refused, or its texts do not come by column, its keys are read one by one.
    """
    columns_read: list[CurrentColumns] = []
    single_keys = [NONE]
    waiting = groups_of(keys)
    while waiting:
        group = waiting.pop()
        table_keys, numbers, unbound = _bind(current.tables, group)
        try:
            with current.snapshot.attempt():
                of_key, columns = current.snapshot.current_columns(table_keys, current.allowance.remaining)
        except (DatabaseFailed, OddBytes) as fault:
            if len(group) > 1:
                waiting += [[of_table] for of_table in group]
                continue
            current.refused = current.refused or isinstance(fault, DatabaseFailed)
            single_keys.append(group[0].numbers)
            continue
        current.allowance.used += sum(column.nbytes for column in columns)
        columns_read.append(CurrentColumns(numbers[of_key], columns))
        single_keys.append(unbound)
    alone = np.concatenate(single_keys)
    current.read(keys.needs(alone))
    return CurrentAnswer(columns_read, alone, current.lookup)


def groups_of(keys: Keys) -> list[list[AskedKeys]]:
    """Return the keys of tables that are read together; a table with many objects is read alone."""
    edges = np.cumsum([0, *map(len, keys.keys)]).tolist()
    groups: list[list[AskedKeys]] = []
    by_shape: dict[tuple[int, bool], list[AskedKeys]] = {}
    for table, texts, (begin, end) in zip(keys.tables, keys.keys, pairwise(edges), strict=True):
        of_table = AskedKeys(table, texts, np.arange(begin, end))
        if len(texts) > FEW:
            groups.append([of_table])
        else:
            by_shape.setdefault((len(table.data), table.view), []).append(of_table)
    for (width, _), tables in by_shape.items():
        count = max(1, TOGETHER // max(1, width))
        groups += [tables[start : start + count] for start in range(0, len(tables), count)]
    return groups


def _bind(
    readable: Mapping[Table, ReadableTable], group: Sequence[AskedKeys]
) -> tuple[list[TableKeys], Ints, Ints]:
    """Return the bound keys of tables, the numbers of these, and those of keys whose values are not of their
    columns' types.
    """
    table_keys, bound_numbers, unbound = [], [], []
    for table, keys, numbers in group:
        places, values = _bound(readable[table], table, keys)
        table_keys.append(TableKeys(readable[table], values))
        bound_numbers.append(numbers[places])
        unbound.append(np.delete(numbers, places))
    return table_keys, np.concatenate(bound_numbers), np.concatenate(unbound)


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
        record_id = record_id_of(cells)
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
    """Return the right rows without those that share a record_id: none of these can be believed."""
    ids, counts = np.unique(picked.ids[right], return_counts=True)
    for record_id, count in zip(ids[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        refused += [(record_id, f"{count} rows have record_id {record_id}")]
    unique: Flags = right & ~np.isin(picked.ids, ids[counts > 1])
    return unique


def _refused_rows(result: BatchEvents) -> list[tuple[int, str]]:
    """Return the rows that took part and were refused, and why."""
    refused = [
        (row, outcome.reason) for row, outcome in result.reasons.items() if outcome.fate is Fate.REFUSED
    ]
    faults = {
        each.event.rows[0]: each for each in reversed(result.unwritten)
    }  # the first of an event's parts
    refused += [(row, str(each.fault)) for each in faults.values() for row in each.event.rows]
    return refused


def _without_parts(result: BatchEvents, rows: Set[int]) -> EventTable:
    """Return the events without the parts of changes of these rows, because one of them cannot be written."""
    events = result.events
    if all(each.event.parts == 1 for each in result.unwritten):
        return events
    is_refused = np.isin(events.rows[events.begins], list(rows)) & (events.part_counts > 1)
    return events.take(np.flatnonzero(~is_refused))
