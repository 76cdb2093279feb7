"""Changes that the snapshot of a table may show already.

A target that replaces rows takes such a change again, so it goes out, marked `overlap`.
"""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.core.change import Change
from eventlog.gbase.records import seconds_of
from eventlog.gbase.snapshot import ServerMoment

_MARK = (("overlap", True),)


def marked(change: Change, shown: Mapping[int, ServerMoment]) -> Change:
    """Return a change, with the mark if the snapshot of its table may show it.

    `shown` has the moment when each table had been read, by its number.
    """
    number = change.fact("number")
    read = shown.get(number) if isinstance(number, int) else None
    if read is None or not _within(change, read):
        return change
    return change._replace(extra=change.extra + _MARK)


def _within(change: Change, read: ServerMoment) -> bool:
    """Return whether a change was committed before its table had been read."""
    commit = change.fact("commit")
    if not isinstance(commit, int) or commit <= read.sequence:
        return True
    return change.time is not None and seconds_of(change.time) <= read.seconds
