"""The setting max-deletes: how many rows of one table may be deleted without an operator's consent."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from eventlog.core.errors import InvalidValue

UNLIMITED: Final = "100%"
ALWAYS_ALLOWED: Final = 100  # deletes, whatever the percentage, so that it never stops small tables
_TEXT: Final = re.compile(r"(\d{1,18})\s*(%?)", re.ASCII)


class DeleteLimit(NamedTuple):
    """A number of deletes, or a percentage of a table's rows."""

    number: int
    is_percentage: bool

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the limit of a text such as `500` or `20%`; raise InvalidValue for another text."""
        match = _TEXT.fullmatch(text.strip())
        if match is None or (match[2] and int(match[1]) > 100):
            raise InvalidValue(text, "a whole number, or a percentage from 0% to 100%")
        return cls(int(match[1]), bool(match[2]))

    def __str__(self) -> str:
        return f"{self.number}{'%' if self.is_percentage else ''}"

    @property
    def is_unlimited(self) -> bool:
        """Return whether no number of deletes is too many."""
        return str(self) == UNLIMITED

    def max_deletes(self, rows: int) -> int:
        """Return how many deletes are allowed in a table with so many rows."""
        return max(ALWAYS_ALLOWED, rows * self.number // 100) if self.is_percentage else self.number
