"""Folds many rows of one snapshot by column. The events equal those of the fold row by row."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.core.entry import EVENT_TYPES, STATUS, Letter
from eventlog.core.errors import WrongRow
from eventlog.core.identity import object_of
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.fold.admit import Refusal, admit
from eventlog.fold.by_column import CurrentAnswer, CurrentColumns, Engine, Needs, Rows
from eventlog.fold.by_column.admit import Repeats, named
from eventlog.fold.by_column.current import NONE, Keys
from eventlog.fold.by_column.key_patterns import key_values
from eventlog.fold.by_column.objects import object_texts
from eventlog.fold.by_column.vectors import Flags, Ints
from eventlog.publisher.read_back import CurrentRows
from eventlog.publisher.reading import FoldedPickUp, account
from eventlog.sql.columns import TEXTS, OddBytes, PickedColumns
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.current_rows import TableKeys
from eventlog.sql.log.snapshot import HeldObjects, Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.xds.skeleton import EventForm

FEW = 200  # objects of a table that is read together with others
TOGETHER = 1_000  # columns of tables that are read together
_OBJECT = ("table_name", "table_key")


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

    def fold(self, picked: PickedColumns, current: CurrentRows, bound: int) -> FoldedPickUp:
        """Return the events of rows; TooMuch if there is no room for the current rows."""
        sound, refused = _admitted(picked, bound, current.snapshot)
        waiting = self._waiting(picked, current.snapshot.held_objects())
        held_rows, taking_part = (picked.subset(sound & flags) for flags in (waiting, ~waiting))
        names = zip(*(held_rows.texts[name].to_pylist() for name in _OBJECT), strict=True)
        ids, kinds = taking_part.ids, taking_part.kinds
        rows = Rows(ids, kinds, *(taking_part.texts[name] for name in TEXTS))
        result = self._engine.nothing()
        if len(rows):
            needs = self._engine.needs(rows)
            result = self._engine.events(needs, read_by_column(current, needs))
        wrong = list(zip(ids[result.refused.places].tolist(), result.refused.reasons, strict=True))
        return replace(
            account(result.events, result.unwritten, [*refused, *wrong], ids.tolist(), kinds.tolist()),
            spellings=[(object_of(self._tables, *name), name) for name in names],
            unknown=frozenset(self._engine.unknown),
            tables_may_be_stale=current.refused or bool(wrong or result.unwritten),
            query_back=current.seconds,
        )

    def _waiting(self, picked: PickedColumns, held_objects: HeldObjects) -> Flags:
        """Return whether each row is of a waiting object under a name that was not on record."""
        if not held_objects.hashes or not picked.size:
            return np.zeros(picked.size, np.bool_)
        names = object_texts(self._tables, *(picked.texts[name] for name in _OBJECT)).dictionary_encode()
        waits = [tuple(text.split("\0", 1)) in held_objects for text in names.dictionary.to_pylist()]
        waiting: Flags = np.array(waits)[names.indices.to_numpy()]
        return waiting


class AskedKeys(NamedTuple):
    """The keys of one table that are read."""

    table: Table
    keys: pa.Array
    numbers: Ints  # among all keys


def read_by_column(current: CurrentRows, needs: Needs) -> CurrentAnswer:
    """Return the current rows that are needed, by column.

    Where the statement of several tables is refused, each of them is read alone. Where that of one is
    refused, or its texts do not come by column, its keys are read one by one.
    """
    begun, keys = time.monotonic(), needs.keys
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
    current.read([*keys.needs(alone), *needs.alone])
    current.seconds = time.monotonic() - begun
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
    columns = source.load_columns(key_values(table.key, keys)) if len(keys) > FEW else None
    if columns is not None:
        return np.arange(len(keys)), columns
    places, rows = [], []
    for place, values in enumerate(_value_rows(table, keys)):
        try:
            rows.append(source.load_values(values))
            places.append(place)
        except WrongRow:
            pass
    return np.array(places, np.int64), list(zip(*rows, strict=True))


def _admitted(picked: PickedColumns, bound: int, snapshot: Snapshot) -> tuple[Flags, list[Refusal]]:
    """Return which rows can be believed, and why the others cannot. Odd rows are read one by one, with all
    that share their record_ids.
    """
    ids = picked.ids
    right = picked.timely & (ids > 0) & (ids <= bound) & np.isin(picked.kinds, list(EVENT_TYPES))
    right &= named(picked.kinds, *(picked.texts[name] for name in TEXTS[:3]))
    odd_ids = np.unique(ids[~right])
    refused: list[Refusal] = []
    if odd_ids.size:
        pending = (row for row in snapshot.rows(odd_ids.tolist()) if row[STATUS] == Letter.NEW)
        entries, refused = admit(pending, bound)
        is_entry = np.isin(ids, [entry.record_id for entry in entries])
        right = np.where(np.isin(ids, odd_ids), is_entry & (right | ~np.isin(ids, ids[right])), right)
    repeats = Repeats.among(ids[right])
    repeated = zip(repeats.ids.tolist(), repeats.reasons(repeats.ids), strict=True)
    return right & ~repeats.find(ids), [*refused, *repeated]
