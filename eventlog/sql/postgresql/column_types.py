"""PostgreSQL: how values of each type become texts, and how the text of a key finds its row."""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.core import values
from eventlog.core.values import Kind
from eventlog.sql.common.expression import Expression, Expressions, each
from eventlog.sql.common.key_types import (
    UUID_TEXT,
    WITHOUT_ZERO,
    KeyType,
    double,
    integer_of,
    moment,
    number,
    text_value,
    unfit,
    uuid_value,
)

_DISTINCT = "{a} is distinct from {b}"

# A cast between types of the server itself, which no user can replace. The texts of all other types are made
# by their output functions, because the owner of a type may have written its casts. A text would keep the
# collation of its column, by which another one may be its equal, or which takes no pattern.
_CAST = "{x}::pg_catalog.text"
_LETTERS = ' collate pg_catalog."C"'
_OUTPUT = "case when {x} is distinct from null then pg_catalog.format('%s', {x}) end" + _LETTERS


def _distinct(text: str) -> Expression:
    """Return the expression of a type whose values have different texts exactly if they differ."""
    return Expression(text, plain=True, differs=_DISTINCT)


EXPRESSIONS = Expressions(
    by_type={
        **each("smallint, integer, bigint, oid, boolean", _distinct(_CAST)),
        **each("uuid, date, time without time zone", _distinct(_CAST)),
        **each("timestamp, timestamp without time zone", _distinct(_CAST)),
        "timestamp with time zone": _distinct("({x} at time zone 'UTC')::pg_catalog.text"),
        **each('time with time zone, "char", cidr, xml', Expression(_CAST)),
        "numeric": _distinct("pg_catalog.trim_scale({x})::pg_catalog.text"),
        **dict.fromkeys(("numeric(n,n)", "numeric(n,0)"), _distinct(_CAST)),
        "money": _distinct("{x}::pg_catalog.numeric::pg_catalog.text"),
        **each("text, character varying, name", Expression(_CAST + _LETTERS, differs=_DISTINCT + _LETTERS)),
        "character": Expression(_CAST + _LETTERS),
        # PostgreSQL breaks Base64 after 76 characters
        "bytea": Expression(
            "pg_catalog.translate(pg_catalog.encode({x}, 'base64'), pg_catalog.chr(10), '')",
            differs=_DISTINCT,
        ),
        "inet": Expression("pg_catalog.abbrev({x})", plain=True),
    },
    default=Expression(_OUTPUT, by_text=True),
    texts_differ=_DISTINCT,
    quoted=r"""case when {v} operator(pg_catalog.~) E'[,;''+"=\\\\<>]' """
    r"""then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace({v}, E'\\', E'\\\\'), '"', """
    r"""E'\\"') operator(pg_catalog.||) '"' else {v} end""",
    joined=" operator(pg_catalog.||) ",
    equals="operator(pg_catalog.=)",
    missing="{x} is not distinct from null",
    present="{x} is distinct from null",  # a row whose fields are null in part is neither null nor not null
    escape=True,
)


def _state(text: str) -> str:
    return "true" if values.load(Kind.STATE, text) else "false"


def _hex_value(text: str) -> str:
    return "\\x" + values.load_base64(text).hex()


# by the index of the column, and letter for letter
_EXACTLY = "{c} {equals} {k} and {c}" + _LETTERS + " {equals} {k}"
# blanks at the end count in its output alone
_WITH_BLANKS = (
    "{c} {equals} cast({k} as pg_catalog.bpchar) and pg_catalog.format('%s', {c})"
    + _LETTERS
    + " {equals} {k}"
)
KEY_TYPES: Mapping[str, KeyType] = {
    "smallint": integer_of("smallint", 16),
    "integer": integer_of("integer", 32),
    "bigint": integer_of("bigint", 64),
    "numeric": KeyType("numeric", sent=number),
    "real": KeyType("real", sent=double),
    "double precision": KeyType("double precision", sent=double),
    **each("text, character varying", KeyType("text", _EXACTLY, text_value, WITHOUT_ZERO)),
    "character": KeyType(
        "text", _EXACTLY.replace("{k}", "cast({k} as pg_catalog.bpchar)"), text_value, WITHOUT_ZERO
    ),
    "bpchar": KeyType("text", _WITH_BLANKS, text_value, WITHOUT_ZERO),
    "uuid": KeyType("uuid", sent=uuid_value, as_it_is=UUID_TEXT),
    "boolean": KeyType("boolean", sent=_state),
    "bytea": KeyType("bytea", sent=_hex_value),
    "date": KeyType("date", sent=moment(Kind.DATE)),
    **each("timestamp, timestamp without time zone", KeyType("timestamp", sent=moment(Kind.TIMESTAMP))),
    "timestamp with time zone": KeyType(
        "timestamp", "{c} {equals} {k} at time zone 'UTC'", moment(Kind.TIMESTAMP)
    ),
    "time without time zone": KeyType("time", sent=moment(Kind.TIME)),
    "time with time zone": KeyType("time with time zone", sent=moment(Kind.TIME)),
    **each(
        "regclass, regcollation, regconfig, regdictionary, regnamespace, regoper, regoperator, regproc,"
        " regprocedure, regrole, regtype",
        unfit("text", "whose text changes when what it names is renamed"),
    ),
}
