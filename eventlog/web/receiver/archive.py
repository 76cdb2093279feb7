"""The file that keeps what came: one SQLite database, written by one request at a time."""

from __future__ import annotations

import sqlite3
import threading
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eventlog.core.errors import Misuse
from eventlog.core.state_versions import ARCHIVE
from eventlog.web.receiver.incoming import Incoming, ReceivedEvent

PAGE = 50
KEEP = 100_000  # documents; older ones make room


class ArchiveFailed(Misuse):
    """{0} cannot keep documents: {1}; name another file with --file"""


class Filter(NamedTuple):
    """The events that are looked for; an empty text selects all."""

    class_name: str = ""
    operation: str = ""
    key: str = ""  # where it begins
    level: str = ""


class EventLine(NamedTuple):
    """An event as a list shows it; a document that could not be read is a line without an event."""

    document: int
    part: int
    at: str
    operation: str
    class_name: str
    key: str
    association: str
    event_id: str | None
    level: str
    fault: str


class StoredDocument(NamedTuple):
    """A document with all that is known of it."""

    id: int
    at: str
    size: int
    body: bytes
    fault: str
    level: str
    reply: bytes


class ListPlace(NamedTuple):
    """A place in the list, newest first: what is older than it, or newer."""

    way: Literal["before", "after"]
    document: int
    part: int


class Archive:
    """The documents of one file."""

    def __init__(self, path: Path | str, keep: int = KEEP) -> None:
        self._lock = threading.Lock()
        self._keep = keep
        try:
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        except sqlite3.Error as fault:
            raise ArchiveFailed(path, fault) from fault
        try:
            self._begin(path)
        except sqlite3.Error as fault:
            self._file.close()
            raise ArchiveFailed(path, fault) from fault
        except Misuse:
            self._file.close()
            raise

    def _begin(self, path: Path | str) -> None:
        """Make the tables of an empty file; raise Misuse for one of a newer version or of another program."""
        if self._rows("select 1 from sqlite_master"):
            ARCHIVE.check(path, self._rows("pragma user_version")[0][0])
        self._file.executescript("pragma journal_mode = wal; pragma foreign_keys = on;")
        schema = files("eventlog.web.receiver").joinpath("schema.sql").read_text("utf-8")
        version = f"pragma user_version = {ARCHIVE.version}"
        self._file.executescript(f"begin immediate;\n{schema}\n{version};\ncommit;")

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def keep(self, at: str, body: bytes, incoming: Incoming, level: str, reply: bytes) -> None:
        """Keep a document and what it was answered; the oldest make room."""
        events = incoming.events or (
            ReceivedEvent("unreadable" if incoming.fault else "empty", "", "", None),
        )
        sql = "insert into document (at, size, body, fault, level, reply) values (?, ?, ?, ?, ?, ?)"
        with self._lock, self._file:
            self._file.execute("begin immediate")
            values = (at, len(body), body, incoming.fault, level, reply)
            number = self._file.execute(sql, values).lastrowid or 0
            rows = [(number, part, *_columns(event)) for part, event in enumerate(events, 1)]
            self._file.executemany("insert into event values (?, ?, ?, ?, ?, ?, ?)", rows)
            self._file.execute("delete from document where id <= ?", (number - self._keep,))

    def document(self, number: int) -> StoredDocument | None:
        rows = self._rows("select * from document where id = ?", number)
        return StoredDocument(*rows[0]) if rows else None

    def events(self, number: int) -> list[EventLine]:
        """Return the events of a document, in its order."""
        return self._lines("event.document = ?", "event.part", number, limit=-1)

    def history(self, association: str, limit: int) -> list[EventLine]:
        """Return the latest events of an object, oldest first."""
        order = "event.document desc, event.part desc"
        return self._lines("event.association = ?", order, association, limit=limit)[::-1]

    def lines(self, event_filter: Filter, cursor: ListPlace | None = None) -> list[EventLine]:
        """Return a page of events, newest first, and one more where there are more on that way."""
        conditions, values = _conditions(event_filter)
        order = "event.document desc, event.part desc"
        if cursor is not None:
            older = cursor.way == "before"
            conditions.append(f"(event.document, event.part) {'<' if older else '>'} (?, ?)")
            values += [cursor.document, cursor.part]
            order = order if older else order.replace(" desc", "")
        lines = self._lines(" and ".join(conditions) or "true", order, *values, limit=PAGE + 1)
        return lines if cursor is None or cursor.way == "before" else lines[::-1]

    def choices(self, column: Literal["class", "operation", "level"]) -> list[str]:
        """Return the values that a filter can have: a walk over an index, one step for each value."""
        table = "document" if column == "level" else "event"
        sql = f"""
            with recursive known (name) as (
                select min({column}) from {table}
                union all
                select (select min({column}) from {table} where {column} > name)
                from known where name is not null
            )
            select name from known where name is not null limit 200"""  # noqa: S608 (literals of ours)
        return [row[0] for row in self._rows(sql)]

    def total(self) -> int:
        """Return how many documents are kept."""
        return int(self._rows("select count(*) from document")[0][0])

    def arrivals(self, after: int) -> tuple[int, int]:
        """Return how many events came in later documents, and how many different ones."""
        sql = "select count(*), count(distinct event_id) from event where document > ?"
        ((events, distinct_events),) = self._rows(sql, after)
        return int(events), int(distinct_events)

    def _lines(self, condition: str, order: str, *values: object, limit: int) -> list[EventLine]:
        sql = f"""
            select event.document, part, at, operation, class, key, association, event_id, level, fault
            from event join document on document.id = event.document
            where {condition} order by {order} limit {limit:d}"""  # noqa: S608 (texts of ours)
        return [EventLine(*row) for row in self._rows(sql, *values)]

    def _rows(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            return self._file.execute(sql, values).fetchall()


def _columns(event: ReceivedEvent) -> tuple[str | None, ...]:
    return event.operation, event.class_name, event.key, event.association, event.event_id


def _conditions(event_filter: Filter) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    exact = {
        "class": event_filter.class_name,
        "operation": event_filter.operation,
        "level": event_filter.level,
    }
    for column, value in exact.items():
        if value:
            conditions.append(f"{column} = ?")
            values.append(value)
    if event_filter.key:
        conditions.append("key >= ? and key < ?")
        values += [event_filter.key, event_filter.key + "\U0010ffff"]
    return conditions, values
