"""The one door for TOML: settings, tables and rules."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from eventlog.core.errors import InvalidDocument

_PARTS = 100  # of a name: Python's reader takes time with their square, a minute for 50 000
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_PARTS}}}")


def load(text: str) -> dict[str, Any]:
    """Return the document; raise InvalidDocument with what is wrong."""
    if long_name := _LONG_NAME.search(text):
        line = text.count("\n", 0, long_name.start()) + 1
        raise InvalidDocument(f"a name has at most {_PARTS} parts (at line {line})")
    try:
        document = tomllib.loads(text)
        _need_64_bits(document)
    except (ValueError, RecursionError) as fault:  # also of thousands of digits or brackets
        hint = ": a text is in quotes" if str(fault).startswith("Invalid value") else ""
        raise InvalidDocument(f"{fault}{hint}") from None
    return document


def _need_64_bits(value: Any) -> None:
    """Raise an error for integers over 64 bits (TOML 1.0), which may have no decimal text at all."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("a whole number has at most 64 bits")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _need_64_bits(part)
