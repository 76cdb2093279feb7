"""Current rows: the objects that need one, and the answers, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.batch import Batch
from eventlog.columnar.learn import Templates
from eventlog.columnar.texts import Cells, Replacements, escape
from eventlog.columnar.vectors import Flags, Ints, begins, match_keys, places
from eventlog.core.tables import Table

FEW = 200  # objects of a table that is read together with others
TOGETHER = 1_000  # columns of tables that are read together


class CurrentColumns(NamedTuple):
    """The current rows of some objects: of one table, or of several with as many columns each."""

    objects: Ints  # the key, of all that were asked for, that each row is of; ascending
    columns: Sequence[pa.Array]  # the texts of each column of table.data
    doubtful: Ints  # the keys that cannot be decided here


ReadTable = Callable[[Table, pa.Array], CurrentColumns]
ReadBack = Callable[[Sequence[Table], Sequence[pa.Array]], CurrentColumns]  # the keys of each table


def no_current_rows(tables: Sequence[Table], keys: Sequence[pa.Array]) -> CurrentColumns:
    """Return no answers, for tables without current rows at hand."""
    columns = [pa.array([], pa.string())] * len(tables[0].data)
    return CurrentColumns(np.empty(0, np.int64), columns, np.arange(sum(map(len, keys))))


def one_by_one(read: ReadTable) -> ReadBack:
    """Return a function that reads several tables by reading each."""

    def read_back(tables: Sequence[Table], keys: Sequence[pa.Array]) -> CurrentColumns:
        answers = list(map(read, tables, keys))
        firsts = accumulate(map(len, keys), initial=0)
        shifted = [
            (answer.objects + first, answer.doubtful + first)
            for answer, first in zip(answers, firsts, strict=False)
        ]
        objects, doubtful = (np.concatenate(numbers) for numbers in zip(*shifted, strict=True))
        columns = zip(*(answer.columns for answer in answers), strict=True)
        return CurrentColumns(objects, [pa.concat_arrays(column) for column in columns], doubtful)

    return read_back


class TableAnswers(NamedTuple):
    """The answers for tables that were read together."""

    tables: Sequence[int]  # the numbers of their names
    columns: Sequence[pa.Array]  # the texts of each column of table.data
    owners: Ints  # the object of each row, table by table


class Answers(NamedTuple):
    """The answers for a batch."""

    rows: Ints  # of each object: its current row among those of `groups`, -1 for none
    groups: list[TableAnswers]
    doubtful: Flags  # of each object


def read_current_rows(
    batch: Batch, templates: Templates, doubtful_names: Flags, read_back: ReadBack
) -> Answers:
    """Return the current rows of all objects with a query-back that no delete overtakes; in doubt is each
    whose key may not be a row's.
    """
    asks = np.logical_or.reduceat(batch.kinds > 4, batch.starts)
    needs_row = np.zeros(len(batch.keys), np.bool_)
    needs_row[batch.owners[asks & ~batch.ended]] = True
    has_query = np.zeros(len(batch.keys), np.bool_)
    has_query[batch.owners[asks]] = True
    asking = np.flatnonzero(has_query & ~doubtful_names)
    doubtful = np.zeros(len(batch.keys), np.bool_)
    rows = np.full(len(batch.keys), -1)
    groups: list[TableAnswers] = []
    named = [templates.named(name) for name in batch.tables]
    patterns = [of.lookup_pattern if of.table is not None else None for of in named]
    names_row = match_keys(batch.keys.take(pa.array(asking)), batch.table_of[asking], patterns)
    doubtful[asking[~names_row]] = True
    asking = asking[names_row & needs_row[asking]]
    tables = [of.table for of in named]
    objects_of = [asking[at] for at in places(batch.table_of[asking], len(tables))]
    for group in _groups(tables, list(map(len, objects_of))):
        objects = [objects_of[number] for number, _ in group]
        group_objects = np.concatenate(objects)
        keys = batch.keys.take(pa.array(group_objects))
        spans = zip(objects, accumulate(map(len, objects)), strict=True)
        answer = read_back(
            [table for _, table in group], [keys[end - len(of_table) : end] for of_table, end in spans]
        )
        doubtful[group_objects[answer.doubtful]] = True
        owners = group_objects[answer.objects]
        doubtful[owners[1:][owners[1:] == owners[:-1]]] = True  # of several rows
        rows[owners] = np.arange(len(owners))
        groups.append(TableAnswers([number for number, _ in group], answer.columns, owners))
    return Answers(rows, groups, doubtful)


def _groups(tables: Sequence[Table | None], sizes: Sequence[int]) -> Iterator[list[tuple[int, Table]]]:
    """Yield the tables to be read together, with their numbers; a table with many objects is read alone."""
    by_shape: dict[tuple[int, bool], list[tuple[int, Table]]] = {}
    for number, (table, size) in enumerate(zip(tables, sizes, strict=True)):
        if table is not None and size > FEW:
            yield [(number, table)]
        elif table is not None and size:
            by_shape.setdefault((len(table.data), table.view), []).append((number, table))
    for (width, _), group in by_shape.items():
        count = max(1, TOGETHER // max(1, width))
        yield from (group[start : start + count] for start in range(0, len(group), count))


def replace_cells(
    batch: Batch, templates: Templates, answers: Answers, first_numbers: Sequence[int]
) -> list[Replacements]:
    """Return the cells that events hold otherwise, from the numbers of the first cell of each group."""
    replacements = []
    for group, first_number in zip(answers.groups, first_numbers, strict=True):
        table_of = batch.table_of[group.owners]
        starts = np.flatnonzero(begins(table_of)).tolist()
        spans = list(zip(table_of[starts].tolist(), starts, [*starts[1:], len(table_of)], strict=False))
        for at, texts in enumerate(group.columns):
            numbers = np.arange(len(texts)) + first_number + at * len(texts)
            cells = Cells(texts, numbers, group.owners)
            replacements.append(escape(cells, templates.limit, templates.form))
            for number, start, end in spans:
                name = batch.tables[number]
                column = templates.column_texts(name, templates.table(name).data[at])
                if column is not None:
                    replacements.append(column.replace(cells.slice(start, end)))
    return replacements
