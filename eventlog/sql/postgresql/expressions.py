"""PostgreSQL: the texts of its types, as expressions that triggers and query-backs share."""

from __future__ import annotations

from eventlog.sql.common.expression import Expression, Expressions, each

_DISTINCT = "{a} is distinct from {b}"

# A cast between types of the server itself: no user can put another one in its place. Of every other type
# it is the output function that makes the text, never a cast, which the type's owner may have written.
_CAST = "{x}::pg_catalog.text"
_OUTPUT = "case when {x} is distinct from null then pg_catalog.format('%s', {x}) end"

EXPRESSIONS = Expressions(
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
