"""Bad records on standard error: the first of each kind in full, then how many more there were."""

from __future__ import annotations

import re
from collections import Counter

from eventlog.cli.terminal import print_line
from eventlog.core.errors import Refused

IN_FULL = 3
_KINDS = 1000  # what goes beyond is one kind
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class RefusalPrinter:
    """A printer of bad records; `close` reports those that were only counted."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._last: dict[str, Refused] = {}

    def print(self, refused: Refused) -> None:
        """A bad record; reasons are of one kind if they differ in numbers and quoted words alone."""
        kind = _PARTICULAR.sub("…", refused.reason)
        if kind not in self._counts and len(self._counts) >= _KINDS:
            kind = "other reasons"
        self._counts[kind] += 1
        if self._counts[kind] <= IN_FULL:
            print_line(f"{refused.where}: {refused.reason}")
        else:
            self._last[kind] = refused

    def close(self) -> None:
        """Each kind once more, with its number."""
        for kind, last in self._last.items():
            more = self._counts[kind] - IN_FULL
            print_line(f"and {more} more, the last at {last.where}: {last.reason}")
