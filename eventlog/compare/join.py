"""Two sides of one table meet by their keys: in memory where they fit, else in shares on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.vectors import Flags, flags, hash_texts, shares
from eventlog.compare.memory import MEMORY
from eventlog.compare.rows import gathered
from eventlog.core.tables import Table
from eventlog.files.arrow_stores import KeyedBatches

T = TypeVar("T")
_SHARES = 64
_ALL = 1 << 60
_DEEPEST = 5  # how often a share that is still too large is divided again


Judge = Callable[[pa.RecordBatch, pa.RecordBatch], Iterator[T]]


def join_sides(
    old_form: pa.Schema,
    old: Iterable[pa.RecordBatch],
    new_form: pa.Schema,
    new: Iterable[pa.RecordBatch],
    judge: Judge[T],
    memory: int = MEMORY,
) -> Iterator[T]:
    """Yield what `judge` returns for the rows of both sides; it gets all rows of some keys at a time."""
    meeting = _Meeting(old_form, new_form, judge)
    yield from meeting.meet(iter(old), iter(new), memory, 0)


class _Meeting(NamedTuple, Generic[T]):
    """The two sides, and the function that judges them."""

    old: pa.Schema
    new: pa.Schema
    judge: Judge[T]

    def meet(
        self, old: Iterator[pa.RecordBatch], new: Iterator[pa.RecordBatch], memory: int, level: int
    ) -> Iterator[T]:
        """Compare in memory what fits there, else share by share."""
        held_old, all_old = _hold(old, memory // 2)
        held_new, all_new = _hold(new, memory // 2) if all_old else ([], False)
        if all_old and all_new:
            yield from self.judge(_joined(self.old, held_old), _joined(self.new, held_new))
            return
        with closing(KeyedBatches(self.old)) as before, closing(KeyedBatches(self.new)) as after:
            _divide(before, chain(held_old, old), memory // 4, level)
            held_old.clear()
            _divide(after, chain(held_new, new), memory // 4, level)
            held_new.clear()
            room = memory if level < _DEEPEST else _ALL
            for share in range(_SHARES):
                yield from self.meet(before.batches(share), after.batches(share), room, level + 1)


def _hold(batches: Iterator[pa.RecordBatch], memory: int) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first batches, up to so many bytes; and whether these are all."""
    held, size = [], 0
    for one in batches:
        held.append(one)
        size += one.nbytes
        if size > memory:
            return held, False
    return held, True


def _joined(form: pa.Schema, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches) if batches else pa.record_batch([[]] * len(form), schema=form)


def _divide(to: KeyedBatches, batches: Iterable[pa.RecordBatch], memory: int, level: int) -> None:
    """Move the rows to shares on disk; a level looks at other digits of the hash than those above."""
    for rows in _large(batches, memory):
        for share, some in shares(rows, hash_texts(rows.column("key")) // _SHARES**level % _SHARES):
            to.add(share, some)


def _large(batches: Iterable[pa.RecordBatch], memory: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of about so many bytes."""
    held: list[pa.RecordBatch] = []
    size = 0
    for one in batches:
        held.append(one)
        size += one.nbytes
        if size > memory:
            yield pa.concat_batches(held)
            held, size = [], 0
    if held:
        yield pa.concat_batches(held)


class JoinedRows(NamedTuple):
    """The rows that differ between all rows of some keys; those before and after are of the same keys."""

    gone: pa.RecordBatch
    new: pa.RecordBatch
    before: pa.RecordBatch
    after: pa.RecordBatch


def join_tables(table: Table, old: pa.RecordBatch, new: pa.RecordBatch) -> JoinedRows:
    """Return the differences between all rows of some keys, by column."""
    old, new = gathered(table, old), gathered(table, new)
    found = pc.index_in(new.column("key"), value_set=old.column("key"))
    known = flags(found.is_valid())
    in_old = found.drop_null().to_numpy().astype(np.int64)
    gone = np.ones(old.num_rows, np.bool_)
    gone[in_old] = False
    one, other = old.take(pa.array(in_old)), new.filter(pa.array(known))
    differ = np.zeros(len(in_old), np.bool_)
    for name in old.schema.names[2:]:
        differ |= differing(one.column(name), other.column(name))
    changed = pa.array(differ)
    sides = old.filter(pa.array(gone)), new.filter(pa.array(~known))
    return JoinedRows(*sides, one.filter(changed), other.filter(changed))


def differing(before: pa.Array, after: pa.Array) -> Flags:
    """Return where two columns have different texts."""
    found: Flags = flags(pc.not_equal(before, after)) | (flags(before.is_null()) != flags(after.is_null()))
    return found
