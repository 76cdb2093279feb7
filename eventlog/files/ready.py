"""Waiting for streams, however many files a process has open: `select` takes no number above 1023."""

from __future__ import annotations

import math
import select
from collections.abc import Sequence
from typing import Final, Protocol

_LONGEST: Final = (1 << 31) - 1  # milliseconds


class Selectable(Protocol):
    """A file, a pipe or a socket."""

    def fileno(self) -> int: ...


def ready(
    reading: Sequence[Selectable | int], writing: Sequence[Selectable | int] = (), seconds: float = 0.0
) -> tuple[bool, bool]:
    """Return whether a read and whether a write would take no time, after so many seconds at most."""
    poll = select.poll()
    for stream in reading:
        poll.register(stream, select.POLLIN)
    for stream in writing:
        poll.register(stream, select.POLLOUT)
    wait = min(math.ceil(1000 * seconds), _LONGEST)
    numbers = {number for number, _ in poll.poll(wait)}
    can_read, can_write = (
        any((each if isinstance(each, int) else each.fileno()) in numbers for each in streams)
        for streams in (reading, writing)
    )
    return can_read, can_write
