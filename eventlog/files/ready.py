"""Waiting for streams, however many files a process has open: `select` takes no number above 1023."""

from __future__ import annotations

import math
import select
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

_LONGEST: Final = (1 << 31) - 1  # milliseconds


class Selectable(Protocol):
    """A file, a pipe or a socket."""

    def fileno(self) -> int: ...


S = TypeVar("S", bound=Selectable)


def readable(streams: Sequence[S], seconds: float) -> list[S]:
    """Return the streams that a read finds ready, after so many seconds at most."""
    poll = select.poll()
    places = {stream.fileno(): stream for stream in streams}
    for number in places:
        poll.register(number, select.POLLIN)
    return [places[number] for number, _ in poll.poll(_milliseconds(seconds))]


def ready(
    reading: Sequence[Selectable | int], writing: Sequence[Selectable | int] = (), seconds: float = 0.0
) -> tuple[bool, bool]:
    """Return whether a read and whether a write would take no time, after so many seconds at most."""
    poll = select.poll()
    for stream in reading:
        poll.register(stream, select.POLLIN)
    for stream in writing:
        poll.register(stream, select.POLLOUT)
    numbers = {number for number, _ in poll.poll(_milliseconds(seconds))}
    can_read, can_write = (
        any((each if isinstance(each, int) else each.fileno()) in numbers for each in streams)
        for streams in (reading, writing)
    )
    return can_read, can_write


def _milliseconds(seconds: float) -> int:
    return min(math.ceil(1000 * seconds), _LONGEST)
