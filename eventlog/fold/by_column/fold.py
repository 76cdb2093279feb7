"""Rows become events: the rows that count, their fates, and the runs of rows that are one event.

All rows of a batch are handled at once, as vectors. Each row has a type:

type  operation  what the row contains
1     insert     the new value of its column
2     update     the old and the new value of its column
3     update     the new value of its column, instead of all that it had
4     delete     no value; it ends a life of its object
5     insert     no value: it asks for the current row
6     update     no value: it asks for the current row
7     insert     no value: it asks for its column of the current row
8     update     no value: it asks for its column of the current row

The steps are those of docs/log/event-log.md, "Rules". A life is what an object has between two deletes.

`find_precedence`  rules 1 to 3: a row that asks supersedes others; rows that nothing superseded count
`_fates`           rules 1 and 2: a row that counts is sent, has no effect, or has no content
`_gather_runs`     rule 4: consecutive rows of one operation in a life are a run, which is one event
`_cut_runs`        rule 4: a run of too many values becomes several runs, the parts of its event
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventlog.core.change import Op
from eventlog.fold import Fate
from eventlog.fold.by_column.batch import Batch
from eventlog.fold.by_column.content import Content
from eventlog.fold.by_column.learn import Templates
from eventlog.fold.by_column.vectors import Flags, Ints, RowNumbers, begins, spread
from eventlog.fold.event_table import OPERATIONS

FATES = tuple(Fate)
SENT, SUPERSEDED, NO_EFFECT, SAYS_NOTHING = map(
    FATES.index, (Fate.SENT, Fate.SUPERSEDED, Fate.NO_EFFECT, Fate.SAYS_NOTHING)
)
RunNumbers = Ints  # positions of runs in the vectors of `Runs`
_INSERT, _UPDATE = OPERATIONS.index(Op.INSERT), OPERATIONS.index(Op.UPDATE)
_NEVER = np.iinfo(np.int64).max
_NO_ROWS: RowNumbers = np.empty(0, np.int64)


class Precedence(NamedTuple):
    """The rows that count, because nothing superseded them, by life and place; and the other rows."""

    rows: RowNumbers
    places: RowNumbers  # the row in whose place each leaves
    superseded: RowNumbers
    superseding: RowNumbers  # the row that superseded each of those


class CountingRows(NamedTuple):
    """The rows that nothing superseded, by life and place, with what they become."""

    rows: RowNumbers
    places: RowNumbers  # the row in whose place each leaves
    ops: Ints  # the operation of each, an index of OPERATIONS
    widths: Ints  # how many columns each contains
    fates: Ints  # an index of FATES


class Runs(NamedTuple):
    """The rows that are sent, gathered to runs. Each run is an event, or a part of one that was cut."""

    rows: RowNumbers  # by life and place
    run_of_row: RunNumbers  # of each of `rows`
    starts: Ints  # of each run: the position of its first row in `rows`
    lengths: Ints  # of each run: how many rows it has
    places: RowNumbers  # the row in whose place each run leaves
    ops: Ints  # of each run
    owners: Ints  # the object of each run
    widths: Ints  # of each of `rows`: how many columns it contains
    part_numbers: Ints  # of each run: 1, or from 1 in an event that was cut; its parts follow one another
    part_counts: Ints  # of each run: how many parts its event has

    @property
    def event_of_run(self) -> Ints:
        """Return the number of each run's event, which has one run or several parts."""
        numbers: Ints = np.cumsum(self.part_numbers == 1) - 1
        return numbers

    def take(self, chosen: RunNumbers) -> Runs:
        """Return these runs, in this order."""
        lengths = self.lengths[chosen]
        run, place = spread(lengths)
        at = self.starts[chosen][run] + place
        return Runs(
            self.rows[at],
            run_of_row=run,
            starts=np.cumsum(lengths) - lengths,
            lengths=lengths,
            places=self.places[chosen],
            ops=self.ops[chosen],
            owners=self.owners[chosen],
            widths=self.widths[at],
            part_numbers=self.part_numbers[chosen],
            part_counts=self.part_counts[chosen],
        )


