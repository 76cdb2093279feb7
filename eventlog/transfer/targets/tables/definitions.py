"""The statements that make tables and columns of a target, as changes need them.

A column that no source described has a type that follows the kinds of its values; texts make texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import NamedTuple

from sqlalchemy.engine import Dialect as SqlDialect

from eventlog.core.change import ABSENT, Change, Field, Op, Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Tables
from eventlog.formats.qlik.structure import spec_of, spec_of_value
from eventlog.formats.qlik.types import NON_FINITE, Spec
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.relation import qualified
from eventlog.transfer.sources.sql_cells import SQL_TYPES
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, SourceSchema, SourceTable
from eventlog.transfer.targets.tables.outcomes import NoKnownKey, TooManyColumns
from eventlog.transfer.targets.tables.table import Block, TableTarget

_LONGEST_KEY = 250  # characters of a text in a key that no source declared
_UNBOUNDED = frozenset(("STRING", "WSTRING", "CLOB", "NCLOB", "BYTES"))
_STAGED = 6  # columns that a table of the session has more than its goal, and those of a second key


class Definition(NamedTuple):
    """A statement that makes something of the target."""

    statement: str
    guesses: str = ""  # the columns with types that follow their values


class SourceColumns:
    """The keys and types of the source's columns, for tables that are made."""

    def __init__(self, tables: Tables, described: SourceSchema, settings: ApplySettings) -> None:
        self._tables = tables
        self._described = described
        self._settings = settings

    def key(self, source_table: SourceTable, changes: Iterable[Change]) -> tuple[str, ...]:
        """Return the key of a table that is made: as it was chosen, else as its source has it."""
        source = self._tables.of(*source_table)
        key = tuple(self._settings.key_of(source_table)) or (source.key if source is not None else ())
        key = key or tuple(self._described.key(source_table))
        return key or next((tuple(name for name, _ in change.key) for change in changes if change.key), ())

    def specs(self, source_table: SourceTable) -> Mapping[str, Spec]:
        """Return the types of a table's columns: as the tables file has them, else as the source describes
        them.
        """
        source = self._tables.of(*source_table)
        if source is not None and source.columns:
            return {name: spec_of(column) for name, column in source.columns.items()}
        return self._described.columns(source_table)


class Definitions:
    """Writes the statements for tables of one target."""

    def __init__(self, dialect: Dialect, sql_dialect: SqlDialect, columns: SourceColumns) -> None:
        self._dialect = dialect
        self._sql_dialect = sql_dialect
        self._columns = columns

    def check(
        self,
        source_table: SourceTable,
        target: TableTarget | None,
        names: Iterable[str],
        changes: Iterable[Change],
    ) -> None:
        """Raise an EventlogError if a table cannot have further columns of these names, for these changes."""
        dialect = self._dialect
        columns = () if target is None else target.columns
        key = self._columns.key(source_table, changes) if target is None else target.key
        new_names = {dialect.names.same(self._dialect.fold(name)) for name in names}
        for name in names:
            dialect.names.check_column(dialect.fold(name), dialect.title)
        room = dialect.schema.max_columns - _STAGED - len(key)
        if len(columns) + len(new_names) > room:
            raise TooManyColumns(source_table[1], len(columns) + len(new_names), dialect.title, room)

    def schema(self, name: str) -> Definition:
        """Return what makes a schema."""
        statement = templates.statement(
            self._dialect, "apply_create_schema", schema=self._dialect.quote(name)
        )
        return Definition(statement)

    def table(self, source_table: SourceTable, place: tuple[str, str], blocks: Sequence[Block]) -> Definition:
        """Return what makes the table of changes; NoKnownKey if no source describes its key."""
        changes = [change for block in blocks for change in block.changes]
        specs = self._columns.specs(source_table)
        key = self._columns.key(source_table, changes)
        if not key:
            raise NoKnownKey(source_table[1], quote(source_table[1]))
        names = self._distinct([*specs, *key, *(name for block in blocks for name in needed_columns(block))])
        types = {name: self._type(name, specs, changes, keyed=name in key) for name in names}
        columns = [
            f"{self._quoted(name)} {type_text}" + (" not null" if name in key else "")
            for name, type_text in types.items()
        ]
        table = place[1]
        statement = templates.statement(
            self._dialect,
            "apply_create",
            table=qualified(self._dialect, *place),
            columns=",\n  ".join(columns),
            key_name=self._quoted(_shortened(f"{table}_key", self._dialect.names.longest)),
            key=", ".join(map(self._quoted, key)),
            table_options=self._dialect.schema.table_options,
        )
        return Definition(statement, _undescribed(specs, types))

    def column(
        self, source_table: SourceTable, target: TableTarget, name: str, changes: Sequence[Change]
    ) -> Definition:
        """Return what adds a column."""
        specs = self._columns.specs(source_table)
        type_text = self._type(name, specs, changes, keyed=False)
        column = f"{self._quoted(name)} {type_text}"
        statement = templates.statement(self._dialect, "apply_add_column", table=target.name, column=column)
        return Definition(statement, _undescribed(specs, {name: type_text}))

    def _distinct(self, names: Iterable[str]) -> list[str]:
        """Return the names of different columns."""
        same, names_by_column = self._dialect.names.same, dict[str, str]()
        for name in names:
            names_by_column.setdefault(same(self._dialect.fold(name)), name)
        return list(names_by_column.values())

    def _quoted(self, name: str) -> str:
        return self._dialect.quote(self._dialect.fold(name))

    def _type(self, name: str, specs: Mapping[str, Spec], changes: Sequence[Change], *, keyed: bool) -> str:
        spec = specs.get(name) or guessed(values_of(name, changes), self._dialect.schema.max_digits)
        if keyed and spec.length == 0 and spec.name in _UNBOUNDED:
            spec = Spec("STRING" if spec.name != "BYTES" else "BYTES", _LONGEST_KEY)
        return str(SQL_TYPES[spec.name](spec).compile(dialect=self._sql_dialect))


