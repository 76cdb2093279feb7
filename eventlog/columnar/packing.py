"""Events put into documents: at most so many each, and never two of one object."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.vectors import Ints, spread
from eventlog.xds.documents import HEAD, TAIL


class Packed(NamedTuple):
    """The documents of a batch, each a line."""

    data: memoryview
    ends: Ints  # of each, the byte after its line
    sizes: Ints  # how many events each holds


def documents(texts: pa.Array, objects: Ints, most: int) -> Packed:
    """Return the documents of events in the order of leaving."""
    sizes = _sizes(objects, most)
    count = len(sizes)
    pieces = sizes + 2
    document, place = spread(pieces)
    before = np.cumsum(sizes) - sizes
    wanted = before[document] + place + 1  # after the head and the tail, which are texts 0 and 1
    wanted[place == 0] = 0
    wanted[place == pieces[document] - 1] = 1
    pool = pa.concat_arrays([pa.array([HEAD, f"{TAIL}\n"], pa.large_string()), texts.cast(pa.large_string())])
    found = pool.take(pa.array(wanted))
    if not count:
        return Packed(memoryview(b""), sizes, sizes)
    at = np.frombuffer(found.buffers()[1], np.int64)[: len(found) + 1]
    data = memoryview(found.buffers()[2])[int(at[0]) : int(at[-1])]
    return Packed(data, at[np.cumsum(pieces)] - at[0], sizes)


def _sizes(objects: Ints, most: int) -> Ints:
    """Return how many events each document has."""
    count = len(objects)
    if most == 1:
        return np.ones(count, np.int64)
    order = np.argsort(objects, kind="stable")
    earlier = np.full(count, -1)
    same = objects[order][1:] == objects[order][:-1]
    earlier[order[1:][same]] = order[:-1][same]
    latest = np.maximum.accumulate(earlier)  # of all events so far, the latest that one of them repeats
    sizes = []
    start = 0
    while start < count:
        end = min(start + most, int(np.searchsorted(latest, start)), count)
        sizes.append(end - start)
        start = end
    return np.array(sizes, np.int64)
