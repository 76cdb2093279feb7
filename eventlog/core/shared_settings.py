"""Settings that dataclasses of several rooms have: each has its type, its meaning and its default here."""

from __future__ import annotations

from typing import Any, Final

from eventlog.core.entry import read_event_time
from eventlog.core.errors import InvalidValue, WrongRow
from eventlog.core.settings import setting

MAX_RECORD: Final = 256 << 20
MAX_VALUE: Final = 64 << 20
MAX_OPEN: Final = 1 << 30
MAX_STORED: Final = 10 << 30
_MAX_INTEGER: Final = 2**31 - 1
_MAX_DISK: Final = 10**15


def insert_query_back_setting() -> Any:
    """Return the setting for values that are read back."""
    return setting("modify", "what event types 5 and 7 become", choices=("modify", "add"))


def max_record_setting() -> Any:
    """Return the setting for the size of a record, which bounds memory (decision 15)."""
    return setting(
        MAX_RECORD,
        "bytes of a record of the input (a row, a line, a message, an event); a longer one is refused",
        metavar="BYTES",
        within=(1, _MAX_INTEGER),
    )


def max_value_setting() -> Any:
    """Return the setting for the size of a value."""
    return setting(
        MAX_VALUE,
        "bytes of one value; a row with more is refused",
        metavar="BYTES",
        within=(1, _MAX_INTEGER),
    )


def max_open_setting() -> Any:
    """Return the setting for the memory of open transactions."""
    return setting(
        MAX_OPEN,
        "bytes that open transactions may take in memory together",
        metavar="BYTES",
        within=(0, _MAX_DISK),
    )


def open_bytes_setting() -> Any:
    """Return the setting for the disk of open transactions."""
    return setting(
        MAX_STORED, "bytes that open transactions may take on disk", metavar="BYTES", within=(1, _MAX_DISK)
    )


def trim_char_setting() -> Any:
    """Return the setting for the blanks at the end of char(n)."""
    return setting(True, "char(n) loses its padding")


def now_setting() -> Any:
    """Return the setting for the time of what has none."""
    return setting(
        None,
        "the clock: the time of written rows and messages, and of what is read without one",
        metavar="TIME",
        check=_check_time,
    )


def _check_time(text: str) -> None:
    try:
        read_event_time(text)
    except WrongRow:
        raise InvalidValue(text, "a time without a zone, as in 2025-03-23 10:57:19") from None
