"""The content of the rows that nothing superseded, and the objects whose events are in doubt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventlog.columnar import runs
from eventlog.columnar.batch import Batch
from eventlog.columnar.current import Answers
from eventlog.columnar.precedence import Precedence
from eventlog.columnar.templates import OPS, Templates
from eventlog.columnar.values import RowValues
from eventlog.columnar.vectors import Flags, Ints
from eventlog.core.change import Op
from eventlog.fold import Fate

FATES = tuple(Fate)
SENT, SUPERSEDED, NO_EFFECT, SAYS_NOTHING = map(
    FATES.index, (Fate.SENT, Fate.SUPERSEDED, Fate.NO_EFFECT, Fate.SAYS_NOTHING)
)
_UPDATE = OPS.index(Op.UPDATE)


class RowFates(NamedTuple):
    """The fate of each row that nothing superseded, its operation, and its number of columns."""

    fates: Ints
    ops: Ints
    widths: Ints

    @property
    def speaks(self) -> Flags:
        """Return whether it has content."""
        found: Flags = self.fates == SENT
        return found


def find_fates(
    batch: Batch, known: Templates, said: RowValues, answers: Answers, left: Precedence
) -> RowFates:
    """Return the fates of the rows that nothing superseded."""
    codes, kinds = said.codes[left.rows], batch.kinds[left.rows]
    objects = batch.objects[left.rows]
    ops = np.array([part.op for part in said.parts], np.int64)[codes]
    silent = np.array([part.silence != "" for part in said.parts])[codes]
    tables = [known.spelled(name).table for name in batch.tables]
    data = np.array([len(table.data) if table else 0 for table in tables], np.int64)
    asks, row = kinds > 4, (kinds == 5) | (kinds == 6)
    widths = np.where(kinds == 4, 0, np.where(row, data[batch.table_of[objects]], 1))
    fates = np.full(len(left.rows), SENT)
    fates[asks & (widths == 0) & (ops == _UPDATE)] = SAYS_NOTHING
    fates[asks & (batch.ended[batch.lives[left.rows]] | (answers.rows[objects] < 0))] = NO_EFFECT
    fates[silent] = SAYS_NOTHING
    return RowFates(fates, ops, widths)


def uncertain_objects(
    batch: Batch, known: Templates, left: Precedence, found: RowFates, columns: Ints, max_changes: int
) -> Flags:
    """Return the objects of events that may have to be cut within a row, that gather several values, or have
    no known frame.
    """
    speaks = found.speaks
    runs_of_rows = runs.gathered(batch, left, speaks, found.ops, found.widths)
    atoms = np.bincount(runs_of_rows.of_row, runs_of_rows.widths, len(runs_of_rows.first))
    wrong = atoms * 2 > max_changes
    if wrong.any():
        wrong &= runs.severed(batch, runs_of_rows, max_changes)
    wrong[runs.repeated(runs_of_rows, columns)] = True
    frame = batch.table_of[runs_of_rows.owners] * len(OPS) + runs_of_rows.ops
    kinds, kind = np.unique(frame, return_inverse=True)
    frames = [known.frame(batch.tables[at // len(OPS)], at % len(OPS)) for at in kinds.tolist()]
    wrong |= np.array([found is None for found in frames], np.bool_)[kind]
    doubt = np.zeros(len(batch.keys), np.bool_)
    doubt[runs_of_rows.owners[wrong]] = True
    return doubt


def column_numbers(said: RowValues) -> Ints:
    """Return the column that each row is of, as a number: the same however rows spell it."""
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(part.column, len(numbers)) for part in said.parts]
    return np.array(found, np.int64)[said.codes]


def unread_rows(said: RowValues) -> Flags:
    """Return whether each row is of a column that a query-back of its row does not read."""
    return np.array([part.unread for part in said.parts])[said.codes]


def all_fates(batch: Batch, left: Precedence, found: RowFates) -> Ints:
    """Return the fate of each row, in the order in which the rows came."""
    fates = np.empty(len(batch.ids), np.int64)
    fates[batch.places[left.swallowed]] = SUPERSEDED
    fates[batch.places[left.rows]] = found.fates
    return fates
