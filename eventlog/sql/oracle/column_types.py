"""Oracle: how values of each type become texts, and how the text of a key finds its row.

Packages are named with `sys.`, because a user may have given the same name to something of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eventlog.core import values
from eventlog.core.values import Kind
from eventlog.sql.common.expression import Expression, Expressions, each
from eventlog.sql.common.key_types import (
    WITHOUT_ZERO,
    KeyType,
    double,
    moment,
    number,
    text_value,
    unfit,
)

_TM9 = "to_char({x}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')"
_LEADING_ZERO = rf"regexp_replace({_TM9}, '^(-?)\.', '\10.')"  # TM9 writes .5
_DATED = "to_char({x}, 'YYYY-MM-DD HH24:MI:SS{fraction}', 'NLS_CALENDAR=GREGORIAN')"
_EITHER_NULL = "({a} is null and {b} is not null or {a} is not null and {b} is null or "
_UNEQUAL = _EITHER_NULL + "{a} <> {b})"
# not <> alone: NLS_COMP and NLS_SORT of the session would make it lenient
_BYTES_UNEQUAL = _EITHER_NULL + "sys.utl_raw.cast_to_raw({a}) <> sys.utl_raw.cast_to_raw({b}))"
_NATIONAL_UNEQUAL = (
    _EITHER_NULL
    + "sys.utl_i18n.string_to_raw({a}, 'AL16UTF16') <> sys.utl_i18n.string_to_raw({b}, 'AL16UTF16'))"
)
_LOBS_UNEQUAL = _EITHER_NULL + "sys.dbms_lob.compare({a}, {b}) <> 0)"
# utl_encode ends each line of 64 characters with CR and LF
_BASE64 = (
    "translate(sys.utl_raw.cast_to_varchar2(sys.utl_encode.base64_encode({raw})),"
    " 'A' || chr(13) || chr(10), 'A')"
)
# In a query a raw has 2000 bytes at most, and so has its Base64 as one: that of 1440 bytes has 1980.
_RAW_IN_KEY = (
    "case when {x} is not null then "
    + _BASE64.replace("{raw}", "sys.utl_raw.substr({x}, 1, least(sys.utl_raw.length({x}), 1440))")
    + " || case when sys.utl_raw.length({x}) > 1440 then "
    + _BASE64.replace("{raw}", "sys.utl_raw.substr({x}, 1441)")
    + " end end"
)
_BOOLEAN = "case when {x} then 'true' when not {x} then 'false' end"
_XML = "case when {x} is not null then xmlserialize(content {x} as clob) end"


def _moments(type_name: str, value: str, parameter: str) -> dict[str, Expression]:
    fractions = [f".FF{digits}" if digits else "" for digits in range(10)]
    return {
        f"{type_name}({digits})": Expression(
            _DATED.format(x=value, fraction=fraction), plain=True, differs=_UNEQUAL, parameter=parameter
        )
        for digits, fraction in enumerate(fractions)
    }


def _spans() -> Iterator[tuple[str, Expression]]:
    """Return expressions for intervals by their declared digits, as to_char writes them.

    An interval's own text depends on the session.
    """
    for digits in range(10):
        parts = (("year", "", "0" * digits or "0"), ("month", "-", "00"))
        yield (
            f"interval year to month({digits})",
            _span("numtoyminterval(0, 'MONTH')", parts, "yminterval_unconstrained"),
        )
        for fraction in range(10):
            yield (
                f"interval day to second({fraction})({digits})",
                _span(
                    "numtodsinterval(0, 'SECOND')",
                    (
                        ("day", "", "0" * digits or "0"),
                        ("hour", " ", "00"),
                        ("minute", ":", "00"),
                        ("second", ":", "00D" + "0" * fraction if fraction else "00"),
                    ),
                    "dsinterval_unconstrained",
                ),
            )


def _span(nothing: str, parts: tuple[tuple[str, str, str], ...], parameter: str) -> Expression:
    pieces = "".join(
        (f" || '{before}'" if before else "")
        + f" || to_char(abs(extract({part} from {{x}})), 'FM{form}', 'NLS_NUMERIC_CHARACTERS=''.,''')"
        for part, before, form in parts
    )
    sign = f"case when {{x}} < {nothing} then '-' else '+' end"
    text = f"case when {{x}} is not null then {sign}{pieces} end"
    return Expression(text, differs=_UNEQUAL, parameter=parameter)


EXPRESSIONS = Expressions(
    by_type={
        **dict.fromkeys(
            # the last ones are of tables files alone: the catalogue calls them numbers
            ("number(n)", "number(n,0)", "integer", "int", "smallint"),
            Expression(_TM9, plain=True, differs=_UNEQUAL, parameter="number"),
        ),
        **each("number, float", Expression(_LEADING_ZERO, plain=True, differs=_UNEQUAL, parameter="number")),
        "binary_float": Expression(_TM9, differs=_UNEQUAL, parameter="binary_float"),
        "binary_double": Expression(_TM9, differs=_UNEQUAL, parameter="binary_double"),
        "date": Expression(
            _DATED.format(x="{x}", fraction=""), plain=True, differs=_UNEQUAL, parameter="date"
        ),
        **_moments("timestamp", "{x}", "timestamp_unconstrained"),
        **_moments("timestamp with time zone", "sys_extract_utc({x})", "timestamp_tz_unconstrained"),
        **_moments("timestamp with local time zone", "sys_extract_utc({x})", "timestamp_ltz_unconstrained"),
        "char": Expression("rtrim({x}, ' ')", differs=_BYTES_UNEQUAL, parameter="varchar2"),
        "nchar": Expression("rtrim({x}, ' ')", differs=_NATIONAL_UNEQUAL, parameter="nvarchar2"),
        **each("varchar2, varchar", Expression("{x}", differs=_BYTES_UNEQUAL, parameter="varchar2")),
        "nvarchar2": Expression("{x}", differs=_NATIONAL_UNEQUAL, parameter="nvarchar2"),
        "clob": Expression("{x}", differs=_LOBS_UNEQUAL, parameter="clob"),
        "nclob": Expression("{x}", differs=_LOBS_UNEQUAL, parameter="nclob"),
        **dict(_spans()),
        "raw": Expression(
            "eventlog_base64(to_blob({x}))", differs=_UNEQUAL, in_key=_RAW_IN_KEY, parameter="raw"
        ),
        "blob": Expression("eventlog_base64({x})", differs=_LOBS_UNEQUAL, parameter="blob"),
        "rowid": Expression("rowidtochar({x})", differs=_UNEQUAL, parameter="rowid"),
        "urowid": Expression("cast({x} as varchar2(4000))", differs=_UNEQUAL, parameter="urowid"),
        "boolean": Expression(_BOOLEAN, plain=True, differs=_UNEQUAL, parameter="boolean"),
        "xmltype": Expression(_XML, parameter="sys.xmltype", in_query=True),
        "json": Expression("json_serialize({x} returning clob)", parameter="json", in_query=True),
        "vector": Expression("from_vector({x} returning clob)", parameter="vector", in_query=True),
        **each("long, long raw", Expression("", unreadable="no trigger and no expression can read")),
        "bfile": Expression("", unreadable="is kept in a file outside the database"),
    },
    default=Expression("", unreadable="has no text of its own"),  # object types, collections, references
    texts_differ=_LOBS_UNEQUAL,
    quoted=r"""case when regexp_like({v}, '[,;''+"=\<>]') """
    r"""then '"' || replace(replace({v}, '\', '\\'), '"', '\"') || '"' else {v} end""",
    joined="\n    || ",
    functions=("eventlog_base64",),
    longest_constant=1000,
    piece="to_clob({v})",
)


def _hex_digits(text: str) -> str:
    return values.load_base64(text).hex()


_MOMENT = "to_timestamp({k}, 'YYYY-MM-DD HH24:MI:SSXFF', 'NLS_NUMERIC_CHARACTERS=''.,''')"
KEY_TYPES: Mapping[str, KeyType] = {
    **each("number, float, integer, int, smallint", KeyType("number", sent=number)),
    "binary_float": KeyType("varchar2(40)", "{c} = to_binary_float({k})", double),
    "binary_double": KeyType("varchar2(40)", "{c} = to_binary_double({k})", double),
    **each("varchar2, nvarchar2", KeyType("varchar2(4000)", sent=text_value, as_it_is=WITHOUT_ZERO)),
    **each(
        "char, nchar", KeyType("varchar2(4000)", "{c} = rpad({k}, length({c}))", text_value, WITHOUT_ZERO)
    ),
    "date": KeyType("varchar2(40)", f"{{c}} = cast({_MOMENT} as date)", moment(Kind.TIMESTAMP)),
    "timestamp": KeyType("varchar2(40)", f"{{c}} = {_MOMENT}", moment(Kind.TIMESTAMP)),
    **each(
        "timestamp with time zone, timestamp with local time zone",
        KeyType("varchar2(40)", f"{{c}} = from_tz({_MOMENT}, 'UTC')", moment(Kind.TIMESTAMP)),
    ),
    # as hexadecimal digits: 2000 bytes, the most that a query has of a raw, are 4000 of them
    "raw": KeyType("varchar2(4000)", "{c} = hextoraw({k})", _hex_digits),
    **each(
        "clob, nclob", KeyType("varchar2(4000)", "sys.dbms_lob.compare({c}, to_clob({k})) = 0", text_value)
    ),
    **each("blob, xmltype, json, vector", unfit("varchar2(1)", "which no text finds")),
}
