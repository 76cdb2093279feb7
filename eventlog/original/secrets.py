"""Values that may be secrets, which are written nowhere."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"pass(?:word|wd|phrase)|pwd|secret|token|credential|bearer|identified\s+by|(?:api|private)[-_. ]?key",
    re.IGNORECASE,
)


def looks_secret(text: str) -> bool:
    """Return whether a name or a value looks like a password or a token."""
    return _WORDS.search(text) is not None
