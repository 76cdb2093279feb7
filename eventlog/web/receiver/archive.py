"""The file that keeps what came: one SQLite database, written by one request at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.web.receiver.incoming import Incoming, ReceivedEvent
from eventlog.web.receiver.rules import Verdict
from eventlog.xds.answers import Status

PAGE = 50
MOST_DELIVERIES = 100
KEEP = 100_000  # documents; older ones make room


class ArchiveFailed(EventlogError):
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
    text: str


class KeptDocument(NamedTuple):
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
            self._file.executescript("pragma journal_mode = wal; pragma foreign_keys = on;")
            self._file.executescript(files("eventlog.web.receiver").joinpath("schema.sql").read_text("utf-8"))
        except sqlite3.Error as fault:
            self._file.close()
            raise ArchiveFailed(path, fault) from fault

    def close(self) -> None:
        with self._lock:
            self._file.close()

    @contextmanager
    def writing(self) -> Iterator[DeliveryWriter]:
        """One delivery: what it counts and what it keeps belong together."""
        with self._lock:
            self._file.execute("begin immediate")
            try:
                yield DeliveryWriter(self._file, self._keep)
            except BaseException:
                self._file.execute("rollback")
                raise
            self._file.execute("commit")

    def document(self, number: int) -> KeptDocument | None:
        found = self._rows("select * from document where id = ?", number)
        return KeptDocument(*found[0]) if found else None

    def events(self, number: int) -> list[EventLine]:
        """Return the events of a document, in its order."""
        return self._lines("event.document = ?", "event.part", number, limit=-1)

    def deliveries(self, event_id: str) -> list[int]:
        """Return the documents that brought an event, oldest first; the first hundred."""
        sql = "select distinct document from event where event_id = ? order by document limit ?"
        return [row[0] for row in self._rows(sql, event_id, MOST_DELIVERIES)]

    def history(self, association: str, limit: int) -> list[EventLine]:
        """Return the latest events of an object, oldest first."""
        order = "event.document desc, event.part desc"
        return self._lines("event.association = ?", order, association, limit=limit)[::-1]

    def lines(self, wanted: Filter, cursor: ListPlace | None = None) -> list[EventLine]:
        """Return a page of events, newest first, and one more where there are more on that way."""
        conditions, values = _conditions(wanted)
        order = "event.document desc, event.part desc"
        if cursor is not None:
            older = cursor.way == "before"
            conditions.append(f"(event.document, event.part) {'<' if older else '>'} (?, ?)")
            values += [cursor.document, cursor.part]
            order = order if older else order.replace(" desc", "")
        found = self._lines(" and ".join(conditions) or "true", order, *values, limit=PAGE + 1)
        return found if cursor is None or cursor.way == "before" else found[::-1]

    def choices(self, column: Literal["class", "operation", "level"]) -> list[str]:
        """Return the values that a filter can have: a walk over an index, one step for each value."""
        sql = f"""
            with recursive known (name) as (
                select min({column}) from event
                union all
                select (select min({column}) from event where {column} > name)
                from known where name is not null
            )
            select name from known where name is not null limit 200"""  # noqa: S608 (a literal of ours)
        return [row[0] for row in self._rows(sql)]

    def total(self) -> int:
        """Return how many documents are kept."""
        return int(self._rows("select count(*) from document")[0][0])

    def arrivals(self, after: int) -> tuple[int, int]:
        """Return how many events came in later documents, and how many different ones."""
        sql = "select count(*), count(distinct event_id) from event where document > ?"
        ((came, different),) = self._rows(sql, after)
        return int(came), int(different)

    def _lines(self, condition: str, order: str, *values: object, limit: int) -> list[EventLine]:
        sql = f"""
            select event.document, part, at, operation, class, key, association, event_id, event.level, text
            from event join document on document.id = event.document
            where {condition} order by {order} limit {limit:d}"""  # noqa: S608 (texts of ours)
        return [EventLine(*row) for row in self._rows(sql, *values)]

    def _rows(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            return self._file.execute(sql, values).fetchall()


class DeliveryWriter:
    """One delivery's transaction."""

    def __init__(self, file: sqlite3.Connection, keep: int) -> None:
        self._file = file
        self._keep = keep

    def earlier(self, event: ReceivedEvent) -> int:
        """Return how often an event was delivered before."""
        found = self._file.execute("select count(*) from event where event_id = ?", (event.event_id,))
        return int(found.fetchone()[0])

    def keep(self, at: str, body: bytes, incoming: Incoming, verdict: Verdict) -> int:
        """Keep a document and what it was answered; the oldest make room."""
        sql = "insert into document (at, size, body, fault, level, reply) values (?, ?, ?, ?, ?, ?)"
        reply = verdict.reply
        written = self._file.execute(sql, (at, len(body), body, incoming.fault, verdict.level, reply))
        number = int(written.lastrowid or 0)
        events = incoming.events or (
            ReceivedEvent("unreadable" if incoming.fault else "empty", "", "", None),
        )
        statuses = verdict.statuses * (len(events) if len(verdict.statuses) == 1 else 1)
        self._file.executemany(
            "insert into event values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (number, part, *_columns(event), _level(verdict, status), status.text)
                for part, (event, status) in enumerate(zip(events, statuses, strict=True), 1)
            ],
        )
        self._file.execute("delete from document where id <= ?", (number - self._keep,))
        return number


def _columns(event: ReceivedEvent) -> tuple[str | None, ...]:
    return event.operation, event.class_name, event.key, event.association, event.event_id


def _level(verdict: Verdict, status: Status) -> str:
    return verdict.level if verdict.spoiled else status.level.name.lower()


def _conditions(wanted: Filter) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    exact = {"class": wanted.class_name, "operation": wanted.operation, "event.level": wanted.level}
    for column, value in exact.items():
        if value:
            conditions.append(f"{column} = ?")
            values.append(value)
    if wanted.key:
        conditions.append("key >= ? and key < ?")
        values += [wanted.key, wanted.key + "\U0010ffff"]
    return conditions, values
