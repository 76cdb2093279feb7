"""What completes a pick-up that its limit cut: further rows of its objects, and the rest of their inserts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.sql.log.inserts import AHEAD, CLOSING, Bounds, Ends

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Outline(NamedTuple):
    """The rows of the log in their order, as far as they show where runs of inserts end."""

    ids: Ints
    kinds: Ints  # their event types, 0 for none
    objects: Ints  # a number for each object

    @property
    def size(self) -> int:
        """Return how many rows they are."""
        return len(self.ids)

    def some(self, which: Ints) -> Outline:
        """Return those at these positions."""
        return Outline(self.ids[which], self.kinds[which], self.objects[which])

    def renamed(self, names: Ints) -> Outline:
        """Return the same with other numbers of the objects: the one at the place of each."""
        return self._replace(objects=names[self.objects])


def hashes(names: Iterable[str]) -> Ints:
    """Return a 64-bit number for each name, the same number in all statements of this process."""
    return np.array(list(map(hash, names)), np.int64)


class Room(NamedTuple):
    """The bytes and rows that a pick-up may take in addition to its rows."""

    octets: int  # of further rows of its objects
    inserts: Set[int]  # event types whose rows make one event of an insert
    bounds: Bounds  # of what completes these


class Completed(NamedTuple):
    """The rows that complete a pick-up."""

    kept: Flags  # whether each of the rows is picked up
    more: list[int]  # the ids of further rows, ascending
    reach: int  # the record_id up to which no row that may go was left
    cut: bool = False  # whether the insert of the first row's object is longer than a pick-up may grow


class WholeInserts:
    """A completer of the pick-ups of one snapshot; `sizes` returns the bytes of rows by their ids."""

    def __init__(self, room: Room, ends: Ends, sizes: Callable[[Sequence[int]], list[int]]) -> None:
        self._room, self._ends, self._sizes = room, ends, sizes

    def complete(
        self, picked: Outline, near: Outline, further_names: Callable[[], Ints], further: Iterator[Outline]
    ) -> Completed:
        """Return what is picked up with these rows, and which of them are left out if that is too much.

        `near` are as many rows after them, `further` the later ones, in which an object has the number that
        `further_names` has at the position of its number here.
        """
        along = np.flatnonzero(np.isin(near.objects, picked.objects))
        along = along[: self._fitting(near.ids[along], self._room.octets)]
        together = _joined([picked, near.some(along)])
        torn = self._torn(together)
        if len(torn):
            names = further_names()
            picked = picked.renamed(names)
            ahead = self._look_ahead(picked, near.renamed(names), further)
            return self._whole(picked, ahead, along, names[torn])
        return Completed(np.ones(picked.size, np.bool_), near.ids[along].tolist(), int(picked.ids[-1]))

    def _torn(self, rows: Outline) -> Ints:
        """Return the objects whose last row belongs to an insert that may continue."""
        if not self._inserts(rows.kinds).any():
            return np.zeros(0, np.int64)
        order, first = _by_object(rows.objects, self._telling(rows.kinds))
        last = order[_lasts(first)]
        last = last[self._inserts(rows.kinds[last])]
        is_end = [number in self._ends for number in rows.ids[last].tolist()]
        return rows.objects[last[~np.array(is_end, np.bool_)]]

    def _whole(self, picked: Outline, ahead: Outline, along: Ints, torn: Ints) -> Completed:
        """Add the rest of torn inserts.

        The last objects are left out until the rest of the others fits. If that of the first does not fit,
        what fits of it is taken. Of the rows ahead those at `along` are taken.
        """
        of_torn = np.isin(ahead.objects, torn)
        of_torn[along] = False
        rest = self._until_closed(ahead, of_torn)
        ranks = _Ranks(picked.objects)
        in_turn = np.argsort(ranks.of(ahead.objects[rest]), kind="stable")
        rest = rest[in_turn]
        bounds = self._room.bounds
        fits = self._fitting(ahead.ids[rest[: bounds.rows]], bounds.octets)
        too_much = ranks.of(ahead.objects[rest[fits : fits + 1]]).tolist()
        stay = max(1, *too_much) if too_much else len(picked.objects)
        taken = np.concatenate([along, rest[:fits]])
        taken = taken[ranks.of(ahead.objects[taken]) < stay]
        picked_up = ranks.of(picked.objects) < stay
        reach = int(picked.ids[-1]) if picked_up.all() else int(picked.ids[np.argmin(picked_up)]) - 1
        return Completed(picked_up, sorted(ahead.ids[taken].tolist()), reach, too_much == [0])

    def _look_ahead(self, picked: Outline, near: Outline, further: Iterator[Outline]) -> Outline:
        """Return the rows after a pick-up, as many as are read.

        The ends of runs are kept, so that this happens once for many pick-ups; it does not stop where the
        runs of this one have ended.
        """
        outlines, rows_ahead = [near], 0
        while rows_ahead < AHEAD and (rows := next(further, None)) is not None:
            outlines.append(rows)
            rows_ahead += rows.size
        whole = _joined([picked, *outlines])
        sure = whole.size // 2 if rows_ahead >= AHEAD else whole.size
        self._ends.replace(whole.ids[self._run_ends(whole, sure)].tolist())
        return _joined(outlines)

    def _run_ends(self, rows: Outline, sure: int) -> Ints:
        """Return the places at which runs end; of the runs that nothing ends, those among so many
        first rows.
        """
        order, first = _by_object(rows.objects, self._telling(rows.kinds))
        insert = self._inserts(rows.kinds[order])
        before_closing = ~np.append(insert, True)[1:]
        return order[insert & np.where(_lasts(first), order < sure, before_closing)]

    def _until_closed(self, rows: Outline, chosen: Flags) -> Ints:
        """Return the places, among some, of rows of inserts before the first row that ends their object's
        run.
        """
        order, first = _by_object(rows.objects, self._telling(np.where(chosen, rows.kinds, 0)))
        closing = ~self._inserts(rows.kinds[order])
        closed = np.cumsum(closing)
        until_first: Ints = (closed - closing)[first]
        in_run: Flags = closed == until_first[np.cumsum(first) - 1]
        return order[in_run]

    def _inserts(self, kinds: Ints) -> Flags:
        return np.isin(kinds, list(self._room.inserts))

    def _telling(self, kinds: Ints) -> Ints:
        """Return the places of the rows that are of runs, or end them."""
        return np.flatnonzero(np.isin(kinds, [*self._room.inserts, *CLOSING]))

    def _fitting(self, ids: Ints, octets: int) -> int:
        """Return how many of the first of these rows have no more than so many bytes."""
        return bisect_right(list(accumulate(self._sizes(ids.tolist()))), octets)


class _Ranks:
    """The order in which objects appear first."""

    def __init__(self, objects: Ints) -> None:
        self._objects, first = np.unique(objects, return_index=True)
        self._ranks = np.argsort(np.argsort(first))

    def of(self, objects: Ints) -> Ints:
        """Return the rank of each of these objects, which are all among those."""
        ranks: Ints = self._ranks[np.searchsorted(self._objects, objects)]
        return ranks


def _by_object(objects: Ints, places: Ints) -> tuple[Ints, Flags]:
    """Return the places, those of an object together and in their order, and which is the first of its
    object.
    """
    order = places[np.argsort(objects[places], kind="stable")]
    return order, np.diff(objects[order], prepend=objects[order[:1]] - 1) != 0


def _lasts(first: Flags) -> Flags:
    """Return which are the last of their objects, if these are the first ones."""
    return np.append(first, True)[1:]


def _joined(parts: Sequence[Outline]) -> Outline:
    """Return all these rows, joined."""
    return Outline(*(np.concatenate(column) for column in zip(*parts, strict=True)))
