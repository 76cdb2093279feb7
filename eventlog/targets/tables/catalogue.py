"""The tables of the target: found for the changes of a source, made and extended where they are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.capacity import IllegalName
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.error_causes import blames_definition
from eventlog.sql.relation import qualified
from eventlog.targets.tables.blocks import Block
from eventlog.targets.tables.cell_columns import to_column
from eventlog.targets.tables.cells import to_cell
from eventlog.targets.tables.definitions import Definitions, wanted
from eventlog.targets.tables.errors import (
    NoKnownKey,
    NoTable,
    NotMade,
    NotTable,
    OwnTable,
    TwoSchemas,
)
from eventlog.targets.tables.settings import ApplySettings, Named
from eventlog.targets.tables.source_schema import SourceSchema
from eventlog.targets.tables.table_target import TableTarget
from eventlog.targets.tables.type_guesses import guessed_types

OWN = ("eventlog_applied", "eventlog_applied_marks", "eventlog_applied_ddl")
Shape = tuple[str | None, str, tuple[str, ...]]  # of changes: their table, and the columns that they need


class TargetTables:
    """The tables of the target that changes are for."""

    def __init__(
        self,
        connection: Connection,
        dialect: Dialect,
        tables: Tables,
        settings: ApplySettings,
        described: SourceSchema,
        inform: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._dialect = dialect
        self._tables = tables
        self._settings = settings
        self._policy = settings.schema_changes
        self._inform = inform
        self._definitions = Definitions(dialect, connection.dialect, tables, described, settings)
        self._catalogue = Catalogue(connection)
        self._home = self._catalogue.home()
        self._found: dict[Named, TableTarget | None] = {}
        self._faults: dict[Named, EventlogError] = {}
        self._unfit: dict[Shape, EventlogError] = {}  # of the changes that were prepared last
        self._claimed: dict[tuple[str, str], str | None] = {}  # the schema from which each table comes

    def get(self, block: Block) -> TableTarget | None:
        """Return the table for changes; None where changes of tables that the target lacks are left out."""
        named = _named(block)
        if fault := self._faults.get(named) or self._unfit.get(_shape(block)):
            raise fault
        goal = self._found[named]
        if goal is None and self._policy != "ignore":
            raise NoTable(named[1])
        return goal

    def prepare(self, blocks: Iterable[Block]) -> Iterator[str]:
        """Look up the tables of changes, and make what they lack if that is wanted; yields each statement."""
        by_table: dict[Named, list[Block]] = {}
        self._unfit.clear()
        for block in blocks:
            named = _named(block)
            goal = self._found.get(named)
            if named not in self._faults and (goal is None or goal.lacks(block.changes[0])):
                by_table.setdefault(named, []).append(block)
        for named, lacking in by_table.items():
            try:
                yield from self._prepare(named, lacking)
            except (NoKnownKey, OwnTable, TwoSchemas, NotTable, IllegalName) as fault:
                self._faults[named] = fault

    def _prepare(self, named: Named, blocks: Sequence[Block]) -> Iterator[str]:
        goal = self._found.get(named) or self._look_up(named)
        if self._policy == "apply":
            made = False
            for statement in self._made(named, goal, self._fitting(named, goal, blocks)):
                made = True
                yield statement
            goal = self._look_up(named) if made else goal
        self._found[named] = goal

    def _fitting(self, named: Named, goal: TableTarget | None, blocks: Sequence[Block]) -> list[Block]:
        """Return the blocks whose columns the table can have; the others are refused."""
        admitted: dict[str, None] = {}
        fitting = []
        for block in blocks:
            names = wanted(block) if goal is None else goal.lacks(block.changes[0])
            try:
                if goal is None:
                    self._dialect.capacity.check_name(self._place(named)[1])
                self._definitions.check(named, [*admitted, *names], 0 if goal is None else len(goal.columns))
            except (OwnTable, TwoSchemas):
                raise
            except EventlogError as fault:
                self._unfit[_shape(block)] = fault
                continue
            admitted |= dict.fromkeys(names)
            fitting.append(block)
        return fitting

    def _made(self, named: Named, goal: TableTarget | None, blocks: Sequence[Block]) -> Iterator[str]:
        """Make the table of changes and its columns, and yield each statement that was run."""
        if goal is None and blocks:
            yield from self._make_schema(named)
            yield from self._make_table(named, blocks)
            goal = self._look_up(named)
        if goal is not None:
            yield from self._add_columns(named, goal, blocks)

    def _make_schema(self, named: Named) -> Iterator[str]:
        schema, _ = self._place(named)
        if schema == self._home or schema in self._catalogue.schemas():
            return
        statement = templates.statement(
            self._dialect, "apply_create_schema", schema=self._dialect.quote(schema)
        )
        if (fault := self._refusal(named[1], statement)) is not None:
            raise fault
        yield statement

    def _make_table(self, named: Named, blocks: Sequence[Block]) -> Iterator[str]:
        """Make a table for all changes together, else for the first of them that the database can hold."""
        for some in (blocks, *([block] for block in blocks if len(blocks) > 1)):
            statement, guesses = self._definitions.table(named, self._place(named), some)
            fault = self._refusal(named[1], statement)
            if fault is None:
                if guesses:
                    self._inform(guessed_types(named[1], guesses))
                yield statement
                return
            if len(some) == 1:
                self._unfit[_shape(some[0])] = fault

    def _add_columns(self, named: Named, goal: TableTarget, blocks: Sequence[Block]) -> Iterator[str]:
        """Add the columns that changes lack; changes whose column the database refuses are refused."""
        changes = [change for block in blocks for change in block.changes]
        capacity, done = self._dialect.capacity, dict[str, EventlogError | None]()
        for block in blocks:
            for name in goal.lacks(block.changes[0]) if _shape(block) not in self._unfit else ():
                own = capacity.same(self._dialect.fold(name))
                if own not in done:
                    statement, guess = self._definitions.column(named, goal, name, changes)
                    done[own] = self._refusal(named[1], statement)
                    if done[own] is None:
                        if guess:
                            self._inform(guessed_types(named[1], guess))
                        yield statement
                if fault := done[own]:
                    self._unfit[_shape(block)] = fault

    def _refusal(self, name: str, statement: str) -> NotMade | None:
        """Run a statement and return None, or why no database could run it; NotMade for any other reason."""
        try:
            execute_plain(self._connection, statement)
        except DatabaseFailed as fault:
            refusal = NotMade(name, fault)
            if not blames_definition(fault, self._dialect):
                raise refusal from fault
            self._connection.rollback()
            return refusal
        return None

    def _look_up(self, named: Named) -> TableTarget | None:
        """Return the table of the target as it is now."""
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
        key = relation.table.key if computed.keys().isdisjoint(relation.table.key) else ()
        table = replace(relation.table, columns=columns, key=key)
        return TableTarget(
            table,
            qualified(self._dialect, schema, table.name),
            tuple(to_cell(column, self._dialect) for column in table.columns.values()),
            frozenset(place for place, n in enumerate(table.columns) if int(facts[n]["has_default"])),
            self._tables.of(*named),
            self._policy == "ignore",
            tuple(to_column(column, self._dialect) for column in table.columns.values()),
            Table(schema, table.name, computed),
        )

    def _facts(self, schema: str, name: str) -> list[Any]:
        statement = text(templates.statement(self._dialect, "apply_columns"))
        found = self._connection.execute(statement, {"schema": schema, "table_name": name})
        return [{str(key).lower(): value for key, value in row.items()} for row in found.mappings()]

    def _place(self, named: Named) -> tuple[str, str]:
        """Return the schema and the name of a table in the target.

        The schema is the source's only where that was chosen: on one server it may be the source itself.
        """
        schema, name = named
        if name.lower() in OWN:
            raise OwnTable(name)
        home = self._home
        if schema is not None and self._settings.schemas == "source":
            home = self._dialect.fold(schema)
            self._dialect.capacity.check_schema(home)
        place = home, self._dialect.fold(name)
        first = self._claimed.setdefault(place, schema)
        if first != schema:
            raise TwoSchemas(name, first, schema)
        return place


def _named(block: Block) -> Named:
    return block.changes[0].schema, block.changes[0].table


def _shape(block: Block) -> Shape:
    return (*_named(block), wanted(block))


def _is_view(kind: str) -> bool:
    return kind.endswith("view")
