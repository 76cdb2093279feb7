"""Rows gathered by object: in memory as long as they fit, else in shares on disk."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import closing, suppress
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.errors import EventlogError
from eventlog.core.identity import identify
from eventlog.core.tables import Table, Tables
from eventlog.files.arrow_stores import KeyedBatches
from eventlog.fold import query_key
from eventlog.fold.by_column.key_patterns import current_form, current_key, named_form
from eventlog.fold.by_column.vectors import Ints, encode_texts, hash_texts, match_keys, shares
from eventlog.transfer.log_files.by_column.checked_rows import SCHEMA

_SHARES = 32  # of each level
_DEEPEST = 2  # level of shares that are divided no further
_ROWS = 32_000  # that are folded together, where objects allow
_BYTES = 64 << 20  # of the rows that are folded together
MAX_SHARE_BYTES = 1 << 30  # bytes of a share: Arrow's texts end at two of these


class ObjectTooLarge(EventlogError):
    """{0} rows that belong together have {1} bytes: convert the log in parts, by record_id"""


class RowSpool:
    """Takes rows in any order, and gives back all rows of some objects at a time, by record_id."""

    def __init__(self, tables: Tables, memory: int, level: int = 0) -> None:
        self._tables = tables
        self._memory = memory
        self._level = level
        self._batches_in_memory: list[pa.RecordBatch] = []
        self._size = 0
        self._shares: KeyedBatches | None = None

    def close(self) -> None:
        """Drop all rows."""
        if self._shares is not None:
            self._shares.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Take some rows."""
        if not rows.num_rows:
            return
        self._batches_in_memory.append(rows)
        self._size += rows.nbytes
        if self._size > self._memory:
            if self._shares is None:
                self._shares = KeyedBatches(SCHEMA)
            self._spill(self._shares)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, those of an object together."""
        if self._shares is None:
            yield from _divided(self._batches_in_memory, self._tables)
            return
        self._spill(self._shares)
        together: list[pa.RecordBatch] = []
        room = self._memory // 4
        for share in range(_SHARES):
            rows, size = self._shares.batches(share), self._shares.size(share)
            if size > self._memory and self._level < _DEEPEST:
                yield from self._deeper(rows)
                continue
            if size > room:
                yield from _divided(together, self._tables)
                together, room = [], self._memory // 4
            together += rows
            room -= size
        yield from _divided(together, self._tables)

    def _deeper(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a share that memory does not hold."""
        with closing(RowSpool(self._tables, self._memory, self._level + 1)) as spool:
            while rows := list(islice(batches, _SHARES)):
                spool.add(_joined(rows))
            yield from spool.batches()

    def _spill(self, keyed_batches: KeyedBatches) -> None:
        for rows in self._batches_in_memory:
            numbers = object_numbers(rows, self._tables) // _SHARES**self._level % _SHARES
            for share, share_rows in shares(rows, numbers):
                keyed_batches.add(share, share_rows)
        self._batches_in_memory, self._size = [], 0


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches) if batches else pa.record_batch([[]] * len(SCHEMA), schema=SCHEMA)


def _divided(batches: list[pa.RecordBatch], tables: Tables) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of about _ROWS that hold all rows of their objects, each by record_id."""
    count, size = sum(rows.num_rows for rows in batches), sum(rows.nbytes for rows in batches)
    if size > MAX_SHARE_BYTES:
        raise ObjectTooLarge(count, size)
    parts = max(-(-count // _ROWS), -(-size // _BYTES))
    if parts <= 1:
        yield sorted_by(_joined(batches), "record_id")
        return
    numbers = np.concatenate([object_numbers(rows, tables) for rows in batches])
    numbers = numbers // _SHARES ** (_DEEPEST + 1) % parts
    for _, rows in shares(_joined(batches), numbers):
        yield sorted_by(rows, "record_id")


def sorted_by(rows: pa.RecordBatch, column: str) -> pa.RecordBatch:
    """Return rows in the order of the numbers in a column; those of one number keep theirs."""
    numbers = rows.column(column).to_numpy()
    is_sorted = (numbers[1:] >= numbers[:-1]).all()
    return rows if is_sorted else rows.take(pa.array(np.argsort(numbers, kind="stable")))


def object_numbers(rows: pa.RecordBatch, tables: Tables, answerable: Container[Table] = ()) -> Ints:
    """Return a number for each row; all rows of one object have one number, however they spell it.

    The number of an object of an answerable table is that of its current row.
    """
    if not rows.num_rows:
        return np.empty(0, np.int64)
    table, names = encode_texts(rows.column("table_name"))
    keys = rows.column("table_key")
    odd = ~match_keys(keys, table, [_form(tables, str(name), answerable) for name in names])
    numbers = numbers_of_keys(keys)
    places = np.flatnonzero(odd)
    if len(places):
        named = zip(table[places].tolist(), keys.take(pa.array(places)).to_pylist(), strict=True)
        texts = [_canonical(tables, str(names[number]), key, answerable) for number, key in named]
        numbers[places] = numbers_of_keys(pa.array(texts, pa.string()))
    return numbers


def numbers_of_keys(keys: pa.Array) -> Ints:
    """Return a number for each key, independent of case."""
    return hash_texts(pc.utf8_lower(keys))


def _form(tables: Tables, name: str, answerable: Container[Table]) -> str | None:
    """Return the pattern of keys whose text, except for case, is that of all spellings of their object."""
    try:
        table = tables.find(name)
    except EventlogError:
        return None
    if table is None or not table.key:
        return None
    if table in answerable:
        return current_form(table)
    return "|".join(named_form(names) for names in {table.key, tuple(map(str.lower, table.key))})


def _canonical(tables: Tables, name: str, key: str, answerable: Container[Table]) -> str:
    """Return one text for all spellings of an object's key; its own if it cannot be read."""
    try:
        _, table, pairs, _ = identify(tables, name, key)
    except EventlogError:
        return key
    if table is not None and table in answerable:
        with suppress(EventlogError):
            return current_key(table, query_key(table, pairs))
    return "+".join(f"{column}={text}" for column, text in pairs)
