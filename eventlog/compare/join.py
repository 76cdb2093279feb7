"""Two sides of one table meet by their keys: in memory where they fit, else in shares on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.compare import MEMORY
from eventlog.compare.rows import merge_rows
from eventlog.core.portions import portions
from eventlog.core.tables import Table
from eventlog.files.arrow_stores import KeyedBatches
from eventlog.fold.by_column.vectors import Flags, flags, hash_texts, shares

T = TypeVar("T")
_SHARES = 64
_ALL = 1 << 60
_DEEPEST = 5  # how often a share that is still too large is divided again


Batches = Iterator[pa.RecordBatch]
Judge = Callable[[pa.RecordBatch, pa.RecordBatch], Iterator[T]]


def join_sides(
    old_form: pa.Schema,
    old_batches: Iterable[pa.RecordBatch],
    new_form: pa.Schema,
    new_batches: Iterable[pa.RecordBatch],
    judge: Judge[T],
    memory: int = MEMORY,
) -> Iterator[T]:
    """Yield what `judge` returns for the rows of both sides; it gets all rows of some keys at a time."""
    join = _Join(old_form, new_form, judge)
    yield from join.compare(iter(old_batches), iter(new_batches), memory, 0)


class _Join(NamedTuple, Generic[T]):
    """The two sides, and the function that judges them."""

    old_form: pa.Schema
    new_form: pa.Schema
    judge: Judge[T]

    def compare(self, old_batches: Batches, new_batches: Batches, memory: int, level: int) -> Iterator[T]:
        """Compare in memory what fits there, else share by share."""
        first_old, is_all_old = _read_up_to(old_batches, memory // 2)
        first_new, is_all_new = _read_up_to(new_batches, memory // 2) if is_all_old else ([], False)
        if is_all_old and is_all_new:
            sides = _concatenate(self.old_form, first_old), _concatenate(self.new_form, first_new)
            yield from self.judge(*sides)
            return
        with closing(KeyedBatches(self.old_form)) as before, closing(KeyedBatches(self.new_form)) as after:
            _spill(before, chain(first_old, old_batches), memory // 4, level)
            first_old.clear()
            _spill(after, chain(first_new, new_batches), memory // 4, level)
            first_new.clear()
            room = memory if level < _DEEPEST else _ALL
            for share in range(_SHARES):
                yield from self.compare(before.batches(share), after.batches(share), room, level + 1)


def _read_up_to(batches: Iterator[pa.RecordBatch], memory: int) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first batches, up to so many bytes; and whether these are all."""
    held_batches, size = [], 0
    for rows in batches:
        held_batches.append(rows)
        size += rows.nbytes
        if size > memory:
            return held_batches, False
    return held_batches, True


def _concatenate(form: pa.Schema, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches) if batches else pa.record_batch([[]] * len(form), schema=form)


def _spill(to: KeyedBatches, batches: Iterable[pa.RecordBatch], memory: int, level: int) -> None:
    """Move the rows to shares on disk; a level looks at other digits of the hash than those above."""
    for large in portions(batches, _ALL, lambda batch: batch.nbytes, memory):
        rows = pa.concat_batches(large)
        for share, share_rows in shares(rows, hash_texts(rows.column("key")) // _SHARES**level % _SHARES):
            to.add(share, share_rows)


class JoinedRows(NamedTuple):
    """The rows that differ between all rows of some keys; those before and after are of the same keys."""

    deleted: pa.RecordBatch
    added: pa.RecordBatch
    before: pa.RecordBatch
    after: pa.RecordBatch


def join_tables(table: Table, old_rows: pa.RecordBatch, new_rows: pa.RecordBatch) -> JoinedRows:
    """Return the differences between all rows of some keys, by column."""
    old_rows, new_rows = merge_rows(table, old_rows), merge_rows(table, new_rows)
    old_places = pc.index_in(new_rows.column("key"), value_set=old_rows.column("key"))
    is_in_both = flags(old_places.is_valid())
    in_old = old_places.drop_null().to_numpy().astype(np.int64)
    is_deleted = np.ones(old_rows.num_rows, np.bool_)
    is_deleted[in_old] = False
    before, after = old_rows.take(pa.array(in_old)), new_rows.filter(pa.array(is_in_both))
    differ = np.zeros(len(in_old), np.bool_)
    for name in old_rows.schema.names[2:]:
        differ |= differing(before.column(name), after.column(name))
    changed = pa.array(differ)
    sides = old_rows.filter(pa.array(is_deleted)), new_rows.filter(pa.array(~is_in_both))
    return JoinedRows(*sides, before.filter(changed), after.filter(changed))


def differing(before: pa.Array, after: pa.Array) -> Flags:
    """Return where two columns have different texts."""
    differs: Flags = flags(pc.not_equal(before, after)) | (flags(before.is_null()) != flags(after.is_null()))
    return differs
