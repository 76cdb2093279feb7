"""The structure of a table as Replicate sees it: columns in order, their types, the key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from eventlog.core.change import ABSENT, Change, Field, Key, Side, Value
from eventlog.core.columnlist import definitions, read_definition
from eventlog.core.tables import Table
from eventlog.qlik import mask
from eventlog.qlik.sqltypes import holds, spec_of, spec_of_capture, spec_of_value
from eventlog.qlik.types import DATA_TYPES, Spec

MAX_COLUMNS = 8 * 128  # change_mask is varbinary(128)


@dataclass(frozen=True, slots=True)
class DataColumn:
    name: str
    spec: Spec | None = None  # None: unknown
    key_position: int = 0  # from 1; 0: not in the key
    nullable: bool = True
    declared: bool = False  # from a tables file or metadata, not guessed from values


@dataclass(frozen=True)
class Structure:
    schema: str | None
    table: str
    columns: tuple[DataColumn, ...]

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @cached_property
    def specs(self) -> tuple[Spec | None, ...]:
        return tuple(c.spec for c in self.columns)

    @cached_property
    def index(self) -> dict[str, int]:
        return {c.name: i for i, c in enumerate(self.columns)}

    @cached_property
    def key(self) -> tuple[int, ...]:
        """The key columns' places, in the key's order."""
        places = [i for i, c in enumerate(self.columns) if c.key_position]
        return tuple(sorted(places, key=lambda i: self.columns[i].key_position))

    @cached_property
    def key_bits(self) -> int:
        return mask.join(self.key)

    @cached_property
    def lobs(self) -> tuple[bool, ...]:
        return tuple(c.spec is not None and c.spec.name in _LOBS for c in self.columns)

    @cached_property
    def lob_bits(self) -> int:
        return mask.join(i for i, lob in enumerate(self.lobs) if lob)

    @cached_property
    def all_bits(self) -> int:
        return (1 << len(self.columns)) - 1

    def key_of(self, row: Sequence[Side]) -> Key:
        """Return the key that a row names; empty when it lacks a part of it."""
        if len(self.key) == 1:
            ((place, name),) = self._key_names
            value = row[place]
            return () if value is ABSENT else ((name, value),)
        key = tuple([(name, row[i]) for i, name in self._key_names])
        return () if ABSENT in [value for _, value in key] else key  # type: ignore[return-value]

    @cached_property
    def _key_names(self) -> tuple[tuple[int, str], ...]:
        return tuple((i, self.columns[i].name) for i in self.key)


_LOBS = frozenset(t.name for t in DATA_TYPES.values() if t.lob)


def structure_of(table: Table) -> Structure:
    """Return the structure that a tables file gives a table."""
    places = {name: place for place, name in enumerate(table.key, 1)}
    return Structure(
        table.schema,
        table.name,
        tuple(
            DataColumn(
                column.name,
                spec_of(column),
                places.get(column.name, 0),
                column.name not in places,
                declared=True,
            )
            for column in table.columns.values()
        ),
    )


def with_key(structure: Structure, key: Sequence[str]) -> Structure:
    """Return the structure with the columns of a key that the tables file states without their types."""
    added = [
        DataColumn(name, None, place, False)
        for place, name in enumerate(key, 1)
        if name not in structure.index
    ]
    return replace(structure, columns=(*structure.columns, *added)) if added else structure


def shown(structure: Structure) -> Structure:
    """Return the structure as messages have it: Replicate's mapping for Kafka shows a WSTRING as STRING."""
    columns = tuple(replace(c, spec=_shown(c.spec)) for c in structure.columns)
    return Structure(structure.schema, structure.table, columns)


def _shown(spec: Spec | None) -> Spec | None:
    return spec._replace(name="STRING") if spec is not None and spec.name == "WSTRING" else spec


def observe(known: Structure | None, change: Change) -> Structure:
    """Return the structure that holds a change too; the known one itself where that is enough."""
    structure = known or Structure(change.schema, change.table, ())
    columns = {c.name: c for c in structure.columns}
    places = {name: position for position, (name, _) in enumerate(change.key, 1)}
    captured = _captured(str(change.fact("columns") or ""))
    named = {field.column for field in change.fields}
    keys = [Field(name, ABSENT, value) for name, value in change.key if name not in named]
    for name, before, after in (*keys, *change.fields):
        for side in (before, after):
            column = columns.get(name)
            if side is not ABSENT and (column is None or not _fits(column, side)):
                columns[name] = captured.get(name) or _guess(column, name, side, places.get(name, 0))
                if name in captured and name in places:
                    columns[name] = replace(captured[name], key_position=places[name], nullable=False)
    found = tuple(columns.values())
    return structure if found == structure.columns else Structure(structure.schema, structure.table, found)


@lru_cache(maxsize=1000)
def _captured(text: str) -> dict[str, DataColumn]:
    """Return the columns of the schema record of a capture by their names."""
    stated = filter(None, map(read_definition, definitions(text)))
    return {
        name: DataColumn(name, spec_of_capture(name, declared), declared=True) for name, declared in stated
    }


def _fits(column: DataColumn, value: Value) -> bool:
    return column.declared or column.spec is None or holds(column.spec, value)


def _guess(column: DataColumn | None, name: str, value: Value, position: int) -> DataColumn:
    position = column.key_position if column else position
    return DataColumn(name, spec_of_value(value), position, nullable=not position)
