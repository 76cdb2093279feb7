"""Current rows: the objects that need one, and the answers, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.core import tablekey
from eventlog.core.tables import Table
from eventlog.fold import CurrentOrError, CurrentRow, Need, QueryKey, query_key
from eventlog.fold.by_column.batch import Batch
from eventlog.fold.by_column.learn import Templates
from eventlog.fold.by_column.texts import CellTexts, Replacements, escape
from eventlog.fold.by_column.vectors import Flags, Ints, begins, match_keys, places
from eventlog.fold.plan import Lookup

NONE: Ints = np.empty(0, np.int64)


class Keys(NamedTuple):
    """The keys of objects whose current rows are read by column: those of one table after those of another.

    A key is numbered by its position among all of them.
    """

    tables: Sequence[Table]
    keys: Sequence[pa.Array]  # of each table, in their plain form
    objects: Ints  # of each key

    def needs(self, numbers: Ints) -> list[Need]:
        """Return what the keys of these numbers need, for a reader that reads them one by one."""
        firsts = list(accumulate(map(len, self.keys), initial=0))
        table_of = np.searchsorted(firsts, numbers, "right") - 1
        pairs = zip(numbers.tolist(), table_of.tolist(), strict=True)
        return [self._need(at, self.keys[at][number - firsts[at]].as_py()) for number, at in pairs]

    def _need(self, at: int, text: str) -> Need:
        return Need(self.tables[at], query_key(self.tables[at], tablekey.read(text)))


class CurrentColumns(NamedTuple):
    """The current rows of some keys: of one table, or of several with as many columns each."""

    numbers: Ints  # of the key that each row is of; ascending
    columns: Sequence[pa.Array]  # the texts of each column of table.data


def _no_rows(table: Table, key: QueryKey) -> CurrentOrError:
    return ()


class CurrentAnswer(NamedTuple):
    """The current rows that were read."""

    groups: Sequence[CurrentColumns] = ()
    alone: Ints = NONE  # the numbers of keys that `lookup` answers, because their rows do not come by column
    lookup: Lookup = _no_rows  # answers the needs of all other objects


class Answers(NamedTuple):
    """The answers for the objects of a batch."""

    rows: Ints  # of each object: its current row among those of `groups`, -1 for none
    groups: list[CurrentColumns]  # with objects in place of keys
    doubtful: Flags  # of each object


def find_keys(batch: Batch, templates: Templates, doubtful: Flags) -> tuple[Keys, Flags]:
    """Return the keys of all objects with a query-back that no delete follows, and the objects in doubt.

    These are the ones before, and each with a query-back whose key may not be a row's.
    """
    asks = np.logical_or.reduceat(batch.kinds > 4, batch.starts)
    needs_row = np.zeros(len(batch.keys), np.bool_)
    needs_row[batch.owners[asks & ~batch.ended]] = True
    has_query = np.zeros(len(batch.keys), np.bool_)
    has_query[batch.owners[asks]] = True
    asking = np.flatnonzero(has_query & ~doubtful)
    named = [templates.named(name) for name in batch.tables]
    patterns = [of.lookup_pattern if of.table is not None else None for of in named]
    names_row = match_keys(batch.keys.take(pa.array(asking)), batch.table_of[asking], patterns)
    doubtful = doubtful.copy()
    doubtful[asking[~names_row]] = True
    asking = asking[names_row & needs_row[asking]]
    by_table = places(batch.table_of[asking], len(named))
    objects_of = [
        (of.table, asking[at]) for of, at in zip(named, by_table, strict=True) if of.table and len(at)
    ]
    keys = [batch.keys.take(pa.array(objects)) for _, objects in objects_of]
    objects = np.concatenate([NONE, *(objects for _, objects in objects_of)])
    return Keys([table for table, _ in objects_of], keys, objects), doubtful


def answers_of(batch: Batch, keys: Keys, current: CurrentAnswer) -> Answers:
    """Return the answers for the objects of a batch; in doubt is each of several rows, or without columns."""
    doubtful = np.zeros(len(batch.keys), np.bool_)
    rows = np.full(len(batch.keys), -1)
    doubtful[keys.objects[current.alone]] = True
    groups = []
    for numbers, columns in current.groups:
        owners = keys.objects[numbers]
        doubtful[owners[1:][owners[1:] == owners[:-1]]] = True  # of several rows
        rows[owners] = np.arange(len(owners))
        groups.append(CurrentColumns(owners, columns))
    return Answers(rows, groups, doubtful)


def lookup_among(keys: Keys, current: CurrentAnswer, answers: Answers, doubtful: Flags) -> Lookup:
    """Return what answers the needs of these objects: by the columns that were read, else by the lookup."""
    by_column = doubtful[keys.objects]
    by_column[current.alone] = False
    numbers = np.flatnonzero(by_column)
    needs = dict(zip(keys.objects[numbers].tolist(), keys.needs(numbers), strict=True))
    rows_of: dict[Need, list[CurrentRow]] = {need: [] for need in needs.values()}
    for owners, columns in answers.groups:
        at = np.flatnonzero(np.isin(owners, keys.objects[numbers]))
        cells = [column.take(pa.array(at)).to_pylist() for column in columns]
        texts = zip(*cells, strict=True) if cells else [()] * len(at)
        for owner, row in zip(owners[at].tolist(), texts, strict=True):
            rows_of[needs[owner]].append(row)

    def lookup(table: Table, key: QueryKey) -> CurrentOrError:
        need = Need(table, key)
        return rows_of[need] if need in rows_of else current.lookup(table, key)

    return lookup


def replace_cells(
    batch: Batch, templates: Templates, answers: Answers, first_numbers: Sequence[int]
) -> list[Replacements]:
    """Return the cells that events hold otherwise, from the numbers of the first cell of each group."""
    replacements = []
    for group, first_number in zip(answers.groups, first_numbers, strict=True):
        owners = group.numbers
        table_of = batch.table_of[owners]
        starts = np.flatnonzero(begins(table_of)).tolist()
        spans = list(zip(table_of[starts].tolist(), starts, [*starts[1:], len(table_of)], strict=False))
        for at, texts in enumerate(group.columns):
            numbers = np.arange(len(texts)) + first_number + at * len(texts)
            cells = CellTexts(texts, numbers, owners)
            replacements.append(escape(cells, templates.limit, templates.form))
            for number, start, end in spans:
                name = batch.tables[number]
                column = templates.column_texts(name, templates.table(name).data[at])
                if column is not None:
                    replacements.append(column.replace(cells.slice(start, end)))
    return replacements
