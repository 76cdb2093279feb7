"""Tables of changed objects for readers that delete the rows that they read, filled by triggers.

For SailPoint it has two columns, identity and action. For ConnId, the framework of midPoint and Syncope, it
is a queue whose rows a script numbers when it hands them out. The statements are in readers.sql of each
database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.remedies import Remedy
from eventlog.core.tables import Table
from eventlog.sql.capture.findings import Check, Facts, Finding, findings_of
from eventlog.sql.capture.refusals import CannotTrack, referring_to_script
from eventlog.sql.catalogue import Catalogue, NoSuchTable, open_catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.relation import Relation, place_of, qualified
from eventlog.sql.trigger_rows import indent

READERS: Final = {"sailpoint": "_delta", "connid": "_queue"}  # how the name of a reader's table ends
_MARK = "eventlog for "  # begins the comment on such a table
_MARKED = re.compile(r"eventlog for (\w+) by (.+)", re.DOTALL)
_PARTS = (  # tables, routines, triggers
    *("waiting", "last", "note", "read"),
    *("changed", "truncated", "inserted", "updated", "deleted"),
)
_TABLES = ("delta", "waiting", "last")


class ReaderPlan(NamedTuple):
    """The statements that make or remove a reader's table; none if it is so already."""

    table: str  # of the reader
    statements: tuple[str, ...]
    makes: bool  # the table, else removes it
    undo: tuple[str, ...] = ()  # what is done after a failure, if the database keeps half of it
    warnings: tuple[str, ...] = ()

    def run(self, engine: Engine) -> None:
        """Run the statements; what was made before one fails is removed."""
        with engine.begin() as connection, referring_to_script(self.table):
            try:
                for statement in self.statements:
                    execute_plain(connection, statement)
            except DatabaseFailed:
                for statement in self.undo:
                    execute_plain(connection, statement)
                raise


def plan_reader(connection: Connection, reader: str, name: str, identity: str) -> ReaderPlan:
    """Return what makes a reader's table for a table, by a column that names its objects."""
    catalogue, relation = _tracked(connection, name)
    table, dialect = relation.table, catalogue.dialect
    installed = _installed(catalogue, reader, table)
    column = table.column(identity)
    if column is None:
        raise CannotTrack(str(table), f"it has no column {identity}")
    if installed is not None and installed.identity != column.name:
        raise CannotTrack(str(table), f"{installed.name} is by {installed.identity}: untrack it first")
    reader_table = _ReaderTable(dialect, reader, table, column.name)
    own_type, is_never_null, is_unique = reader_table.column_facts(catalogue)
    if not (is_never_null and is_unique):
        reason = f"column {column.name} names no object: it must be not null, and unique by itself"
        raise CannotTrack(str(table), reason)
    if installed is not None:
        return ReaderPlan(reader_table.name, (), makes=True)
    reader_table.demand_free_names(catalogue)
    type_name = own_type or dialect.schema.words["type_key"]
    value = "{x}" if own_type else f"({dialect.values.expressions.of(column.type).text})"
    creating = tuple(reader_table.statements(f"create{READERS[reader]}", type_name, value))
    undo = () if dialect.schema.transactional else tuple(reader_table.statements(f"drop{READERS[reader]}"))
    warnings = tuple(f"{way}: such changes will be missing" for way in _silent_cascades(dialect, relation))
    return ReaderPlan(reader_table.name, creating, makes=True, undo=undo, warnings=warnings)


def plan_no_reader(connection: Connection, reader: str, name: str) -> ReaderPlan:
    """Return what removes a reader's table of a table, which may be gone."""
    catalogue = Catalogue(connection)
    try:
        table = _tracked(connection, name)[1].table
    except NoSuchTable:
        names = (name, f"{catalogue.home()}.{name}")
        tables = (installed.table for installed in _all_installed(catalogue))
        former_table = next((table for table in tables if str(table) in names), None)
        if former_table is None:
            raise
        table = former_table
    reader_table = _ReaderTable(catalogue.dialect, reader, table)
    installed = _installed(catalogue, reader, table)
    dropping = () if installed is None else tuple(installed.statements(f"drop{READERS[reader]}"))
    return ReaderPlan(reader_table.name, dropping, makes=False)


