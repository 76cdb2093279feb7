"""The effects of batches on the rows of one table, by column, with the same result as `reduction`.

Batches are plain if each change supplies all columns of the table, keeps its key and holds plain values. All
others are for `TableTarget.steps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.captures.column_values import NotPlain
from eventlog.columnar.change_batch import ChangeBatch
from eventlog.columnar.vectors import Flags, Ints, flags, numbers
from eventlog.core.change import Op
from eventlog.sql.common.dialect import Dialect
from eventlog.targets.tables.array_cells import to_array
from eventlog.targets.tables.reduction import ASKED, NOTHING, UNASKED
from eventlog.targets.tables.table_target import TableTarget

_SIDES: Final = ["op", "before", "after"]
_OPS: Final = frozenset((Op.INSERT, Op.UPDATE, Op.DELETE))
_KEY_TYPES: Final = frozenset((pa.int64(), pa.string()))


class ColumnRows(NamedTuple):
    """The changes of one table: the number of each operation, and the rows by column."""

    counts: Counter[Op]
    deletes: Flags  # which changes take their row away
    keys: Ints  # the same number for the same key
    cells: pa.Table  # a row of the target's for each change; of deletes only the key

    @property
    def new(self) -> bool:
        """Return whether every change makes a row."""
        return self.counts.keys() == {Op.INSERT}


class ColumnEffects(NamedTuple):
    """The effects of changes on rows, as they are staged."""

    staged: pa.Table
    gone: list[str]  # how each row leaves
    writes: bool  # whether a row is there afterwards
    absent: int  # deletes of rows that an earlier one of them deleted


def rows_of_batches(
    batches: Mapping[TableTarget, Sequence[ChangeBatch]], dialect: Dialect
) -> dict[TableTarget, ColumnRows]:
    """Return the rows of batches, table by table; empty if one of them needs a closer look."""
    try:
        return {goal: _rows(goal, own, dialect) for goal, own in batches.items()}
    except NotPlain:
        return {}


def _rows(goal: TableTarget, batches: Iterable[ChangeBatch], dialect: Dialect) -> ColumnRows:
    """Return the rows of batches of one table; raise NotPlain if they need a closer look."""
    tables = [pa.Table.from_batches([_sides(batch)]) for batch in batches]
    if any(table.schema != tables[0].schema for table in tables):
        raise NotPlain
    rows = pa.concat_tables(tables).combine_chunks()
    op, before, after = (_whole(rows.column(name)) for name in _SIDES)
    counts = Counter({Op(one["values"]): one["counts"] for one in pc.value_counts(op).to_pylist()})
    deletes = flags(pc.equal(op, Op.DELETE.value))
    if not counts.keys() <= _OPS or not np.array_equal(flags(after.is_null()), deletes):
        raise NotPlain
    places = _places(goal, [field.name for field in after.type])
    old, new = before.flatten(), after.flatten()
    columns = [new[places[place]] for place in range(len(goal.columns))]
    for place in goal.key:
        columns[place] = _key(old[places[place]], columns[place], op)
    arrays = [to_array(column, dialect) for column in goal.table.columns.values()]
    cells = [make(array) for make, array in zip(arrays, columns, strict=True)]
    keys = _numbered([cells[place] for place in goal.key])
    return ColumnRows(counts, deletes, keys, pa.table(cells, [f"c{place}" for place in range(len(cells))]))


def effects_of(rows: ColumnRows) -> ColumnEffects:
    """Return the effect of changes on each row, in the order in which the rows are met first."""
    order = np.argsort(rows.keys, kind="stable")
    keys, deletes = rows.keys[order], rows.deletes[order]
    begins = np.diff(keys, prepend=-1) != 0
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(keys))[: len(first)] - 1
    again = deletes & ~begins & np.append(False, deletes[:-1])
    later = np.where(np.logical_or.reduceat(deletes, first), UNASKED, "")
    gone = np.where(deletes[first], ASKED, later)
    met = np.argsort(order[first])
    cells, written = rows.cells.take(pa.array(order[last][met])), pa.array(~deletes[last][met])
    own = {
        "n": pa.array(np.arange(len(met))),
        "expected": pa.array(np.zeros(len(met), np.int64)),
        "gone": pa.array(gone[met]),
        "act": pc.if_else(written, "w", ""),
        "lacks": pc.if_else(written, NOTHING, ""),
        "mask": pa.nulls(len(met), pa.string()),
    }
    staged = pa.table(own | {name: cells.column(name) for name in cells.column_names})
    return ColumnEffects(staged, gone[met].tolist(), bool(pc.any(written).as_py()), int(again.sum()))


def _sides(batch: ChangeBatch) -> pa.RecordBatch:
    """Return the operations and rows of a batch; NotPlain where single columns may not be captured."""
    names = batch.rows.schema.names
    if "captured_after" in names or "captured_before" in names:
        raise NotPlain
    op = batch.rows.column("op").cast(pa.string())
    return pa.RecordBatch.from_arrays([op, *map(batch.rows.column, _SIDES[1:])], _SIDES)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    (array,) = column.chunks
    return array


def _places(goal: TableTarget, names: Sequence[str]) -> dict[int, int]:
    """Return which of these columns each column of the table is; NotPlain unless they fit each other."""
    layout = goal.layout_of(tuple(names))
    found = [(place, at) for at, (place, to_cell) in enumerate(layout.entries) if to_cell is not None]
    if layout.unknown and not goal.lenient:
        raise NotPlain
    if not goal.key or sorted(place for place, _ in found) != list(range(len(goal.columns))):
        raise NotPlain
    return dict(found)


def _key(old: pa.Array, new: pa.Array, op: pa.Array) -> pa.Array:
    """Return a column of the key; NotPlain if one changes or is missing."""
    if pc.any(pc.and_(pc.equal(op, Op.UPDATE.value), pc.not_equal(old, new))).as_py():
        raise NotPlain
    key = pc.if_else(pc.equal(op, Op.DELETE.value), old, new)
    if key.null_count or key.type not in _KEY_TYPES:
        raise NotPlain
    return key


def _numbered(key: Sequence[pa.Array]) -> Ints:
    """Return a number for each key, the same for the same."""
    found = numbers(key[0])
    for column in key[1:]:
        own = numbers(column)
        _, found = np.unique(found * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
    return found
