"""One SQL expression per column type and database: the text of a value as the log holds it.

Triggers and query-back use the same expression, so a value removed always meets the value that was
added. No expression depends on a setting of the session but those that our sessions and our trigger
functions pin (session.sql of the dialect).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eventlog.sql.dialects import Dialect, literal
from eventlog.tables import Column


class Expression(NamedTuple):
    """How values of one type become text, and how two of them are told apart."""

    text: str  # {x} is the value
    plain: bool = False  # the text holds none of the nine characters that a key quotes
    differs: str = ""  # whether {a} and {b} have different texts, null being one; if empty, texts compare
    unreadable: str = ""  # why a trigger cannot log the value; empty if it can


class Expressions(NamedTuple):
    """The expressions of one database."""

    by_type: Mapping[str, Expression]
    other: Expression  # of a type that has no entry, and of arrays
    texts_differ: str  # of the texts {a} and {b}
    quoted: str  # the text {v} as a key holds it
    joined: str = " || "
    wrapped: str = "{parts}"
    equals: str = "="
    given: str = "{x} is not null"
    missing: str = "{x} is null"
    escape: bool = False  # a backslash in a constant must be doubled, and the constant marked

    def of(self, type_name: str) -> Expression:
        """The expression of a type as the catalogue writes it."""
        if type_name.endswith("[]"):
            return self.other
        name, arguments = split_type(type_name)
        shape = re.sub(r"[1-9]\d*", "n", arguments)
        for known in (f"{name}({arguments})", f"{name}({shape})", name, name.partition(" ")[0]):
            if known in self.by_type:
                return self.by_type[known]
        return self.other

    def text(self, column: Column, alias: str, dialect: Dialect) -> str:
        """The text of a column's value in the row that the alias names."""
        return self.of(column.type).text.format(x=f"{alias}.{dialect.quote(column.name)}")

    def differ(self, column: Column, old: str, new: str, dialect: Dialect) -> str:
        """Whether the column has another text in the new row than in the old one."""
        expression = self.of(column.type)
        if expression.differs:
            name = dialect.quote(column.name)
            return expression.differs.format(a=f"{old}.{name}", b=f"{new}.{name}", name=literal(column.name))
        texts = {"a": self.text(column, old, dialect), "b": self.text(column, new, dialect)}
        return self.texts_differ.format(**texts)

    def key(self, columns: Iterable[tuple[str, Column]], alias: str, dialect: Dialect) -> str:
        """The table_key of a row: each column under the name that the key gives it."""
        parts: list[str] = []
        for number, (name, column) in enumerate(columns):
            parts.append(self.constant(f"+{name}=" if number else f"{name}="))
            text = self.text(column, alias, dialect)
            parts.append(text if self.of(column.type).plain else self.quoted.format(v=text))
        return self.wrapped.format(parts=self.joined.join(parts))

    def constant(self, text: str) -> str:
        """The text as a constant that no session setting changes."""
        if self.escape and "\\" in text:
            return "E" + literal(text.replace("\\", "\\\\"))
        return literal(text)


def split_type(type_name: str) -> tuple[str, str]:
    """The name of a type, and what stands in its parentheses."""
    name, _, rest = type_name.lower().partition("(")
    arguments, _, tail = rest.partition(")")
    return " ".join(f"{name} {tail}".split()), arguments.replace(" ", "")


def _all(names: str, expression: Expression) -> dict[str, Expression]:
    return {name.strip(): expression for name in names.split(",")}


_DISTINCT = "{a} is distinct from {b}"

# A cast between types of the server itself: no user can put another one in its place. Of every other type
# it is the output function that makes the text, never a cast, which the type's owner may have written.
_CAST = "{x}::pg_catalog.text"
_OUTPUT = "case when {x} is distinct from null then pg_catalog.format('%s', {x}) end"

