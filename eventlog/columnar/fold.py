"""Rows become events: the rows that count, their fates, and the runs of rows that are one event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventlog.columnar.batch import Batch
from eventlog.columnar.content import Content
from eventlog.columnar.learn import Templates
from eventlog.columnar.vectors import Flags, Ints, RowNumbers, begins
from eventlog.core.change import Op
from eventlog.event_table import OPERATIONS
from eventlog.fold import Fate

FATES = tuple(Fate)
SENT, SUPERSEDED, NO_EFFECT, SAYS_NOTHING = map(
    FATES.index, (Fate.SENT, Fate.SUPERSEDED, Fate.NO_EFFECT, Fate.SAYS_NOTHING)
)
_INSERT, _UPDATE = OPERATIONS.index(Op.INSERT), OPERATIONS.index(Op.UPDATE)
_NEVER = np.iinfo(np.int64).max
_NO_ROWS: RowNumbers = np.empty(0, np.int64)


class Precedence(NamedTuple):
    """The rows that nothing superseded, by life and position; whether they have content is not decided."""

    rows: RowNumbers
    places: RowNumbers  # the row in whose place each leaves
    superseded: RowNumbers
    superseding: RowNumbers  # the row that superseded each of those


class Runs(NamedTuple):
    """The rows with content, gathered to events."""

    rows: RowNumbers  # the rows with content, by life and position
    of_row: Ints  # the run of each
    first: Ints  # of each run: its first, as an index of `rows`
    lengths: Ints
    places: RowNumbers  # the row in whose place each leaves
    ops: Ints
    owners: Ints  # the object of each
    widths: Ints  # of each row: how many columns it contains
    parts: Ints  # of each run: 1, or the part of a longer one that was cut; its parts follow one another
    part_counts: Ints  # how many parts that has

    @property
    def events(self) -> Ints:
        """Return the number of each run, which the parts of a longer one share."""
        numbers: Ints = np.cumsum(self.parts == 1) - 1
        return numbers


class RowsOfEvents(NamedTuple):
    """The rows of each event, those that are superseded included, ascending by record_id."""

    rows: Ints
    begins: Ints  # where those of each event begin
    sizes: Ints


class Folded(NamedTuple):
    """The events of a batch by column, the fates of its rows, and the objects in doubt."""

    runs: Runs
    event_rows: RowsOfEvents
    fates: Ints  # of each row, in the order before rows were gathered: an index of FATES
    doubtful: Flags  # of each object


def fold(batch: Batch, templates: Templates, content: Content, max_changes: int) -> Folded:
    """Return the events of all objects that are not in doubt."""
    columns = content.columns
    precedence = find_precedence(batch.kinds, batch.lives, columns, content.unread)
    rows = precedence.rows
    ops = np.array([part.op for part in content.parts], np.int64)[content.codes[rows]]
    widths = _widths(batch, templates, rows)
    fates = _fates(batch, content, rows, ops, widths)
    sent = fates == SENT
    runs = _gather_runs(batch, precedence, sent, ops, widths)
    doubtful = content.doubtful | _uncertain_objects(batch, templates, runs, columns, max_changes)
    if doubtful.any():
        runs = _gather_runs(batch, precedence, sent & ~doubtful[batch.objects[rows]], ops, widths)
    runs = _cut_runs(batch, runs, max_changes)
    by_place = np.empty(len(batch.ids), np.int64)
    by_place[batch.places[precedence.superseded]] = SUPERSEDED
    by_place[batch.places[rows]] = fates
    return Folded(runs, _rows_of_events(batch, runs, precedence), by_place, doubtful)


def find_precedence(kinds: Ints, lives: Ints, columns: Ints, unread: Flags) -> Precedence:
    """Return the rows that count within lives (rules 1 to 3).

    The arguments are the type, the life (ascending) and the column of each row, and whether a query-back of
    the row does not read that column.
    """
    rows: RowNumbers = np.arange(len(kinds))
    asking, is_delete = kinds > 4, kinds == 4
    if not asking.any():
        return Precedence(rows, rows, _NO_ROWS, _NO_ROWS)
    # A query-back of a row (5, 6) reads all columns of its life that it can; of a value (7, 8), its column.
    life_starts = np.flatnonzero(begins(lives))
    by_row = np.logical_or.reduceat((kinds == 5) | (kinds == 6), life_starts)[lives] & ~unread
    column_groups = np.where(by_row | is_delete, 0, columns + 1)
    groups = _Groups(lives * (int(columns.max()) + 2) + column_groups)
    # Of a group with a query-back one row counts: the first insert that asks, else the first update.
    first_asking = groups.first(asking)
    has_query = ~is_delete & (first_asking != _NEVER)
    first_insert = groups.first((kinds == 5) | (~by_row & (kinds == 7)))
    first_update = groups.first((kinds == 6) | (~by_row & (kinds == 8)))
    winner = np.where(first_insert != _NEVER, first_insert, first_update)
    superseded = np.flatnonzero(has_query & (winner != rows))
    counting = np.flatnonzero(~has_query | (winner == rows))
    # It leaves in the place of the first row of its group; for a value, of the first one that asks.
    first_place = np.where(by_row, groups.first(~is_delete), first_asking)
    places = np.where(has_query[counting], first_place[counting], counting)
    order = np.lexsort((places, lives[counting]))
    return Precedence(counting[order], places[order], superseded, winner[superseded])


class _Groups:
    """The groups of rows; finds the first row of each that has a property."""

    def __init__(self, groups: Ints) -> None:
        self._order = np.argsort(groups, kind="stable")
        self._edges = np.flatnonzero(begins(groups[self._order]))
        self._sizes = np.diff(self._edges, append=len(groups))

    def first(self, candidates: Flags) -> RowNumbers:
        """Return for each row the first candidate of its group; _NEVER without any."""
        numbers = np.where(candidates, np.arange(len(candidates)), _NEVER)
        earliest = np.minimum.reduceat(numbers[self._order], self._edges)
        of_row = np.empty(len(candidates), np.int64)
        of_row[self._order] = np.repeat(earliest, self._sizes)
        return of_row


def _widths(batch: Batch, templates: Templates, rows: Ints) -> Ints:
    """Return how many columns each of these rows contains."""
    kinds = batch.kinds[rows]
    tables = [templates.named(name).table for name in batch.tables]
    of_row = np.array([len(table.data) if table else 0 for table in tables], np.int64)
    reads_row = (kinds == 5) | (kinds == 6)
    return np.where(kinds == 4, 0, np.where(reads_row, of_row[batch.table_of[batch.objects[rows]]], 1))


def _fates(batch: Batch, content: Content, rows: Ints, ops: Ints, widths: Ints) -> Ints:
    """Return the fates of these rows, which nothing superseded."""
    asks = batch.kinds[rows] > 4
    fates = np.full(len(rows), SENT)
    fates[asks & (widths == 0) & (ops == _UPDATE)] = SAYS_NOTHING
    is_gone = batch.ended[batch.lives[rows]] | (content.answers.rows[batch.objects[rows]] < 0)
    fates[asks & is_gone] = NO_EFFECT
    fates[np.array([part.silence != "" for part in content.parts])[content.codes[rows]]] = SAYS_NOTHING
    return fates


def _uncertain_objects(
    batch: Batch, templates: Templates, runs: Runs, columns: Ints, max_changes: int
) -> Flags:
    """Return the objects of events that may have to be cut within a row, that gather several values, or have
    no known frame.
    """
    uncertain = np.bincount(runs.of_row, runs.widths, len(runs.first)) * 2 > max_changes
    if uncertain.any():
        uncertain &= _uncuttable(batch, runs, max_changes)
    uncertain[_repeating(runs, columns)] = True
    frames, frame_of = np.unique(
        batch.table_of[runs.owners] * len(OPERATIONS) + runs.ops, return_inverse=True
    )
    has_frame = [
        templates.frame(batch.tables[frame // len(OPERATIONS)], frame % len(OPERATIONS)) is not None
        for frame in frames.tolist()
    ]
    uncertain |= ~np.array(has_frame, np.bool_)[frame_of]
    doubtful = np.zeros(len(batch.keys), np.bool_)
    doubtful[runs.owners[uncertain]] = True
    return doubtful


def _gather_runs(batch: Batch, precedence: Precedence, sent: Flags, ops: Ints, widths: Ints) -> Runs:
    """Return the runs of the rows with content: consecutive rows of one life and operation (rule 4)."""
    rows, ops = precedence.rows[sent], ops[sent]
    starts = begins(batch.lives[rows], ops)
    first = np.flatnonzero(starts)
    ones = np.ones(len(first), np.int64)
    return Runs(
        rows,
        np.cumsum(starts) - 1,
        first,
        np.diff(first, append=len(rows)),
        precedence.places[sent][first],
        ops[first],
        batch.objects[rows[first]],
        widths[sent],
        ones,
        ones,
    )


def _cut_positions(runs: Runs, values: Ints, max_changes: int) -> tuple[Ints, Flags]:
    """Return the part of its run in which each row begins, from 0. Return also whether the row reaches into
    the next part or has no values. The rows remove and add so many values each.
    """
    ends = np.cumsum(values)
    ends -= (ends - values)[runs.first][runs.of_row]
    part = (ends - values) // max_changes
    return part, (values == 0) | ((ends - 1) // max_changes > part)


def _uncuttable(batch: Batch, runs: Runs, max_changes: int) -> Flags:
    """Return the runs that cannot be cut between rows: other than updates, read back, or cut within a row."""
    kinds, values = batch.kinds[runs.rows], batch.changes[runs.rows]
    is_cut = _cut_positions(runs, values, max_changes)[1]
    wrong = (runs.ops != _UPDATE)[runs.of_row] | (kinds > 3) | is_cut
    return np.bincount(runs.of_row, wrong, len(runs.first)) > 0


def _cut_runs(batch: Batch, runs: Runs, max_changes: int) -> Runs:
    """Return the runs, those of more values than that in parts."""
    if not (runs.lengths * 2 > max_changes).any():
        return runs
    part, _ = _cut_positions(runs, batch.changes[runs.rows], max_changes)
    starts = begins(runs.of_row, part)
    first = np.flatnonzero(starts)
    run = runs.of_row[first]
    return runs._replace(
        of_row=np.cumsum(starts) - 1,
        first=first,
        lengths=np.diff(first, append=len(runs.rows)),
        places=runs.places[run],
        ops=runs.ops[run],
        owners=runs.owners[run],
        parts=part[first] + 1,
        part_counts=np.bincount(run, minlength=len(runs.first))[run],
    )


def _repeating(runs: Runs, columns: Ints) -> Ints:
    """Return the runs of inserts that name a column twice, whose values are those of one attribute."""
    several = (runs.ops == _INSERT) & (runs.lengths > 1)
    if not several.any():
        return np.empty(0, np.int64)
    at = np.flatnonzero(several[runs.of_row])
    width = int(columns.max()) + 1
    named = np.sort(runs.of_row[at] * width + columns[runs.rows[at]])
    twice: Ints = named[1:][named[1:] == named[:-1]] // width
    return twice


def _rows_of_events(batch: Batch, runs: Runs, precedence: Precedence) -> RowsOfEvents:
    """Return the rows of each event, and those that they superseded."""
    event_of = np.full(len(batch.ids), -1)
    events = runs.events
    event_of[runs.rows] = events[runs.of_row]
    event_of[precedence.superseded] = event_of[precedence.superseding]
    rows = np.flatnonzero(event_of >= 0)
    event, ids = event_of[rows], batch.ids[rows]
    if (event[1:] < event[:-1]).any() or (ids[1:] < ids[:-1])[event[1:] == event[:-1]].any():
        order = np.lexsort((ids, event))
        rows, event = rows[order], event[order]
    sizes = np.bincount(event, minlength=int(events[-1]) + 1 if len(events) else 0)
    return RowsOfEvents(rows, np.cumsum(sizes) - sizes, sizes)
