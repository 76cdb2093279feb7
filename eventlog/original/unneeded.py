"""The original's parameters that become no setting, each with the reason."""

from __future__ import annotations

from typing import NamedTuple


class Unneeded(NamedTuple):
    """A parameter that nothing depends on here."""

    tag: str
    display: tuple[str, ...]
    reason: str
    shown: bool = True  # its value may be shown


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
