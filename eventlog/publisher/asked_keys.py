"""The keys whose current rows are read by column, in the groups of one statement each, and bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.core.errors import WrongRow
from eventlog.core.tables import Table
from eventlog.fold.by_column.current import Keys
from eventlog.fold.by_column.key_patterns import key_values
from eventlog.fold.by_column.vectors import Ints
from eventlog.sql.current_rows import TableKeys
from eventlog.sql.readable import ReadableTable

FEW = 200  # objects of a table that is read together with others
TOGETHER = 1_000  # columns of tables that are read together


class AskedKeys(NamedTuple):
    """The keys of one table that are read."""

    table: Table
    keys: pa.Array
    numbers: Ints  # among all keys


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


def bind(
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
