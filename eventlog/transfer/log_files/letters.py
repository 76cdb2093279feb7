"""Rows of log files whose letter is reserved: they take no part, and are counted together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventlog.core.entry import Letter
from eventlog.core.errors import Refused
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.fold import Rules

_NAME = "status"


class ReservedLetters:
    """A counter of rows whose letter is none that a log has, nor the one that is read."""

    def __init__(self, rules: Rules) -> None:
        self.letters = frozenset((*Letter, rules.status))  # that are not reserved
        self._rows = GroupedWarnings(
            "rows with a reserved letter take no part, {count} in all: {places}; set it to N to send them",
            fault=False,
        )

    def add(self, count: int, first_rows: Sequence[tuple[str, str]]) -> None:
        """Count rows; take the places and the letters of the first."""
        self._rows.merge({_NAME: (count, [f"{where} {letter[:20]!r}" for where, letter in first_rows])})

    def warnings(self) -> Iterator[Refused]:
        """Yield one sentence about all such rows, if there are any."""
        return self._rows.warnings()
