"""Patterns of names: the regular expressions of include-table-filter and exclude-table-filter."""

from __future__ import annotations

import re
import warnings
from typing import Final

from eventlog.core.errors import EventlogError

LONGEST: Final = 1000  # characters of a pattern
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)  # as Java writes text that means itself


class InvalidPattern(EventlogError):
    """{0!r} is not a regular expression: {1}"""


class Pattern:
    """A regular expression that matches whole names; `\\Q…\\E` quotes text as in Java."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise InvalidPattern(_short(text), f"it is longer than {LONGEST} characters")
        try:
            with warnings.catch_warnings(action="error"):  # of && in a set, which Java reads in another way
                self._expression = re.compile(_QUOTED.sub(_escape, text), re.ASCII)
        except (re.error, FutureWarning) as fault:
            raise InvalidPattern(_short(text), str(fault)) from fault

    def matches(self, name: str) -> bool:
        """Return whether the pattern matches all of a name."""
        return self._expression.fullmatch(name) is not None


def _escape(quoted: re.Match[str]) -> str:
    return re.escape(quoted[1])


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
