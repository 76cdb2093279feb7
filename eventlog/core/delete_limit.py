"""The setting max-deletes: how many rows of one table may be deleted without an operator's consent."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, Self

from eventlog.core.errors import InvalidValue
from eventlog.core.settings import setting

AUTO: Final = "auto"
OF_A_POLL: Final = "20%"  # auto, where deletes are inferred from rows that are missing
UNLIMITED: Final = "100%"  # auto, where a source contains the deletes
ALWAYS_ALLOWED: Final = 100  # deletes, whatever the percentage, so that it never stops small tables
_TEXT: Final = re.compile(r"(\d{1,18})\s*(%?)", re.ASCII)


class DeleteLimit(NamedTuple):
    """A number of deletes, or a percentage of a table's rows."""

    number: int
    is_percentage: bool

    @classmethod
    def read(cls, text: str, auto: str = UNLIMITED) -> Self:
        """Return the limit of a text such as `500`, `20%` or `auto`; raise InvalidValue for another text."""
        match = _TEXT.fullmatch(auto if text.strip() == AUTO else text.strip())
        if match is None or (match[2] and int(match[1]) > 100):
            raise InvalidValue(text, "a whole number, or a percentage from 0% to 100%, or auto")
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


def max_deletes_setting() -> Any:
    """Return the setting for deletes without consent."""
    return setting(
        AUTO,
        "how many objects of a table a poll with compare, or a run of apply, may delete: a number or a"
        f" percentage (at least {ALWAYS_ALLOWED} objects). Auto is {OF_A_POLL} where a poll infers deletes,"
        f" and {UNLIMITED} (any) where a source has them",
        metavar="N|N%",
        check=DeleteLimit.read,
    )
