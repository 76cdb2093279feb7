"""Header timestamps in the forms that the setting header-time-format names; its default is ISO 8601."""

from __future__ import annotations

import datetime as dt
import re
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any

from eventlog.core.errors import InvalidValue, shortened
from eventlog.core.settings import setting
from eventlog.qlik.numbering import iso_utc

_EPOCHS = {"epoch": 0, "epoch-millis": 3, "epoch-micros": 6}  # digits of a second that its unit has
_LEGAL = "epoch, epoch-millis, epoch-micros, or a date and time in %Y %y %m %b %d %H %I %p %M %S %f %z"
# What strptime takes for each directive; %f has as many digits as the source wrote.
_DIRECTIVES = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "[0-9]{1,2}",
    "b": "[A-Za-z]{3}",
    "d": "[0-9]{1,2}",
    "H": "[0-9]{1,2}",
    "I": "[0-9]{1,2}",
    "p": "[AaPp][Mm]",
    "M": "[0-9]{1,2}",
    "S": "[0-9]{1,2}",
    "f": "[0-9]{1,12}",
    "z": "Z|[+-][0-9]{2}:?[0-9]{2}",
}
_PARTS = re.compile(r"[.,]?%f|%.?|[^%]", re.DOTALL)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?", re.ASCII)
_START = dt.datetime(1970, 1, 1)


def check_form(form: str) -> None:
    """Raise InvalidValue if a header-time-format is no form of times."""
    if form and form not in _EPOCHS:
        _pattern(form)


def header_time_setting() -> Any:
    """Return the setting, which change tables and messages share."""
    return setting(
        "",
        "the form of header timestamps that are not ISO 8601: epoch, epoch-millis, epoch-micros, or as in"
        " %d.%m.%Y %H:%M:%S.%f",
        metavar="FORM",
        check=check_form,
    )


@lru_cache(maxsize=1000)
def read_header_time(text: str, form: str) -> str:
    """Return a time in UTC, as changes contain it. A time without a zone is UTC."""
    try:
        if not form:
            return iso_utc(text)
        at, fraction = _since_epoch(text, _EPOCHS[form]) if form in _EPOCHS else _as_formed(text, form)
    except (ValueError, OverflowError, KeyError):
        raise InvalidValue(shortened(text, 40), f"a timestamp as {form}") from None
    except InvalidValue:
        named = form or "ISO 8601 (header-time-format names another form)"
        raise InvalidValue(shortened(text, 40), f"a timestamp in {named}") from None
    digits = fraction.rstrip("0")
    return at.isoformat() + (f".{digits}" if digits else "") + "Z"


def _since_epoch(text: str, digits: int) -> tuple[dt.datetime, str]:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    seconds = Decimal(text).scaleb(-digits)
    whole = seconds.to_integral_value(ROUND_FLOOR)
    return _START + dt.timedelta(seconds=int(whole)), f"{seconds - whole:f}".partition(".")[2]


def _as_formed(text: str, form: str) -> tuple[dt.datetime, str]:
    match = _pattern(form).fullmatch(text)
    if match is None:
        raise ValueError
    part = {name: value for name, value in match.groupdict().items() if value is not None}
    at = dt.datetime(
        int(part["Y"]) if "Y" in part else _year(int(part["y"])),
        int(part["m"]) if "m" in part else _MONTHS.index(part["b"].lower()) + 1,
        int(part["d"]),
        _hour(part),
        int(part.get("M", 0)),
        int(part.get("S", 0)),
    )
    return at - _offset(part.get("z", "Z")), part.get("f", "")


def _year(short: int) -> int:
    """Return the year of two digits as POSIX reads it."""
    return short + (2000 if short < 69 else 1900)


def _hour(part: dict[str, str]) -> int:
    if "I" not in part:
        return int(part.get("H", 0))
    hour = int(part["I"])
    if not 1 <= hour <= 12:
        raise ValueError
    return hour % 12 + (12 if part["p"].lower() == "pm" else 0)


def _offset(zone: str) -> dt.timedelta:
    if zone == "Z":
        return dt.timedelta()
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return dt.timedelta(minutes=-minutes if zone[0] == "-" else minutes)


@lru_cache(maxsize=100)
def _pattern(form: str) -> re.Pattern[str]:
    """Return what matches texts of a form; a fraction after its point may be missing."""
    parts = _PARTS.findall(form)
    names = [part[-1] for part in parts if "%" in part and part != "%%"]
    date = ("Y" in names) != ("y" in names) and ("m" in names) != ("b" in names) and "d" in names
    clock = ("I" in names) == ("p" in names) and not ("I" in names and "H" in names)
    if not date or not clock or len(set(names)) < len(names) or not set(names) <= _DIRECTIVES.keys():
        raise InvalidValue(shortened(form, 80), _LEGAL)
    return re.compile("".join(map(_piece, parts)), re.ASCII)


def _piece(part: str) -> str:
    if part == "%%" or "%" not in part:
        return re.escape(part[0])
    group = f"(?P<{part[-1]}>{_DIRECTIVES[part[-1]]})"
    return group if part[0] == "%" else f"(?:{re.escape(part[0])}{group})?"
