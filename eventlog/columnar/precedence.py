"""The rows that count, and those they superseded within a life (rules 1 to 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventlog.columnar.vectors import Flags, Ints, begins

_NEVER = np.iinfo(np.int64).max


class Precedence(NamedTuple):
    """The rows that nothing superseded, by life and position; whether they have content is not decided."""

    rows: Ints
    first: Ints  # the row whose position it takes
    swallowed: Ints  # rows that are superseded
    by: Ints  # the row that superseded each


def find_precedence(kinds: Ints, lives: Ints, columns: Ints, unread: Flags) -> Precedence:
    """Return what remains of lives.

    Given are the life of each row, ascending, its column, independent of spelling, and whether a query-back
    of the row does not read that column.
    """
    count = len(kinds)
    every = np.arange(count)
    asking = kinds > 4
    if not asking.any():
        none = np.empty(0, np.int64)
        return Precedence(every, every, none, none)
    starts = np.flatnonzero(begins(lives))
    whole = np.logical_or.reduceat((kinds == 5) | (kinds == 6), starts)[lives] & ~unread
    width = int(columns.max()) + 2
    group = lives * width + np.where(whole | (kinds == 4), 0, columns + 1)
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(begins(group[order]))
    sizes = np.diff(edges, append=count)

    def first(found: Flags) -> Ints:
        """Return the first such row of each row's group."""
        earliest = np.minimum.reduceat(np.where(found, every, _NEVER)[order], edges)
        back = np.empty(count, np.int64)
        back[order] = np.repeat(earliest, sizes)
        return back

    spoken_for = (kinds != 4) & (first(asking) != _NEVER)
    insert = first((kinds == 5) | (~whole & (kinds == 7)))
    update = first((kinds == 6) | (~whole & (kinds == 8)))
    winner = np.where(insert != _NEVER, insert, update)
    place = np.where(whole, first(kinds != 4), first(asking))
    swallowed = np.flatnonzero(spoken_for & (winner != every))
    left = np.flatnonzero(~spoken_for | (winner == every))
    at = np.where(spoken_for[left], place[left], left)
    sort = np.lexsort((at, lives[left]))
    return Precedence(left[sort], at[sort], swallowed, winner[swallowed])