class RowsOfEvents(NamedTuple):
    """The rows of each event, those that are superseded included, ascending by record_id."""

    rows: RowNumbers
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
    counting = _counting_rows(batch, templates, content, precedence)
    is_sent = counting.fates == SENT
    runs = _gather_runs(batch, counting, is_sent)
    doubtful = content.doubtful | _uncertain_objects(batch, templates, runs, columns, max_changes)
    if doubtful.any():
        runs = _gather_runs(batch, counting, is_sent & ~doubtful[batch.objects[counting.rows]])
    runs = _cut_runs(batch, runs, max_changes)
    fates_before_gathering = np.empty(len(batch.ids), np.int8)
    fates_before_gathering[batch.places[precedence.superseded]] = SUPERSEDED
    fates_before_gathering[batch.places[counting.rows]] = counting.fates
    return Folded(runs, _rows_of_events(batch, runs, precedence), fates_before_gathering, doubtful)


def _asks(kinds: Ints) -> Flags:
    asks: Flags = kinds > 4
    return asks


def _asks_for_row(kinds: Ints) -> Flags:
    asks: Flags = (kinds == 5) | (kinds == 6)
    return asks


# --- rules 1 to 3


def find_precedence(kinds: Ints, lives: Ints, columns: Ints, unread: Flags) -> Precedence:
    """Return the rows that count within lives.

    The arguments are the type, the life (ascending) and the column of each row, and whether a query-back of
    the whole row does not read that column.

    In one life, row 0 adds to column 0, row 1 to column 1, and row 2 asks for column 0. So row 2 supersedes
    row 0:

    >>> kinds, columns = np.array([1, 1, 8]), np.array([0, 1, 0])
    >>> lives, unread = np.zeros(3, np.int64), np.zeros(3, np.bool_)
    >>> find_precedence(kinds, lives, columns, unread)
    Precedence(rows=array([1, 2]), places=array([1, 2]), superseded=array([0]), superseding=array([2]))
    """
    rows: RowNumbers = np.arange(len(kinds), dtype=np.int32)
    asks, is_delete = _asks(kinds), kinds == 4
    if not asks.any():
        return Precedence(rows, rows, _NO_ROWS, _NO_ROWS)

    # Only rows of one group supersede one another. If a life asks for the whole row, this reads all columns
    # but the unread ones, so their rows are group 0 of the life. So are rows of an unread column for which a
    # row asks by itself. Any other row is in the group of its column. A delete is in group 0, because it has
    # no column.
    life_starts = np.flatnonzero(begins(lives))
    life_asks_for_row = np.logical_or.reduceat(_asks_for_row(kinds), life_starts)
    first_group = lives.astype(np.int64) * (int(columns.max()) + 2)
    by_row = life_asks_for_row[lives]
    if (by_row & unread).any():
        by_row = by_row & (~unread | _is_queried(kinds, first_group + columns + 1))
    groups = _Groups(first_group + np.where(by_row | is_delete, 0, columns + 1))

    # A row is decided by a query-back if any row of its group asks. A delete of group 0 never is.
    first_asking = groups.first(asks)
    is_decided = ~is_delete & (first_asking != _NEVER)

    # The winner of a group is its first insert that asks, else its first update that asks. In group 0 only
    # types 5 and 6 can win, because 7 and 8 ask for less.
    first_insert = groups.first((kinds == 5) | (~by_row & (kinds == 7)))
    first_update = groups.first((kinds == 6) | (~by_row & (kinds == 8)))
    winner = np.where(first_insert != _NEVER, first_insert, first_update)
    superseded = np.flatnonzero(is_decided & (winner != rows))
    counts = np.flatnonzero(~is_decided | (winner == rows))
    superseding = winner[superseded]
    assert not len(superseding) or superseding.max() < len(rows)  # a group in which a row asks has a winner

    # The winner of group 0 leaves in the place of the life's first row, that of a column in the place of the
    # first row that asks. Any other row leaves in its own place.
    place_of_winner = np.where(by_row, groups.first(~is_delete), first_asking)
    places = np.where(is_decided[counts], place_of_winner[counts], counts)
    order = np.lexsort((places, lives[counts]))
    return Precedence(counts[order], places[order], superseded, superseding)


