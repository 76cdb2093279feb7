"""A parameter is found by its tag, else by a display name: exports of some tools hold only the latter."""

from __future__ import annotations

import re

from eventlog.original.parameters import PARAMETERS, Parameter
from eventlog.original.unneeded import UNNEEDED, Unneeded

_UNIT = re.compile(r" ?\([^()]*\)")  # of a display name: (In Seconds)
_OTHER_TAGS = {"preserve-sql-whitespace": "preserve-sqlwhitespace"}  # the manual has both


def find(tag: str, display: str = "") -> Parameter | Unneeded | None:
    """Return the parameter of a tag (`-`, `_` and blanks alike), or else of a display name."""
    plain = "-".join(tag.lower().replace("_", " ").replace("-", " ").split())
    return _BY_TAG.get(_OTHER_TAGS.get(plain, plain)) or _BY_DISPLAY.get(_title(display))


def _title(display: str) -> str:
    return _UNIT.sub("", " ".join(display.split())).strip().rstrip("?: ").lower()


_KNOWN: tuple[Parameter | Unneeded, ...] = (*PARAMETERS, *UNNEEDED)
_BY_TAG = {known.tag: known for known in _KNOWN}
_BY_DISPLAY = {_title(name): known for known in _KNOWN for name in known.display}
