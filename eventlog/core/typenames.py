"""SQL type names: the meaning of their values' texts, their bounds, and lists of columns with types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from eventlog.core.values import Kind, Precision

# The meaning of a type's name in every dialect that has no other. Any other name is text.
_NAMES = {
    Kind.PADDED: "char, character, nchar, bpchar",
    Kind.OCTET: "binary, varbinary, binary varying, bytea, blob, tinyblob, mediumblob, longblob, raw,"
    " long raw, longraw, image, byte, bytes, varbyte",
    Kind.INT: "smallint, integer, bigint, int, tinyint, mediumint, serial, bigserial, smallserial, year,"
    " int1, int2, int4, int8, serial8, uint1, uint2, uint4, uint8",
    Kind.STATE: "boolean, bool",
    Kind.DATE: "date",
    Kind.TIME: "time, timetz, time without time zone, time with time zone",
    Kind.TIMESTAMP: "timestamp, timestamptz, timestamp without time zone, timestamp with time zone,"
    " timestamp with local time zone, datetime, datetime2, smalldatetime",
}
KINDS: dict[str, Kind] = {name.strip(): kind for kind, names in _NAMES.items() for name in names.split(",")}

DIALECT_KINDS: dict[str, dict[str, Kind]] = {
    "oracle": {"date": Kind.TIMESTAMP},
    "mysql": {"decimal": Kind.INT, "numeric": Kind.INT, "bit": Kind.OCTET},
    "mariadb": {"decimal": Kind.INT, "numeric": Kind.INT, "bit": Kind.OCTET},
    "mssql": {"timestamp": Kind.OCTET, "bit": Kind.STATE},
    # a DATETIME or INTERVAL of Informix has a qualifier after its name, so it is text here
    "informix": {"byte": Kind.OCTET, "datetime": Kind.STRING},
    "gbase": {"byte": Kind.OCTET, "datetime": Kind.STRING},
}

_NUMERIC = frozenset(("numeric", "decimal", "number", "dec"))
_FLOATS = {
    "real": Precision.SINGLE,
    "float4": Precision.SINGLE,
    "binary_float": Precision.SINGLE,
} | dict.fromkeys(("double precision", "double", "float8", "binary_double", "float"), Precision.DOUBLE)
_DIALECT_FLOATS: dict[str, dict[str, Precision]] = {
    "mysql": {"float": Precision.SINGLE, "real": Precision.DOUBLE},
    "mariadb": {"float": Precision.SINGLE, "real": Precision.DOUBLE},
    "oracle": {"float": Precision.EXACT},
    "informix": {"smallfloat": Precision.SINGLE},
    "gbase": {"smallfloat": Precision.SINGLE},
}
_BITS = {
    "tinyint": 8,
    **dict.fromkeys(("smallint", "int2", "smallserial"), 16),
    "mediumint": 24,
    **dict.fromkeys(("integer", "int", "int4", "serial"), 32),
    **dict.fromkeys(("bigint", "int8", "bigserial", "serial8"), 64),
}
_DIALECT_BITS: dict[str, dict[str, int]] = {
    "oracle": {"smallint": 0, "integer": 0, "int": 0},  # numbers of 38 digits
    "mssql": {"tinyint": 0},  # it has no sign there
    "sqlite": dict.fromkeys(_BITS, 64),
}
_FLOATING_DECIMALS = frozenset(("informix", "gbase"))  # DECIMAL(p) has no fixed scale there


def kind_of(type_name: str, dialect: str | None = None) -> Kind:
    """Return what the text of a value of this SQL type means."""
    if type_name.rstrip().endswith("[]"):
        return Kind.STRING  # an array of it
    base, arguments, suffix = _type_parts(type_name.lower())
    name = f"{base} {suffix}" if suffix and base != "numeric" else base
    if base in _NUMERIC and arguments is not None:
        scale = arguments.partition(",")[2].strip()
        floating = not scale and dialect in _FLOATING_DECIMALS
        return Kind.INT if scale in ("", "0") and not floating else Kind.STRING
    if base in ("tinyint", "bit") and arguments == "1" and dialect in ("mysql", "mariadb"):
        return Kind.STATE
    if base == "bpchar" and arguments is None:
        return Kind.STRING  # PostgreSQL pads it to no length, so that its blanks are what was written
    special = DIALECT_KINDS.get(dialect or "", {})
    for key in (name.removesuffix(" unsigned"), base):
        kind = special.get(key) or KINDS.get(key)
        if kind is not None:
            return kind
    return Kind.STRING


_SPELT: Final = frozenset((*KINDS, *_NUMERIC, *_FLOATS, "smallfloat"))


def misspelt(type_name: str) -> str:
    """Return the type whose name with a typing mistake this is; an empty text if it is no such name.

    A name that is not known may be a type of an extension or of a user, so only words of letters count.
    """
    base, _, suffix = _type_parts(type_name.lower())
    name = f"{base} {suffix}".strip()
    if {base, name} & _SPELT or not name.replace(" ", "").isalpha():
        return ""
    return "".join(get_close_matches(name, _SPELT, 1, 0.9))


def _type_parts(text: str) -> tuple[str, str | None, str]:
    """Return the name of a type, the text in its parentheses, and the text after them."""
    base, _, remainder = text.partition("(")
    arguments, parenthesis, suffix = remainder.partition(")")
    if not parenthesis:
        return text.strip(), None, ""
    return base.strip(), arguments.strip(), suffix.strip()


def bounds_of(type_name: str, dialect: str | None = None) -> tuple[int, int] | None:
    """Return the least and the greatest value of an integer type, None where there are none that we know."""
    if kind_of(type_name, dialect) is not Kind.INT:
        return None
    base, arguments, suffix = _type_parts(type_name.lower())
    unsigned = "unsigned" in f"{base} {suffix}"
    base = base.removesuffix(" zerofill").removesuffix(" unsigned")
    if base in _NUMERIC:
        digits = (arguments or "").partition(",")[0].strip()
        limit = 10 ** int(digits) if digits.isdecimal() and len(digits) < 4 else 0
    else:
        bits = _DIALECT_BITS.get(dialect or "", {}).get(base, _BITS.get(base, 0))
        limit = 1 << bits if unsigned else (1 << bits) >> 1
        if limit and not unsigned:
            return -limit, limit - 1
    return (0 if unsigned else 1 - limit, limit - 1) if limit > 1 else None


def number_of(type_name: str, dialect: str | None = None) -> Precision | None:
    """Return how the values of a type of non-integer numbers are compared; None for other types."""
    base, _, suffix = _type_parts(type_name.lower())
    base = base.removesuffix(" zerofill").removesuffix(" unsigned")
    if base in _NUMERIC and kind_of(type_name, dialect) is not Kind.INT:
        return Precision.EXACT
    name = f"{base} {suffix}".strip()
    dialect_floats = _DIALECT_FLOATS.get(dialect or "", {})
    return dialect_floats.get(base) or _FLOATS.get(name) or _FLOATS.get(base)


# --- a list of columns with their types, as in a create statement

_TOKEN = re.compile(r'"(?:[^"]|"")*"|[(),]|[^"(),]+|"')
_COLUMN = re.compile(r'(?:"((?:[^"]|"")+)"|([^\s"]+))\s+(\S.*)', re.DOTALL)


def definitions(text: str) -> Iterator[str]:
    """Return the parts between the commas that are in no parentheses."""
    parts: list[str] = []
    depth = 0
    for part in _TOKEN.findall(text):
        depth += (part == "(") - (part == ")")
        if part == "," and depth == 0:
            yield "".join(parts)
            parts.clear()
        else:
            parts.append(part)
    yield "".join(parts)


def read_definition(definition: str) -> tuple[str, str] | None:
    """Return the name and the type of a column; None if the text is not of that form."""
    match = _COLUMN.fullmatch(definition.strip())
    if match is None:
        return None
    quoted, plain, declaration = match.groups()
    return (quoted.replace('""', '"') if quoted else plain), declaration
