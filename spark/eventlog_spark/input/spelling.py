"""Every row under the one name of its object, so that the rows of an object meet; its own is kept beside.

Most logs spell theirs in that one way. Some rows tell whether that is to be expected, and every task watches
whether it is so; only else are rows respelled: Spark tells which need not be, Python looks at the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.columnar.keys import named_form
from eventlog.columnar.vectors import codes
from eventlog.core.errors import EventlogError
from eventlog.core.identity import child_column, identify
from eventlog.core.tables import Tables
from eventlog_spark.input import names

_SAMPLE = 10_000  # rows that are looked at before a log is folded


class Spelled(NamedTuple):
    """The names of a row: those of its object, and its own where they differ."""

    table_name: str
    table_key: str
    column_name: str | None
    logged: str | None  # packed


def spell(tables: Tables, table_name: str, table_key: str, column_name: str | None) -> Spelled:
    """The names of a row; one that cannot be understood keeps its own."""
    try:
        found = identify(tables, table_name, table_key)
    except EventlogError:
        return Spelled(table_name, table_key, column_name, None)
    if found.child:
        column_name = child_column(found.table, found.child, column_name)
    own = None if found.name == (table_name, table_key) else names.pack(table_name, table_key)
    return Spelled(*found.name, column_name, own)


class Watch:
    """Looks for rows that name their object in another way than its one name."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._forms = {tables.name_of(table): named_form(table.key) for table in tables if table.key}
        self._spellings = tables.spellings()

    def finds(self, rows: pa.RecordBatch) -> bool:
        """Whether one of these rows, sorted by object, takes part under another name."""
        first = np.flatnonzero(names.object_begins(rows))
        kinds = rows.column("kind").to_numpy()
        takes_part = np.logical_or.reduceat((kinds >= 1) & (kinds <= 8), first)
        objects = rows.take(pa.array(first[takes_part]))
        numbers, packed = codes(objects.column("name"))
        keys = objects.column("table_key")
        return any(
            self._other(names.unpack(name).table, keys.filter(pa.array(numbers == number)))
            for number, name in enumerate(packed)
        )

    def _other(self, name: str, keys: pa.Array) -> bool:
        if name.isascii() and name.lower() not in self._spellings:
            return False
        if name in self._forms:
            keys = keys.filter(pc.invert(pc.match_substring_regex(keys, self._forms[name])))
        return any(spell(self._tables, name, key, None).logged is not None for key in keys.to_pylist())


def expected(rows: Any, tables: Tables) -> bool:
    """Whether some of the rows are named otherwise than their objects."""
    return bool(len(tables) and rows.limit(_SAMPLE).where(~_alike(tables)).limit(1).count())


def respelled(rows: Any, tables: Tables) -> Any:
    """The rows, which have at least table_name and table_key, under the names of their objects."""
    odd = ~_alike(tables)
    plain = rows.withColumn("logged", f.lit(None).cast("string"))
    strays = rows.where(odd)
    if not len(tables) or not strays.limit(1).count():
        return plain
    schema = plain.schema
    return plain.where(~odd).unionByName(strays.mapInArrow(_Spell(tables, schema.names), schema))


def _alike(tables: Tables) -> Any:
    """Whether a row surely names its object as we do, or none that is known; of null it says so too."""
    forms: dict[str, list[str]] = {}
    for table in tables:
        if table.key:
            forms.setdefault(named_form(table.key), []).append(tables.name_of(table))
    name = f.col("table_name")
    known = [name.isin(called) & f.col("table_key").rlike(form) for form, called in forms.items()]
    spelled = sorted(tables.spellings())
    strange = ~f.lower(name).isin(spelled) & name.rlike(r"^[\x00-\x7f]*\z")
    return f.coalesce(reduce(or_, known, strange), f.lit(True))


class _Spell:
    """Spells the rows of batches."""

    def __init__(self, tables: Tables, columns: list[str]) -> None:
        self._tables = tables
        self._columns = columns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self._respell(batch)

    def _respell(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        given = {name: batch.column(name) for name in batch.schema.names}
        columns = given.get("column_name") or pa.nulls(batch.num_rows, pa.string())
        rows = zip(*(c.to_pylist() for c in (given["table_name"], given["table_key"], columns)), strict=True)
        spelled = [spell(self._tables, *row) for row in rows]
        for at, name in enumerate(Spelled._fields):
            given[name] = pa.array([row[at] for row in spelled], pa.string())
        return pa.record_batch([given[name] for name in self._columns], names=self._columns)
