"""The original's parameters that become settings: tag, display names, and how a value is carried over."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from eventlog.core.errors import InvalidValue
from eventlog.publisher.config import names

Setting = bool | int | str

_TRUE = frozenset(("1", "yes", "true"))
_FALSE = frozenset(("0", "no", "false"))
_TIME = re.compile(r"([01]?\d|2[0-3]):[0-5]\d:[0-5]\d", re.ASCII)
_REMARK = re.compile(r"\([^()]*\)")  # 1 (yes)
_MOST: Final = 2**31 - 1


class Parameter(NamedTuple):
    """A parameter, and the setting that it decides."""

    tag: str
    display: tuple[str, ...]
    default: str  # the original's, where an export leaves the parameter out
    read: Callable[
        [str], Setting | None
    ]  # None: the value means nothing; InvalidValue: it has no counterpart
    note: str = ""  # where ours differs
    ours: str = ""  # the setting, where it has another name


def _bool(text: str) -> bool:
    plain = _plain(text)
    if plain not in _TRUE | _FALSE:
        raise InvalidValue(text[:60], "1, yes, true, 0, no or false")
    return plain in _TRUE


def _text(text: str) -> str:
    return text


def _integer(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        plain = _plain(text)
        known = plain.isascii() and plain.isdigit() and len(plain) < 12 and least <= int(plain) <= most
        if not known:
            raise InvalidValue(text[:60], f"a whole number from {least} to {most}")
        return int(plain)

    return read


def _limit(text: str) -> int:
    return _integer(0, _MOST)(text) or _MOST


def _one_of(legal: dict[str, str | None]) -> Callable[[str], str | None]:
    """Return our word for each word of the original."""

    def read(text: str) -> str | None:
        plain = " ".join(_plain(text).replace("-", " ").replace("_", " ").split())
        if plain not in legal:
            raise InvalidValue(text[:60], f"one of {', '.join(legal)}")
        return legal[plain]

    return read


def _pattern(text: str) -> str:
    try:
        return re.compile(text).pattern
    except re.error as fault:
        raise InvalidValue(text[:60], f"a regular expression of Python ({fault})") from fault


def _names(text: str) -> str | None:
    quoted = (f'"{name}"' if set(name) & set(" \t\r\n,;") else name for name in names(text))
    return ", ".join(quoted) or None


def _times(text: str) -> str:
    times = [part for part in re.split(r"[\s,;]+", _REMARK.sub(" ", text)) if part]
    wrong = next((time for time in times if not _TIME.fullmatch(time)), None)
    if wrong is not None or not times:
        raise InvalidValue((wrong or text)[:60], "a time of day (hh:mm:ss)")
    return ",".join(times)


def _plain(text: str) -> str:
    return _REMARK.sub("", text).strip().lower()


_SECONDS = _integer(1, 604_800)
_LEVELS: dict[str, str | None] = {
    "read committed": "read committed",
    "repeatable read": "repeatable read",
    "serializable": "serializable",
    "read uncommitted": "read committed",
    "none": "read committed",
    "unsupported": "read committed",
}
_MODES: dict[str, str | None] = {"1": "trigger", "2": "compare"}
_STARTS: dict[str, str | None] = {"1": "resync", "2": "future", "3": "all"}
_SCOPES: dict[str, str | None] = {"schema": "schema", "list": "list", "empty": "empty"}

PARAMETERS = (
    Parameter(
        "log-table",
        ("Event Log Table Name",),
        "none",
        _text,
        "sync-schema qualifies a name without schema, as in the original",
    ),
    Parameter(
        "delete-from-log",
        ("Delete Processed Rows?", "Delete From Log?"),
        "true",
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
        "runs as it is, in a transaction of its own; a warning if it names the log",
    ),
    Parameter("batch-size", ("Batch Size",), "1", _integer(1, 100_000), "up to 100000 instead of 128"),
    Parameter("query-limit", ("Query Limit",), "10000", _limit, f"0, no limit, becomes {_MOST}"),
    Parameter("pub-heartbeat-interval", ("Heartbeat Interval",), "0", _integer(0, 2**31)),
    Parameter(
        "sync-filter",
        ("Synchronization Filter",),
        "none",
        _one_of(_SCOPES),
        "selects sync-schema or sync-tables; empty: nothing was published",
        "disable",
    ),
    Parameter("sync-schema", ("Schema Name", "Synchronization Schema"), "none", _text),
    Parameter(
        "include-table-filter",
        ("Include Filter Expression", "Include Table Filter"),
        "none",
        _pattern,
        "with sync-schema; an expression of Python, so without `\\p{…}` and `&&`",
    ),
    Parameter(
        "exclude-table-filter",
        ("Exclude Filter Expression", "Exclude Table Filter"),
        "none",
        _pattern,
        "likewise",
    ),
    Parameter(
        "sync-tables",
        ("Table/View Names", "Synchronization Tables/Views"),
        "none",
        _names,
        "blanks, commas and `;` part them; sync-children takes their child tables along, as the original did",
    ),
    Parameter("enable-refs", ("Enable Referential Attribute Support?",), "true", _bool),
    Parameter(
        "minimal-metadata",
        ("Retrieve Minimal Metadata?",),
        "false",
        _bool,
        "where it was on, the original knew no foreign keys: enable-refs = false",
        "enable-refs",
    ),
    Parameter("enable-meta-identifiers", ("Enable Meta-Identifier Support?",), "true", _bool),
    Parameter("time-syntax", ("Time Syntax",), "1", _integer(1, 3)),
    Parameter("connection-init", ("Connection Initialization Statements",), "none", _text),
    Parameter("reconnect", ("Reconnect Interval",), "30", _SECONDS),
    Parameter("disable", ("Disable Publisher?",), "false", _bool, "`eventlog run` then ends at once"),
    Parameter(
        "publication-mode",
        ("Publication Mode",),
        "1",
        _one_of(_MODES),
        "1 is trigger; 2, triggerless, is compare: the publisher finds what changed by comparing states",
        "publication-mode",
    ),
    Parameter(
        "startup-option",
        ("Startup Option",),
        "none",
        _one_of(_STARTS),
        "with publication-mode 2 only; 1 is resync, 2 is future, 3 is all",
    ),
)
