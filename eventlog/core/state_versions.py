"""The versions of what a run leaves for later ones: states, records and archives, but no tables of a log.

A newer version is refused. An older one is read, or its reader refuses it by name. The number is a field or
a head of the state, and the first thing that is read of it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from eventlog.core.errors import Misuse


class NewerState(Misuse):
    """{0} is {1} of version {2}, from a newer eventlog; this one knows {3}: use that version, or {4}"""


class NoVersion(Misuse):
    """{0} is not {1}, because it does not begin with its version: {2}"""


class StateForm(NamedTuple):
    """A kind of state: its name in messages and in heads, its version here, and what to do instead."""

    title: str
    name: str
    version: int
    remedy: str

    def check(self, place: object, version: object) -> None:
        """Raise NewerState or NoVersion unless this program can read a state of that version."""
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise NoVersion(place, self.title, self.remedy)
        if version > self.version:
            raise NewerState(place, self.title, version, self.version, self.remedy)

    @property
    def head(self) -> str:
        """Return the first line of such a state."""
        return f"eventlog {self.name} {self.version}"

    def check_head(self, place: object, line: str) -> None:
        """Raise NewerState or NoVersion unless this program can read a state with that first line."""
        match = re.fullmatch(rf"eventlog {self.name} ([0-9]{{1,9}})", line)
        self.check(place, int(match[1]) if match else None)


TRANSFER: Final = StateForm("a state file", "state", 1, "name another file")
APPLIED: Final = StateForm("a state", "applied", 1, "name another --source")
ANSWERS: Final = StateForm("a file of answers", "answers", 1, "name another file with --state")
FILES: Final = StateForm("a record of files", "files", 2, "name another folder")
ARCHIVE: Final = StateForm("a receiver's file", "received", 1, "name another file")
ROWS: Final = StateForm("a kept state", "rows", 1, "name another file")
BACKLOG: Final = StateForm("the output of a backlog", "backlog", 1, "name another folder")
