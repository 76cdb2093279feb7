"""change_seq: the order of all changes of a task, 35 digits that are text and never a number.

`YYYYMMDDHHmmSShh` and a change number of 19 digits ("Reading Change Tables", change_seq).
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

from eventlog.core.errors import EventlogError
from eventlog.core.values import Kind, read_moment

PATTERN = r"[0-9]{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[01][0-9]|2[0-3])(?:[0-5][0-9]){2}[0-9]{21}"
_SEQUENCE = re.compile(PATTERN)
_PARTS = (
    ("month", slice(4, 6), 1, 12),
    ("day", slice(6, 8), 1, 31),
    ("hour", slice(8, 10), 0, 23),
    ("minute", slice(10, 12), 0, 59),
    ("second", slice(12, 14), 0, 59),
)
TIME = 16  # the digits of the time part
LENGTH = 35
_LAST_NUMBER = 10**19 - 1
START = "0" * LENGTH


class InvalidSequence(EventlogError):
    """{0}"""


@lru_cache(maxsize=64)  # a writer asks some times for each change
def legal(text: str | None) -> bool:
    """Return whether a position is a change_seq."""
    return text is not None and _SEQUENCE.fullmatch(text) is not None


def check(text: str) -> str:
    """Return the change_seq, if each of its parts is in its range."""
    if _SEQUENCE.fullmatch(text):
        return text
    if len(text) != LENGTH or not (text.isascii() and text.isdigit()):
        raise InvalidSequence(f"change_seq {text[:60]!r} is not {LENGTH} digits")
    name, digits, low, high = next(p for p in _PARTS if not p[2] <= int(text[p[1]]) <= p[3])
    raise InvalidSequence(f"change_seq {text}: {name} {text[digits]} is not {low:02} to {high}")


@lru_cache(maxsize=1000)
def time_part(time: str) -> str:
    """Return the first 16 digits for a time in ISO 8601; its hundredths are cut, not rounded."""
    moment = read_moment(Kind.TIMESTAMP, time)
    return f"{moment.at:%Y%m%d%H%M%S}".zfill(14) + moment.fraction[1:3].ljust(2, "0")


def following(last: str, time: str) -> str:
    """Return the change_seq after `last` at a time; when the clock went back the last time stays."""
    number = int(last[TIME:]) + 1
    if number > _LAST_NUMBER:
        raise InvalidSequence(f"no change number of 19 digits follows {last}")
    return f"{max(last[:TIME], time)}{number:019}"


def moment(time: str) -> dt.datetime:
    """Return the moment of a time part; a day that its month lacks is one of the next month."""
    year, month, day = max(int(time[:4]), 1), int(time[4:6]), int(time[6:8])
    hour, minute, second = (int(time[at : at + 2]) for at in (8, 10, 12))
    return dt.datetime(year, month, 1, hour, minute, second) + dt.timedelta(days=day - 1)


def before(time: str, seconds: float) -> str:
    """Return the time part that is so many seconds before another, at the earliest in the year 1."""
    at = moment(time)
    at -= min(dt.timedelta(seconds=seconds), at - dt.datetime.min)
    return f"{at:%Y%m%d%H%M%S}".zfill(14) + time[14:TIME]


def seconds_between(first: str, last: str) -> float:
    """Return the seconds from the time of a change_seq to that of another."""
    seconds = (moment(last) - moment(first)).total_seconds()
    return seconds + (int(last[14:TIME]) - int(first[14:TIME])) / 100
