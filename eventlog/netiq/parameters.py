"""The original's parameters: the setting that each becomes, or why it becomes none.

A parameter is found by its tag, else by a display name: exports of some tools hold only the latter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from eventlog.core.errors import InvalidValue
from eventlog.core.settings import declared, read_value
from eventlog.fold import Rules
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import names
from eventlog.opening.publisher_settings import (
    DaemonSettings,
    DatabaseSettings,
    PublisherSettings,
    SessionSettings,
    TablePublishing,
)
from eventlog.xds.xds_settings import XdsSettings

Setting = bool | int | str

_REMARK = re.compile(r"\([^()]*\)")  # 1 (yes)
_MAX_INTEGER: Final = 2**31 - 1
_UNIT = re.compile(r" ?\([^()]*\)")  # of a display name: (In Seconds)
_OTHER_TAGS = {"preserve-sql-whitespace": "preserve-sqlwhitespace"}  # the manual has both
_DECLARATIONS = (
    *(DatabaseSettings, TablePublishing, Rules, XdsSettings),
    *(PublisherSettings, ComparingSettings, DaemonSettings, SessionSettings),
)
_FIELDS = {field.name.replace("_", "-"): field for kind in _DECLARATIONS for field in declared(kind)}


def plain_word(text: str) -> str:
    """Return a word of the original without its remark."""
    return _REMARK.sub("", text).strip().lower()


def _words(**ours: str | None) -> Callable[[str], str | None]:
    """Return what gives our word for each word of the original; `_1` is the word 1."""
    legal = {word.removeprefix("_"): our_word for word, our_word in ours.items()}

    def read(text: str) -> str | None:
        if (word := plain_word(text)) not in legal:
            raise InvalidValue(text[:60], f"one of {', '.join(legal)}")
        return legal[word]

    return read


def _limit(text: str) -> str:
    word = plain_word(text)
    return str(_MAX_INTEGER) if word == "0" else word


def _names(text: str) -> str | None:
    quoted = (f'"{name}"' if set(name) & set(" \t\r\n,;") else name for name in names(text))
    return ", ".join(quoted) or None


def _times(text: str) -> str:
    return ",".join(filter(None, re.split(r"[\s,;]+", _REMARK.sub(" ", text))))


class Parameter(NamedTuple):
    """A parameter, and the setting that it decides."""

    tag: str
    display: str  # its names, with commas between them
    default: str = "none"  # the original's, where an export leaves the parameter out
    note: str = ""  # where ours differs
    word: Callable[[str], str | None] | None = None  # our text for the original's; None: it means nothing
    ours: str = ""  # the setting that it overrides, where it has another name

    @property
    def setting(self) -> str:
        """Return the name of the setting."""
        return self.ours or self.tag

    def read(self, text: str) -> Setting | None:
        """Return the setting's value, None if it means nothing; raise an EventlogError if none is legal."""
        is_text = not isinstance(_FIELDS[self.setting].default, int)
        word = self.word(text) if self.word else text if is_text else plain_word(text)
        return None if word is None else read_setting(self.setting, word)


class Unneeded(NamedTuple):
    """A parameter that nothing depends on here."""

    tag: str
    display: str
    reason: str
    shown: bool = True  # its value may be shown


def read_setting(name: str, text: str) -> Setting:
    """Return the value as the declaration of the setting reads it."""
    value: Setting = read_value(_FIELDS[name], text)
    return value


_QUALIFIED = "sync-schema qualifies a name without schema, as in the original"
_STATEMENTS = "runs as it is, in a transaction of its own; a warning if it names the log"
_REGEX = "with sync-schema; an expression of Python, so without `\\p{…}` and `&&`"
_CHILDREN = "separated by blanks, commas or `;`. sync-children adds their child tables, as the original did"
_MINIMAL = "where it was on, the original knew no foreign keys: enable-refs = false"
_EMPTY = "selects sync-schema or sync-tables; empty: nothing was published"
_COMPARED = (
    "1 is trigger; 2, triggerless, is compare: url holds the log and the receiver's state. If you may not "
    "create tables there, name that database in source-url and a database of your own in url"
)
_STARTS = "with publication-mode 2 only; 1 is resync, 2 is future, 3 is all"
_IS_OFF = _words(schema=None, list=None, empty="true")
_IS_MINIMAL = _words(_1="false", yes="false", true="false", _0=None, no=None, false=None)

