"""What may be a secret: it is written nowhere, whatever it is called and wherever it stands."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"pass(?:word|wd|phrase)|pwd|secret|token|credential|bearer|identified\s+by|(?:api|private)[-_. ]?key",
    re.IGNORECASE,
)


def looks_secret(text: str) -> bool:
    """Whether a name or a value speaks of a password, a token or their like."""
    return _WORDS.search(text) is not None
