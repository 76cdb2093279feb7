"""What Replicate calls the SQL types of a tables file, and what it calls a value of unknown type."""

from __future__ import annotations

import re

from eventlog.core.change import Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column
from eventlog.core.typenames import kind_of
from eventlog.core.values import Kind
from eventlog.qlik.types import NON_FINITE, Spec

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
_BY_NAME = {name.strip(): data_type for data_type, names in _NAMES.items() for name in names.split(",")}


def spec_of(column: Column) -> Spec:
    """Return the data type of a column of a tables file."""
    written = " ".join(column.type.lower().split())
    sizes = _SIZES.search(written)
    base = " ".join(_IN_PARENTHESES.sub(" ", written).split())
    first, second = (int(sizes[1]), int(sizes[2] or 0)) if sizes else (0, 0)
    name = _BY_KIND[column.kind] if column.kind in _FIXED else _BY_NAME.get(base, _BY_KIND[column.kind])
    if name == "NUMERIC":
        bare = (10, 0) if column.kind is Kind.INT else (0, 0)  # MySQL's DECIMAL is DECIMAL(10, 0)
        return Spec(name, 0, *((first, second) if sizes else bare))
    if name in ("DATETIME", "TIME"):
        return Spec(name, 0, 0, min(first, 9))
    return Spec(name, _LENGTHS.get(name, first))


def spec_of_capture(name: str, declared: str) -> Spec:
    """Return the data type of a column as a capture of GBase or Informix declares it."""
    written = " ".join(declared.lower().split())
    if moment := _WHOLE_MOMENT.fullmatch(written):
        return Spec("DATETIME", 0, 0, int(moment[2] or 3) if moment[1] == "fraction" else 0)
    if written.startswith(("datetime", "interval")):
        return Spec("STRING")  # such as 07:05, which is no timestamp
    spec = spec_of(Column(name, written, kind_of(written, "informix"), name))
    return Spec(spec.name) if spec.name == "NUMERIC" and "," not in declared else spec


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
