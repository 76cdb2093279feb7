"""A database with a log and tables that are tracked: what the tests of triggers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.core import tablekey, values
from eventlog.core.change import ABSENT, Op, Side
from eventlog.core.entry import Entry
from eventlog.core.tables import Table, Tables
from eventlog.fold import Fate, Rules, plan
from eventlog.sql.capture import track
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.names import Log, log_named
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.kit.databases import Database
from tests.kit.statements import run_statements

Texts = dict[str, str | None]


class Logged(NamedTuple):
    """A row of the log, without what depends on the clock."""

    type: int
    key: str
    column: str | None = None
    old_value: str | None = None
    new_value: str | None = None


@dataclass(frozen=True)
class Tracked:
    """A log in an empty database."""

    engine: Engine
    log: Log

    @property
    def dialect(self) -> Dialect:
        return self.log.dialect

    def run(self, *statements: str) -> None:
        """Run each statement in a transaction of its own, all in one session."""
        run_statements(self.engine, *statements, autocommit=True)

    def track(self, table: str, **chosen: Any) -> track.TrackPlan:
        return track.track(self.engine, self.log, table, Choice(**chosen))

    def logged(self, table: str | None = None) -> list[Logged]:
        """Return the rows since the last time."""
        columns = "event_type, table_key, column_name, old_value, new_value, table_name"
        with self.engine.begin() as connection:
            rows = connection.execute(text(f"select {columns} from eventlog order by record_id")).all()
            connection.execute(text("delete from eventlog"))
        return [Logged(*row[:5]) for row in rows if table in (None, row[5])]

    def after(self, *statements: str) -> list[Logged]:
        """Return what the statements left in the log."""
        self.run(*statements)
        return self.logged()

    def described(self, table: str) -> Table:
        with self.engine.connect() as connection:
            return Catalogue(connection).find(table).table


@contextmanager
def tracked(database: Database) -> Iterator[Tracked]:
    """A log installed in that database."""
    engine = database.engine()
    log = log_named(database.dialect, "eventlog")
    migrate.install(engine, log)
    yield Tracked(engine, log)
    engine.dispose()


def query_back(connection: Connection, dialect: Dialect, table: Table) -> dict[str, Texts]:
    """Return the texts of each row's columns, by its key, with the expressions that the triggers use."""
    expressions = dialect.values.expressions
    key = expressions.key(((c.name, c) for c in table.key_columns), "q", dialect.quote)
    columns = [c for c in table.columns.values() if c.name not in table.key]
    selected = ", ".join((key, *(expressions.text(column, "q", dialect.quote) for column in columns)))
    statement = f"select {selected} from {dialect.quote(table.name)} q"
    rows = connection.execution_options(no_parameters=True).exec_driver_sql(statement).all()
    return {row[0]: dict(zip((c.name for c in columns), row[1:], strict=True)) for row in rows}


def replay(rows: Iterable[Logged], columns: Iterable[str]) -> dict[str, Texts]:
    """Return the content of a table after the events of types 1 to 4, removed values checked."""
    empty = dict.fromkeys(columns)
    content: dict[str, Texts] = {}
    for row in rows:
        if row.type == 4:
            del content[row.key]
            continue
        fields = content.setdefault(row.key, dict(empty)) if row.type == 1 else content[row.key]
        assert row.column in empty
        if row.type in (2, 3):
            assert fields[row.column] == row.old_value
        fields[row.column] = row.new_value
    return content


def replay_events(rows: Iterable[Logged], table: Table) -> dict[str, dict[str, Side]]:
    """Return the objects after the changes that the fold makes of the rows."""
    entries = [
        Entry(number, "N", row.type, "2025-01-01T00:00:00", None, table.name, *row[1:])
        for number, row in enumerate(rows, 1)
    ]
    planned = plan(entries, Tables([table]), Rules())
    content: dict[str, dict[str, Side]] = {}
    for event in planned.events():
        key = event.object[1]
        if event.change.op is Op.DELETE:
            content.pop(key, None)
            continue
        fields = content.setdefault(key, {})
        for name, before, after in event.change.fields:
            if before is not ABSENT and before is not None:
                assert fields[name] == before
            fields[name] = None if after is ABSENT else after
    assert {outcome.fate for outcome in planned.outcomes.values()} <= {Fate.SENT, Fate.SAYS_NOTHING}
    return content


def loaded(table: Table, content: dict[str, Texts]) -> dict[str, dict[str, Side]]:
    """Return the texts as values."""
    return {
        key: {
            name: None if value is None else values.load(table.columns[name].kind, value)
            for name, value in fields.items()
        }
        for key, fields in content.items()
    }


def check_texts(table: Table, content: dict[str, Texts]) -> None:
    """Every key parses back to its columns, and every text is one of its column's kind."""
    for key, fields in content.items():
        pairs = tablekey.read(key)
        assert tuple(name for name, _ in pairs) == table.key
        assert tablekey.write(pairs) == key
        for name, value in (*pairs, *fields.items()):
            if value is not None:
                values.load(table.columns[name].kind, value)
