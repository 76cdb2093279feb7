"""Numbers in sentences."""

from __future__ import annotations


def quantity(number: int, one: str, more: str | None = None) -> str:
    """Return a number before the words for one, or for any other number: `1 row is`, `2 rows are`. Where the
    words for more are not given they are those for one with an s: `1 row`, `0 rows`.
    """
    return f"{number} {one}" if number == 1 else f"{number} {more or one + 's'}"