PARAMETERS = (
    Parameter("log-table", "Event Log Table Name", note=_QUALIFIED),
    Parameter(
        "delete-from-log",
        "Delete Processed Rows?, Delete From Log?",
        "true",
        "rows with E and F are kept in both cases",
    ),
    Parameter("allow-loopback", "Allow Loopback?, Allow Loopback Publisher", "false"),
    Parameter("handle-future-events", "Enable Future Event Processing?", "false"),
    Parameter("polling-interval", "Polling Interval", "10", "a full cycle is followed by the next at once"),
    Parameter(
        "time-of-day", "Publication Time of Day", note="in force instead of polling-interval", word=_times
    ),
    Parameter("post-poll-stmt", "Post Polling Statements", note=_STATEMENTS),
    Parameter("batch-size", "Batch Size", "1", "up to 100000 instead of 128"),
    Parameter("query-limit", "Query Limit", "10000", f"0, no limit, becomes {_MAX_INTEGER}", _limit),
    Parameter("pub-heartbeat-interval", "Heartbeat Interval", "0"),
    Parameter("sync-filter", "Synchronization Filter", "none", _EMPTY, _IS_OFF, "disable"),
    Parameter("sync-schema", "Schema Name, Synchronization Schema"),
    Parameter("include-table-filter", "Include Filter Expression, Include Table Filter", note=_REGEX),
    Parameter("exclude-table-filter", "Exclude Filter Expression, Exclude Table Filter", note=_REGEX),
    Parameter("sync-tables", "Table/View Names, Synchronization Tables/Views", "none", _CHILDREN, _names),
    Parameter("enable-refs", "Enable Referential Attribute Support?", "true"),
    Parameter(
        "minimal-metadata", "Retrieve Minimal Metadata?", "false", _MINIMAL, _IS_MINIMAL, "enable-refs"
    ),
    Parameter("enable-meta-identifiers", "Enable Meta-Identifier Support?", "true"),
    Parameter("time-syntax", "Time Syntax", "1"),
    Parameter("connection-init", "Connection Initialization Statements"),
    Parameter("reconnect", "Reconnect Interval", "30"),
    Parameter("disable", "Disable Publisher?", "false", "`eventlog run` then ends at once"),
    Parameter("publication-mode", "Publication Mode", "1", _COMPARED, _words(_1=None, _2="compare")),
    Parameter(
        "startup-option", "Startup Option", "none", _STARTS, _words(_1="resync", _2="future", _3="all")
    ),
)

_BUILT_IN = "what differs between databases is part of eventlog"
_CONNECTIONS = "one connection leads, and others are opened while they are needed"
_JDBC = "of JDBC, which is not used"
_LOCKS = "no table is locked: rows are read in one snapshot, and finished by their ids"
_PROPERTIES = "a property goes into the query of url, under the name that the Python driver gives it"
_STATE = "what must be remembered is in the database of the log, which may be another one (source-url)"
_SUBSCRIBER = "of the Subscriber channel, which is not ours"
_USER = "write the user of url as it is in the database"

UNNEEDED = (
    Unneeded(
        "jdbc-class", "Third-Party JDBC Driver Class Name, JDBC Driver Class Name", "url names the driver"
    ),
    Unneeded("connection-properties", "Connection Properties", _PROPERTIES, shown=False),
    Unneeded("jdbc-driver-descriptor", "JDBC Driver Descriptor Filename", _BUILT_IN),
    Unneeded("database-descriptor", "Database Descriptor Filename", _BUILT_IN),
    Unneeded("current-timestamp-stmt", "Current Timestamp Statement", _BUILT_IN),
    Unneeded("time-translator-class", "Time Translator Class, Timestamp Translator Class", _BUILT_IN),
    Unneeded("column-position-comparator", "Sort Column Names By", _BUILT_IN),
    Unneeded("enable-locking", "Enable Statement-Level Locking?, Enable Table Locking?", _LOCKS),
    Unneeded("disable-locking", "Disable Statement-Level Locking?", _LOCKS),
    Unneeded("lock-generator-class", "Lock Statement Generator Class", _LOCKS),
    Unneeded("use-single-connection", "Use Minimal Number of Connections?", _CONNECTIONS),
    Unneeded("use-manual-transactions", "Use Manual Transactions?", "every write is in a transaction"),
    Unneeded("transaction-isolation-level", "Transaction Isolation Level", "a pick-up is one snapshot"),
    Unneeded("force-username-case", "Force Username Case", _USER),
    Unneeded("reuse-statements", "Reuse Statements?", _JDBC),
    Unneeded("handle-stmt-results", "Number of Returned Result Sets", _JDBC),
    Unneeded("function-return-method", "Function Return Method", _JDBC),
    Unneeded("supports-schemas-in-metadata-retrieval", "Supports Schemas in Metadata Retrieval?", _BUILT_IN),
    Unneeded("left-outer-join-operator", "Left Outer Join Operator", _BUILT_IN),
    Unneeded("preserve-sqlwhitespace", "Preserve white space in SQL statements?", "statements run unchanged"),
    Unneeded("state-dir", "State Directory", _STATE),
    Unneeded("key-gen-method", "Generation/Retrieval Method", _SUBSCRIBER),
    Unneeded("key-gen-timing", "Retrieval Timing", _SUBSCRIBER),
    Unneeded("key-gen", "Method and Timing", _SUBSCRIBER),
    Unneeded("check-update-count", "Check Update Counts?", _SUBSCRIBER),
    Unneeded("add-default-values-on-view-insert", "Add Default Values on Insert?", _SUBSCRIBER),
)


def find(tag: str, display: str = "") -> Parameter | Unneeded | None:
    """Return the parameter of a tag (`-`, `_` and blanks alike), or else of a display name."""
    plain = "-".join(tag.lower().replace("_", " ").replace("-", " ").split())
    return _BY_TAG.get(_OTHER_TAGS.get(plain, plain)) or _BY_DISPLAY.get(_title(display))


def _title(display: str) -> str:
    return _UNIT.sub("", " ".join(display.split())).strip().rstrip("?: ").lower()


_ALL: tuple[Parameter | Unneeded, ...] = (*PARAMETERS, *UNNEEDED)
_BY_TAG = {parameter.tag: parameter for parameter in _ALL}
_BY_DISPLAY = {_title(name): parameter for parameter in _ALL for name in parameter.display.split(", ")}
