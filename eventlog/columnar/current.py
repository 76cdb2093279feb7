"""Current rows: which objects must be asked for, and what was answered, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.batch import Batch
from eventlog.columnar.known import Known
from eventlog.columnar.texts import Cells, Treated, escaped
from eventlog.columnar.vectors import Flags, Ints, flags
from eventlog.core.tables import Table


class Current(NamedTuple):
    """The current rows of some objects of one table."""

    objects: Ints  # which of the keys asked for each is of, ascending
    columns: Sequence[pa.Array]  # the texts of each column of table.data
    doubtful: Ints  # the keys of which it cannot be told here


ReadBack = Callable[[Table, pa.Array], Current]


def nothing(table: Table, keys: pa.Array) -> Current:
    """Where no current rows are at hand, none of them can be told."""
    none = np.empty(0, np.int64)
    return Current(none, [pa.array([], pa.string())] * len(table.data), np.arange(len(keys)))


class Answers(NamedTuple):
    """What was answered for a batch."""

    rows: Ints  # of each object: its current row, -1 for none
    tables: dict[int, Current]  # by the number of the table's name
    doubtful: Flags  # of each object


def ask(batch: Batch, known: Known, doubtful: Flags, read_back: ReadBack) -> Answers:
    """The current rows of all objects with a query-back that no delete overtakes; in doubt is each with one
    whose key may not be a row's."""
    asks = np.logical_or.reduceat(batch.kinds > 4, batch.starts)
    wanted = np.zeros(len(batch.keys), np.bool_)
    wanted[batch.owners[asks & ~batch.ended]] = True
    asked = np.zeros(len(batch.keys), np.bool_)
    asked[batch.owners[asks]] = True
    asking = np.flatnonzero(asked & ~doubtful)
    doubt = np.zeros(len(batch.keys), np.bool_)
    rows = np.full(len(batch.keys), -1)
    tables: dict[int, Current] = {}
    for number in np.unique(batch.table_of[asking]).tolist():
        objects = asking[batch.table_of[asking] == number]
        spelled = known.spelled(batch.tables[number])
        right = np.zeros(len(objects), np.bool_)
        keys = batch.keys.take(pa.array(objects))
        if spelled.asked is not None:
            right = flags(pc.match_substring_regex(keys, spelled.asked))
        doubt[objects[~right]] = True
        right &= wanted[objects]
        if right.any() and spelled.table is not None:
            objects = objects[right]
            found = read_back(spelled.table, keys.filter(pa.array(right)))
            doubt[objects[found.doubtful]] = True
            owners = objects[found.objects]
            several = np.bincount(owners, minlength=len(doubt)) > 1
            doubt |= several
            rows[owners] = np.arange(len(owners))
            tables[number] = found
    return Answers(rows, tables, doubt)


def treated(batch: Batch, known: Known, answers: Answers, bases: dict[int, int]) -> list[Treated]:
    """The cells as events hold them; `bases` are the numbers of the first cell of each table."""
    found = []
    for number, current in answers.tables.items():
        name = batch.tables[number]
        table = known.spelled(name).table
        assert table is not None
        owners = np.flatnonzero((batch.table_of == number) & (answers.rows >= 0))
        objects = np.empty(len(current.objects), np.int64)
        objects[answers.rows[owners]] = owners
        at = bases[number]
        for column, texts in zip(table.data, current.columns, strict=True):
            cells = Cells(texts, np.arange(at, at + len(texts)), objects)
            at += len(texts)
            found.append(escaped(cells, known.limit))
            how = known.treated(name, column)
            if how is not None:
                found.append(how.treat(cells))
    return found
