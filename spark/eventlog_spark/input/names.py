"""A row's table and column as one text on the way to Python: each column of the transfer costs.

Written as the number of the table's bytes, which Spark need not count, a blank, the table, and "=" and the
column if there is one.
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
    column = f.coalesce(f.concat(f.lit("="), "column_name"), f.lit(""))
    return f.concat(f.octet_length("table_name").cast("string"), f.lit(" "), "table_name", column)


def pack(table: str, column: str | None) -> str:
    """The same, of two texts."""
    return f"{len(table.encode())} {table}" + ("" if column is None else f"={column}")


@lru_cache(maxsize=20_000)
def unpack(name: str | None) -> Name:
    """The table and the column; of a row that was not readable none."""
    if name is None:
        return Name("", None)
    size, _, rest = name.partition(" ")
    table = rest.encode()[: int(size)].decode()
    column = rest[len(table) :]
    return Name(table, column[1:] if column else None)


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
