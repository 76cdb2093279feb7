"""Rows become events: the rows that count, their fates, and the runs of rows that are one event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventlog.columnar.batch import Batch
from eventlog.columnar.content import Content
from eventlog.columnar.learn import OPS, Templates
from eventlog.columnar.vectors import Flags, Ints, begins
from eventlog.core.change import Op
from eventlog.fold import Fate

FATES = tuple(Fate)
SENT, SUPERSEDED, NO_EFFECT, SAYS_NOTHING = map(
    FATES.index, (Fate.SENT, Fate.SUPERSEDED, Fate.NO_EFFECT, Fate.SAYS_NOTHING)
)
_INSERT, _UPDATE = OPS.index(Op.INSERT), OPS.index(Op.UPDATE)
_NEVER = np.iinfo(np.int64).max


class Precedence(NamedTuple):
    """The rows that nothing superseded, by life and position; whether they have content is not decided."""

    rows: Ints
    places: Ints  # the row in whose place each leaves
    superseded: Ints
    superseding: Ints  # the row that superseded each of those


class Runs(NamedTuple):
    """The rows with content, gathered to events."""

    rows: Ints  # the rows with content, by life and position
    of_row: Ints  # the run of each
    first: Ints  # of each run: its first, as an index of `rows`
    lengths: Ints
    places: Ints  # the row in whose place each leaves
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


class SettledRows(NamedTuple):
    """The rows that each event settles, those that are superseded included, ascending by record_id."""

    rows: Ints
    begins: Ints  # where those of each event begin
    sizes: Ints


class Folded(NamedTuple):
    """The events of a batch by column, the fates of its rows, and the objects in doubt."""

    runs: Runs
    settled: SettledRows
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
    return Folded(runs, _settled_rows(batch, runs, precedence), by_place, doubtful)


def find_precedence(kinds: Ints, lives: Ints, columns: Ints, unread: Flags) -> Precedence:
    """Return the rows that count within lives (rules 1 to 3).

    The arguments are the type, the life (ascending) and the column of each row, and whether a query-back of
    the row does not read that column.
    """
    count = len(kinds)
    numbers = np.arange(count)
    asking = kinds > 4
    if not asking.any():
        none = np.empty(0, np.int64)
        return Precedence(numbers, numbers, none, none)
    starts = np.flatnonzero(begins(lives))
    by_row = np.logical_or.reduceat((kinds == 5) | (kinds == 6), starts)[lives] & ~unread
    width = int(columns.max()) + 2
    group = lives * width + np.where(by_row | (kinds == 4), 0, columns + 1)
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(begins(group[order]))
    sizes = np.diff(edges, append=count)

    def first(candidates: Flags) -> Ints:
        """Return the first such row of each row's group."""
        earliest = np.minimum.reduceat(np.where(candidates, numbers, _NEVER)[order], edges)
        by_number = np.empty(count, np.int64)
        by_number[order] = np.repeat(earliest, sizes)
        return by_number

    in_query = (kinds != 4) & (first(asking) != _NEVER)
    insert = first((kinds == 5) | (~by_row & (kinds == 7)))
    update = first((kinds == 6) | (~by_row & (kinds == 8)))
    winner = np.where(insert != _NEVER, insert, update)
    place = np.where(by_row, first(kinds != 4), first(asking))
    superseded = np.flatnonzero(in_query & (winner != numbers))
    rows = np.flatnonzero(~in_query | (winner == numbers))
    places = np.where(in_query[rows], place[rows], rows)
    order = np.lexsort((places, lives[rows]))
    return Precedence(rows[order], places[order], superseded, winner[superseded])


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
    frames, frame_of = np.unique(batch.table_of[runs.owners] * len(OPS) + runs.ops, return_inverse=True)
    has_frame = [
        templates.frame(batch.tables[frame // len(OPS)], frame % len(OPS)) is not None
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


def _settled_rows(batch: Batch, runs: Runs, precedence: Precedence) -> SettledRows:
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
    return SettledRows(rows, np.cumsum(sizes) - sizes, sizes)
