"""The original's parameters that have a counterpart: tag, display name, and how a value is carried over."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from eventlog.errors import InvalidValue

Setting = bool | int | str

_TRUE = frozenset(("1", "yes", "true"))
_FALSE = frozenset(("0", "no", "false"))
_TIME = re.compile(r"([01]?\d|2[0-3]):[0-5]\d:[0-5]\d", re.ASCII)


class Parameter(NamedTuple):
    tag: str
    display: tuple[str, ...]
    default: str
    read: Callable[[str], Setting]
    note: str = ""  # where ours differs


def _bool(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise InvalidValue(text, "1, yes, true, 0, no or false")
    return text.lower() in _TRUE


def _text(text: str) -> str:
    return text


def _integer(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        known = text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most
        if not known:
            raise InvalidValue(text[:60], f"a whole number from {least} to {most}")
        return int(text)

    return read


def _one_of(*legal: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        plain = " ".join(re.split(r"[-_\s]+", text.lower()))
        if plain not in legal:
            raise InvalidValue(text[:60], f"one of {', '.join(legal)}")
        return plain

    return read


def _names(text: str) -> str:
    return ",".join(part for part in re.split(r"[\s,;]+", text) if part)


def _times(text: str) -> str:
    times = [part for part in re.split(r"[\s,;]+", text) if part]
    wrong = next((time for time in times if not _TIME.fullmatch(time)), None)
    if wrong is not None or not times:
        raise InvalidValue((wrong or text)[:60], "a time of day (hh:mm:ss)")
    return ",".join(times)


def _comparator(text: str) -> str:
    """The original names a Java class."""
    name = text.rpartition(".")[2].lower()
    for word, ours in {
        "collat": "locale",
        "locale": "locale",
        "byte": "byte",
        "position": "position",
    }.items():
        if word in name:
            return ours
    raise InvalidValue(text[:60], "a comparator by position, byte or locale")


_SECONDS = _integer(1, 604_800)

PARAMETERS = (
    Parameter("log-table", ("Event Log Table Name",), "eventlog", _text),
    Parameter(
        "delete-from-log",
        ("Delete Processed Rows?",),
        "false",
        _bool,
        "rows with E and F are kept in both cases",
    ),
    Parameter("allow-loopback", ("Allow Loopback?", "Allow Loopback Publisher"), "false", _bool),
    Parameter("handle-future-events", ("Enable Future Event Processing?",), "false", _bool),
    Parameter(
        "polling-interval",
        ("Polling Interval",),
        "10",
        _SECONDS,
        "a full cycle is followed by the next at once",
    ),
    Parameter("time-of-day", ("Publication Time of Day",), "none", _times),
    Parameter(
        "post-poll-stmt",
        ("Post Polling Statements",),
        "none",
        _text,
        "refused if it changes log rows without ids",
    ),
    Parameter("batch-size", ("Batch Size",), "1", _integer(1, 100_000), "up to 100000 instead of 128"),
    Parameter("query-limit", ("Query Limit",), "10000", _integer(1, 2**31 - 1)),
    Parameter("pub-heartbeat-interval", ("Heartbeat Interval",), "0", _integer(0, 2**31)),
    Parameter("sync-schema", ("Synchronization Schema",), "what `track` installed", _text),
    Parameter("sync-tables", ("Synchronization Tables/Views",), "what `track` installed", _names),
    Parameter("enable-refs", ("Enable Referential Attribute Support?",), "true", _bool),
    Parameter("enable-meta-identifiers", ("Enable Meta-Identifier Support?",), "true", _bool),
    Parameter("time-syntax", ("Time Syntax",), "1", _integer(1, 3)),
    Parameter("connection-init", ("Connection Initialization Statements",), "none", _text),
    Parameter("column-position-comparator", ("Sort Column Names By",), "position", _comparator),
    Parameter(
        "transaction-isolation-level",
        ("Transaction Isolation Level",),
        "read committed",
        _one_of("read committed", "repeatable read", "serializable"),
        "for post-poll statements only; the pick-up is always one snapshot",
    ),
    Parameter("reconnect", ("Reconnect Interval",), "30", _SECONDS),
)
_BY_TAG = {parameter.tag: parameter for parameter in PARAMETERS}
_BY_DISPLAY = {name.rstrip("?").lower(): known for known in PARAMETERS for name in known.display}


def find(tag: str, display: str = "") -> Parameter | None:
    """The parameter of a tag (`-` and `_` alike), or else of a display name."""
    plain = re.sub(r"\s*\(.*\)", "", display).strip().rstrip("?: ").lower()
    return _BY_TAG.get(tag.lower().replace("_", "-")) or _BY_DISPLAY.get(plain)