POSTGRESQL = Expressions(
    by_type={
        **_all("smallint, integer, bigint, oid, boolean", Expression(_CAST, True, _DISTINCT)),
        **_all("uuid, date, time without time zone", Expression(_CAST, True, _DISTINCT)),
        **_all("timestamp, timestamp without time zone", Expression(_CAST, True, _DISTINCT)),
        "timestamp with time zone": Expression("({x} at time zone 'UTC')::pg_catalog.text", True, _DISTINCT),
        **_all('time with time zone, "char", cidr, xml', Expression(_CAST)),
        "numeric": Expression("pg_catalog.trim_scale({x})::pg_catalog.text", True, _DISTINCT),
        **dict.fromkeys(("numeric(n,n)", "numeric(n,0)"), Expression(_CAST, True, _DISTINCT)),
        "money": Expression("{x}::pg_catalog.numeric::pg_catalog.text", True, _DISTINCT),
        **_all("text, character varying, name", Expression(_CAST, False, _DISTINCT + ' collate "C"')),
        "character": Expression(_CAST),
        # PostgreSQL breaks Base64 after 76 characters
        "bytea": Expression(
            "pg_catalog.translate(pg_catalog.encode({x}, 'base64'), pg_catalog.chr(10), '')",
            False,
            _DISTINCT,
        ),
        "inet": Expression("pg_catalog.abbrev({x})", True),
    },
    other=Expression(_OUTPUT),
    texts_differ='{a} is distinct from {b} collate "C"',
    quoted=r"""case when {v} operator(pg_catalog.~) E'[,;''+"=\\\\<>]' """
    r"""then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace({v}, E'\\', E'\\\\'), '"', """
    r"""E'\\"') operator(pg_catalog.||) '"' else {v} end""",
    joined=" operator(pg_catalog.||) ",
    equals="operator(pg_catalog.=)",
    missing="{x} is not distinct from null",
    given="{x} is distinct from null",  # a row whose fields are null in part is neither null nor not null
    escape=True,
)

_NULL_SAFE = "not ({a} <=> {b})"
_NUMBER = "convert({x} + 0 using utf8mb4)"  # + 0 takes away what zerofill put before it
_CHARACTERS = "convert({x} using utf8mb4)"
_BOOLEAN = f"case {{x}} + 0 when 0 then 'false' when 1 then 'true' else {_NUMBER} end"
# Where Base64 is too long for the server's packets it is null; that text is one the publisher refuses.
_BASE64 = (
    "if({x} is null, null, coalesce("
    "convert(replace(to_base64({x}), char(10), '') using utf8mb4), '(over max_allowed_packet)'))"
)
# the moment itself, not its rendering in the session's zone, which is ambiguous when clocks go back
_MOMENT = "convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp({x}) second using utf8mb4)"

MARIADB = Expressions(
    by_type={
        **_all("tinyint, smallint, mediumint, int, integer, bigint", Expression(_NUMBER, True, _NULL_SAFE)),
        **_all("tinyint(1), boolean, bit(1)", Expression(_BOOLEAN, True, _NULL_SAFE)),
        **_all("decimal, numeric", Expression(_NUMBER, True, _NULL_SAFE)),
        **_all("float, double, real", Expression("convert({x} + 0e0 using utf8mb4)", True)),
        **_all("date, datetime, time, year", Expression(_CHARACTERS, True, _NULL_SAFE)),
        "timestamp": Expression(f"if({{x}} = 0, '0000-00-00 00:00:00', {_MOMENT})", True, _NULL_SAFE),
        "char": Expression("trim(trailing ' ' from convert({x} using utf8mb4))"),
        **_all("binary, varbinary, tinyblob, blob, mediumblob, longblob, bit", Expression(_BASE64)),
        **_all("geometry, point, linestring, polygon, multipoint", Expression("st_astext({x})")),
        **_all("multilinestring, multipolygon, geometrycollection", Expression("st_astext({x})")),
    },
    other=Expression(_CHARACTERS),
    texts_differ="not (cast({a} as binary) <=> cast({b} as binary))",
    quoted=r"""case when {v} regexp '[,;''+"=\\<>]' """
    r"""then concat('"', replace(replace({v}, '\', '\\'), '"', '\"'), '"') else {v} end""",
    joined=", ",
    wrapped="concat({parts})",
)

