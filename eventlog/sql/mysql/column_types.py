"""MySQL and MariaDB: how values of each type become texts, and how the text of a key finds its row."""

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
    uuid_value,
)

USER = "left(user(), char_length(user()) - locate('@', reverse(user())))"  # of the session, without its host
_NUMBER = "convert({x} + 0 using utf8mb4)"  # + 0 takes away what zerofill put before it
_CHARACTERS = "convert({x} using utf8mb4)"
_WITHOUT_PADDING = f"trim(trailing ' ' from {_CHARACTERS})"
# a boolean is a number in these databases: one that is neither 0 nor 1 stays a number
_BOOLEAN = f"case {{x}} + 0 when 0 then 'false' when 1 then 'true' else {_NUMBER} end"
# Where Base64 is too long for the server's packets it is null; that text is one the publisher refuses.
_BASE64 = (
    "if({x} is null, null, coalesce("
    "convert(replace(to_base64({x}), char(10), '') using utf8mb4), '(over max_allowed_packet)'))"
)
# the moment itself, not its rendering in the session's zone, which is ambiguous when clocks go back
_MOMENT = "convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp({x}) second using utf8mb4)"

# Where MariaDB keeps results aside (to sort or join them) it takes a double to have 23 characters at most.
_DOUBLE = Expression("convert({x} + 0e0 using utf8mb4)", plain=True, queried="cast({x} + 0e0 as char(40))")


def _distinct(text: str) -> Expression:
    """Return the expression of a type whose values have different texts exactly if they differ."""
    return Expression(text, plain=True, differs="not ({a} <=> {b})")


MARIADB_EXPRESSIONS = Expressions(
    by_type={
        **each("tinyint, smallint, mediumint, int, integer, bigint", _distinct(_NUMBER)),
        **each("tinyint(1), boolean, bit(1)", _distinct(_BOOLEAN)),
        **each("decimal, numeric", _distinct(_NUMBER)),
        **each("float, double, real", _DOUBLE),
        **each("date, datetime, time, year", _distinct(_CHARACTERS)),
        "timestamp": _distinct(f"if({{x}} = 0, '0000-00-00 00:00:00', {_MOMENT})"),
        "char": Expression(_WITHOUT_PADDING),
        **each("binary, varbinary, tinyblob, blob, mediumblob, longblob, bit", Expression(_BASE64)),
        **each("geometry, point, linestring, polygon, multipoint", Expression("st_astext({x})")),
        **each("multilinestring, multipolygon, geometrycollection", Expression("st_astext({x})")),
    },
    default=Expression(_CHARACTERS),
    texts_differ="not (cast({a} as binary) <=> cast({b} as binary))",
    quoted=r"""case when {v} regexp '[,;''+"=\\<>]' """
    r"""then concat('"', replace(replace({v}, '\', '\\'), '"', '\"'), '"') else {v} end""",
    joined=", ",
    wrapped="concat({parts})",
)

# MySQL writes a sum in 22 characters at most, which cuts digits; as JSON it has them all, and a fraction
_SHORTEST = Expression("trim(trailing '.0' from convert(cast({x} + 0e0 as json) using utf8mb4))", plain=True)
EXPRESSIONS = MARIADB_EXPRESSIONS._replace(
    by_type={**MARIADB_EXPRESSIONS.by_type, **each("float, double, real", _SHORTEST)}
)


def _bit(text: str) -> str:
    return "1" if values.load(Kind.STATE, text) else "0"


def _base64_value(text: str) -> str:
    return values.dump_base64(values.load_base64(text))


# by the index of the column, and letter for letter, because a collation may ignore case and blanks at the end
_COLLATED = "{c} = convert({k} using {charset}) collate {collation}"
_EXACTLY = "cast({c} as binary) = cast({k} as binary)"


def _text_key(text: str) -> KeyType:
    """Return the key type of columns whose values have the text that `text` makes of {x}."""
    exactly = _EXACTLY.format(c=text.format(x="{c}"), k=text.format(x="{k}"))
    return KeyType("longtext", f"{_COLLATED} and {exactly}", text_value, WITHOUT_ZERO)


KEY_TYPES: Mapping[str, KeyType] = {
    **each("tinyint, smallint, mediumint, int, integer, bigint", integer_of("bigint", 64)),
    "bigint unsigned": integer_of("bigint unsigned", 65),  # 64 bits and the sign
    **each("tinyint(1), bit(1)", KeyType("integer", sent=_bit)),
    **each("decimal, numeric", KeyType("decimal(65,30)", sent=number)),
    "float": KeyType("double", matches="{c} = cast({k} as float)", sent=double),
    **each("double, real", KeyType("double", sent=double)),
    **each("varchar, tinytext, text, mediumtext, longtext, enum", _text_key(_CHARACTERS)),
    "char": _text_key(_WITHOUT_PADDING),
    **each("binary, varbinary", KeyType("longtext", matches="{c} = from_base64({k})", sent=_base64_value)),
    "uuid": KeyType("longtext", matches="{c} = cast({k} as uuid)", sent=uuid_value, as_it_is=UUID_TEXT),
    "date": KeyType("date", sent=moment(Kind.DATE)),
    **each("datetime, timestamp", KeyType("datetime(6)", sent=moment(Kind.TIMESTAMP))),
    "time": KeyType("time(6)", sent=moment(Kind.TIME)),
    "year": integer_of("integer", 16),
}
