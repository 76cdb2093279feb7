"""The statements on one log: each filled with its names, and with the pieces that it is put together from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import CursorResult, TextClause, text
from sqlalchemy.engine import Connection

from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Call, Dialect, RunCalls
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import translated
from eventlog.sql.names import Log

PIECES = (
    *("size", "pending", "first_rows", "next_rows", "wanted_ids", "among_ids", "of_ids"),
    *("row", "row_by_column", "oldest_writer"),
)


class Queries:
    """Runs the named statements of a log on a connection."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.run_calls = partial(run_calls, log.dialect)  # on a session of the log's database
        self._clauses: dict[object, TextClause] = {}
        self._several: dict[object, list[Call]] = {}
        self._of_tables: WeakKeyDictionary[object, TextClause] = WeakKeyDictionary()
        self._texts: WeakKeyDictionary[TextClause, str] = WeakKeyDictionary()  # as a driver takes them
        self._pieces: dict[object, str] = {}
        self._names = names = log.reading_names()
        names["record_id_name"] = literal(log.column("record_id"))
        names["log_sequence_text"] = literal(log.companion_name("sequence"))
        for piece in PIECES:
            names[piece] = self.piece(piece)
        self._pieces.clear()

    def name(self, hole: str) -> str:
        """Return the text for a placeholder."""
        return self._names[hole]

    def piece(self, name: str) -> str:
        """Return a part of a statement, such as a condition."""
        if name not in self._pieces:
            self._pieces[name] = templates.statement(self.log.dialect, name, **self._names)
        return self._pieces[name]

    def relation(self, *, in_order: bool = False) -> str:
        """Return the log as a statement on pending rows reads it; in order by the index that has them so."""
        hint = self.log.dialect.index_hint(self.name("log_pending")) if in_order else ""
        return f"{self.name('log')} r {hint}"

    def filled(self, name: str, **holes: str) -> str:
        """Return a part of a statement with holes of its own."""
        return templates.statement(self.log.dialect, name, **holes)

    def of_table(self, table: object, make: Callable[[], str]) -> TextClause:
        """Return a part of statements on a table, which is made once."""
        if table not in self._of_tables:
            self._of_tables[table] = text(make())
        return self._of_tables[table]

    def pieces(self, *names: str) -> str:
        """Return conditions that must all hold."""
        return "\n    and ".join(self.piece(name) for name in names)

    def run(
        self, connection: Connection, name: str, holes: dict[str, str] | None = None, **values: Any
    ) -> Any:
        """Return the result of a named statement."""
        result: CursorResult[Any] = connection.execute(self.clause(name, **(holes or {})), values)
        return result

    def call(self, name: str, holes: dict[str, str] | None = None, **values: Any) -> Call:
        """Return a named statement with its values, to be run together with others."""
        return Call(self.clause(name, **(holes or {})), values)

    def calls_of(self, name: str, **holes: str) -> list[Call]:
        """Return all statements of a name, which bind nothing."""
        key = ("calls", name, *holes.items())
        if key not in self._several:
            texts = templates.statements(self.log.dialect, name, {**self._names, **holes})
            self._several[key] = [Call(text(unbound(statement)), {}) for statement in texts]
        return self._several[key]

    def driver_text(self, connection: Connection, clause: TextClause) -> str:
        """Return a statement as its driver takes it."""
        if clause not in self._texts:
            self._texts[clause] = str(clause.compile(dialect=connection.dialect))
        return self._texts[clause]

    def run_all(self, connection: Connection, name: str, rows: list[dict[str, Any]]) -> None:
        """Run a statement once for each row of values."""
        if rows:
            connection.execute(self.clause(name), rows)

    def run_set(self, connection: Connection, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement for rows of values, in their order: all of them at once, by the statement of the
        name with `_all` where they go as JSON."""
        if rows and self.log.dialect.statements.rows_as_json:
            self.run(
                connection, f"{name}_all", rows=json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
            )
        elif rows:
            connection.execute(self.clause(name), rows)

    def run_by_ids(
        self,
        connection: Connection,
        name: str,
        ids: Iterable[int],
        holes: dict[str, str] | None = None,
        **values: Any,
    ) -> int:
        """Run a statement on rows by their ids, in chunks. Return how many rows it changed."""
        chunks = self.chunks(ids)
        return sum(self.run(connection, name, holes, ids=chunk, **values).rowcount for chunk in chunks)

    def chunks(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the ids as JSON texts of a bounded number each, ascending."""
        ordered, size = sorted(ids), self.log.dialect.statements.chunk
        for start in range(0, len(ordered), size):
            yield json.dumps(ordered[start : start + size], separators=(",", ":"))

    def clause(self, name: str, **holes: str) -> TextClause:
        """Return a named statement with its holes filled."""
        key = (name, *holes.items())
        if key not in self._clauses:
            self._clauses[key] = text(templates.statement(self.log.dialect, name, **self._names, **holes))
        return self._clauses[key]


def each_side_once(connection: Connection, dialect: Dialect) -> AbstractContextManager[None]:
    """Make a join read each side once inside the block, whatever the database believes of their sizes.

    Its statistics may be an hour old, from when the tables were empty.
    """
    return _joining(connection, dialect, "join_whole")


def each_row_looked_up(connection: Connection, dialect: Dialect) -> AbstractContextManager[None]:
    """Make a join look for each row of one side inside the block, whatever the statistics are."""
    return _joining(connection, dialect, "join_by_row")


@contextmanager
def _joining(connection: Connection, dialect: Dialect, way: str) -> Iterator[None]:
    run_named(connection, dialect, way)
    yield
    run_named(connection, dialect, "join_freely")


def run_named(connection: Connection, dialect: Dialect, name: str) -> None:
    """Run the statements of a name, which have no holes; a dialect may need none."""
    for statement in templates.statements(dialect, name, {}):
        connection.execute(text(statement))


def containing(words: str) -> str:
    """Return the pattern of texts that hold these words, for a `like` whose escape is !."""
    return "%" + re.sub("([!%_])", r"!\1", words) + "%"


def unbound(sql: str) -> str:
    """Return SQL in which a colon means itself, not a parameter."""
    return sql.replace(":", r"\:")


def run_calls(
    dialect: Dialect, connection: Connection, calls: Sequence[Call], *, commit: bool = False
) -> list[Any]:
    """Run statements in one round trip if the driver can, else one by one, and commit after them if that
    is asked for. Return the rows of each, or how many it changed. Nothing after a statement that fails
    is run.
    """
    if not calls and not commit:
        return []
    if (run := pipeline_of(dialect, connection)) is None:
        rows = []
        for call in calls:
            result = connection.execute(*call)
            rows.append(result.all() if result.returns_rows else result.rowcount)
    else:
        try:
            rows = run(connection, calls, commit=commit)
        except connection.dialect.loaded_dbapi.Error as fault:
            if not connection.in_transaction():
                connection.begin()  # for SQLAlchemy, so that a rollback does something
            raise translated(connection, fault) from fault
    if commit and connection.in_transaction():  # as SQLAlchemy sees it
        connection.commit()
    return rows


def pipeline_of(dialect: Dialect, connection: Connection) -> RunCalls | None:
    """Return what runs statements in one round trip on this connection, None if nothing can."""
    driver = connection.dialect
    if (
        dialect.sessions.load_run_calls is None
        or f"{dialect.name}+{driver.driver}" != dialect.sessions.driver
    ):
        return None
    session: Any = connection.connection.dbapi_connection
    library: Any = driver.loaded_dbapi
    if not (session.autocommit and library.Pipeline.is_supported()):  # from version 14 of the library on
        return None
    return dialect.sessions.load_run_calls()