def _is_queried(kinds: Ints, groups: Ints) -> Flags:
    """Return whether a row of the group of each row asks for a column by itself."""
    queried: Flags = np.isin(groups, groups[(kinds == 7) | (kinds == 8)])
    return queried


class _Groups:
    """The groups of rows; finds the first row of each that has a property."""

    def __init__(self, group_of_row: Ints) -> None:
        self._order = np.argsort(group_of_row, kind="stable")
        self._edges = np.flatnonzero(begins(group_of_row[self._order]))
        self._sizes = np.diff(self._edges, append=len(group_of_row))

    def first(self, candidates: Flags) -> RowNumbers:
        """Return for each row the first candidate of its group; _NEVER without any."""
        numbers = np.where(candidates, np.arange(len(candidates)), _NEVER)
        first_of_group = np.minimum.reduceat(numbers[self._order], self._edges)
        first_for_row = np.empty(len(candidates), np.int64)
        first_for_row[self._order] = np.repeat(first_of_group, self._sizes)
        return first_for_row


def _counting_rows(
    batch: Batch, templates: Templates, content: Content, precedence: Precedence
) -> CountingRows:
    rows = precedence.rows
    ops = np.array([part.op for part in content.parts], np.int8)[content.codes[rows]]
    widths = _widths(batch, templates, rows)
    return CountingRows(rows, precedence.places, ops, widths, _fates(batch, content, rows, ops, widths))


def _widths(batch: Batch, templates: Templates, rows: RowNumbers) -> Ints:
    """Return how many columns each of these rows contains: of a current row all, of a delete none."""
    kinds = batch.kinds[rows]
    tables = [templates.named(name).table for name in batch.tables]
    table_widths = np.array([len(table.data) if table else 0 for table in tables], np.int32)
    row_widths = table_widths[batch.table_of[batch.objects[rows]]]
    widths = np.where(kinds == 4, 0, np.where(_asks_for_row(kinds), row_widths, 1))
    return widths.astype(np.int32)


def _fates(batch: Batch, content: Content, rows: RowNumbers, ops: Ints, widths: Ints) -> Ints:
    """Return the fates of these rows, which nothing superseded. A later reason overrides an earlier one."""
    asks = _asks(batch.kinds[rows])
    fates = np.full(len(rows), SENT, np.int8)
    fates[asks & (widths == 0) & (ops == _UPDATE)] = SAYS_NOTHING
    is_gone = batch.ended[batch.lives[rows]] | (content.answers.rows[batch.objects[rows]] < 0)
    fates[asks & is_gone] = NO_EFFECT
    is_silent = np.array([part.silence != "" for part in content.parts])
    fates[is_silent[content.codes[rows]]] = SAYS_NOTHING
    return fates


# --- rule 4


def _gather_runs(batch: Batch, counting: CountingRows, chosen: Flags) -> Runs:
    """Return the runs of the chosen rows: consecutive rows of one life and operation."""
    rows, ops = counting.rows[chosen], counting.ops[chosen]
    is_start = begins(batch.lives[rows], ops)
    starts = np.flatnonzero(is_start)
    ones = np.ones(len(starts), np.int64)
    return Runs(
        rows,
        run_of_row=np.cumsum(is_start, dtype=np.int32) - 1,
        starts=starts,
        lengths=np.diff(starts, append=len(rows)),
        places=counting.places[chosen][starts],
        ops=ops[starts],
        owners=batch.objects[rows[starts]],
        widths=counting.widths[chosen],
        part_numbers=ones,
        part_counts=ones,
    )


def _uncertain_objects(
    batch: Batch, templates: Templates, runs: Runs, columns: Ints, max_changes: int
) -> Flags:
    """Return the objects that go the plain way, because one of their runs cannot be an event here."""
    uncertain = _uncuttable(batch, runs, max_changes)
    uncertain[_repeating(runs, columns)] = True
    uncertain |= _without_frame(batch, templates, runs)
    doubtful = np.zeros(len(batch.keys), np.bool_)
    doubtful[runs.owners[uncertain]] = True
    return doubtful


