"""Every row under the one name of its object, so that the rows of an object meet; its own name is kept too.

Most logs spell objects in one way, and query current rows in a way that Spark can spell. The first rows show
whether to expect that, and every task checks it. If it fails, rows are respelled: Spark marks those that need
it, and Python handles them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.columnar.keys import named_form
from eventlog.columnar.vectors import Ints, codes
from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.core.identity import child_column, identify
from eventlog.core.tables import Table, Tables
from eventlog.fold import query_key
from eventlog_spark.io.shuffle import object_begins, pack_name, unpack_name


class RowNames(NamedTuple):
    """The names of a row: those of its object, and its own where they differ."""

    table_name: str
    table_key: str
    column_name: str | None
    logged: str | None  # packed


def spell(tables: Tables, table_name: str, table_key: str, column_name: str | None) -> RowNames:
    """Return the names of a row; one that cannot be understood keeps its own."""
    try:
        identity = identify(tables, table_name, table_key)
    except EventlogError:
        return RowNames(table_name, table_key, column_name, None)
    if identity.child:
        column_name = child_column(identity.table, identity.child, column_name)
    own = None if identity.name == (table_name, table_key) else pack_name(table_name, table_key)
    return RowNames(*identity.name, column_name, own)


class Noticed(NamedTuple):
    """The facts from rows about how they were brought together."""

    spelled_otherwise: bool = False  # rows name their object in another way than its one name
    asked_otherwise: bool = False  # a query-back row names it in another way than its current row does

    def also(self, other: Noticed) -> Noticed:
        """Return what either noticed."""
        return Noticed(*map(or_, self, other))


class Watch:
    """A check of the names of sorted rows; `asked` are the patterns of the keys of current rows, by table."""

    def __init__(self, tables: Tables, asked: Mapping[str, str]) -> None:
        self._tables = tables
        self._asked = asked
        self._forms = {tables.name_of(table): named_form(table.key) for table in tables if table.key}
        self._spellings = tables.spellings()

    def look(self, rows: pa.RecordBatch) -> Noticed:
        """Return what these rows show."""
        if not rows.num_rows:
            return Noticed()
        first = np.flatnonzero(object_begins(rows))
        kinds = rows.column("kind").to_numpy()
        takes_part = np.logical_or.reduceat((kinds >= 1) & (kinds <= 8), first)
        asks = np.logical_or.reduceat((kinds >= 5) & (kinds <= 8), first)
        return Noticed(
            any(self._otherwise(*named) for named in _by_table(rows, first[takes_part])),
            bool(self._asked) and any(self._asks_otherwise(*named) for named in _by_table(rows, first[asks])),
        )

    def _otherwise(self, name: str, keys: pa.Array) -> bool:
        if name.isascii() and name.lower() not in self._spellings:
            return False
        keys = _unlike(keys, self._forms.get(name))
        return any(spell(self._tables, name, key, None).logged is not None for key in keys.to_pylist())

    def _asks_otherwise(self, name: str, keys: pa.Array) -> bool:
        """Return whether one of these keys needs a current row that has another name."""
        try:
            table = self._tables.find(name)
        except EventlogError:
            return False
        if table is None or table.name not in self._asked:
            return False
        keys = _unlike(keys, self._asked[name] if name == table.name else None)
        return any(_asks(table, key) for key in keys.to_pylist())


def _by_table(rows: pa.RecordBatch, at: Ints) -> Iterator[tuple[str, pa.Array]]:
    """Yield the keys of these rows by the name of their table."""
    objects = rows.take(pa.array(at))
    numbers, packed = codes(objects.column("name"))
    for number, name in enumerate(packed):
        yield unpack_name(name).table, objects.column("table_key").filter(pa.array(numbers == number))


def _unlike(keys: pa.Array, form: str | None) -> pa.Array:
    """Return the keys that do not have this form."""
    return keys if form is None else keys.filter(pc.invert(pc.match_substring_regex(keys, form)))


def _asks(table: Table, key: str) -> bool:
    """Return whether a current row can be looked up by this key."""
    try:
        return bool(query_key(table, tablekey.read(key)))
    except EventlogError:
        return False


def respelled(rows: Any, tables: Tables) -> Any:
    """Return the rows, which have at least table_name and table_key, under the names of their objects."""
    odd = ~alike(tables)
    plain = rows.withColumn("logged", f.lit(None).cast("string"))
    strays = rows.where(odd)
    if not len(tables) or not strays.limit(1).count():
        return plain
    schema = plain.schema
    return plain.where(~odd).unionByName(strays.mapInArrow(_Spell(tables, schema.names), schema))


def alike(tables: Tables) -> Any:
    """Return whether a row certainly names its object as we do, or no known object; null counts as such."""
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
    """A task that spells the rows of batches."""

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
        for at, name in enumerate(RowNames._fields):
            given[name] = pa.array([row[at] for row in spelled], pa.string())
        return pa.record_batch([given[name] for name in self._columns], names=self._columns)
