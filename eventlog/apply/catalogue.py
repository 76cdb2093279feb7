"""The tables of the target: found for the changes of a source, made and extended where they are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.apply.blocks import Block
from eventlog.apply.cell_columns import to_column
from eventlog.apply.cells import to_cell
from eventlog.apply.described import Described
from eventlog.apply.errors import ComputedKey, NoKnownKey, NoTable, NotMade, NotTable, OwnTable, TwoSchemas
from eventlog.apply.goal import Goal
from eventlog.apply.guessing import guessed, values_of
from eventlog.apply.settings import ApplySettings
from eventlog.apply.span import FROM_SEQ, FROM_TIME, OP, SEQ_LENGTH, TO_SEQ, TO_TIME, without_span
from eventlog.core.change import Change
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.places.sql_cells import SQL_TYPES
from eventlog.qlik.sqltypes import spec_of
from eventlog.qlik.types import Spec
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.dialect.dialects import Dialect
from eventlog.sql.relation import qualified
from eventlog.sql.statements import templates

OWN = ("eventlog_applied", "eventlog_applied_marks", "eventlog_applied_ddl")
_LONGEST_KEY = 250  # characters of a text in a key that nobody declared
Named = tuple[str | None, str]


class Goals:
    """The tables of the target that changes are for."""

    def __init__(
        self,
        connection: Connection,
        dialect: Dialect,
        tables: Tables,
        settings: ApplySettings,
        described: Described,
    ) -> None:
        self._connection = connection
        self._dialect = dialect
        self._tables = tables
        self._described = described
        self._policy = settings.schema_changes
        self._history = settings.history
        self._catalogue = Catalogue(connection)
        self._home = self._catalogue.home()
        self._found: dict[Named, Goal | None] = {}
        self._faults: dict[Named, EventlogError] = {}
        self._claimed: dict[str, str | None] = {}  # the schema from which each table comes

    def get(self, change: Change) -> Goal | None:
        """The table for a change; None where changes of tables that the target lacks are left out."""
        named = change.schema, change.table
        if named in self._faults:
            raise self._faults[named]
        goal = self._found[named]
        if goal is None and self._policy != "ignore":
            raise NoTable(change.table)
        return goal

    def prepare(self, blocks: Iterable[Block]) -> Iterator[str]:
        """Look up the tables of changes, make what they lack if that is wanted; yields what was done."""
        by_table: dict[Named, list[Change]] = {}
        for block in blocks:
            change = block.changes[0]
            named = change.schema, change.table
            goal = self._found.get(named)
            if named not in self._faults and (goal is None or goal.lacks(change)):
                by_table.setdefault(named, []).extend(block.changes)
        for named, wanting in by_table.items():
            try:
                yield from self._prepare(named, wanting)
            except (NoKnownKey, OwnTable, TwoSchemas, NotTable, ComputedKey) as fault:
                self._faults[named] = fault

    def _prepare(self, named: Named, changes: list[Change]) -> Iterator[str]:
        goal = self._found.get(named) or self._look_up(named)
        if self._policy == "apply":
            made = False
            for statement in self._statements(named, goal, changes):
                self._execute(named[1], statement)
                made = True
                yield statement
            goal = self._look_up(named) if made else goal
        self._found[named] = goal

    def _execute(self, name: str, statement: str) -> None:
        try:
            execute_plain(self._connection, statement)
        except DatabaseFailed as fault:
            raise NotMade(name, fault) from fault

    def _statements(self, named: Named, goal: Goal | None, changes: list[Change]) -> Iterator[str]:
        """The statements by which the target can take the changes."""
        if goal is None:
            yield self._creation(named, changes)
            return
        specs = self._specs(named)
        for name in dict.fromkeys(name for change in changes for name in goal.lacks(change)):
            column = f"{self._quoted(name)} {self._type(name, specs, changes, keyed=False)}"
            yield templates.statement(self._dialect, "apply_add_column", table=goal.name, column=column)

    def _look_up(self, named: Named) -> Goal | None:
        """The table of the target as it stands now."""
        schema, name = self._place(named)
        kinds = {known: kind for _, known, kind in self._catalogue.names(schema)}
        alike = [known for known in kinds if known == name] or [
            known for known, kind in kinds.items() if known.lower() == name.lower() and not _is_view(kind)
        ]
        if len(alike) != 1:
            return None
        if _is_view(kinds[alike[0]]):
            raise NotTable(name, kinds[name])
        relation = self._catalogue.relation(schema, alike[0])
        facts = {row["column_name"]: row for row in self._facts(schema, relation.table.name)}
        columns = {n: c for n, c in relation.table.columns.items() if not int(facts[n]["computed"])}
        computed = {n: c for n, c in relation.table.columns.items() if n not in columns}
        if not computed.keys().isdisjoint(relation.table.key):
            raise ComputedKey(name)
        table = replace(relation.table, columns=columns)
        if self._history:
            table = without_span(table, self._dialect)
        return Goal(
            table,
            qualified(self._dialect, schema, table.name),
            tuple(to_cell(column, self._dialect) for column in table.columns.values()),
            frozenset(place for place, n in enumerate(table.columns) if int(facts[n]["has_default"])),
            self._tables.of(*named),
            self._policy == "ignore",
            tuple(to_column(column, self._dialect) for column in table.columns.values()),
            frozenset(place for place, n in enumerate(table.columns) if int(facts[n]["fixed"])),
            Table(schema, table.name, computed),
        )

    def _facts(self, schema: str, name: str) -> list[Any]:
        statement = text(templates.statement(self._dialect, "apply_columns"))
        found = self._connection.execute(statement, {"schema": schema, "table_name": name})
        return [{str(key).lower(): value for key, value in row.items()} for row in found.mappings()]

    def _place(self, named: Named) -> tuple[str, str]:
        """Where the table of a change stands, or would: in the connection's own schema, whatever its own is
        called, for on one server that may be the source itself."""
        schema, name = named
        if name.lower() in OWN:
            raise OwnTable(name)
        place = self._dialect.fold(name)
        first = self._claimed.setdefault(place, schema)
        if first != schema:
            raise TwoSchemas(name, first, schema)
        return self._home, place

    def _creation(self, named: Named, changes: list[Change]) -> str:
        """The statement that makes the table of changes; an EventlogError if too little is known of it."""
        source = self._tables.of(*named)
        specs = self._specs(named)
        key = (source.key if source is not None else ()) or tuple(self._described.key(named))
        key = key or next((tuple(name for name, _ in change.key) for change in changes if change.key), ())
        if not key:
            raise NoKnownKey(named[1])
        names = dict.fromkeys([*specs, *key, *(f.column for change in changes for f in change.fields)])
        columns = [
            f"{self._quoted(name)} {self._type(name, specs, changes, keyed=name in key)}"
            + (" not null" if name in key else "")
            for name in names
        ]
        if self._history:
            columns += self._span()
            key = (*key, FROM_SEQ)
        schema, table = self._place(named)
        return templates.statement(
            self._dialect,
            "apply_create",
            table=qualified(self._dialect, schema, table),
            columns=",\n  ".join(columns),
            key_name=self._quoted(_shortened(f"{table}_key", self._dialect.max_name)),
            key=", ".join(map(self._quoted, key)),
            table_options=self._dialect.table_options,
        )

    def _span(self) -> list[str]:
        """The columns that say from where to where a version holds."""
        specs = {FROM_SEQ: "", TO_SEQ: "", FROM_TIME: "DATETIME", TO_TIME: "DATETIME", OP: ""}
        made = [
            f"{self._quoted(name)} {self._made(Spec(kind, 0, 0, 6) if kind else Spec('STRING', SEQ_LENGTH))}"
            for name, kind in specs.items()
        ]
        return [f"{made[0]} not null", *made[1:]]

    def _quoted(self, name: str) -> str:
        return self._dialect.quote(self._dialect.fold(name))

    def _specs(self, named: Named) -> dict[str, Spec]:
        """The types of a table's columns: as the tables file has them, else as the source tells them."""
        source = self._tables.of(*named)
        if source is not None and source.columns:
            return {name: spec_of(column) for name, column in source.columns.items()}
        return self._described.columns(named)

    def _type(self, name: str, specs: dict[str, Spec], changes: list[Change], *, keyed: bool) -> str:
        """The type of a column in the target's words."""
        spec = specs.get(name) or guessed(values_of(name, changes))
        if keyed and spec.length == 0 and spec.name in _UNBOUNDED:
            spec = Spec("STRING" if spec.name != "BYTES" else "BYTES", _LONGEST_KEY)
        return self._made(spec)

    def _made(self, spec: Spec) -> str:
        return str(SQL_TYPES[spec.name](spec).compile(dialect=self._connection.dialect))


def _is_view(kind: str) -> bool:
    return kind.endswith("view")


_UNBOUNDED = frozenset(("STRING", "WSTRING", "CLOB", "NCLOB", "BYTES"))


def _shortened(name: str, most: int) -> str:
    return name.encode()[:most].decode(errors="ignore")
