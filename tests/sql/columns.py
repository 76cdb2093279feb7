"""The column types of each database, with values that the round trip draws."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from hypothesis import strategies as st

SPECIAL = ",;'+\"=\\<>"

_LETTERS = st.sampled_from(
    [*SPECIAL, " ", "a", "A", "é", "\n", "\t", "雪", "🦉", "%", ":", "{", "}", "$", "_"]
)
_TEXT = st.text(_LETTERS, max_size=12)
_SHORT = st.text(_LETTERS, max_size=4)
_LONG = st.one_of(_TEXT, st.integers(50, 3000).map(lambda n: "long'\\\n" * n))
_BYTES = st.one_of(st.binary(max_size=20), st.integers(50, 200).map(lambda n: bytes(range(256)) * n))
_DATES = st.dates(dt.date(1000, 1, 1), dt.date(9999, 12, 31))
_MOMENTS = st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 30))
_UTC = st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2037, 12, 30))
_TIMES = st.times()
_DECIMALS = st.decimals(-(10**8), 10**8, places=3)
_SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32)
_DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
_INT = st.integers(-(2**31), 2**31 - 1)


class Kind(NamedTuple):
    """A column type, and the values that are drawn for it."""

    type: str
    drawn: st.SearchStrategy[Any]
    key: bool = False


def _shown(moments: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return moments.map(
        lambda moment: moment.isoformat(" ") if isinstance(moment, dt.datetime) else str(moment)
    )


_POSTGRESQL = (
    Kind("integer", _INT, key=True),
    Kind("bigint", st.integers(-(2**63), 2**63 - 1), key=True),
    Kind("numeric", st.decimals(allow_nan=False, allow_infinity=False, places=6).map(str), key=True),
    Kind("numeric(12,3)", _DECIMALS.map(str), key=True),
    Kind("real", _SINGLES),
    Kind("double precision", _DOUBLES, key=True),
    Kind("text", _LONG),
    Kind("varchar(40)", _TEXT, key=True),
    Kind("char(5)", _SHORT, key=True),
    Kind("boolean", st.booleans(), key=True),
    Kind("date", _shown(_DATES), key=True),
    Kind("timestamp(3)", _shown(_MOMENTS), key=True),
    Kind("timestamp with time zone", _UTC.map(lambda at: at.isoformat() + "+00"), key=True),
    Kind("time", _shown(_TIMES)),
    Kind("interval", st.integers(-(10**6), 10**6).map(lambda n: f"{n} months {n} days {n}.25 seconds")),
    Kind("uuid", st.uuids().map(str), key=True),
    Kind("bytea", _BYTES, key=False),
    Kind("bytea", st.binary(max_size=12), key=True),
    Kind("json", st.sampled_from(['{"a": 1}', '{"a":1}', "null", '[1.0, "\\u00e9"]'])),
    Kind("jsonb", st.sampled_from(['{"a": 1}', "[1.0]", "[1.00]"])),
    Kind("text[]", st.lists(_SHORT, max_size=3)),
    Kind("date[]", st.lists(_DATES, max_size=2)),
    Kind("inet", st.ip_addresses(v=4).map(str), key=True),
    Kind("point", st.sampled_from(["(1,2.5)", "(0.1,-3)"])),
    Kind("daterange", st.sampled_from(["[2025-01-01,2025-02-01)", "empty", "(,2025-02-01)"])),
)

_MYSQL = (
    Kind("int", _INT, key=True),
    Kind("bigint unsigned", st.integers(0, 2**64 - 1), key=True),
    Kind("int(8) zerofill", st.integers(0, 10**6)),
    Kind("decimal(12,3)", _DECIMALS, key=True),
    Kind("float", st.sampled_from([0.1, -2.5, 16777215.0, 0.0, 3.0e10])),
    Kind("double", _DOUBLES),
    Kind("varchar(40)", _TEXT, key=True),
    Kind("varchar(40) character set utf8mb4 collate utf8mb4_bin", _TEXT, key=True),
    Kind("char(5)", _SHORT, key=True),
    Kind("text", _LONG),
    Kind("date", _shown(_DATES), key=True),
    Kind("datetime(3)", _shown(_MOMENTS), key=True),
    Kind("timestamp(6) null default null", _shown(_UTC)),
    Kind("time(2)", _shown(_TIMES)),
    Kind("blob", _BYTES),
    Kind("varbinary(20)", st.binary(max_size=20), key=True),
    Kind("binary(4)", st.binary(min_size=4, max_size=4), key=True),
    Kind("tinyint(1)", st.sampled_from([0, 1])),
    Kind("bit(9)", st.integers(0, 511)),
    Kind("enum('a','b+c','d\"e')", st.sampled_from(["a", "b+c", 'd"e']), key=True),
    Kind("year", st.integers(1901, 2155)),
)

COLUMNS: dict[str, tuple[Kind, ...]] = {"postgresql": _POSTGRESQL, "mysql": _MYSQL, "mariadb": _MYSQL}

# how a value is bound as one of a type
BOUND = {"postgresql": "cast({p} as {type})", "mysql": "{p}", "mariadb": "{p}"}

# what a session may set, and no text may depend on
HOSTILE: dict[str, tuple[str, ...]] = {
    "postgresql": (
        "set time zone 'Asia/Kathmandu'",
        "set datestyle to 'German'",
        "set intervalstyle to 'sql_standard'",
        "set extra_float_digits to -15",
        "set bytea_output to 'escape'",
        "set standard_conforming_strings to off",
        "set escape_string_warning to off",
        "set search_path to pg_temp, public",
        "set quote_all_identifiers to on",
        "set transform_null_equals to on",
        "set array_nulls to off",
        "set xmlbinary to hex",
        "set plpgsql.variable_conflict to use_column",
        "set plpgsql.extra_errors to 'all'",
    ),
    "mysql": (
        "set time_zone = '+05:45'",
        "set sql_mode = 'ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION'",
        "set character_set_results = 'latin1'",
        "set collation_connection = 'utf8mb4_general_ci'",
        "set div_precision_increment = 1",
        "set lc_time_names = 'de_DE'",
        "set group_concat_max_len = 4, max_sort_length = 8, sql_auto_is_null = 1, sql_safe_updates = 1",
    ),
}
HOSTILE["mariadb"] = HOSTILE["mysql"]
