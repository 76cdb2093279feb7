"""The answers to a receiver's queries: current rows of published tables, and nothing else.

An object is described as a query-back of its row describes it. All queries of one document, in however many
rounds, are answered from one snapshot, so that no answer contradicts another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from eventlog.core import tablekey
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.fold import Fate, Rules, plan
from eventlog.publisher.read_back import Allowance, CurrentRows
from eventlog.sinks.conversation import Answer
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.current import NO_BOUND, Sought, TooMuch
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.readable import ReadableTable
from eventlog.xds.answers import Level, Status
from eventlog.xds.documents import answer_document
from eventlog.xds.queries import Query, Search, Unanswerable, understand
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter

MOST_INSTANCES = 1000  # of one query
MOST_CHARACTERS = 64 << 20  # of one document of answers
_AT_ONCE = 50  # objects that are read together
_ALL = 2**31 - 1


class KnownTables(NamedTuple):
    """The tables that are published, and how their values are written."""

    tables: Tables
    readable: Mapping[Table, ReadableTable]
    rules: Rules
    xds: XdsSettings


class QueryAnswers:
    """An object that answers the queries of documents; `look` reads the tables."""

    def __init__(self, store: Store, look: Callable[[], KnownTables], rounds: int) -> None:
        self.rounds = rounds
        self._store = store
        self._look = look
        self._known: KnownTables | None = None

    @contextmanager
    def conversation(self) -> Iterator[Answer]:
        """Return what answers the queries of one document, from one snapshot."""
        with self._store.snapshot() as snapshot:
            yield Conversation(snapshot, self._known, self._learn).answer

    def _learn(self) -> KnownTables:
        self._known = self._look()
        return self._known


class Conversation:
    """The questions about one document. Before one is refused, the catalogue is read again, once: perhaps
    the tables changed."""

    def __init__(
        self, snapshot: Snapshot, tables: KnownTables | None, learn: Callable[[], KnownTables]
    ) -> None:
        self._snapshot = snapshot
        self._learn = learn
        self._fresh = tables is None
        self._known = learn() if tables is None else tables
        self._room = 0  # characters that the answer may still take

    def answer(self, queries: Sequence[Query]) -> str:
        """Return the document that answers these queries: instances, and a status for each query."""
        self._room = MOST_CHARACTERS
        return answer_document(part for query in queries for part in self._parts(query))

    def _parts(self, query: Query) -> Iterator[str | Status]:
        try:
            parts = list(self._instances(query))
        except ConnectionLost:
            raise
        except EventlogError as fault:
            if self._fresh:
                yield Status(Level.ERROR, query.event_id, str(fault))
            else:
                self._known, self._fresh = self._learn(), True
                yield from self._parts(query)
            return
        yield from (part for part in parts if isinstance(part, str))
        faults = [part for part in parts if not isinstance(part, str)]
        yield from faults or [Status(Level.SUCCESS, query.event_id)]

    def _instances(self, query: Query) -> Iterator[str | Status]:
        """Yield the instances of a query; a warning for each object that cannot be described."""
        objects = 0
        for search in understand(query, self._known.tables, self._known.xds):
            keys = self._keys(search, MOST_INSTANCES - objects)
            objects += len(keys)
            for start in range(0, len(keys), _AT_ONCE):
                for instance in self._read(search, keys[start : start + _AT_ONCE], query):
                    self._room -= len(instance) if isinstance(instance, str) else 0
                    if self._room < 0:
                        raise Unanswerable("the answer is too long: ask for fewer objects or attributes")
                    yield instance

    def _keys(self, search: Search, most: int) -> list[str]:
        """Return the table_keys of the objects that a search finds; raise Unanswerable if there are more than
        that.
        """
        readable = self._known.readable[search.table]
        if search.table_key is not None and not search.criteria:
            return [search.table_key]
        criteria = [readable.sought(column, text) for column, text in search.criteria]
        if search.table_key is not None:
            values = readable.load_key(search.table_key)
            criteria += (Sought(*pair) for pair in zip(readable.key, values, strict=True))
        with self._snapshot.attempt():
            keys = sorted(self._snapshot.search(readable, criteria, most + 1))
        if len(keys) > most:
            raise Unanswerable(f"more than {MOST_INSTANCES} objects are found: ask for fewer")
        if search.table_key is not None:
            return [search.table_key] * len(keys)
        return [tablekey.write(zip(search.table.key, texts, strict=True)) for texts in keys]

    def _read(self, search: Search, keys: Sequence[str], query: Query) -> Iterator[str | Status]:
        """Read the objects as their rows are now, each like a query-back; a missing object is left out."""
        table = _narrowed(search)
        readable = {table: self._known.readable[search.table].narrowed(table)}
        entries = [
            Entry(n, "N", 5, "1970-01-01T00:00:00", None, str(table), key) for n, key in enumerate(keys, 1)
        ]
        planned = plan(entries, Tables([table], self._known.tables.dialect), self._rules, answerable=readable)
        allowance = Allowance(NO_BOUND) if len(keys) == 1 else Allowance()
        current = CurrentRows(self._snapshot, readable, self._fresh, allowance)
        try:
            current.read(planned.needs())
        except TooMuch:
            middle = len(keys) // 2
            yield from self._read(search, keys[:middle], query)
            yield from self._read(search, keys[middle:], query)
            return
        if current.refused and not self._fresh:
            raise Unanswerable(f"the rows of {table} cannot be read")
        writer = EventWriter(self._known.tables, self._known.xds)
        for event in planned.events(current.lookup):
            fields = tuple(field for field in event.change.fields if field.column in search.columns)
            yield writer.instance(event.change._replace(fields=fields), query.event_id, search.columns)
        for number, outcome in planned.outcomes.items():
            if outcome.fate is Fate.REFUSED:
                level = Level.WARNING if search.table_key is None else Level.ERROR
                yield Status(level, query.event_id, f"{keys[number - 1]}: {outcome.reason}")

    @property
    def _rules(self) -> Rules:
        """Return rules by which an object is written in one piece, whatever its row contains."""
        return Rules(insert_query_back="add", max_changes=_ALL, max_value=self._known.rules.max_value)


def _narrowed(search: Search) -> Table:
    """Return the table with the published columns alone.

    With an attribute of several values the result has one such column, because an object may then have
    several rows.
    """
    many = next((column.name for column in search.table.data if column.multivalued), None)
    columns = {
        name: replace(column, leaves=column.leaves and (name in search.columns or name == many))
        for name, column in search.table.columns.items()
    }
    return replace(search.table, columns=columns)