def check_readers(connection: Connection) -> Iterator[Finding]:
    """Yield what is wrong with the readers' tables of the database."""
    catalogue = Catalogue(connection)
    for reader_table in _all_installed(catalogue):
        words = {"table_word": quote(str(reader_table.table)), "identity_word": quote(reader_table.identity)}
        names = {"where": reader_table.name, "table": reader_table.table, "reader": reader_table.reader}
        findings: list[Finding] = []
        fault: DatabaseFailed | None = None
        try:
            with connection.begin_nested():
                findings.extend(findings_of(READER_CHECKS, (catalogue, reader_table), names | words))
        except DatabaseFailed as why:
            fault = why
        is_doubtful = fault is not None or any(finding.fault for finding in findings)
        if is_doubtful and reader_table.name not in _present_names(connection):
            continue  # it was dropped meanwhile; a server of MySQL shows those of all databases
        if fault is not None:
            raise fault
        yield from findings


def _present_names(connection: Connection) -> set[str]:
    """Return the names of the readers' tables as they are now; a transaction of MySQL sees older ones."""
    with open_catalogue(connection.engine) as catalogue:
        return {table.name for table in _all_installed(catalogue)}


def has_readers(connection: Connection) -> bool:
    """Return whether the database has tables for readers."""
    return next(_all_installed(Catalogue(connection)), None) is not None


class _ReaderTable:
    """A table for a reader, and the quoted names of all that belongs to it."""

    def __init__(self, dialect: Dialect, reader: str, table: Table, identity: str = "") -> None:
        self.reader, self.table, self.identity = reader, table, identity
        self.bare_name = table.name + dialect.fold(READERS[reader])
        self.name = str(Table(table.schema, self.bare_name, {}))
        self._dialect = dialect

    def names(self) -> dict[str, str]:
        """Return what fills the holes of statements."""
        schema = self.table.schema
        names = {
            "table": qualified(self._dialect, schema, self.table.name),
            "identity": self._dialect.quote(self.identity),
            "mark": literal(f"{_MARK}{self.reader} by {self.identity}"),
            "schema_text": literal(schema or ""),
        }
        for part, bare_name in self._bare_names().items():
            names |= {
                part: qualified(self._dialect, schema, bare_name),
                f"{part}_label": self._dialect.quote(bare_name),
                f"{part}_text": literal(bare_name),
                f"{part}_quoted_text": literal(qualified(self._dialect, schema, bare_name)),
            }
        return names

    def _bare_names(self) -> dict[str, str]:
        parts = {part: self.bare_name + self._dialect.fold(f"_{part}") for part in _PARTS}
        longest = max(parts.values(), key=len)
        if len(longest.encode()) > self._dialect.names.longest:
            reason = f"its name is too long: {longest} has over {self._dialect.names.longest} bytes"
            raise CannotTrack(str(self.table), reason)
        return {"delta": self.bare_name, **parts}

    def demand_free_names(self, catalogue: Catalogue) -> None:
        """Raise CannotTrack if there is a table or view of a name that is ours."""
        for bare_name in map(self._bare_names().__getitem__, _TABLES):
            if catalogue.at((self.table.schema or "", bare_name)) is not None:
                raise CannotTrack(str(self.table), f"{bare_name} is there already: rename it or drop it")

    def statements(self, name: str, type_name: str = "", value: str = "{x}") -> Iterator[str]:
        """Yield the statements of a name with their holes filled; `value` is how the identity is held."""
        column = self._dialect.quote(self.identity)
        rows = {"new": "new", "old": "old", "row": "t"}
        values = {f"{row}_identity": value.format(x=f"{alias}.{column}") for row, alias in rows.items()}
        if self._dialect.triggers.on_truncate:
            values["sees_all"] = indent(templates.statement(self._dialect, "sees_all_rows"), 4)
        return templates.statements(self._dialect, name, {**self.names(), **values, "type": type_name})

    def place(self) -> dict[str, str | None]:
        """Return where the reader's table is, as questions name it."""
        return {"schema": self.table.schema, "reader_table": self.bare_name}

    def column_facts(self, catalogue: Catalogue) -> tuple[str | None, bool, bool]:
        """Return the type of the identity, whether it is never null, and whether it is unique.

        The type is None if its equality is not the server's own.
        """
        place = {"schema": self.table.schema, "table_name": self.table.name}
        facts = self.ask(catalogue, "delta_column", **place, identity=self.identity).one()
        return facts[0], bool(facts[1]), bool(facts[2])

    def ask(self, catalogue: Catalogue, question: str, **values: Any) -> Any:
        """Return the answer to a question that is a statement of that name."""
        statement = text(templates.statement(self._dialect, question, **self.names()))
        return catalogue.connection.execute(statement, values)


