"""Events of many batches, put into the order in which they leave, by way of files on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.columnar.vectors import Ints, offsets
from eventlog.files.writing import temporary

_AT_ONCE = 20_000  # events that are put in order together, about,
_BYTES = 16 << 20  # or fewer, whose texts have so many bytes
_FACTS = 3 * 8  # bytes
Part = tuple[pa.Array, Ints]


class OrderedEvents(NamedTuple):
    """Events in the order of leaving."""

    texts: pa.Array
    objects: Ints


class _Run(NamedTuple):
    """Events of one batch: where they stand in the files."""

    first: int  # its number among all events
    size: int  # how many events
    at: int  # the byte on which the text of the first begins


class EventMerge:
    """Takes the events of batches, each in order, and gives all of them back in order."""

    def __init__(self) -> None:
        self._texts = temporary()
        self._facts = temporary()  # place, object and end of text, of each event
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
        self._runs.append(_Run(self._count, len(texts), self._bytes))
        self._count += len(texts)
        self._bytes += int(at[-1] - at[0])
        self._objects += int(objects.max()) + 1

    def in_order(self) -> Iterator[OrderedEvents]:
        """All events, some at a time."""
        self._texts.flush()
        self._facts.flush()
        ahead = [_Reader(self._texts, self._facts, run) for run in self._runs]
        events, room = (max(1, most // max(1, len(ahead))) for most in (_AT_ONCE, _BYTES))
        while ahead:
            last = min(run.place_after(events, room) for run in ahead)
            parts = [part for run in ahead if (part := run.until(last)) is not None]
            ahead = [run for run in ahead if not run.done]
            yield _merged(parts)


class _Reader:
    """The events of one batch, read from the files as they are wanted."""

    def __init__(self, texts: IO[bytes], facts: IO[bytes], run: _Run) -> None:
        self._texts = texts
        self._facts = facts
        self._left = run
        self._known = np.empty((0, 3), np.int64)

    @property
    def done(self) -> bool:
        """Whether all were given out."""
        return self._left.size == 0

    def place_after(self, count: int, room: int) -> int:
        """The place of the event that stands so many further on, or so many bytes, but for one; or of the
        last."""
        count = min(count, self._left.size)
        if len(self._known) < count:
            data = os.pread(self._facts.fileno(), count * _FACTS, self._left.first * _FACTS)
            self._known = np.frombuffer(data, np.int64).reshape(-1, 3)
        fitting = int(np.searchsorted(self._known[:count, 2], self._left.at + room, "right"))
        return int(self._known[max(1, fitting) - 1, 0])

    def until(self, place: int) -> Part | None:
        """The events up to a place, which was among those that were looked at."""
        count = int(np.searchsorted(self._known[:, 0], place, "right"))
        if not count:
            return None
        facts, self._known = self._known[:count], self._known[count:]
        first, size, at = self._left
        ends = facts[:, 2]
        data = os.pread(self._texts.fileno(), int(ends[-1]) - at, at)
        self._left = _Run(first + count, size - count, int(ends[-1]))
        offsets = np.concatenate([[at], ends]) - at
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), count, buffers), facts


def _merged(parts: list[Part]) -> OrderedEvents:
    """The events of some runs in order."""
    texts = pa.concat_arrays([texts for texts, _ in parts])
    facts = np.concatenate([facts for _, facts in parts])
    order = np.argsort(facts[:, 0], kind="stable")
    return OrderedEvents(texts.take(pa.array(order)), facts[order, 1])