def _uncuttable(batch: Batch, runs: Runs, max_changes: int) -> Flags:
    """Return the runs that may be too long and cannot be cut between rows.

    These are inserts, runs with a query-back, and runs in which a row would be cut.
    """
    may_be_too_long: Flags = np.bincount(runs.run_of_row, runs.widths, len(runs.starts)) * 2 > max_changes
    if not may_be_too_long.any():
        return may_be_too_long
    kinds, values = batch.kinds[runs.rows], batch.changes[runs.rows]
    is_cut = _cut_positions(runs, values, max_changes)[1]
    wrong = (runs.ops != _UPDATE)[runs.run_of_row] | (kinds > 3) | is_cut
    return may_be_too_long & (np.bincount(runs.run_of_row, wrong, len(runs.starts)) > 0)


def _repeating(runs: Runs, columns: Ints) -> RunNumbers:
    """Return the runs of inserts that name a column twice, whose values are those of one attribute."""
    several = (runs.ops == _INSERT) & (runs.lengths > 1)
    if not several.any():
        return np.empty(0, np.int64)
    at = np.flatnonzero(several[runs.run_of_row])
    width = int(columns.max()) + 1
    named = np.sort(runs.run_of_row[at].astype(np.int64) * width + columns[runs.rows[at]])
    twice: RunNumbers = named[1:][named[1:] == named[:-1]] // width
    return twice


def _without_frame(batch: Batch, templates: Templates, runs: Runs) -> Flags:
    """Return the runs for whose table and operation no frame of an event is known."""
    frames, frame_of_run = np.unique(
        batch.table_of[runs.owners] * len(OPERATIONS) + runs.ops, return_inverse=True
    )
    has_frame = [
        templates.frame(batch.tables[frame // len(OPERATIONS)], frame % len(OPERATIONS)) is not None
        for frame in frames.tolist()
    ]
    is_missing: Flags = ~np.array(has_frame, np.bool_)[frame_of_run]
    return is_missing


def _cut_runs(batch: Batch, runs: Runs, max_changes: int) -> Runs:
    """Return the runs, those of more values than that in parts."""
    if not (runs.lengths * 2 > max_changes).any():  # a row removes and adds one value each at most
        return runs
    part, _ = _cut_positions(runs, batch.changes[runs.rows], max_changes)
    is_start = begins(runs.run_of_row, part)
    starts = np.flatnonzero(is_start)
    run = runs.run_of_row[starts]  # that had each part
    return runs._replace(
        run_of_row=np.cumsum(is_start, dtype=np.int32) - 1,
        starts=starts,
        lengths=np.diff(starts, append=len(runs.rows)),
        places=runs.places[run],
        ops=runs.ops[run],
        owners=runs.owners[run],
        part_numbers=part[starts] + 1,
        part_counts=np.bincount(run, minlength=len(runs.starts))[run],
    )


def _cut_positions(runs: Runs, values: Ints, max_changes: int) -> tuple[Ints, Flags]:
    """Return the part of its run in which each row begins, from 0. Return also whether the row reaches into
    the next part or has no values. The rows remove and add so many values each.
    """
    ends = np.cumsum(values, dtype=np.int32)
    ends -= (ends - values)[runs.starts][runs.run_of_row]
    part = (ends - values) // max_changes
    return part, (values == 0) | ((ends - 1) // max_changes > part)


def _rows_of_events(batch: Batch, runs: Runs, precedence: Precedence) -> RowsOfEvents:
    events = runs.event_of_run
    event_of_row = np.full(len(batch.ids), -1, np.int32)
    event_of_row[runs.rows] = events[runs.run_of_row]
    event_of_row[precedence.superseded] = event_of_row[precedence.superseding]
    rows = np.flatnonzero(event_of_row >= 0)
    event, ids = event_of_row[rows], batch.ids[rows]
    if (event[1:] < event[:-1]).any() or (ids[1:] < ids[:-1])[event[1:] == event[:-1]].any():
        order = np.lexsort((ids, event))
        rows, event = rows[order], event[order]
    sizes = np.bincount(event, minlength=int(events[-1]) + 1 if len(events) else 0)
    return RowsOfEvents(rows, np.cumsum(sizes) - sizes, sizes)
