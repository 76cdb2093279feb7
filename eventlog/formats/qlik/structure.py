"""The structure of a table for Replicate: columns in order, their types, the key.

Types come from a tables file, a capture or the metadata, or are guessed from values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from eventlog.core.change import ABSENT, Change, Field, Key, Side, Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column, Table
from eventlog.core.typenames import definitions, kind_of, read_definition
from eventlog.core.values import Kind
from eventlog.formats.qlik import mask
from eventlog.formats.qlik.types import DATA_TYPES, NON_FINITE, Spec, bytes_of_text


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column that a table captures."""

    name: str
    spec: Spec | None = None  # None: unknown
    key_position: int = 0  # from 1; 0: not in the key
    nullable: bool = True
    declared: bool = False  # from a tables file or metadata, not guessed from values


@dataclass(frozen=True)
class Structure:
    """The columns of a table, as metadata describe them."""

    schema: str | None
    table: str
    columns: tuple[DataColumn, ...]

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @cached_property
    def index(self) -> dict[str, int]:
        return {c.name: i for i, c in enumerate(self.columns)}

    @cached_property
    def key(self) -> tuple[int, ...]:
        """Return the places of the key columns, in the order of the key."""
        places = [i for i, c in enumerate(self.columns) if c.key_position]
        return tuple(sorted(places, key=lambda i: self.columns[i].key_position))

    def bits_of_key(self, key: Key) -> int:
        """Return the bits of a row's key; of the table's key if that of the row is unknown."""
        return mask.join([self.index[name] for name, _ in key] if key else self.key)

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


def check_width(structure: Structure, headers: int = 0) -> None:
    """Raise NotExpressible for the first column that no mask has a bit for, after so many header columns."""
    excess = structure.names[max(mask.MAX_COLUMNS - headers, 0) :]
    if excess:
        counted = f" with {headers} header columns" if headers else ""
        raise NotExpressible(
            f"table {structure} has {len(structure.columns)} columns{counted}, but a mask holds"
            f" {mask.MAX_COLUMNS}: leave out {excess[0]!r} and those after it"
        )


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


def keyed(structure: Structure, key: Sequence[str]) -> Structure:
    """Return the structure with this key, if it has all columns of the key."""
    if not key or not structure.index.keys() >= set(key):
        return structure
    columns = tuple(
        replace(column, key_position=key.index(column.name) + 1 if column.name in key else 0)
        for column in structure.columns
    )
    return replace(structure, columns=columns)


def shown(structure: Structure) -> Structure:
    """Return the structure as messages have it: Replicate's mapping for Kafka shows a WSTRING as STRING."""
    columns = tuple(replace(c, spec=_shown(c.spec)) for c in structure.columns)
    return Structure(structure.schema, structure.table, columns)


def _shown(spec: Spec | None) -> Spec | None:
    return spec._replace(name="STRING") if spec is not None and spec.name == "WSTRING" else spec


def in_message(column: DataColumn) -> DataColumn:
    """Return a column of a tables file or a capture as metadata messages have it: lengths are in bytes."""
    spec = _shown(column.spec)
    if spec is not None and spec.name == "STRING":
        spec = spec._replace(length=bytes_of_text(spec.length))
    return replace(column, spec=spec)


def observe(described: Structure | None, change: Change) -> Structure:
    """Return a structure that has room for a change: the described one itself where that is enough."""
    structure = described or Structure(change.schema, change.table, ())
    columns = {c.name: c for c in structure.columns}
    places = {name: position for position, (name, _) in enumerate(change.key, 1)}
    captured = _captured_columns(str(change.fact("columns") or ""))
    named = {field.column for field in change.fields}
    keys = [Field(name, ABSENT, value) for name, value in change.key if name not in named]
    for name, before, after in (*keys, *change.fields):
        for side in (before, after):
            column = columns.get(name)
            if side is not ABSENT and (column is None or not _fits(column, side)):
                columns[name] = captured.get(name) or _guess(column, name, side, places.get(name, 0))
                if name in captured and name in places:
                    columns[name] = replace(captured[name], key_position=places[name], nullable=False)
    if tuple(columns.values()) == structure.columns:
        return structure
    return replace(structure, columns=tuple(columns.values()))


@lru_cache(maxsize=1000)
def _captured_columns(text: str) -> dict[str, DataColumn]:
    stated = filter(None, map(read_definition, definitions(text)))
    return {
        name: DataColumn(name, spec_of_capture(name, declared), declared=True) for name, declared in stated
    }


def _fits(column: DataColumn, value: Value) -> bool:
    return column.declared or column.spec is None or holds(column.spec, value)


def _guess(column: DataColumn | None, name: str, value: Value, position: int) -> DataColumn:
    position = column.key_position if column else position
    return DataColumn(name, spec_of_value(value), position, nullable=not position)


# --- SQL types, and the types of values