_Installed = tuple[Catalogue, _ReaderTable]


def _filling(installed: _Installed) -> Iterator[Facts]:
    catalogue, reader_table = installed
    place, table = reader_table.place(), reader_table.table
    if reader_table.ask(catalogue, "silent_filling", **place, table_name=table.name).scalar_one():
        visible = catalogue.shows_triggers(place_of(table))
        yield {"silent": visible, "hidden": not visible}


def _emptying(installed: _Installed) -> Iterator[Facts]:
    """Yield why changes stay after rows that a reader deleted."""
    catalogue, reader_table = installed
    if reader_table.reader == "sailpoint":
        silent = reader_table.ask(catalogue, "silent_emptying", **reader_table.place()).scalar_one()
        yield {"silent": silent, "stuck": reader_table.ask(catalogue, "stuck_in_delta").scalar_one()}


def _cascades(installed: _Installed) -> Iterator[Facts]:
    catalogue, reader_table = installed
    relation = catalogue.at(place_of(reader_table.table))
    for way in () if relation is None else _silent_cascades(catalogue.dialect, relation):
        yield {"way": way}


def _ways_round(installed: _Installed) -> Iterator[Facts]:
    catalogue, reader_table = installed
    for way, _ in catalogue.dialect.triggers.ways_round:
        yield {"where": str(reader_table.table), "way": way}


_LOST = "changes may be missing: make it again, then read all objects once"
_REMAKING = (
    Remedy.UNTRACK_FOR.template(READER="{reader}", TABLE="{table_word}"),
    Remedy.TRACK_FOR.template(READER="{reader}", COLUMN="{identity_word}", TABLE="{table_word}"),
)

READER_CHECKS: tuple[Check[_Installed], ...] = (
    Check(_filling, "silent",
        "a trigger of {table} that fills it is missing or disabled",
        _LOST, _REMAKING),
    Check(_filling, "hidden",
        "its triggers cannot be checked: this user may not see those of {table}",
        "run check as the user that made it",
        fault=False, shown=True),
    Check(_emptying, "silent",
        "a trigger on it is missing or disabled: what waits for its rows to go stays there",
        _LOST, _REMAKING),
    Check(_emptying, "stuck",
        "{stuck} changes wait for rows to go that it does not have",
        _LOST, _REMAKING),
    Check(_cascades, "way",
        "{way}: such changes are missing",
        "let it restrict, and delete the rows first"),
    Check(_ways_round, "way",
        "{way}",
        "read all objects once afterwards",
        fault=False),
)  # fmt: skip


def _silent_cascades(dialect: Dialect, relation: Relation) -> Iterator[str]:
    for target in relation.silent_cascades(dialect):
        link = f"the foreign key of {relation.table} to {target}"
        yield f"{link} cascades and fires no trigger in {dialect.title}"


def _installed(catalogue: Catalogue, reader: str, table: Table) -> _ReaderTable | None:
    for installed in _all_installed(catalogue):
        if (installed.reader, str(installed.table)) == (reader, str(table)):
            return installed
    return None


def _all_installed(catalogue: Catalogue) -> Iterator[_ReaderTable]:
    dialect = catalogue.dialect
    question = text(templates.statement(dialect, "deltas"))
    for schema, name, mark in catalogue.connection.execute(question, {"mark": f"{_MARK}%"}).all():
        marked = _MARKED.fullmatch(mark)
        if marked is not None and marked[1] in READERS:
            table = Table(schema, name.removesuffix(dialect.fold(READERS[marked[1]])), {})
            yield _ReaderTable(dialect, marked[1], table, marked[2])


def _tracked(connection: Connection, name: str) -> tuple[Catalogue, Relation]:
    catalogue = Catalogue(connection)
    relation = catalogue.find(name)
    if not relation.identity.is_table:
        raise CannotTrack(str(relation.table), f"it is a {relation.kind}")
    return catalogue, relation
