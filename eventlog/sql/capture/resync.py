"""The first load: an event for each row that exists.

Each chunk is read in one transaction, which writes nothing, and logged in another, which keeps its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.sql.log.log_record import LogRecord, Notice, NoticeKind
from eventlog.sql.log.store import Store
from eventlog.sql.queries import Queries, unbound
from eventlog.sql.relation import qualified
from eventlog.sql.tables_read import naming

EVENT_TYPES = (5, 6)
_WRITTEN = 10_000  # rows of one statement
Key = tuple[Any, ...]


class NoKey(EventlogError):
    """table {0} has no primary key, so nothing names its rows"""


class UnlikeKey(EventlogError):
    """key column {0} of {1} holds {2}, from which a resync could not continue"""


@dataclass(frozen=True, slots=True)
class Resync:
    """The rows to be logged."""

    table: Table
    event_type: int = 5
    where: str | None = None  # SQL over the table's alias t
    chunk: int = 1000
    who: str | None = None  # the person who asks for it

    @property
    def choice(self) -> str:
        """Return what must be equal for a later run to go on where this one stopped."""
        return json.dumps([self.event_type, self.where])


class ResyncProgress(NamedTuple):
    """The progress of a resync."""

    rows: int  # of this run
    earlier_rows: int  # of the run that this one continues
    done: bool = False


def resync(store: Store, request: Resync, pause: Callable[[int], None]) -> Iterator[ResyncProgress]:
    """Log the rows chunk by chunk, from where an earlier run stopped; `pause` is called with the rows of
    each.
    """
    if not request.table.key:
        raise NoKey(request.table)
    run = _Run(store, request)
    last, earlier_rows = run.begin()
    rows = 0
    while True:
        last, logged = run.chunk(last)
        rows += logged
        yield ResyncProgress(rows, earlier_rows, last is None)
        if last is None:
            return
        pause(logged)


class _Run:
    def __init__(self, store: Store, request: Resync) -> None:
        self._store = store
        self._queries: Queries = store.queries
        self._request = request
        dialect = store.log.dialect
        self._keys = [
            unbound(dialect.values.expressions.compared(column, f"t.{dialect.quote(column.name)}"))
            for column in request.table.key_columns
        ]

    def begin(self) -> tuple[Key | None, int]:
        """Return where an unfinished run of the same choice stopped, else the start."""
        with self._store.engine.begin() as connection:
            record = self._run(connection, "resync_found").one_or_none()
            if record is not None and record.choice == self._request.choice:
                return load_key(record.last_key), record.rows_logged
            self._run(connection, "resync_forget")
            self._run(connection, "resync_begin", choice=self._request.choice)
            where = f"where {self._request.where} " if self._request.where else ""
            self._note(connection, f"{where}are being logged, as event type {self._request.event_type}")
        return None, 0

    def chunk(self, last: Key | None) -> tuple[Key | None, int]:
        """Log the rows after a key, up to a chunk of them. Return the last one's key; None at the end."""
        texts, end = self._read(last)
        with self._store.engine.begin() as connection:
            self._log(connection, texts)
            if end is None:
                rows = self._run(connection, "resync_found").one().rows_logged + len(texts)
                self._note(connection, "logged", rows)
                self._run(connection, "resync_forget")
            else:
                text = dump_key(self._request.table, end)
                self._run(connection, "resync_advance", last_key=text, logged=len(texts))
            return end, len(texts)

    def _note(self, connection: Connection, words: str, rows: int | None = None) -> None:
        table, who = str(self._request.table), self._request.who
        notice = Notice(NoticeKind.RESYNC, table, row_count=rows, who=who, words=words)
        LogRecord(connection, self._queries).note(notice)

    def _read(self, last: Key | None) -> tuple[list[str], Key | None]:
        """Read the keys of a chunk as texts, and the last of them as it is, None at the end."""
        values: dict[str, Any] = _values(last) | {"most": self._request.chunk, "skip": 0}
        holes = self._holes(last)
        with naming(self._request.table):
            rows = self._store.read(lambda snapshot: snapshot.keys(self._request.table, holes, **values))
        texts, end = [], None
        for text, *key in rows:
            texts.append(str(text))
            end = tuple(key)
        return texts, end if len(rows) == self._request.chunk else None

    def _log(self, connection: Connection, texts: Sequence[str]) -> None:
        """Log an event for each of these keys, of no user."""
        facts = {"event_type": self._request.event_type, "table_name": self._request.table.log_name}
        nothing = dict.fromkeys(("perpetrator", "column_name", "old_value", "new_value"))
        rows = [{**facts, **nothing, "table_key": text} for text in texts]
        for start in range(0, len(rows), _WRITTEN):
            self._queries.run_set(connection, "compare_log", rows[start : start + _WRITTEN])

    def _holes(self, last: Key | None) -> dict[str, str]:
        within = [f"({unbound(self._request.where)})"] if self._request.where else []
        if last is not None:
            within.append(_after_key(self._keys))
        table, dialect = self._request.table, self._store.log.dialect
        named = [(name, table.columns[name]) for name in table.key]
        return {
            "key_text": unbound(dialect.values.expressions.key(named, "t", dialect.quote)),
            "keys": ", ".join(self._keys),
            "source": unbound(qualified(dialect, table.schema, table.name)),
            "within": "\n  and ".join(within) or "1 = 1",
        }

    def _run(self, connection: Connection, name: str, **values: Any) -> Any:
        return self._queries.run(connection, name, table_name=str(self._request.table), **values)


def _after_key(keys: Sequence[str]) -> str:
    """Return the condition that a row's key is after the bound one, column by column, for every database."""
    is_after = _nested([(key, f":a{n}") for n, key in enumerate(keys)])
    return f"{keys[0]} >= :a0 and {is_after}" if len(keys) > 1 else is_after


def _nested(pairs: Sequence[tuple[str, str]]) -> str:
    (key, bound), *further = pairs
    is_after = f"{key} > {bound}"
    return f"({is_after} or ({key} = {bound} and {_nested(further)}))" if further else is_after


def _values(key: Key | None) -> dict[str, Any]:
    return {f"a{n}": value for n, value in enumerate(key or ())}


# How a value of a key is kept for the next run; a type that is not here cannot be gone on from.
_KEY_TYPES: Mapping[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    bool: (bool, bool),
    int: (int, int),
    str: (str, str),
    float: (float, float),
    Decimal: (str, Decimal),
    UUID: (str, UUID),
    bytes: (bytes.hex, bytes.fromhex),
    date: (date.isoformat, date.fromisoformat),
    time: (time.isoformat, time.fromisoformat),
    datetime: (datetime.isoformat, datetime.fromisoformat),
}
_NAMED = {kind.__name__: kind for kind in _KEY_TYPES}


def dump_key(table: Table, key: Key) -> str:
    """Return the values of a key as text."""
    values = []
    for name, value in zip(table.key, key, strict=True):
        if type(value) not in _KEY_TYPES:
            raise UnlikeKey(name, table, type(value).__name__)
        values.append([type(value).__name__, _KEY_TYPES[type(value)][0](value)])
    return json.dumps(values)


def load_key(text: str | None) -> Key | None:
    """Return the values that `dump_key` wrote."""
    if text is None:
        return None
    return tuple(_KEY_TYPES[_NAMED[name]][1](value) for name, value in json.loads(text))
