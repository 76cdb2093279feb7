"""Numbers and times in sentences."""

from __future__ import annotations

from datetime import datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def quantity(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 row`, `2 rows`. The default plural is the singular with an s."""
    return f"{number} {singular}" if number == 1 else f"{number} {plural or singular + 's'}"


def number(amount: float) -> str:
    """Return a number with its thousands apart: 19 330; of a fraction three digits are enough."""
    if amount == int(amount):
        return f"{int(amount):,}".replace(",", " ")
    return number(round(amount)) if abs(amount) >= 100 else f"{amount:.3g}"


def are(amount: int, noun: str) -> str:
    """Return a number with its noun and verb: 1 row is, 2 rows are."""
    return f"{number(amount)} {noun}" + (" is" if amount == 1 else "s are")


def roughly(seconds: float) -> str:
    """Return a time in its greatest unit: 2 min."""
    for size, unit in _UNITS[:-1]:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def size(octets: int) -> str:
    """Return a number of bytes in its greatest unit: 3.2 MB."""
    for power, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if octets >= power:
            return f"{octets / power:.3g} {unit}"
    return quantity(octets, "byte")


def clock_text(at: datetime | None, now: datetime) -> str:
    """Return a time in UTC to the second, without the day if that is today."""
    if at is None:
        return "an unknown time"
    return f"{at:%H:%M:%S} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float) -> str:
    """Return a time in its two greatest units: 4 min 42 s; below ten seconds with a fraction."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    remainder, words = round(seconds), list[str]()
    for size, unit in _UNITS:
        units, remainder = divmod(remainder, size)
        if units or words:
            words.append(f"{number(units)} {unit}" if units else "")
    return " ".join(filter(None, words[:2]))