def needed_columns(block: Block) -> tuple[str, ...]:
    """Return the columns that a table must have for the changes of a block."""
    return block.key_names if block.op is Op.DELETE else (*block.key_names, *block.names)


def _undescribed(specs: Mapping[str, Spec], types: Mapping[str, str]) -> str:
    """Return the columns, with their types, that no source described."""
    return ", ".join(f"{name} {type_text.lower()}" for name, type_text in types.items() if name not in specs)


def _shortened(name: str, max_bytes: int) -> str:
    return name.encode()[:max_bytes].decode(errors="ignore")


_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT = Spec("CLOB")
_WIDER = {frozenset(("INT8", "NUMERIC")): "NUMERIC", frozenset(("INT8", "REAL8")): "REAL8"}


def values_of(name: str, changes: Iterable[Change]) -> Iterator[Value]:
    """Return the values that changes give a column."""
    for change in changes:
        fields = [*change.fields, *(Field(column, ABSENT, value) for column, value in change.key)]
        for field in fields:
            if field.column == name:
                yield from (side for side in field[1:] if side is not ABSENT)


def guessed(values: Iterable[Value], digits: int = 38) -> Spec:
    """Return the data type that holds values of a column that no source described.

    Integers of more digits count for nothing: the changes that have them are refused.
    """
    spec: Spec | None = None
    for value in values:
        try:
            if value is None or (spec is not None and spec.name == "REAL8" and value in NON_FINITE):
                continue
            guess = _spec_of(value)
        except NotExpressible:  # the change that has it will be refused
            continue
        if guess.precision > digits:
            continue
        spec = guess if spec is None else _joined(spec, guess)
        if spec.name == "CLOB":
            break
    return spec or _TEXT


def _spec_of(value: Value) -> Spec:
    if not isinstance(value, str):
        return spec_of_value(value)
    if not value.isascii() and not value.isprintable() and _SURROGATE.search(value):
        raise NotExpressible("it is no text in UTF-8")
    return _TEXT


def _joined(first_spec: Spec, second_spec: Spec) -> Spec:
    if first_spec.name == second_spec.name:
        return max(first_spec, second_spec, key=lambda candidate: candidate.precision)
    wider = _WIDER.get(frozenset((first_spec.name, second_spec.name)))
    if wider is None:
        return _TEXT
    return (
        Spec(wider, 0, max(first_spec.precision, second_spec.precision, 19))
        if wider == "NUMERIC"
        else Spec("REAL8", 14)
    )
