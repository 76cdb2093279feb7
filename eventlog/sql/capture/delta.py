"""Tables of two columns, identity and action, for connectors that delete the rows that they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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

MARK = "eventlog delta by "  # begins the comment on such a table; the identity column ends it
_ENDING = "_delta"
_TRIGGERS = 2  # on either table
_LOST = "changes may be missing: make it again, then aggregate everything once"


class DeltaPlan(NamedTuple):
    """The statements that make or remove a delta table; none if it is so already."""

    table: Table
    statements: tuple[str, ...]
    makes: bool  # a delta table, else removes it

    @property
    def delta(self) -> str:
        """Return the name of the delta table."""
        return f"{self.table}{_ENDING}"

    def run(self, engine: Engine) -> None:
        """Run the statements in one transaction."""
        with engine.begin() as connection:
            for statement in self.statements:
                execute_plain(connection, statement)


def plan_delta(connection: Connection, name: str, identity: str) -> DeltaPlan:
    """Return what makes the delta table of a table, by a column that names its objects."""
    catalogue, table = _table(connection, name)
    installed = next((delta for delta in _deltas(catalogue) if delta.is_of(table)), None)
    column = table.column(identity)
    if column is None:
        raise CannotTrack(str(table), f"it has no column {identity}")
    if installed is not None and installed.identity != column.name:
        raise CannotTrack(str(table), f"its delta is by {installed.identity}: untrack it first")
    holes = _names(catalogue.dialect, table, column.name)
    type_name, is_never_null, is_unique = _ask(catalogue, "delta_column", holes, identity=column.name).one()
    if not (is_never_null and is_unique):
        reason = f"column {column.name} names no object: it must be not null, and unique by itself"
        raise CannotTrack(str(table), reason)
    creating = templates.statements(catalogue.dialect, "create_delta", {**holes, "type": type_name})
    return DeltaPlan(table, () if installed else tuple(creating), makes=True)


def plan_no_delta(connection: Connection, name: str) -> DeltaPlan:
    """Return what removes the delta table of a table."""
    catalogue, table = _table(connection, name)
    installed = next((delta for delta in _deltas(catalogue) if delta.is_of(table)), None)
    if installed is None:
        return DeltaPlan(table, (), makes=False)
    holes = installed.names
    type_name = _ask(catalogue, "delta_column", holes, identity=installed.identity).one()[0]
    dropping = templates.statements(catalogue.dialect, "drop_delta", {**holes, "type": type_name})
    return DeltaPlan(table, tuple(dropping), makes=False)


def check_deltas(connection: Connection) -> Iterator[Finding]:
    """Yield what is wrong with the delta tables of the database."""
    catalogue = Catalogue(connection)
    for delta in _deltas(catalogue):
        table, names = delta.table, delta.names
        remedy_commands = (
            f"eventlog untrack --for sailpoint {table}",
            f"eventlog track --for sailpoint --identity {delta.identity} {table}",
        )
        firing = _ask(catalogue, "triggers_of_delta", names).scalar_one()
        if firing < _TRIGGERS:
            words = f"a trigger of {table} that fills it is missing or disabled"
            yield Finding(delta.name, words, _LOST, commands=remedy_commands)
        if delta.triggers < _TRIGGERS:
            words = "a trigger on it is missing or disabled: what waits for its rows to go stays there"
            yield Finding(delta.name, words, _LOST, commands=remedy_commands)
        if count := _ask(catalogue, "stuck_in_delta", names).scalar_one():
            words = f"{count} changes wait for rows to go that it does not have"
            yield Finding(delta.name, words, _LOST, commands=remedy_commands)


def has_deltas(connection: Connection) -> bool:
    """Return whether the database has delta tables."""
    return next(_deltas(Catalogue(connection)), None) is not None


class _Delta(NamedTuple):
    """A delta table that is there."""

    table: Table
    identity: str
    triggers: int  # that fire on it
    names: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.table}{_ENDING}"

    def is_of(self, table: Table) -> bool:
        return (self.table.schema, self.table.name) == (table.schema, table.name)


def _deltas(catalogue: Catalogue) -> Iterator[_Delta]:
    if catalogue.dialect.name != "postgresql":
        return
    for schema, name, mark, triggers in _ask(catalogue, "deltas", {}, mark=f"{MARK}%"):
        table, identity = Table(schema, name.removesuffix(_ENDING), {}), mark.removeprefix(MARK)
        yield _Delta(table, identity, triggers, _names(catalogue.dialect, table, identity))


def _table(connection: Connection, name: str) -> tuple[Catalogue, Table]:
    catalogue = Catalogue(connection)
    relation = catalogue.find(name)
    if catalogue.dialect.name != "postgresql":
        reason = f"a delta table needs PostgreSQL, and this is {catalogue.dialect.title}"
        raise CannotTrack(str(relation.table), reason)
    if not relation.identity.is_table:
        raise CannotTrack(str(relation.table), f"it is a {relation.kind}")
    return catalogue, relation.table


def _names(dialect: Dialect, table: Table, identity: str) -> dict[str, str]:
    """Return the quoted names of all that belongs to the delta table of a table."""

    def name_with(ending: str) -> str:
        name = f"{table.name}{_ENDING}{ending}"
        if len(name.encode()) > dialect.max_name:
            raise CannotTrack(str(table), f"its name is too long: {name} has over {dialect.max_name} bytes")
        return qualified(dialect, table.schema, name)

    return {
        "table": qualified(dialect, table.schema, table.name),
        "identity": dialect.quote(identity),
        "mark": literal(f"{MARK}{identity}"),
        "delta": name_with(""),
        "waiting": name_with("_waiting"),
        "note": name_with("_note"),
        "changed": name_with("_changed"),
        "read": name_with("_read"),
        "changed_trigger": dialect.quote("eventlog_delta_changed"),
        "truncated_trigger": dialect.quote("eventlog_delta_truncated"),
        "read_trigger": dialect.quote("eventlog_delta_read"),
    }


def _ask(catalogue: Catalogue, question: str, names: dict[str, str], **values: Any) -> Any:
    statement = templates.statement(catalogue.dialect, question, **names)
    if question in ("delta_column", "triggers_of_delta"):
        values["table"] = names["table"]
    return catalogue.connection.execute(text(statement), values)
