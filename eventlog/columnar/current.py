"""Current rows: which objects must be asked for, and what was answered, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.batch import Batch
from eventlog.columnar.objects import matched
from eventlog.columnar.templates import Templates
from eventlog.columnar.texts import Cells, Treated, escaped
from eventlog.columnar.vectors import Flags, Ints, begins, places
from eventlog.core.tables import Table

FEW = 200  # objects of a table that is read together with others
TOGETHER = 1_000  # columns of tables that are read together


class CurrentColumns(NamedTuple):
    """The current rows of some objects: of one table, or of several with as many columns each."""

    objects: Ints  # which of all keys asked for each is of, ascending
    columns: Sequence[pa.Array]  # the texts of each column of table.data
    doubtful: Ints  # the keys that cannot be decided here


ReadTable = Callable[[Table, pa.Array], CurrentColumns]
ReadBack = Callable[[Sequence[Table], Sequence[pa.Array]], CurrentColumns]  # the keys of each table


def nothing(tables: Sequence[Table], keys: Sequence[pa.Array]) -> CurrentColumns:
    """Return no answers, for tables without current rows at hand."""
    none, width = np.empty(0, np.int64), len(tables[0].data)
    return CurrentColumns(none, [pa.array([], pa.string())] * width, np.arange(sum(map(len, keys))))


def one_by_one(read: ReadTable) -> ReadBack:
    """Return what reads several tables by reading each."""

    def read_back(tables: Sequence[Table], keys: Sequence[pa.Array]) -> CurrentColumns:
        found = list(map(read, tables, keys))
        firsts = accumulate(map(len, keys), initial=0)
        shifted = [
            (one.objects + first, one.doubtful + first) for one, first in zip(found, firsts, strict=False)
        ]
        objects, doubtful = (np.concatenate(side) for side in zip(*shifted, strict=True))
        columns = zip(*(one.columns for one in found), strict=True)
        return CurrentColumns(objects, [pa.concat_arrays(column) for column in columns], doubtful)

    return read_back


class Answered(NamedTuple):
    """The answers for tables that were read together."""

    tables: Sequence[int]  # the numbers of their names
    columns: Sequence[pa.Array]  # the texts of each column of table.data
    owners: Ints  # the object of each row, table by table


class Answers(NamedTuple):
    """The answers for a batch."""

    rows: Ints  # of each object: its current row among those of `groups`, -1 for none
    groups: list[Answered]
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
    groups: list[Answered] = []
    spelled = [known.spelled(name) for name in batch.tables]
    patterns = [one.asked if one.table is not None else None for one in spelled]
    right = matched(batch.keys.take(pa.array(asking)), batch.table_of[asking], patterns)
    doubt[asking[~right]] = True
    asking = asking[right & wanted[asking]]
    tables = [one.table for one in spelled]
    objects_of = [asking[at] for at in places(batch.table_of[asking], len(tables))]
    for together in _groups(tables, list(map(len, objects_of))):
        objects = [objects_of[number] for number, _ in together]
        every, ends = np.concatenate(objects), accumulate(map(len, objects))
        keys = batch.keys.take(pa.array(every))
        spans = zip(objects, ends, strict=True)
        found = read_back(
            [table for _, table in together], [keys[end - len(some) : end] for some, end in spans]
        )
        doubt[every[found.doubtful]] = True
        owners = every[found.objects]
        doubt[owners[1:][owners[1:] == owners[:-1]]] = True  # of several rows
        rows[owners] = np.arange(len(owners))
        groups.append(Answered([number for number, _ in together], found.columns, owners))
    return Answers(rows, groups, doubt)


def _groups(tables: Sequence[Table | None], sizes: Sequence[int]) -> Iterator[list[tuple[int, Table]]]:
    """Yield the tables to be read together, with their numbers; a table with many objects is read alone."""
    alike: dict[tuple[int, bool], list[tuple[int, Table]]] = {}
    for number, (table, size) in enumerate(zip(tables, sizes, strict=True)):
        if table is not None and size > FEW:
            yield [(number, table)]
        elif table is not None and size:
            alike.setdefault((len(table.data), table.view), []).append((number, table))
    for (width, _), group in alike.items():
        most = max(1, TOGETHER // max(1, width))
        yield from (group[start : start + most] for start in range(0, len(group), most))


def treated(batch: Batch, known: Templates, answers: Answers, bases: Sequence[int]) -> list[Treated]:
    """Return the cells as events hold them; `bases` are the numbers of the first cell of each group."""
    found = []
    for group, base in zip(answers.groups, bases, strict=True):
        table_of = batch.table_of[group.owners]
        starts = np.flatnonzero(begins(table_of)).tolist()
        spans = list(zip(table_of[starts].tolist(), starts, [*starts[1:], len(table_of)], strict=False))
        for at, texts in enumerate(group.columns):
            numbers = np.arange(len(texts)) + base + at * len(texts)
            cells = Cells(texts, numbers, group.owners)
            found.append(escaped(cells, known.limit))
            for number, start, end in spans:
                name = batch.tables[number]
                how = known.treated(name, known.table(name).data[at])
                if how is not None:
                    found.append(how.treat(cells.slice(start, end)))
    return found
