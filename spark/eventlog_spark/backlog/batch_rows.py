"""Log rows of a batch in the form of the columnar fold, and the current rows among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar import CurrentColumns, Rows
from eventlog.columnar.vectors import Ints, codes, flags
from eventlog.core import tablekey
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.tables import Table, Tables
from eventlog.fold import Answer, CurrentRow, ObjectName, QueryKey, query_key
from eventlog_spark.io.shuffle import (
    CURRENT,
    ShuffledRow,
    fault_of,
    object_begins,
    shuffled_rows,
    unpack_all_cells,
    unpack_name,
)


class _Held(NamedTuple):
    """The current rows of a batch, and the objects of its log rows."""

    current: pa.RecordBatch
    owners: Ints  # the object of each current row
    rows: Rows
    tables: pa.Array  # of each log row: its table, by the one name of its object
    objects: Ints
    every: int  # how many objects


class BatchRows:
    """The current rows of one batch after another."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._held: _Held | None = None
        self._answers: ObjectsAnswers | None = None

    def log_rows(self, batch: pa.RecordBatch) -> Rows:
        """Return the log rows of a batch; its current rows can be read until the next call."""
        self._held = self._answers = None
        is_log = batch.column("kind").to_numpy() != CURRENT
        if is_log.all():
            return log_rows(batch)
        objects = np.cumsum(object_begins(batch)) - 1
        some = batch.filter(pa.array(is_log))
        rows, current = log_rows(some), batch.filter(pa.array(~is_log))
        tables, _ = named(some.column("name"))
        count = int(objects[-1]) + 1
        self._held = _Held(current, objects[~is_log], rows, tables, objects[is_log], count)
        return rows

    def read_back(self, table: Table, keys: pa.Array) -> CurrentColumns:
        """Return the current rows of these objects; each key is that of a log row that needs its
        current row.
        """
        if self._held is None:
            none = np.empty(0, np.int64)
            return CurrentColumns(none, [pa.array([], pa.string())] * len(table.data), none)
        current, owners, rows, tables, objects, count = self._held
        asking = (rows.kinds > 4) & flags(pc.equal(tables, self._tables.name_of(table)))
        first = pc.index_in(keys, value_set=rows.keys.filter(pa.array(asking))).to_numpy()
        number = np.full(count, -1)
        number[objects[asking][first]] = np.arange(len(keys))
        asked = np.flatnonzero(number[owners] >= 0)
        return row_cells(table, number[owners[asked]], current.take(pa.array(asked)))

    def lookup(self, table: Table, key: QueryKey) -> Answer:
        """Return the current rows of one object, for the plain fold."""
        if self._answers is None:
            self._answers = ObjectsAnswers(self._tables)
            for row in shuffled_rows([self._held.current] if self._held else []):
                self._answers.add(row)
        return self._answers.lookup(table, key)


class ObjectsAnswers:
    """The current rows of some objects."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: dict[tuple[str, QueryKey], dict[ObjectName, list[CurrentRow]]] = {}
        self._faults: dict[tuple[str, QueryKey], WrongRow] = {}

    def add(self, row: ShuffledRow) -> None:
        """Take a current row."""
        try:
            table = self._tables.find(row.table_name)
            assert table is not None
            name = str(table), query_key(table, tablekey.read(row.table_key))
        except EventlogError:
            return
        if (fault := fault_of(row.current)) is not None:
            self._faults[name] = fault
        self._rows.setdefault(name, {}).setdefault(row.object, []).append(row.current)

    def lookup(self, table: Table, key: QueryKey) -> Answer:
        """Return the rows of one key; every spelling of the key has all of them."""
        if (fault := self._faults.get((str(table), key))) is not None:
            return fault
        spelled = self._rows.get((str(table), key), {})
        return next(iter(spelled.values()), ())


def row_cells(table: Table, objects: Ints, rows: pa.RecordBatch) -> CurrentColumns:
    """Return the cells of these current rows by column; objects whose rows have other columns than the table
    are uncertain.
    """
    order = np.argsort(objects, kind="stable")
    found, counts = unpack_all_cells(rows.column("old_value"), rows.column("new_value"))
    begins = np.cumsum(counts) - counts
    right = order[counts[order] == len(table.data)]
    columns = [found.take(pa.array(begins[right] + at)) for at in range(len(table.data))]
    return CurrentColumns(objects[right], columns, np.unique(objects[counts != len(table.data)]))


def log_rows(batch: pa.RecordBatch) -> Rows:
    """Return the log rows of a batch that has no others, each under the names by which it was logged."""
    column = batch.column
    ids, kinds = (column(name).to_numpy().astype(np.int64) for name in ("record_id", "kind"))
    tables, columns = named(column("name"))
    keys = column("table_key")
    logged = column("logged").to_pylist() if "logged" in batch.schema.names else []
    if any(logged):
        own = [name and unpack_name(name) for name in logged]
        tables, keys = (
            pc.coalesce(pa.array([name and name[at] for name in own], pa.string()), side.cast(pa.string()))
            for at, side in enumerate((tables, keys))
        )
    return Rows(ids, kinds, tables, keys, columns, column("old_value"), column("new_value"))


def named(names: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the tables and the columns of packed names."""
    numbers, packed = codes(names)
    tables, columns = zip(*map(unpack_name, packed), strict=True) if packed else ((), ())
    return _each(numbers, tables), _each(numbers, columns)


def _each(numbers: Ints, texts: Sequence[str | None]) -> pa.Array:
    """Return the text of each number."""
    numbered = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    to = np.array([numbered[text] for text in texts], np.int64)
    return pa.DictionaryArray.from_arrays(pa.array(to[numbers]), pa.array(list(numbered), pa.string()))
