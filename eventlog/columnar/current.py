"""Current rows: which objects must be asked for, and what was answered, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.batch import Batch
from eventlog.columnar.objects import matched
from eventlog.columnar.templates import Templates
from eventlog.columnar.texts import Cells, Treated, escaped
from eventlog.columnar.vectors import Flags, Ints, places
from eventlog.core.tables import Table


class CurrentColumns(NamedTuple):
    """The current rows of some objects of one table."""

    objects: Ints  # which of the keys asked for each is of, ascending
    columns: Sequence[pa.Array]  # the texts of each column of table.data
    doubtful: Ints  # the keys that cannot be decided here


ReadBack = Callable[[Table, pa.Array], CurrentColumns]


def nothing(table: Table, keys: pa.Array) -> CurrentColumns:
    """Return no answers, for a table without current rows at hand."""
    none = np.empty(0, np.int64)
    return CurrentColumns(none, [pa.array([], pa.string())] * len(table.data), np.arange(len(keys)))


class Answered(NamedTuple):
    """The answers for one table."""

    columns: Sequence[pa.Array]  # the texts of each column of table.data
    owners: Ints  # the object of each row


class Answers(NamedTuple):
    """The answers for a batch."""

    rows: Ints  # of each object: its current row among those of its table, -1 for none
    tables: dict[int, Answered]  # by the number of the table's name
    doubtful: Flags  # of each object


def ask(batch: Batch, known: Templates, doubtful: Flags, read_back: ReadBack) -> Answers:
    """Return the current rows of all objects with a query-back that no delete overtakes; in doubt is each
    with one whose key may not be a row's.
    """
    asks = np.logical_or.reduceat(batch.kinds > 4, batch.starts)
    wanted = np.zeros(len(batch.keys), np.bool_)
    wanted[batch.owners[asks & ~batch.ended]] = True
    asked = np.zeros(len(batch.keys), np.bool_)
    asked[batch.owners[asks]] = True
    asking = np.flatnonzero(asked & ~doubtful)
    doubt = np.zeros(len(batch.keys), np.bool_)
    rows = np.full(len(batch.keys), -1)
    tables: dict[int, Answered] = {}
    spelled = [known.spelled(name) for name in batch.tables]
    patterns = [one.asked if one.table is not None else None for one in spelled]
    right = matched(batch.keys.take(pa.array(asking)), batch.table_of[asking], patterns)
    doubt[asking[~right]] = True
    asking = asking[right & wanted[asking]]
    for one, at in zip(spelled, places(batch.table_of[asking], len(spelled)), strict=True):
        if one.table is not None and len(at):
            objects = asking[at]
            found = read_back(one.table, batch.keys.take(pa.array(objects)))
            doubt[objects[found.doubtful]] = True
            owners = objects[found.objects]
            doubt[owners[1:][owners[1:] == owners[:-1]]] = True  # of several rows
            rows[owners] = np.arange(len(owners))
            tables[int(batch.table_of[objects[0]])] = Answered(found.columns, owners)
    return Answers(rows, tables, doubt)


def treated(batch: Batch, known: Templates, answers: Answers, bases: dict[int, int]) -> list[Treated]:
    """Return the cells as events hold them; `bases` are the numbers of the first cell of each table."""
    found = []
    for number, answer in answers.tables.items():
        name = batch.tables[number]
        table = known.spelled(name).table
        assert table is not None
        at = bases[number]
        for column, texts in zip(table.data, answer.columns, strict=True):
            cells = Cells(texts, np.arange(at, at + len(texts)), answer.owners)
            at += len(texts)
            found.append(escaped(cells, known.limit))
            how = known.treated(name, column)
            if how is not None:
                found.append(how.treat(cells))
    return found
