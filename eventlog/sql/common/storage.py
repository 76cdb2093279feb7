"""What the type of a column means to those who read it."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping


class Storage(enum.Enum):
    """The meaning of a column's type for its readers."""

    INTEGER = enum.auto()
    NUMERIC = enum.auto()
    DOUBLE = enum.auto()
    SINGLE = enum.auto()
    TEXT = enum.auto()
    PADDED = enum.auto()  # text with blanks up to a length
    DATE = enum.auto()
    TIMESTAMP = enum.auto()
    ZONED = enum.auto()  # a timestamp that knows its zone
    BINARY = enum.auto()
    OTHER = enum.auto()  # anything else that has a text


# The meaning of a type's name in every dialect without another one; lengths and precisions are separate.
_NAMES = {
    Storage.INTEGER: "smallint, integer, bigint, int, tinyint, mediumint",
    Storage.NUMERIC: "numeric, decimal, number, bigint unsigned",
    Storage.DOUBLE: "double precision, double, binary_double",
    Storage.SINGLE: "real, float, binary_float",
    Storage.TEXT: "text, character varying, varchar, varchar2, nvarchar2, tinytext, mediumtext, longtext,"
    " clob, nclob, citext, name, enum",
    Storage.PADDED: "character, char, nchar",
    Storage.DATE: "date",
    Storage.TIMESTAMP: "timestamp, timestamp without time zone, datetime",
    Storage.ZONED: "timestamp with time zone, timestamp with local time zone",
    Storage.BINARY: "bytea, blob, tinyblob, mediumblob, longblob, binary, varbinary, bit, raw, long raw,"
    " long",
}
_STORAGES = {name.strip(): storage for storage, names in _NAMES.items() for name in names.split(",")}
_LENGTHS = re.compile(r"\(\s*(?:\d+|\*)?\s*(,\s*-?\d+)?[^)]*\)")
_SINGLE_CHARACTER = re.compile(r"char(acter)?\(1\)")  # nothing to pad


def storage_of(type_name: str, special: Mapping[str, Storage]) -> Storage:
    """Return what a type of the catalogue means, by a dialect's special names first."""
    lower = type_name.lower()
    if lower.endswith("[]"):
        return Storage.OTHER
    if _SINGLE_CHARACTER.fullmatch(lower):
        return Storage.TEXT
    with_scale, bare = (_LENGTHS.sub(how, lower).strip() for how in (r"(\1)", ""))
    for name in (with_scale, bare, bare.partition(" unsigned")[0], bare.rpartition(".")[2]):
        if (storage := special.get(name) or _STORAGES.get(name)) is not None:
            return storage
    return Storage.OTHER
