"""How the text of a key finds its row: what each type's text must look like, and how it is compared.

A text is checked here, before the database sees it: in a set-based query one bad value would fail
all the others. Types without an entry are compared as text, which finds the row without its index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from eventlog.core import values
from eventlog.core.errors import InvalidValue
from eventlog.core.values import Kind, Precision
from eventlog.sql.dialect.expression import split_type


class KeyType(NamedTuple):
    """A type of key columns: how the key's text is declared, compared and sent."""

    declared: str  # the type that the list of keys has in the statement
    # {c} is the column, {k} the key's value; {charset} and {collation} are the column's
    matches: str = "{c} {equals} {k}"
    sent: Callable[[str], str] = str  # the text as it is sent; InvalidValue if it is none of the type
    as_it_is: str | None = None  # a pattern of texts that are sent as they are


_INTEGER = re.compile(r" *[+-]?[0-9]{1,40} *")
_DIGITS = {16: 4, 32: 9, 64: 18, 65: 18}  # that each integer of so many bits has room for


def _integer(declared: str, bits: int) -> KeyType:
    beyond = 2 ** (bits - 1)

    def check(text: str) -> str:
        if not _INTEGER.fullmatch(text) or not -beyond <= int(text) < beyond:
            raise InvalidValue(text[:40], f"an integer of {bits} bits")
        return str(int(text))

    return KeyType(declared, sent=check, as_it_is=f"0|-?[1-9][0-9]{{0,{_DIGITS[bits] - 1}}}")


def _number(text: str) -> str:
    return str(values.read_number(Precision.EXACT, text))


def _float(text: str) -> str:
    return str(values.read_number(Precision.DOUBLE, text))


_WITHOUT_ZERO = r"[^\x00]*"
_UUID = "-".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12))


def _text(text: str) -> str:
    if "\0" in text:
        raise InvalidValue(text[:40], "text that a database can hold")
    return text


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise InvalidValue(text[:40], "a uuid") from None


def _moment(kind: Kind) -> Callable[[str], str]:
    def check(text: str) -> str:
        values.load(kind, text)
        return text

    return check


def _state(text: str) -> str:
    return "true" if values.load(Kind.STATE, text) else "false"


def _bit(text: str) -> str:
    return "1" if values.load(Kind.STATE, text) else "0"


def _base64(text: str) -> str:
    return values.dump_base64(values.load_base64(text))


def _hex(text: str) -> str:
    return "\\x" + values.load_base64(text).hex()


def _digits(text: str) -> str:
    return values.load_base64(text).hex()


def _not_sought(text: str) -> str:
    raise InvalidValue(text[:40], "a value of a type that can be looked for")


def _all(names: str, key_type: KeyType) -> dict[str, KeyType]:
    return {name.strip(): key_type for name in names.split(",")}


_TIMES = {
    "date": KeyType("date", sent=_moment(Kind.DATE)),
    **_all("timestamp, timestamp without time zone", KeyType("timestamp", sent=_moment(Kind.TIMESTAMP))),
}

POSTGRESQL: Mapping[str, KeyType] = {
    "smallint": _integer("smallint", 16),
    "integer": _integer("integer", 32),
    "bigint": _integer("bigint", 64),
    "numeric": KeyType("numeric", sent=_number),
    "real": KeyType("real", sent=_float),
    "double precision": KeyType("double precision", sent=_float),
    **_all("text, character varying", KeyType("text", sent=_text, as_it_is=_WITHOUT_ZERO)),
    "character": KeyType("text", "{c} {equals} cast({k} as pg_catalog.bpchar)", _text, _WITHOUT_ZERO),
    "uuid": KeyType("uuid", sent=_uuid, as_it_is=_UUID),
    "boolean": KeyType("boolean", sent=_state),
    "bytea": KeyType("bytea", sent=_hex),
    **_TIMES,
    "timestamp with time zone": KeyType(
        "timestamp", "{c} {equals} {k} at time zone 'UTC'", _moment(Kind.TIMESTAMP)
    ),
    "time without time zone": KeyType("time", sent=_moment(Kind.TIME)),
}

_CHARACTERS = KeyType(
    "longtext", "{c} = convert({k} using {charset}) collate {collation}", _text, _WITHOUT_ZERO
)
MYSQL: Mapping[str, KeyType] = {
    **_all("tinyint, smallint, mediumint, int, bigint", _integer("bigint", 64)),
    "bigint unsigned": _integer("bigint unsigned", 65),
    **_all("tinyint(1), bit(1)", KeyType("integer", sent=_bit)),
    "decimal": KeyType("decimal(65,30)", sent=_number),
    "float": KeyType("double", "{c} = cast({k} as float)", _float),
    "double": KeyType("double", sent=_float),
    **_all("char, varchar, tinytext, text, mediumtext, longtext, enum", _CHARACTERS),
    **_all("binary, varbinary", KeyType("longtext", "{c} = from_base64({k})", _base64)),
    "uuid": KeyType("longtext", "{c} = cast({k} as uuid)", _uuid, _UUID),
    "date": KeyType("date", sent=_moment(Kind.DATE)),
    **_all("datetime, timestamp", KeyType("datetime(6)", sent=_moment(Kind.TIMESTAMP))),
    "time": KeyType("time(6)", sent=_moment(Kind.TIME)),
}

_ORACLE_MOMENT = "to_timestamp({k}, 'YYYY-MM-DD HH24:MI:SSXFF', 'NLS_NUMERIC_CHARACTERS=''.,''')"
ORACLE: Mapping[str, KeyType] = {
    **_all("number, float", KeyType("number", sent=_number)),
    "binary_float": KeyType("varchar2(40)", "{c} = to_binary_float({k})", _float),
    "binary_double": KeyType("varchar2(40)", "{c} = to_binary_double({k})", _float),
    **_all("varchar2, nvarchar2", KeyType("varchar2(4000)", sent=_text, as_it_is=_WITHOUT_ZERO)),
    **_all("char, nchar", KeyType("varchar2(4000)", "{c} = rpad({k}, length({c}))", _text, _WITHOUT_ZERO)),
    "date": KeyType("varchar2(40)", f"{{c}} = cast({_ORACLE_MOMENT} as date)", _moment(Kind.TIMESTAMP)),
    "timestamp": KeyType("varchar2(40)", f"{{c}} = {_ORACLE_MOMENT}", _moment(Kind.TIMESTAMP)),
    # as hexadecimal digits: 2000 bytes, the most that a query has of a raw, are 4000 of them
    "raw": KeyType("varchar2(4000)", "{c} = hextoraw({k})", _digits),
    **_all("clob, nclob", KeyType("varchar2(4000)", "sys.dbms_lob.compare({c}, to_clob({k})) = 0", _text)),
    **_all("blob, xmltype, json, vector", KeyType("varchar2(1)", "1 = 0", _not_sought)),
}

KEY_TYPES: dict[str, Mapping[str, KeyType]] = {
    "postgresql": POSTGRESQL,
    "oracle": ORACLE,
    "mysql": MYSQL,
    "mariadb": MYSQL,
}


def key_type_of(dialect: str, type_name: str) -> KeyType | None:
    """How keys of that type are looked up, None where they are compared as text."""
    name, arguments = split_type(type_name)
    known = KEY_TYPES[dialect]
    for spelling in (
        f"{name}({arguments})",
        name,
        name.removesuffix(" unsigned"),
        name.removesuffix(" zerofill"),
    ):
        if spelling in known:
            return known[spelling]
    return None