# MySQL writes a sum in 22 characters at most, which cuts digits; as JSON it has them all, and a fraction
_SHORTEST = Expression("trim(trailing '.0' from convert(cast({x} + 0e0 as json) using utf8mb4))", True)
MYSQL = MARIADB._replace(by_type={**MARIADB.by_type, **_all("float, double, real", _SHORTEST)})

_TM9 = "to_char({x}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')"
_LEADING_ZERO = rf"regexp_replace({_TM9}, '^(-?)\.', '\10.')"  # TM9 writes .5
_DATED = "to_char({x}, 'YYYY-MM-DD HH24:MI:SS{fraction}', 'NLS_CALENDAR=GREGORIAN')"
_EITHER_NULL = "({a} is null and {b} is not null or {a} is not null and {b} is null or "
_UNEQUAL = _EITHER_NULL + "{a} <> {b})"
# not <> alone: NLS_COMP and NLS_SORT of the session would make it lenient
_BYTES_UNEQUAL = (
    _EITHER_NULL + "utl_i18n.string_to_raw({a}, 'AL32UTF8') <> utl_i18n.string_to_raw({b}, 'AL32UTF8'))"
)
_LOBS_UNEQUAL = _EITHER_NULL + "dbms_lob.compare({a}, {b}) <> 0)"
_NAMED = "updating({name})"  # whether the statement names it is all that can be told
# utl_encode ends each line of 64 characters with CR and LF
_RAW_BASE64 = (
    "translate(utl_raw.cast_to_varchar2(utl_encode.base64_encode({x})), 'A' || chr(13) || chr(10), 'A')"
)


def _moments(type_name: str, value: str) -> dict[str, Expression]:
    fractions = [f".FF{digits}" if digits else "" for digits in range(10)]
    return {
        f"{type_name}({digits})": Expression(_DATED.format(x=value, fraction=fraction), True, _UNEQUAL)
        for digits, fraction in enumerate(fractions)
    }


ORACLE = Expressions(
    by_type={
        **dict.fromkeys(("number(n)", "number(n,0)"), Expression(_TM9, True, _UNEQUAL)),
        **_all("number, float", Expression(_LEADING_ZERO, True, _UNEQUAL)),
        **_all("binary_float, binary_double", Expression(_TM9, False, _UNEQUAL)),
        "date": Expression(_DATED.format(x="{x}", fraction=""), True, _UNEQUAL),
        **_moments("timestamp", "{x}"),
        **_moments("timestamp with time zone", "sys_extract_utc({x})"),
        **_moments("timestamp with local time zone", "sys_extract_utc({x})"),
        **_all("char, nchar", Expression("rtrim({x}, ' ')")),
        **_all("varchar2, nvarchar2, varchar", Expression("{x}")),
        **_all("clob, nclob", Expression("{x}", False, _LOBS_UNEQUAL)),
        "interval": Expression("to_char({x})", False, _UNEQUAL),
        "raw": Expression(_RAW_BASE64, False, _UNEQUAL),
        "rowid": Expression("rowidtochar({x})"),
        **_all("long, long raw", Expression("", False, _NAMED, "no trigger can read")),
        **_all("blob, bfile", Expression("", False, _LOBS_UNEQUAL, "has no text that a trigger could log")),
    },
    other=Expression("", False, _NAMED, "eventlog cannot turn into text"),
    texts_differ=_BYTES_UNEQUAL,
    quoted=r"""case when regexp_like({v}, '[,;''+"=\<>]') """
    r"""then '"' || replace(replace({v}, '\', '\\'), '"', '\"') || '"' else {v} end""",
)

EXPRESSIONS: dict[str, Expressions] = {
    "postgresql": POSTGRESQL,
    "oracle": ORACLE,
    "mysql": MYSQL,
    "mariadb": MARIADB,
}
