"""Numbers and times as people read them."""

from __future__ import annotations

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def count(number: float) -> str:
    """Return a number with its thousands apart: 19 330; of a fraction three digits are enough."""
    if number == int(number):
        return f"{int(number):,}".replace(",", " ")
    return count(round(number)) if abs(number) >= 100 else f"{number:.3g}"


def are(number: int, noun: str) -> str:
    """Return a number with its noun and verb: 1 row is, 2 rows are."""
    return f"{count(number)} {noun}" + (" is" if number == 1 else "s are")


def duration(seconds: float) -> str:
    """Return a time in its two greatest units: 4 min 42 s; below ten seconds with a fraction."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    remainder, words = round(seconds), list[str]()
    for size, unit in _UNITS:
        number, remainder = divmod(remainder, size)
        if number or words:
            words.append(f"{count(number)} {unit}" if number else "")
    return " ".join(filter(None, words[:2]))
