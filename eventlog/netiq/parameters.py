"""The original's parameters: how the value of each becomes a setting, or why it becomes none.

A parameter is found by its tag, else by a display name: exports of some tools hold only the latter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from eventlog.core.errors import InvalidValue
from eventlog.opening.config import names

Setting = bool | int | str

_TRUE = frozenset(("1", "yes", "true"))
_FALSE = frozenset(("0", "no", "false"))
_TIME = re.compile(r"([01]?\d|2[0-3]):[0-5]\d:[0-5]\d", re.ASCII)
_REMARK = re.compile(r"\([^()]*\)")  # 1 (yes)
_MAX_INTEGER: Final = 2**31 - 1

_UNIT = re.compile(r" ?\([^()]*\)")  # of a display name: (In Seconds)
_OTHER_TAGS = {"preserve-sql-whitespace": "preserve-sqlwhitespace"}  # the manual has both


class Parameter(NamedTuple):
    """A parameter, and the setting that it decides."""

    tag: str
    display: tuple[str, ...]
    default: str  # the original's, where an export leaves the parameter out
    read: Callable[[str], Setting | None]  # None: it means nothing; InvalidValue: it has no counterpart
    note: str = ""  # where ours differs
    ours: str = ""  # the setting, where it has another name


class Unneeded(NamedTuple):
    """A parameter that nothing depends on here."""

    tag: str
    display: tuple[str, ...]
    reason: str
    shown: bool = True  # its value may be shown


def _bool(text: str) -> bool:
    plain = _plain(text)
    if plain not in _TRUE | _FALSE:
        raise InvalidValue(text[:60], "1, yes, true, 0, no or false")
    return plain in _TRUE


def _integer(minimum: int, maximum: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        plain = _plain(text)
        is_valid = (
            plain.isascii() and plain.isdigit() and len(plain) < 12 and minimum <= int(plain) <= maximum
        )
        if not is_valid:
            raise InvalidValue(text[:60], f"a whole number from {minimum} to {maximum}")
        return int(plain)

    return read


def _limit(text: str) -> int:
    return _integer(0, _MAX_INTEGER)(text) or _MAX_INTEGER


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
_MODES: dict[str, str | None] = {"1": "trigger", "2": "compare"}
_STARTS: dict[str, str | None] = {"1": "resync", "2": "future", "3": "all"}
_SCOPES: dict[str, str | None] = {"schema": "schema", "list": "list", "empty": "empty"}

PARAMETERS = (
    Parameter(
        "log-table",
        ("Event Log Table Name",),
        "none",
        str,
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
        str,
        "runs as it is, in a transaction of its own; a warning if it names the log",
    ),
    Parameter("batch-size", ("Batch Size",), "1", _integer(1, 100_000), "up to 100000 instead of 128"),
    Parameter("query-limit", ("Query Limit",), "10000", _limit, f"0, no limit, becomes {_MAX_INTEGER}"),
    Parameter("pub-heartbeat-interval", ("Heartbeat Interval",), "0", _integer(0, 2**31)),
    Parameter(
        "sync-filter",
        ("Synchronization Filter",),
        "none",
        _one_of(_SCOPES),
        "selects sync-schema or sync-tables; empty: nothing was published",
        "disable",
    ),
    Parameter("sync-schema", ("Schema Name", "Synchronization Schema"), "none", str),
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
        "separated by blanks, commas or `;`. sync-children adds their child tables, as the original did",
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
    Parameter("connection-init", ("Connection Initialization Statements",), "none", str),
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

_SUBSCRIBER = "of the Subscriber channel, which is not ours"
_JDBC = "of JDBC, which is not used"
_LOCKS = (
    "no table is locked: rows are read in one snapshot, and finished by their ids by the publisher that leads"
)
_BUILT_IN = "what differs between databases is part of eventlog"

UNNEEDED = (
    Unneeded(
        "jdbc-class", ("Third-Party JDBC Driver Class Name", "JDBC Driver Class Name"), "url names the driver"
    ),
    Unneeded(
        "connection-properties",
        ("Connection Properties",),
        "a property goes into the query of url, under the name that the Python driver gives it",
        shown=False,
    ),
    Unneeded("jdbc-driver-descriptor", ("JDBC Driver Descriptor Filename",), _BUILT_IN),
    Unneeded("database-descriptor", ("Database Descriptor Filename",), _BUILT_IN),
    Unneeded(
        "current-timestamp-stmt",
        ("Current Timestamp Statement",),
        "the database's clock is read in UTC by a statement of ours; log-time names the zone of event_time",
    ),
    Unneeded(
        "time-translator-class",
        ("Time Translator Class", "Timestamp Translator Class"),
        "times are read by their types; only DB2 and Sybase, from which eventlog does not publish, needed it",
    ),
    Unneeded(
        "column-position-comparator",
        ("Sort Column Names By",),
        "the catalogue of every supported database has the position of columns",
    ),
    Unneeded("enable-locking", ("Enable Statement-Level Locking?", "Enable Table Locking?"), _LOCKS),
    Unneeded("disable-locking", ("Disable Statement-Level Locking?",), _LOCKS),
    Unneeded("lock-generator-class", ("Lock Statement Generator Class",), _LOCKS),
    Unneeded(
        "use-single-connection",
        ("Use Minimal Number of Connections?",),
        "one connection leads, and others are opened while they are needed",
    ),
    Unneeded(
        "use-manual-transactions",
        ("Use Manual Transactions?",),
        "every write is in a transaction; a table without transactions (MyISAM) cannot hold the log",
    ),
    Unneeded(
        "transaction-isolation-level",
        ("Transaction Isolation Level",),
        "a pick-up is one snapshot, and a post-poll statement has a transaction of its own",
    ),
    Unneeded(
        "force-username-case", ("Force Username Case",), "write the user of url as it is in the database"
    ),
    Unneeded("reuse-statements", ("Reuse Statements?",), _JDBC),
    Unneeded("handle-stmt-results", ("Number of Returned Result Sets",), _JDBC),
    Unneeded("function-return-method", ("Function Return Method",), _JDBC),
    Unneeded(
        "supports-schemas-in-metadata-retrieval",
        ("Supports Schemas in Metadata Retrieval?",),
        "the catalogue of each database is read by statements of ours",
    ),
    Unneeded(
        "left-outer-join-operator",
        ("Left Outer Join Operator",),
        "of the original's triggerless publication; states are compared by statements of ours",
    ),
    Unneeded(
        "preserve-sqlwhitespace",
        ("Preserve white space in SQL statements?",),
        "statements run unchanged, and names are quoted as in the catalogue",
    ),
    Unneeded(
        "state-dir",
        ("State Directory",),
        "what must be remembered is in the database of the log, which may be another one (source-url)",
    ),
    Unneeded("key-gen-method", ("Generation/Retrieval Method",), _SUBSCRIBER),
    Unneeded("key-gen-timing", ("Retrieval Timing",), _SUBSCRIBER),
    Unneeded("key-gen", ("Method and Timing",), _SUBSCRIBER),
    Unneeded("check-update-count", ("Check Update Counts?",), _SUBSCRIBER),
    Unneeded("add-default-values-on-view-insert", ("Add Default Values on Insert?",), _SUBSCRIBER),
)


def find(tag: str, display: str = "") -> Parameter | Unneeded | None:
    """Return the parameter of a tag (`-`, `_` and blanks alike), or else of a display name."""
    plain = "-".join(tag.lower().replace("_", " ").replace("-", " ").split())
    return _BY_TAG.get(_OTHER_TAGS.get(plain, plain)) or _BY_DISPLAY.get(_title(display))


def _title(display: str) -> str:
    return _UNIT.sub("", " ".join(display.split())).strip().rstrip("?: ").lower()


_ALL: tuple[Parameter | Unneeded, ...] = (*PARAMETERS, *UNNEEDED)
_BY_TAG = {parameter.tag: parameter for parameter in _ALL}
_BY_DISPLAY = {_title(name): parameter for parameter in _ALL for name in parameter.display}
