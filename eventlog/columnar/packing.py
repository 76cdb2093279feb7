"""Events put into documents: at most so many each, and never two of one object."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.vectors import Ints, spread
from eventlog.xds.skeleton import Skeletons


class Packed(NamedTuple):
    """The documents of a batch, each a line."""

    data: memoryview
    ends: Ints  # of each, the byte after its line
    sizes: Ints  # how many events each holds


def documents(
    texts: pa.Array, objects: Ints, max_events: int, around: tuple[str, str] = Skeletons.around
) -> Packed:
    """Return the documents of events in the order of leaving, each with these texts around it."""
    sizes = _sizes(objects, max_events)
    count = len(sizes)
    pieces = sizes + 2
    document, place = spread(pieces)
    before = np.cumsum(sizes) - sizes
    numbers = before[document] + place + 1  # after the head and the tail, which are texts 0 and 1
    numbers[place == 0] = 0
    numbers[place == pieces[document] - 1] = 1
    pool = pa.concat_arrays([pa.array(around, pa.large_string()), texts.cast(pa.large_string())])
    lines = pool.take(pa.array(numbers))
    if not count:
        return Packed(memoryview(b""), sizes, sizes)
    at = np.frombuffer(lines.buffers()[1], np.int64)[: len(lines) + 1]
    data = memoryview(lines.buffers()[2])[int(at[0]) : int(at[-1])]
    return Packed(data, at[np.cumsum(pieces)] - at[0], sizes)


def _sizes(objects: Ints, max_events: int) -> Ints:
    """Return how many events each document has."""
    count = len(objects)
    if max_events == 1:
        return np.ones(count, np.int64)
    order = np.argsort(objects, kind="stable")
    repeats = np.full(count, -1)
    same = objects[order][1:] == objects[order][:-1]
    repeats[order[1:][same]] = order[:-1][same]
    latest = np.maximum.accumulate(repeats)  # of all events so far, the latest that one of them repeats
    sizes = []
    start = 0
    while start < count:
        end = min(start + max_events, int(np.searchsorted(latest, start)), count)
        sizes.append(end - start)
        start = end
    return np.array(sizes, np.int64)
