"""The tables of the target: found for the changes of a source, made and extended where they are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.naming import IllegalName
from eventlog.sql.common.time_fractions import LOST, with_fractions
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.error_causes import blames_definition
from eventlog.sql.relation import qualified
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, SourceSchema, SourceTable
from eventlog.transfer.targets.tables.cells import to_cell, to_column
from eventlog.transfer.targets.tables.definitions import (
    Definition,
    Definitions,
    SourceColumns,
    needed_columns,
)
from eventlog.transfer.targets.tables.outcomes import (
    NoKnownKey,
    NoTable,
    NotMade,
    NotTable,
    OwnTable,
    TwoSchemas,
)
from eventlog.transfer.targets.tables.table import Block, TableTarget

OWN_TABLES = (
    "eventlog_applied",
    "eventlog_applied_marks",
    "eventlog_applied_refused",
    "eventlog_applied_ddl",
)
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
        note_statement: Callable[[str], None],
        inform: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._dialect = dialect
        self._tables = tables
        self._settings = settings
        self._policy = settings.schema_changes
        self._note_statement = note_statement
        self._inform = inform
        self._whole_seconds = described.whole_seconds
        self._lossy = set[SourceTable]()  # tables whose columns with fractions were reported
        self._definitions = Definitions(
            dialect, connection.dialect, SourceColumns(tables, described, settings)
        )
        self._catalogue = Catalogue(connection)
        self._home = self._catalogue.home()
        self._targets: dict[SourceTable, TableTarget | None] = {}
        self._faults: dict[SourceTable, EventlogError] = {}
        self._unfit: dict[Shape, EventlogError] = {}  # of the changes that were prepared last
        self._claimed: dict[tuple[str, str], str | None] = {}  # the schema from which each table comes

    def get(self, block: Block) -> TableTarget | None:
        """Return the table for changes; None where changes of tables that the target lacks are left out."""
        source_table = _source_table(block)
        if fault := self._faults.get(source_table) or self._unfit.get(_shape(block)):
            raise fault
        target = self._targets[source_table]
        if target is None and self._policy != "ignore":
            raise NoTable(source_table[1])
        return target

    def prepare(self, blocks: Iterable[Block]) -> None:
        """Look up the tables of changes, and make what they lack if that is wanted."""
        by_table: dict[SourceTable, list[Block]] = {}
        self._unfit.clear()
        for block in blocks:
            source_table = _source_table(block)
            target = self._targets.get(source_table)
            if source_table not in self._faults and (target is None or target.missing_columns(block)):
                by_table.setdefault(source_table, []).append(block)
        for source_table, table_blocks in by_table.items():
            try:
                target = self._targets[source_table] = self._prepared(source_table, table_blocks)
                if target is not None and self._whole_seconds:
                    self._report_fractions(source_table, target)
            except (NoKnownKey, OwnTable, TwoSchemas, NotTable, IllegalName) as fault:
                self._faults[source_table] = fault

    def _report_fractions(self, source_table: SourceTable, target: TableTarget) -> None:
        """Report once which columns of a table hold fractions of a second, which no document has."""
        if source_table in self._lossy or target.source is None:
            return
        self._lossy.add(source_table)
        typed_columns = (target.table.column(name) for name in target.source.columns)
        columns = [column for column in typed_columns if column is not None]
        if names := with_fractions(columns, self._dialect):
            self._inform(LOST.format(f"{source_table[1]}: {', '.join(names)}"))

    def _prepared(self, source_table: SourceTable, blocks: Sequence[Block]) -> TableTarget | None:
        """Return the table for changes, made and extended for them."""
        target = self._targets.get(source_table) or self._look_up(source_table)
        if self._policy != "apply":
            return target
        fitting = self._fitting(source_table, target, blocks)
        if target is None and fitting:
            self._make_table(source_table, fitting)
            target = self._look_up(source_table)
        if target is not None and self._add_columns(source_table, target, fitting):
            return self._look_up(source_table)
        return target

    def _fitting(
        self, source_table: SourceTable, target: TableTarget | None, blocks: Sequence[Block]
    ) -> list[Block]:
        """Return the blocks whose columns the table can have; the others are refused."""
        admitted: dict[str, None] = {}
        fitting = []
        for block in blocks:
            names = needed_columns(block) if target is None else target.missing_columns(block)
            try:
                if target is None:
                    self._dialect.names.check_name(self._place(source_table)[1], self._dialect.title)
                self._definitions.check(source_table, target, [*admitted, *names], block.changes)
            except EventlogError as fault:
                self._unfit[_shape(block)] = fault
                continue
            admitted |= dict.fromkeys(names)
            fitting.append(block)
        return fitting

    def _make_table(self, source_table: SourceTable, blocks: Sequence[Block]) -> None:
        """Make a table for all changes together, else for the first of them that the database can hold."""
        place = self._place(source_table)
        if place[0] != self._home and place[0] not in self._catalogue.schemas():
            schema = self._definitions.schema(place[0])
            if fault := self._make(source_table, schema):
                raise fault
        for block_group in (blocks, *([block] for block in blocks if len(blocks) > 1)):
            fault = self._make(source_table, self._definitions.table(source_table, place, block_group))
            if fault is None:
                return
            if len(block_group) == 1:
                self._unfit[_shape(block_group[0])] = fault

    def _add_columns(self, source_table: SourceTable, target: TableTarget, blocks: Sequence[Block]) -> bool:
        """Add the columns that changes lack, and return whether there are any; refuse changes whose column
        the database refuses.
        """
        changes = [change for block in blocks for change in block.changes]
        names, faults = self._dialect.names, dict[str, EventlogError | None]()
        for block in blocks:
            for name in target.missing_columns(block) if _shape(block) not in self._unfit else ():
                folded_name = names.same(self._dialect.fold(name))
                if folded_name not in faults:
                    column = self._definitions.column(source_table, target, name, changes)
                    faults[folded_name] = self._make(source_table, column)
                if fault := faults[folded_name]:
                    self._unfit[_shape(block)] = fault
        return None in faults.values()

    def _make(self, source_table: SourceTable, definition: Definition) -> NotMade | None:
        """Make what is defined and return None, or why no database could; NotMade for any other reason."""
        try:
            execute_plain(self._connection, definition.statement)
        except DatabaseFailed as fault:
            refusal = NotMade(source_table[1], fault)
            if not blames_definition(fault, self._dialect):
                raise refusal from fault
            self._connection.rollback()
            return refusal
        self._note_statement(definition.statement)
        if definition.guesses:
            first = f"{source_table[1]} takes columns with types that follow their first values"
            self._inform(f"{first}: {definition.guesses}; a tables file states others")
        return None

    def _look_up(self, source_table: SourceTable) -> TableTarget | None:
        schema, name = self._place(source_table)
        kinds = {table_name: kind for _, table_name, kind in self._catalogue.names(schema)}
        matching_names = [table_name for table_name in kinds if table_name == name] or [
            table_name
            for table_name, kind in kinds.items()
            if table_name.lower() == name.lower() and not _is_view(kind)
        ]
        if len(matching_names) != 1:
            return None
        if _is_view(kinds[matching_names[0]]):
            raise NotTable(name, kinds[name])
        relation = self._catalogue.relation(schema, matching_names[0])
        facts = {row["column_name"]: row for row in self._facts(schema, relation.table.name)}
        columns = {n: c for n, c in relation.table.columns.items() if not int(facts[n]["computed"])}
        computed = {n: c for n, c in relation.table.columns.items() if n not in columns}
        key = relation.table.key if computed.keys().isdisjoint(relation.table.key) else ()
        table = replace(relation.table, columns=columns, key=key)
        return TableTarget(
            table,
            qualified(self._dialect, schema, table.name),
            tuple(to_cell(column, self._dialect) for column in table.columns.values()),
            tuple(to_column(column, self._dialect) for column in table.columns.values()),
            frozenset(place for place, n in enumerate(table.columns) if int(facts[n]["has_default"])),
            self._tables.of(*source_table),
            self._policy == "ignore",
            Table(schema, table.name, computed),
        )

    def _facts(self, schema: str, name: str) -> list[Any]:
        statement = text(templates.statement(self._dialect, "apply_columns"))
        result = self._connection.execute(statement, {"schema": schema, "table_name": name})
        return [{str(key).lower(): value for key, value in row.items()} for row in result.mappings()]

    def _place(self, source_table: SourceTable) -> tuple[str, str]:
        """Return the schema and the name of a table in the target.

        The schema is the source's only where that was chosen: on one server it may be the source itself.
        """
        schema, name = source_table
        if name.lower() in OWN_TABLES:
            raise OwnTable(name)
        home = self._home
        if schema is not None and self._settings.schemas == "source":
            home = self._dialect.fold(schema)
            self._dialect.names.check_schema(home, self._dialect.title)
        place = home, self._dialect.fold(name)
        first = self._claimed.setdefault(place, schema)
        if first != schema:
            raise TwoSchemas(name, first, schema)
        return place


def _source_table(block: Block) -> SourceTable:
    return block.changes[0].schema, block.changes[0].table


def _shape(block: Block) -> Shape:
    return (*_source_table(block), needed_columns(block))


def _is_view(kind: str) -> bool:
    return kind.endswith("view")