_SIZES = re.compile(r"\( ?(\d{1,9}) ?(?:\bchar\b|\bbyte\b)? ?(?:, ?(\d{1,3}) ?)?\)")
_WHOLE_MOMENT = re.compile(r"datetime year to (second|fraction) ?(?:\( ?([1-5]) ?\))?")
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_LENGTHS = {"INT1": 3, "INT2": 5, "INT4": 10, "INT8": 19, "UINT1": 3, "UINT2": 5, "UINT4": 10, "UINT8": 20}
_LENGTHS |= {"BOOLEAN": 1, "REAL4": 7, "REAL8": 14}

_BY_KIND = {
    Kind.STATE: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
    Kind.TIMESTAMP: "DATETIME",
    Kind.OCTET: "BYTES",
    Kind.INT: "INT8",
    Kind.STRING: "STRING",
    Kind.PADDED: "STRING",
}
_FIXED = frozenset((Kind.STATE, Kind.DATE, Kind.TIME, Kind.TIMESTAMP))

# The names of sources, as the guide maps them ("Source data types"); any other goes by its kind.
_NAMES = {
    "INT1": "tinyint, int1",
    "UINT1": "tinyint unsigned, uint1",
    "INT2": "smallint, int2, smallserial, year",
    "UINT2": "smallint unsigned, uint2",
    "INT4": "integer, int, int4, mediumint, serial",
    "UINT4": "integer unsigned, int unsigned, mediumint unsigned, uint4",
    "UINT8": "bigint unsigned, uint8",
    "REAL4": "real, float4, binary_float, smallfloat",
    "REAL8": "double, double precision, float, float8, binary_double",
    "NUMERIC": "numeric, decimal, dec, number, money, smallmoney",
    "WSTRING": "nchar, nvarchar, nvarchar2, national character, national character varying",
    "CLOB": "clob, long, longtext, mediumtext, xml, json, jsonb",
    "NCLOB": "nclob, ntext, text",
    "BLOB": "blob, tinyblob, mediumblob, longblob, bytea, image, long raw, byte",
}
# whose size is a number of characters or bytes; that of any other text is something else, as in interval(6)
_TEXTS = frozenset(
    [
        "char",
        "character",
        "bpchar",
        "nchar",
        "varchar",
        "varchar2",
        "nvarchar",
        "nvarchar2",
        "lvarchar",
        "string",
        "char varying",
        "character varying",
        "nchar varying",
        "national char",
        "national character",
        "national varchar",
        "national char varying",
        "national character varying",
    ]
)
_BY_NAME = {name.strip(): data_type for data_type, names in _NAMES.items() for name in names.split(",")}


def spec_of(column: Column) -> Spec:
    """Return the data type of a column of a tables file."""
    written = " ".join(column.type.lower().split())
    sizes = _SIZES.search(written)
    base = " ".join(_IN_PARENTHESES.sub(" ", written).split())
    first, second = (int(sizes[1]), int(sizes[2] or 0)) if sizes else (0, 0)
    name = _BY_KIND[column.kind] if column.kind in _FIXED else _BY_NAME.get(base, _BY_KIND[column.kind])
    if name == "NUMERIC":
        if column.kind is not Kind.INT and not second:
            return Spec(name)  # any scale, such as that of Informix's DECIMAL(9)
        return Spec(name, 0, *((first, second) if sizes else (10, 0)))  # MySQL's DECIMAL is DECIMAL(10, 0)
    if name in ("DATETIME", "TIME"):
        return Spec(name, 0, 0, min(first, 9))
    if name == "BYTES":
        return Spec(name, (first + 7) // 8 if base == "bit" else first)
    return Spec(name, _LENGTHS.get(name, first if base in _TEXTS else 0))


def spec_of_capture(name: str, declared: str) -> Spec:
    """Return the data type of a column as a capture of GBase or Informix declares it."""
    written = " ".join(declared.lower().split())
    if moment := _WHOLE_MOMENT.fullmatch(written):
        return Spec("DATETIME", 0, 0, int(moment[2] or 3) if moment[1] == "fraction" else 0)
    if written.startswith(("datetime", "interval")):
        return Spec("STRING")  # such as 07:05, which is no timestamp
    return spec_of(Column(name, written, kind_of(written, "informix"), name))


def spec_of_value(value: Value) -> Spec:
    """Return the data type for a value of a column without a description."""
    if isinstance(value, bool):
        return Spec("BOOLEAN", 1)
    if isinstance(value, int):
        wide = not -(2**63) <= value < 2**63
        return Spec("NUMERIC", 0, len(str(abs(value))), 0) if wide else Spec("INT8", 19)
    if isinstance(value, float):
        return Spec("REAL8", 14)
    if isinstance(value, bytes):
        return Spec("BYTES")
    if value is None or isinstance(value, str):
        return Spec("STRING")
    raise NotExpressible("a value of several parts, or of undecodable text, has no data type of Replicate")


def holds(spec: Spec, value: Value) -> bool:
    """Return whether a guessed type, of `spec_of_value`, is right for one more value."""
    if value is None or (spec.name == "REAL8" and value in NON_FINITE):
        return True
    guess = spec_of_value(value)
    return guess.name == spec.name and guess.precision <= spec.precision
