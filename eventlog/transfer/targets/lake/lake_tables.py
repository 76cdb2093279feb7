"""The tables of a lake: found for the changes of a source, made and extended where they are missing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, NotExpressible
from eventlog.core.tables import Table, Tables
from eventlog.transfer.targets.lake.lake_place import LakePlace, LakeSnapshot
from eventlog.transfer.targets.lake.lake_settings import BEFORE, DELETED, SUPPLIED, LakeSettings
from eventlog.transfer.targets.lake.lake_types import (
    LakeType,
    NotTaken,
    cell_maker,
    column_maker,
    column_of,
    guessed_type,
    lake_type,
    type_of,
)
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, SourceTable
from eventlog.transfer.targets.tables.cells import Cell, ToCell, ToColumn
from eventlog.transfer.targets.tables.definitions import SourceColumns, guessed, needed_columns, values_of
from eventlog.transfer.targets.tables.outcomes import NoKnownKey, NoTable, NotMade, OwnTable, TwoSchemas
from eventlog.transfer.targets.tables.table import Block, TableTarget

ROUNDS = "eventlog_rounds"
# A library decodes what is encoded with %, and two dots lead out of the lake.
_NO_FOLDER = re.compile(r"""^\.|^_delta_log$|^$|[/\\%?#:*"<>|]""")
_MARK = pa.field(DELETED, pa.bool_())
HISTORY_FORM = pa.schema(  # the columns of a history about each change
    [
        ("eventlog_op", pa.string()),
        ("eventlog_position", pa.string()),
        ("eventlog_round", pa.int64()),
        ("eventlog_number", pa.int64()),  # the place among the changes of the round, from 1
        ("eventlog_time", pa.string()),
        ("eventlog_transaction", pa.string()),
        (SUPPLIED, pa.list_(pa.string())),
    ]
)
_OURS = frozenset((DELETED, *HISTORY_FORM.names))
KEY, SOURCE = "eventlog.key", "eventlog.table"  # properties of a table that was made here


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake in one version, as changes see it."""

    snapshot: LakeSnapshot
    target: TableTarget
    types: tuple[LakeType, ...]


class LakeTables:
    """The tables of a lake that changes are for."""

    def __init__(
        self,
        place: LakePlace,
        columns: SourceColumns,
        tables: Tables,
        settings: ApplySettings,
        lake_settings: LakeSettings,
        inform: Callable[[str], None],
    ) -> None:
        self._place = place
        self._columns = columns
        self._tables = tables
        self._settings = settings
        self._policy = settings.schema_changes
        self._inform = inform
        self._soft_deletes = lake_settings.soft_deletes
        self._only_history = lake_settings.keep == "history"
        self._claimed: dict[str, SourceTable] = {}  # by the name in the lake, whatever its case

    def name_of(self, source_table: SourceTable) -> str:
        """Return the name of a table in the lake; raise an error if another table has it."""
        schema, name = source_table
        if name.lower() == ROUNDS:
            raise OwnTable(name)
        lake_name = name if schema is None or self._settings.schemas == "one" else f"{schema}.{name}"
        if _NO_FOLDER.search(lake_name) or not lake_name.isprintable():
            raise NotMade(name, "its name is no name of a folder")
        first = self._claimed.setdefault(lake_name.lower(), source_table)
        if first != source_table:
            if first[1] == name:
                raise TwoSchemas(name, first[0], schema)
            raise NotMade(name, f"its name differs from {first[1]} by case alone")
        return _history_name(lake_name) if self._only_history else lake_name

    def prepared(self, source_table: SourceTable, blocks: Sequence[Block]) -> tuple[LakeTable | None, Faults]:
        """Return the table for changes, made and extended for them if that is wanted; and by the number of a
        block why its changes are impossible.
        """
        faults: Faults = {n: fault for n, block in enumerate(blocks) if (fault := _clash(block)) is not None}
        table = self.find(source_table, blocks)
        fitting = list(self._fitting(table, blocks, faults)) if self._policy == "apply" else []
        if table is None and fitting:
            self._make(source_table, fitting)
            table = self.find(source_table, blocks)
        elif table is not None and self._add_columns(source_table, table, fitting):
            table = self.find(source_table, blocks)
        if table is None and self._policy == "refuse":
            raise NoTable(self.name_of(source_table))
        return table, faults

    def find(self, source_table: SourceTable, blocks: Sequence[Block]) -> LakeTable | None:
        """Return the newest version of a table, None if the lake lacks it."""
        snapshot = self._place.open(self.name_of(source_table))
        if snapshot is None:
            return None
        _check_form(snapshot, is_history=self._only_history)
        return self._read(source_table, snapshot, blocks)

    def history_of(self, table: LakeTable) -> LakeTable:
        """Return the history of a table, made and extended as the table is."""
        name, form = _history_name(table.target.name), _history_form(table)
        snapshot = self._place.open(name)
        if snapshot is None:
            facts = {KEY: json.dumps(table.target.table.key)}
            self._place.create(name, form, facts)
            snapshot = self._place.open(name)
            assert snapshot is not None
        _check_form(snapshot, is_history=True)
        types = {field.name: field.type for field in snapshot.fields}
        for column, of in zip(table.target.columns, table.types, strict=True):
            if (there := types.get(column, of)) != of:
                in_words = f"{there.sql_type or there.arrow} there, and {of.sql_type or of.arrow}"
                raise NotMade(name, f"{column} is {in_words} in {table.target}")
        if new_fields := [field for field in form if field.name not in types]:
            snapshot.add_columns(new_fields)
        return replace(table, snapshot=snapshot, target=replace(table.target, name=name))

    def open(self, name: str) -> LakeSnapshot | None:
        """Return the newest version of a table by its name in the lake."""
        return self._place.open(name)

    def _read(self, source_table: SourceTable, snapshot: LakeSnapshot, blocks: Sequence[Block]) -> LakeTable:
        fields = [field for field in snapshot.fields if not _is_ours(field.name)]
        types = {field.name: field.type for field in fields}
        changes = [change for block in blocks for change in block.changes]
        names = json.loads(snapshot.facts.get(KEY, "[]")) or self._columns.key(source_table, changes)
        table = Table(None, snapshot.name, {n: column_of(n, of) for n, of in types.items()})
        key_columns = [table.column(name) for name in names]
        key = tuple(column.name for column in key_columns if column is not None)
        table = replace(table, key=key if len(key) == len(names) else ())
        makers = [
            _makers(of, table, field.name, nullable=field.nullable)
            for field, of in zip(fields, types.values(), strict=True)
        ]
        target = TableTarget(
            table,
            snapshot.name,
            tuple(cell for cell, _ in makers),
            tuple(column for _, column in makers),
            source=self._tables.of(*source_table),
            lenient=self._policy == "ignore",
        )
        return LakeTable(snapshot, target, tuple(types.values()))

    def _fitting(self, table: LakeTable | None, blocks: Iterable[Block], faults: Faults) -> Iterator[Block]:
        """Yield the blocks whose columns the table can have."""
        for number, block in enumerate(blocks):
            if number in faults:
                continue
            names = needed_columns(block) if table is None else table.target.missing_columns(block)
            if odd := [name for name in names if not self._is_column(name)]:
                why = "it is ours, or has a character that no name there has"
                fault = f"{odd[0]!r} is no name of a column there: {why}"
                faults[number] = NotMade(block.changes[0].table, fault)
            else:
                yield block

    def _is_column(self, name: str) -> bool:
        return bool(name) and self._place.no_names.isdisjoint(name) and not _is_ours(name.lower())

    def _make(self, source_table: SourceTable, blocks: Sequence[Block]) -> None:
        """Make the table of changes; raise NoKnownKey if no source describes its key."""
        changes = [change for block in blocks for change in block.changes]
        key = self._columns.key(source_table, changes)
        if not key:
            raise NoKnownKey(source_table[1], source_table[1])
        described = self._columns.specs(source_table)
        names = _distinct([*described, *key, *(name for block in blocks for name in needed_columns(block))])
        fields = self._fields(source_table, names, changes) + ([_MARK] if self._soft_deletes else [])
        if self._only_history:
            fields += _own_fields({field.name: field.type for field in fields if field.name in key})
        facts = {KEY: json.dumps(key), SOURCE: ".".join(filter(None, source_table))}
        self._place.create(self.name_of(source_table), pa.schema(fields), facts)

    def _add_columns(self, source_table: SourceTable, table: LakeTable, blocks: Sequence[Block]) -> bool:
        names = _distinct(name for block in blocks for name in table.target.missing_columns(block))
        changes = [change for block in blocks for change in block.changes]
        fields = self._fields(source_table, names, changes) if names else []
        if self._soft_deletes and not table.snapshot.keeps_deleted:
            fields.append(_MARK)
        if fields:
            table.snapshot.add_columns(fields)
        return bool(fields)

    def _fields(
        self, source_table: SourceTable, names: Sequence[str], changes: Sequence[Change]
    ) -> list[pa.Field]:
        described = self._columns.specs(source_table)
        source = self._tables.of(*source_table)
        types: dict[str, LakeType] = {}
        for name in names:
            if (spec := described.get(name)) is None:
                value_type = guessed_type(guessed(values_of(name, changes)))
            else:
                column = None if source is None else source.columns.get(name)
                value_type = type_of(spec, "" if column is None else column.type)
            types[name] = lake_type(self._place.stored_as(value_type))
        if guesses := ", ".join(
            f"{name} {of.sql_type}" for name, of in types.items() if name not in described
        ):
            first = f"{source_table[1]} takes columns with types that follow their first values"
            self._inform(f"{first}: {guesses}; a tables file states others")
        return [pa.field(name, of.arrow) for name, of in types.items()]


Faults = dict[int, EventlogError]  # by the number of a block


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(BEFORE)


def _history_name(name: str) -> str:
    return f"{name}_history"


def _check_form(snapshot: LakeSnapshot, *, is_history: bool) -> None:
    """Raise NotMade if a table is the history of another one, or if a history is a table itself."""
    if snapshot.is_history and not is_history:
        raise NotMade(snapshot.name, "the lake has a history of this name")
    if is_history and not snapshot.is_history:
        raise NotMade(snapshot.name, "it would be a history, and the lake has another table of this name")


def _history_form(table: LakeTable) -> pa.Schema:
    """Return the columns of the history of a table."""
    arrow_types = {name: of.arrow for name, of in zip(table.target.columns, table.types, strict=True)}
    fields = [pa.field(name, of) for name, of in arrow_types.items()]
    return pa.schema([*fields, *_own_fields({name: arrow_types[name] for name in table.target.table.key})])


def _own_fields(key: Mapping[str, pa.DataType]) -> list[pa.Field]:
    """Return the columns that only histories have."""
    return [*(pa.field(f"{BEFORE}{name}", of) for name, of in key.items()), *HISTORY_FORM]


def _clash(block: Block) -> EventlogError | None:
    """Return why changes are impossible whose names of columns differ by case alone."""
    spellings: dict[str, str] = {}
    for name in block.names:
        if spellings.setdefault(name.lower(), name) != name:
            first = spellings[name.lower()]
            return NotExpressible(f"it has {first} and {name}, which are one column of a lake")
    return None


def _makers(of: LakeType, table: Table, name: str, *, nullable: bool) -> tuple[ToCell, ToColumn]:
    if not of.sql_type:
        return _refuse, lambda values: None
    keyed = name in table.key
    column = table.columns[name]
    return (
        cell_maker(of, column, keyed=keyed, nullable=nullable),
        column_maker(of, column, keyed=keyed, nullable=nullable),
    )


def _refuse(value: object) -> Cell:
    raise NotTaken


def _distinct(names: Iterable[str]) -> list[str]:
    """Return the names of different columns; two that differ by case alone are one column."""
    by_column: dict[str, str] = {}
    for name in names:
        by_column.setdefault(name.lower(), name)
    return list(by_column.values())
