"""Rule 4 in a life that is longer than memory: where its events begin and are cut, by numbers alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.columnar.templates import OPS
from eventlog.columnar.vectors import Flags, Ints, begins, number
from eventlog.core.change import Op

Small = npt.NDArray[np.int32]  # there may be many of them
_INSERT = OPS.index(Op.INSERT)


class Elements(NamedTuple):
    """The elements of events, in order."""

    rows: Small
    ops: npt.NDArray[np.int8]
    values: Small  # how many each removes and adds
    sure: Flags  # it can be filled in
    runs: Small  # of each


class Cuts(NamedTuple):
    """The events of a life: runs, cut after so many values. An element has a slot in each of its events."""

    slots: Small  # the element of each
    events: Small  # of each slot
    begins: Ints  # the first slot of each event, and the slot after the last
    runs: Small  # of each event
    parts: Small  # of its run, from 0
    starts: Small  # of each element: how many values of its run precede it


def elements(rows: Small, ops: Any, values: Small, sure: Flags, columns: Small) -> Elements:
    """Return the elements of events, given in the order of their positions.

    Inserts that contain a column twice are ordered by column.
    """
    runs = np.cumsum(begins(ops), dtype=np.int32)
    runs -= 1
    inserts = np.flatnonzero(ops == _INSERT)
    if len(inserts):
        groups, first = number(runs[inserts] * (np.int64(columns.max()) + 1) + columns[inserts])
        repeated = np.zeros(int(runs[-1]) + 1, np.bool_)
        repeated[runs[inserts][first[groups] < np.arange(len(inserts))]] = True
        some = np.flatnonzero(repeated[runs[inserts]])
        at = inserts[some]
        order = np.arange(len(rows))
        order[at] = at[np.lexsort((first[groups[some]], runs[at]))]
        rows, values, sure = rows[order], values[order], sure.copy()
        sure[at] = False
    return Elements(rows, ops, values, sure, runs)


def cut(found: Elements, most: int) -> Cuts:
    """Return the events of these elements, each of at most so many values."""
    values, runs = found.values, found.runs
    starts = np.cumsum(values, dtype=np.int32)
    starts -= values
    starts -= starts[np.flatnonzero(begins(runs))][runs]
    part = np.maximum(starts - (values == 0), 0) // most  # one without values begins no part
    times = np.maximum(starts + values - 1, 0) // most - part + 1
    slots, parts, of = np.arange(len(values), dtype=np.int32), part, runs
    if (times > 1).any():
        slots = np.repeat(slots, times)
        parts, of = part[slots], runs[slots]
        parts += np.arange(len(slots), dtype=np.int32) - (np.cumsum(times, dtype=np.int32) - times)[slots]
    del part, times
    starting = begins(of, parts)
    at = np.flatnonzero(starting)
    events = np.cumsum(starting, dtype=np.int32)
    events -= 1
    return Cuts(slots, events, np.append(at, len(slots)), of[at], parts[at], starts)
