"""A row's table and column as one text on the way to Python: each column of the transfer costs.

Written as the table, and "=" and the column if there is one. Where "=" stands in the table's name, or no name
at all, "=", the number of its characters and a blank stand before that: each text that Spark makes costs too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.columnar.vectors import Flags, codes


class Name(NamedTuple):
    """A table and a column as rows name them."""

    table: str
    column: str | None


def packed() -> Any:
    """The name, of the columns table_name and column_name."""
    table = f.col("table_name")
    name = f.concat_ws("=", table, "column_name")
    counted = f.concat(f.lit("="), f.char_length(table).cast("string"), f.lit(" "), name)
    return f.when((table == "") | table.contains("="), counted).when(table.isNotNull(), name)


def pack(table: str, column: str | None) -> str:
    """The same, of two texts."""
    name = table if column is None else f"{table}={column}"
    return f"={len(table)} {name}" if not table or "=" in table else name


@lru_cache(maxsize=20_000)
def unpack(name: str | None) -> Name:
    """The table and the column; of a row that was not readable none."""
    if name is None:
        return Name("", None)
    table, equals, column = name.partition("=")
    if not table:
        count, _, rest = column.partition(" ")
        end = int(count)
        table, equals, column = rest[:end], rest[end : end + 1], rest[end + 1 :]
    return Name(table, column if equals else None)


def object_begins(rows: pa.RecordBatch) -> Flags:
    """Whether each row is of another object than the one before."""
    keys = rows.column("table_key")
    found = np.ones(len(keys), np.bool_)
    found[1:] = pc.fill_null(pc.not_equal(keys[1:], keys[:-1]), True).to_numpy(zero_copy_only=False)
    numbers, names = codes(rows.column("name"))
    tables = [unpack(name).table for name in names]
    if len(set(tables)) > 1:
        known = {table: number for number, table in enumerate(tables)}
        table = np.array([known[table] for table in tables])[numbers]
        found[1:] |= table[1:] != table[:-1]
    return found
