"""The settings of a publisher.

The help of commands imports them, so SQLAlchemy, which takes a while to load, is imported where it is used.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventlog.core.errors import InvalidValue, Misuse
from eventlog.core.settings import setting
from eventlog.core.shared_settings import trim_char_setting
from eventlog.opening.config import names
from eventlog.opening.waits import Waits
from eventlog.sinks import SINKS, sink_kind

if TYPE_CHECKING:
    from eventlog.sql.log.pending import PickUpFilter


def _check_log_name(name: str) -> None:
    """Raise IllegalName for the name of a log that no database could have."""
    from eventlog.sql.dialects import check_log_name

    check_log_name(name)


def compiled(text: str) -> re.Pattern[str]:
    """Return a regular expression; raise Misuse if it is none."""
    try:
        return re.compile(text, re.ASCII)
    except re.error as fault:
        raise Misuse(f"{text!r} is not a regular expression: {fault}") from fault


_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d):([0-5]\d)")


def read_times(text: str) -> tuple[dt.time, ...]:
    """Return the times of day of a setting: hh:mm:ss, several with commas."""
    matches = [_TIME.fullmatch(part.strip()) for part in text.split(",")]
    if None in matches:
        raise InvalidValue(text, "hh:mm:ss, or several of them with commas")
    return tuple(sorted(dt.time.fromisoformat(match[0].zfill(8)) for match in matches if match))


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The settings for where the log is."""

    url: str | None = setting(None, "the database, as a SQLAlchemy URL", metavar="URL")
    log_table: str = setting(
        "eventlog", "the log, optionally with its schema", metavar="NAME", check=_check_log_name
    )
    layout: str | None = setting(
        None, "bind an existing log's columns by position", choices=("classic", "modern")
    )
    log_time: str = setting("utc", "the zone of event_time", choices=("utc", "local"))
    connection_init: str | None = setting(None, "SQL after each connect, `;` between", metavar="SQL")


@dataclass(frozen=True, slots=True)
class LookSettings:
    """The settings of what only looks at the log."""

    look_limit: int = setting(
        3,
        "seconds that a look waits for a lock on the log; a statement of status, pages and metrics takes ten"
        " times as many at most",
        metavar="S",
        within=(1, 3600),
    )


@dataclass(frozen=True, slots=True)
class TablePublishing:
    """The settings for what may be queried back, and how it is published."""

    sync_schema: str | None = setting(
        None, "a schema whose tables are all published, in addition to the tracked ones", metavar="NAME"
    )
    include_table_filter: str | None = setting(
        None,
        "of sync-schema only tables whose whole names are of this regular expression",
        metavar="REGEX",
        check=compiled,
    )
    exclude_table_filter: str | None = setting(
        None, "of sync-schema no tables whose whole names are of this one", metavar="REGEX", check=compiled
    )
    sync_tables: str | None = setting(
        None,
        "tables and views that are published in addition to the tracked ones, with blanks, commas or `;`"
        " between them; put a name that contains one of these in double quotes",
        metavar="NAMES",
        check=names,
    )
    sync_children: bool = setting(False, "also the child tables of those that sync-tables names")
    enable_refs: bool = setting(True, "foreign keys to published tables become references")
    enable_meta_identifiers: bool = setting(
        True, "the prefixes pk_, fk_, sv_, mv_ of view columns have meaning"
    )
    trim_char: bool = trim_char_setting()


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The settings for where the tables are."""

    source_url: str | None = setting(
        None,
        "with publication-mode compare, the database of the tables, where it is not that of the log: any that"
        " SQLAlchemy reads; nothing is made there",
        metavar="URL",
    )


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """The settings of a cycle, except those that change documents."""

    delete_from_log: bool = setting(False, "delete handled rows, except those with E and F")
    query_limit: int = setting(10_000, "rows read in one cycle", metavar="N", within=(1, 2**31 - 1))
    retry_wait: float = setting(
        10.0, "seconds before an event is sent again; doubled each time", metavar="S", within=(0, 604_800)
    )
    retry_longest: float = setting(
        3600.0, "the longest wait before an event is sent again", metavar="S", within=(0, 31_536_000)
    )

    @property
    def waits(self) -> Waits:
        """Return how long an event waits before it is sent again."""
        return Waits(self.retry_wait, self.retry_longest)

    def choice(self, limit: int | None = None) -> PickUpFilter:
        """Return the rows of a cycle."""
        from eventlog.sql.log.pending import PickUpFilter

        return PickUpFilter(limit or self.query_limit)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a session besides publishing."""

    sink: str = setting("stdout", f"where documents go: {', '.join(SINKS)}", metavar="SINK", check=sink_kind)
    wake_up: bool = setting(True, "let writers wake the publisher (PostgreSQL)")
    post_poll_stmt: str | None = setting(
        None, "SQL after each cycle that published something, `;` between", metavar="SQL"
    )


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """The settings for when cycles run."""

    disable: bool = setting(False, "do not publish: `run` ends at once, with a message")
    polling_interval: int = setting(
        10, "seconds of inactivity between cycles", metavar="S", within=(1, 604_800)
    )
    time_of_day: str | None = setting(
        None, "hh:mm:ss, several with commas: instead of polling-interval", metavar="TIME", check=read_times
    )
    pub_heartbeat_interval: int = setting(
        0, "minutes of silence before a heartbeat document; 0: none", metavar="MIN", within=(0, 2**31)
    )
    reconnect: int = setting(30, "the longest wait before connecting again", metavar="S", within=(1, 604_800))
