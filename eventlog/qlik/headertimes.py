"""Header timestamps in the forms that the setting header-time-format names; its default is ISO 8601."""

from __future__ import annotations

import datetime as dt
import re
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any, Final

from eventlog.core.errors import InvalidValue, shortened
from eventlog.core.settings import setting
from eventlog.qlik.numbering import iso_utc

ISO: Final = "iso"
_EPOCHS = {"epoch": 0, "epoch-millis": 3, "epoch-micros": 6}  # digits of a second that its unit has
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?", re.ASCII)
_START = dt.datetime(1970, 1, 1)


def header_time_setting() -> Any:
    """Return the setting, which change tables and messages share."""
    return setting(
        ISO,
        "the form of header timestamps: ISO 8601, or a number since 1970 in seconds, milli- or microseconds",
        choices=(ISO, *_EPOCHS),
    )


@lru_cache(maxsize=1000)
def read_header_time(text: str, form: str) -> str:
    """Return a time in UTC, as changes contain it. A time without a zone is UTC."""
    try:
        if form == ISO:
            return iso_utc(text)
        at, fraction = _since_epoch(text, _EPOCHS[form])
    except (ValueError, OverflowError):
        raise InvalidValue(shortened(text, 40), f"a timestamp as {form}") from None
    except InvalidValue:
        said = "a timestamp in ISO 8601 (header-time-format reads numbers since 1970)"
        raise InvalidValue(shortened(text, 40), said) from None
    digits = fraction.rstrip("0")
    return at.isoformat() + (f".{digits}" if digits else "") + "Z"


def _since_epoch(text: str, digits: int) -> tuple[dt.datetime, str]:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    seconds = Decimal(text).scaleb(-digits)
    whole = seconds.to_integral_value(ROUND_FLOOR)
    return _START + dt.timedelta(seconds=int(whole)), f"{seconds - whole:f}".partition(".")[2]
