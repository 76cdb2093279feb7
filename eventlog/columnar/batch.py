"""The rows of a batch, gathered by object: which object and which life each is of, as vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.vectors import Flags, Ints, begins, codes, flags, number, numbers
from eventlog.core.entry import Entry


class Rows(NamedTuple):
    """The rows of a log that take part, by column, in the order in which they would leave."""

    ids: Ints
    kinds: Ints  # event types, 1 to 8
    tables: pa.Array
    keys: pa.Array
    columns: pa.Array
    old: pa.Array
    new: pa.Array

    def __len__(self) -> int:
        return len(self.ids)

    def some(self, places: Ints) -> Rows:
        """Return the rows at these positions."""
        take = pa.array(places)
        return Rows(self.ids[places], self.kinds[places], *(side.take(take) for side in self[2:]))

    def entries(self, status: str) -> Iterator[Entry]:
        """Yield the rows as the plain fold takes them."""
        numbers, texts = [side.tolist() for side in self[:2]], [side.to_pylist() for side in self[2:]]
        for record_id, kind, *cells in zip(*numbers, *texts, strict=True):
            yield Entry(record_id, status, kind, "", None, *cells)


class Batch(NamedTuple):
    """The same, gathered by object."""

    places: Ints  # of each row, among the rows as they came
    ids: Ints
    kinds: Ints
    pairs: Ints  # the table and column of each row: an index of `named`
    old: pa.Array
    new: pa.Array
    objects: Ints  # of each row
    named: list[tuple[str, str | None]]  # a table's name and a column's, as rows spell them
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
        """Return how many values each row removes and adds by itself, without what it reads back."""
        return changes(self.kinds, self.old, self.new)


def changes(kinds: Ints, old: pa.Array, new: pa.Array) -> Ints:
    """Return how many values each of these rows removes and adds by itself."""
    removes = (kinds == 3) | ((kinds == 2) & flags(old.is_valid()))
    found: Ints = removes + ((kinds < 4) & flags(new.is_valid())).astype(np.int64)
    return found


def gathered(rows: Rows) -> Batch:
    """Return the rows by object; an object is what one spelling of a table and a key names."""
    table, tables = codes(rows.tables)
    column, columns = codes(rows.columns)
    pair, first_of_pair = number(table * len(columns) + column)
    named = [(str(tables[table[at]]), columns[column[at]]) for at in first_of_pair.tolist()]
    key = numbers(rows.keys)
    objects, first_of_object = number(key * len(tables) + table) if len(tables) > 1 else number(key)
    order = np.argsort(objects, kind="stable")
    ids, kinds, old, new = rows.ids, rows.kinds, rows.old, rows.new
    if (order[1:] < order[:-1]).any():
        take = pa.array(order)
        ids, kinds, pair, objects = ids[order], kinds[order], pair[order], objects[order]
        old, new = old.take(take), new.take(take)
    ends = kinds == 4
    behind = np.concatenate([[False], ends[:-1]])
    starts = np.flatnonzero(begins(objects) | behind)
    lengths = np.diff(starts, append=len(ids))
    return Batch(
        order,
        ids,
        kinds,
        pair,
        old,
        new,
        objects,
        named,
        [str(name) for name in tables],
        table[first_of_object],
        rows.keys.take(pa.array(first_of_object)),
        starts,
        lengths,
        objects[starts],
        ends[starts + lengths - 1],
        np.repeat(np.arange(len(starts)), lengths),
    )
