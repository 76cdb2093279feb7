"""Numbers in sentences."""

from __future__ import annotations


def quantity(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 row`, `2 rows`. The default plural is the singular with an s."""
    return f"{number} {singular}" if number == 1 else f"{number} {plural or singular + 's'}"
