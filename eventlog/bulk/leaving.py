"""Events of many batches, put into the order in which they leave, by way of files on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.vectors import Ints, offsets

_AT_ONCE = 100_000  # events that are put in order together, about


class Told(NamedTuple):
    """Events in the order of leaving."""

    texts: pa.Array
    objects: Ints


class _Run(NamedTuple):
    """The events of one batch: where they stand in the files."""

    first: int  # its number among all events
    size: int  # how many events


class Leaving:
    """Takes the events of batches, each in order, and gives all of them back in order."""

    def __init__(self) -> None:
        self._texts = tempfile.TemporaryFile()  # noqa: SIM115 - they live as long as this does
        self._facts = tempfile.TemporaryFile()  # noqa: SIM115 - place, object and end of text, of each event
        self._runs: list[_Run] = []
        self._count = self._bytes = self._objects = 0

    def close(self) -> None:
        """Forget them."""
        self._texts.close()
        self._facts.close()

    def add(self, texts: pa.Array, places: Ints, objects: Ints) -> None:
        """Take the events of one batch; an object of one batch is none of another."""
        if not len(texts):
            return
        at = offsets(texts).astype(np.int64)
        self._texts.write(memoryview(texts.buffers()[2])[int(at[0]) : int(at[-1])])
        facts = np.stack([places, objects + self._objects, at[1:] - at[0] + self._bytes], axis=1)
        self._facts.write(np.ascontiguousarray(facts).data)
        self._runs.append(_Run(self._count, len(texts)))
        self._count += len(texts)
        self._bytes += int(at[-1] - at[0])
        self._objects += int(objects.max()) + 1

    def in_order(self) -> Iterator[Told]:
        """All events, some at a time."""
        if not self._count:
            return
        self._texts.flush()
        self._facts.flush()
        texts = np.memmap(self._texts, np.uint8, "r", shape=(self._bytes,))
        facts = np.memmap(self._facts, np.int64, "r", shape=(self._count, 3))
        begun = [0] * len(self._runs)
        step = max(1, _AT_ONCE // len(self._runs))
        while left := [n for n, run in enumerate(self._runs) if begun[n] < run.size]:
            ahead = (self._runs[n].first + min(begun[n] + step, self._runs[n].size) - 1 for n in left)
            last = min(int(facts[at, 0]) for at in ahead)
            parts = []
            for n in left:
                run = self._runs[n]
                places = facts[run.first + begun[n] : run.first + run.size, 0]
                more = int(np.searchsorted(places, last, "right"))
                if more:
                    parts.append(_part(texts, facts, run.first + begun[n], more))
                    begun[n] += more
            yield _merged(parts)


def _part(texts: np.memmap, facts: np.memmap, first: int, count: int) -> tuple[pa.Array, Ints]:
    """Some events that stand one behind the other, and their facts."""
    found = np.array(facts[first : first + count])
    begin = int(facts[first - 1, 2]) if first else 0
    ends = found[:, 2] - begin
    at = np.concatenate([[0], ends])
    data = np.array(texts[begin : begin + int(ends[-1])])
    buffers = [None, pa.py_buffer(at), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers), found


def _merged(parts: list[tuple[pa.Array, Ints]]) -> Told:
    """The events of some runs in order."""
    texts = pa.concat_arrays([texts for texts, _ in parts])
    facts = np.concatenate([facts for _, facts in parts])
    order = np.argsort(facts[:, 0], kind="stable")
    return Told(texts.take(pa.array(order)), facts[order, 1])
