"""The rows of a batch, gathered by object: which object and which life each is of, as vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.core.entry import Entry
from eventlog.fold.by_column.vectors import (
    Flags,
    Ints,
    begins,
    codes_of,
    encode_texts,
    flags,
    number_distinct,
)


class Rows(NamedTuple):
    """The rows of a log that take part, by column, in the order in which they would leave."""

    ids: Ints
    kinds: Ints  # event types, 1 to 8
    tables: pa.Array
    keys: pa.Array
    columns: pa.Array
    old_values: pa.Array
    new_values: pa.Array

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, places: Ints) -> Rows:
        """Return the rows at these positions."""
        indices = pa.array(places)
        return Rows(self.ids[places], self.kinds[places], *(texts.take(indices) for texts in self[2:]))

    def entries(self, status: str) -> Iterator[Entry]:
        """Yield the rows as the plain fold takes them."""
        numbers, texts = [ints.tolist() for ints in self[:2]], [array.to_pylist() for array in self[2:]]
        for record_id, kind, *cells in zip(*numbers, *texts, strict=True):
            yield Entry(record_id, status, kind, "", None, *cells)


class Batch(NamedTuple):
    """The rows, gathered by object and then by life."""

    places: Ints  # of each row: its position among the rows before they were gathered
    ids: Ints
    kinds: Ints
    pairs: Ints  # the table and column of each row: an index of `named`
    old_values: pa.Array
    new_values: pa.Array
    objects: Ints  # of each row
    named: list[tuple[str, str | None]]  # the names of a table and a column, as rows spell them
    tables: list[str]  # the names of tables, as rows spell them
    table_of: Ints  # of each object: an index of `tables`
    keys: pa.Array  # of each object
    starts: Ints  # of each life: what ends with a delete, or with the object's rows
    lengths: Ints
    owners: Ints  # the object of each life
    ended: Flags  # whether the life ends with a delete
    lives: Ints  # of each row

    @property
    def changes(self) -> Ints:
        """Return how many values each row removes and adds; what a query-back reads is not counted."""
        removes_all = self.kinds == 3  # of its column
        removes_one = (self.kinds == 2) & flags(self.old_values.is_valid())
        adds_one = (self.kinds < 4) & flags(self.new_values.is_valid())
        counts: Ints = (removes_all | removes_one).astype(np.int8) + adds_one
        return counts


def gather(rows: Rows) -> Batch:
    """Gather the rows by object; rows that spell a table or a key in two ways are of two objects here."""
    # Two codes are numbered as one: the first times the count of the second, plus the second.
    table, tables = encode_texts(rows.tables)
    column, columns = encode_texts(rows.columns)
    pair, first_of_pair = number_distinct(table.astype(np.int64) * len(columns) + column)
    named = [(str(tables[table[at]]), columns[column[at]]) for at in first_of_pair.tolist()]
    key = codes_of(rows.keys)
    if len(tables) > 1:
        key = key.astype(np.int64) * len(tables) + table
    objects, first_of_object = number_distinct(key)
    order = np.argsort(objects, kind="stable").astype(np.int32)
    ids, kinds, old_values, new_values = rows.ids, rows.kinds, rows.old_values, rows.new_values
    if (order[1:] < order[:-1]).any():
        indices = pa.array(order)
        ids, kinds, pair, objects = ids[order], kinds[order], pair[order], objects[order]
        old_values, new_values = old_values.take(indices), new_values.take(indices)
    ends = kinds == 4  # a delete
    follows_end = np.concatenate([[False], ends[:-1]])
    starts = np.flatnonzero(begins(objects) | follows_end)
    lengths = np.diff(starts, append=len(ids))
    return Batch(
        order,
        ids,
        kinds,
        pair,
        old_values,
        new_values,
        objects,
        named,
        [str(name) for name in tables],
        table[first_of_object],
        rows.keys.take(pa.array(first_of_object)),
        starts,
        lengths,
        objects[starts],
        ends[starts + lengths - 1],
        np.repeat(np.arange(len(starts), dtype=np.int32), lengths),
    )
