"""Tables of changed objects for readers that delete the rows that they read, filled by triggers.

For SailPoint it is a table of two columns, identity and action. For ConnId, the framework of midPoint and
Syncope, it is a queue whose rows a script numbers when it hands them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.tables import Table
from eventlog.sql.capture.findings import Finding
from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import execute_plain
from eventlog.sql.relation import qualified

READERS: Final = {"sailpoint": "_delta", "connid": "_queue"}  # how the name of a reader's table ends
_MARK = "eventlog for "  # begins the comment on such a table
_MARKED = re.compile(r"eventlog for (\w+) by (.+)", re.DOTALL)
_FILLING = ("changed_trigger", "truncated_trigger")
_TRIGGERS = 2  # on either table
_LOST = "changes may be missing: make it again, then read all objects once"


class ReaderPlan(NamedTuple):
    """The statements that make or remove a reader's table; none if it is so already."""

    table: str  # of the reader
    statements: tuple[str, ...]
    makes: bool  # the table, else removes it

    def run(self, engine: Engine) -> None:
        """Run the statements in one transaction."""
        with engine.begin() as connection:
            for statement in self.statements:
                execute_plain(connection, statement)


def plan_reader(connection: Connection, reader: str, name: str, identity: str) -> ReaderPlan:
    """Return what makes a reader's table for a table, by a column that names its objects."""
    catalogue, table = _table(connection, name)
    installed = _installed(catalogue, reader, table)
    column = table.column(identity)
    if column is None:
        raise CannotTrack(str(table), f"it has no column {identity}")
    if installed is not None and installed.identity != column.name:
        raise CannotTrack(str(table), f"{installed.name} is by {installed.identity}: untrack it first")
    reader_table = _ReaderTable(catalogue.dialect, reader, table, column.name)
    type_name, is_never_null, is_unique = reader_table.column_facts(catalogue)
    if not (is_never_null and is_unique):
        reason = f"column {column.name} names no object: it must be not null, and unique by itself"
        raise CannotTrack(str(table), reason)
    creating = () if installed else tuple(reader_table.statements(f"create{READERS[reader]}", type_name))
    return ReaderPlan(reader_table.name, creating, makes=True)


def plan_no_reader(connection: Connection, reader: str, name: str) -> ReaderPlan:
    """Return what removes a reader's table of a table."""
    catalogue, table = _table(connection, name)
    installed = _installed(catalogue, reader, table)
    if installed is None:
        return ReaderPlan(f"{table}{READERS[reader]}", (), makes=False)
    type_name = installed.column_facts(catalogue)[0]
    dropping = tuple(installed.statements(f"drop{READERS[reader]}", type_name))
    return ReaderPlan(installed.name, dropping, makes=False)


def check_readers(connection: Connection) -> Iterator[Finding]:
    """Yield what is wrong with the readers' tables of the database."""
    catalogue = Catalogue(connection)
    for installed in _all_installed(catalogue):
        reader, table = installed.reader, installed.table
        remedy_commands = (
            f"eventlog untrack --for {reader} {table}",
            f"eventlog track --for {reader} --identity {installed.identity} {table}",
        )
        triggers = {name: f"eventlog_{reader}_{name.removesuffix('_trigger')}" for name in _FILLING}
        filling = {**triggers, "table": installed.names["table"]}
        if installed.ask(catalogue, "triggers_of_delta", **filling).scalar_one() < _TRIGGERS:
            words = f"a trigger of {table} that fills it is missing or disabled"
            yield Finding(installed.name, words, _LOST, commands=remedy_commands)
        if reader != "sailpoint":
            continue
        own_trigger = f"eventlog_{reader}_read"
        emptying = {**triggers, "table": installed.names["delta"], "changed_trigger": own_trigger}
        if installed.ask(catalogue, "triggers_of_delta", **emptying).scalar_one() < _TRIGGERS:
            words = "a trigger on it is missing or disabled: what waits for its rows to go stays there"
            yield Finding(installed.name, words, _LOST, commands=remedy_commands)
        if count := installed.ask(catalogue, "stuck_in_delta").scalar_one():
            words = f"{count} changes wait for rows to go that it does not have"
            yield Finding(installed.name, words, _LOST, commands=remedy_commands)


def has_readers(connection: Connection) -> bool:
    """Return whether the database has tables for readers."""
    return next(_all_installed(Catalogue(connection)), None) is not None


class _ReaderTable:
    """A table for a reader, and the quoted names of all that belongs to it."""

    def __init__(self, dialect: Dialect, reader: str, table: Table, identity: str) -> None:
        self.reader, self.table, self.identity = reader, table, identity
        self.name = f"{table}{READERS[reader]}"
        self._dialect = dialect
        names_with_endings = {
            hole: self._own_name(ending)
            for hole, ending in {
                "delta": "",
                "waiting": "_waiting",
                "note": "_note",
                "changed": "_changed",
                "read": "_read",
            }.items()
        }
        triggers = {
            f"{name}_trigger": dialect.quote(f"eventlog_{reader}_{name}")
            for name in ("changed", "truncated", "read")
        }
        self.names: Mapping[str, str] = {
            "table": qualified(dialect, table.schema, table.name),
            "identity": dialect.quote(identity),
            "mark": literal(f"{_MARK}{reader} by {identity}"),
            **names_with_endings,
            **triggers,
        }

    def _own_name(self, ending: str) -> str:
        name = f"{self.table.name}{READERS[self.reader]}{ending}"
        if len(name.encode()) > self._dialect.max_name:
            reason = f"its name is too long: {name} has over {self._dialect.max_name} bytes"
            raise CannotTrack(str(self.table), reason)
        return qualified(self._dialect, self.table.schema, name)

    def statements(self, name: str, type_name: str) -> Iterator[str]:
        return templates.statements(self._dialect, name, {**self.names, "type": type_name})

    def column_facts(self, catalogue: Catalogue) -> tuple[str, bool, bool]:
        """Return the type of the identity, whether it is never null, and whether it is unique."""
        facts = self.ask(catalogue, "delta_column", table=self.names["table"], identity=self.identity).one()
        return str(facts[0]), bool(facts[1]), bool(facts[2])

    def ask(self, catalogue: Catalogue, question: str, **values: Any) -> Any:
        statement = text(templates.statement(self._dialect, question, **self.names))
        return catalogue.connection.execute(statement, values)


def _installed(catalogue: Catalogue, reader: str, table: Table) -> _ReaderTable | None:
    for installed in _all_installed(catalogue):
        if (installed.reader, str(installed.table)) == (reader, str(table)):
            return installed
    return None


def _all_installed(catalogue: Catalogue) -> Iterator[_ReaderTable]:
    if catalogue.dialect.name != "postgresql":
        return
    question = text(templates.statement(catalogue.dialect, "deltas"))
    for schema, name, mark in catalogue.connection.execute(question, {"mark": f"{_MARK}%"}).all():
        marked = _MARKED.fullmatch(mark)
        if marked is not None and marked[1] in READERS:
            table = Table(schema, name.removesuffix(READERS[marked[1]]), {})
            yield _ReaderTable(catalogue.dialect, marked[1], table, marked[2])


def _table(connection: Connection, name: str) -> tuple[Catalogue, Table]:
    catalogue = Catalogue(connection)
    relation = catalogue.find(name)
    if catalogue.dialect.name != "postgresql":
        reason = f"a table for such a reader needs PostgreSQL, and this is {catalogue.dialect.title}"
        raise CannotTrack(str(relation.table), reason)
    if not relation.identity.is_table:
        raise CannotTrack(str(relation.table), f"it is a {relation.kind}")
    return catalogue, relation.table
