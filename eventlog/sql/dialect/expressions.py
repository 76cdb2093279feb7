"""One SQL expression per column type and database: the text of a value as the log holds it.

Triggers and query-back use the same expression, so a value removed always meets the value that was
added. No expression depends on a setting of the session but those that our sessions and our trigger
functions pin (`session`, a named statement of the dialect).
"""

from __future__ import annotations

from eventlog.sql.dialect.expression import Expression, Expressions, each
from eventlog.sql.dialect.oracle_expressions import ORACLE

_DISTINCT = "{a} is distinct from {b}"

# A cast between types of the server itself: no user can put another one in its place. Of every other type
# it is the output function that makes the text, never a cast, which the type's owner may have written.
_CAST = "{x}::pg_catalog.text"
_OUTPUT = "case when {x} is distinct from null then pg_catalog.format('%s', {x}) end"

POSTGRESQL = Expressions(
    by_type={
        **each("smallint, integer, bigint, oid, boolean", Expression(_CAST, True, _DISTINCT)),
        **each("uuid, date, time without time zone", Expression(_CAST, True, _DISTINCT)),
        **each("timestamp, timestamp without time zone", Expression(_CAST, True, _DISTINCT)),
        "timestamp with time zone": Expression("({x} at time zone 'UTC')::pg_catalog.text", True, _DISTINCT),
        **each('time with time zone, "char", cidr, xml', Expression(_CAST)),
        "numeric": Expression("pg_catalog.trim_scale({x})::pg_catalog.text", True, _DISTINCT),
        **dict.fromkeys(("numeric(n,n)", "numeric(n,0)"), Expression(_CAST, True, _DISTINCT)),
        "money": Expression("{x}::pg_catalog.numeric::pg_catalog.text", True, _DISTINCT),
        **each("text, character varying, name", Expression(_CAST, False, _DISTINCT + ' collate "C"')),
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

# Where MariaDB keeps results aside (to sort or join them) it takes a double to have 23 characters at most.
_DOUBLE = Expression("convert({x} + 0e0 using utf8mb4)", True, queried="cast({x} + 0e0 as char(40))")

MARIADB = Expressions(
    by_type={
        **each("tinyint, smallint, mediumint, int, integer, bigint", Expression(_NUMBER, True, _NULL_SAFE)),
        **each("tinyint(1), boolean, bit(1)", Expression(_BOOLEAN, True, _NULL_SAFE)),
        **each("decimal, numeric", Expression(_NUMBER, True, _NULL_SAFE)),
        **each("float, double, real", _DOUBLE),
        **each("date, datetime, time, year", Expression(_CHARACTERS, True, _NULL_SAFE)),
        "timestamp": Expression(f"if({{x}} = 0, '0000-00-00 00:00:00', {_MOMENT})", True, _NULL_SAFE),
        "char": Expression("trim(trailing ' ' from convert({x} using utf8mb4))"),
        **each("binary, varbinary, tinyblob, blob, mediumblob, longblob, bit", Expression(_BASE64)),
        **each("geometry, point, linestring, polygon, multipoint", Expression("st_astext({x})")),
        **each("multilinestring, multipolygon, geometrycollection", Expression("st_astext({x})")),
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
MYSQL = MARIADB._replace(by_type={**MARIADB.by_type, **each("float, double, real", _SHORTEST)})

EXPRESSIONS: dict[str, Expressions] = {
    "postgresql": POSTGRESQL,
    "oracle": ORACLE,
    "mysql": MYSQL,
    "mariadb": MARIADB,
}
