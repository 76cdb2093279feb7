"""When the next cycle is due: after the polling interval, or at the next time of day."""

from __future__ import annotations

import datetime as dt
import re

from eventlog.core.errors import InvalidValue

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d):([0-5]\d)")


def read_times(text: str) -> tuple[dt.time, ...]:
    """The times of day of a setting: hh:mm:ss, several with commas."""
    found = [_TIME.fullmatch(part.strip()) for part in text.split(",")]
    if None in found:
        raise InvalidValue(text, "hh:mm:ss, or several of them with commas")
    return tuple(sorted(dt.time.fromisoformat(match[0].zfill(8)) for match in found if match))


def seconds_until(times: tuple[dt.time, ...], now: dt.datetime) -> float:
    """The seconds from a local time to the next of these times of day, also where clocks change between."""
    days = (now.date(), now.date() + dt.timedelta(days=1))
    moments = (dt.datetime.combine(day, time).timestamp() for day in days for time in times)
    return min(moment for moment in moments if moment > now.timestamp()) - now.timestamp()
