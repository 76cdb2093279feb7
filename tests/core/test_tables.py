"""The tables file, and how tables are found."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from eventlog.core import tablesfile
from eventlog.core.errors import AmbiguousName, InvalidTables
from eventlog.core.typenames import bounds_of, definitions, number_of
from eventlog.core.values import Precision
from tests.kit.databases import Database

pytestmark = pytest.mark.quick

FILE = """\
dialect = "oracle"

[tables."hr.usr"]
schema = "hr"
key = ["idu"]
number = 111
max-value = 10
multivalued = ["phone"]
references = { mgr = "hr.usr" }
withhold = ["pw"]
columns = { idu = "number(10)", phone = "varchar2(20)", mgr = "number(10)", pw = "varchar2(20)" }

[tables."x.usr"]
schema = "x"
key = ["a"]
columns = { a = "date" }

[tables.Only]
"""
TABLES = tablesfile.read(FILE)


def test_what_is_written_is_read() -> None:
    again = tablesfile.read(tablesfile.write(TABLES, TABLES.dialect))
    assert list(again) == list(TABLES)
    assert [dict(table.columns) for table in again] == [dict(table.columns) for table in TABLES]


def test_names_match_exactly_else_uniquely_without_case() -> None:
    assert TABLES.get("hr.usr") is TABLES.of("hr", "usr")
    assert TABLES.get("HR.USR") is TABLES.get("hr.usr")
    assert TABLES.get("only").name == "Only"
    assert TABLES.find("ghost") is None
    with pytest.raises(AmbiguousName, match=r"hr\.usr or x\.usr"):
        TABLES.get("usr")


def test_the_options_of_a_table() -> None:
    usr = TABLES.get("hr.usr")
    assert [column.name for column in usr.data] == ["phone", "mgr"]
    assert usr.columns["phone"].multivalued
    assert usr.columns["mgr"].reference == "hr.usr"
    assert (usr.max_value, TABLES.numbered(111)) == (10, usr)


def test_a_key_value_is_typed_only_where_it_would_be_written_the_same() -> None:
    usr = TABLES.get("hr.usr")
    assert usr.load_key("idu=1") == (("idu", 1),)
    assert usr.load_key("idu=01") == (("idu", "01"),)
    assert usr.load_key("idu=x") == (("idu", "x"),)
    assert usr.dump_key((("idu", 1),)) == "idu=1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "Expected"),
        ("[table.a]", "unknown entry 'table'"),
        ("[tables]\na = 1", "tables.a must be a table"),
        ("[tables.a]\nkeys = []", "unknown entry 'keys'"),
        ('[tables.a]\nkey = "k"', "tables.a.key must be a list"),
        ('[tables.a]\ncolumns = ["k"]', "tables.a.columns must be a table"),
        ('[tables.a]\nview = "yes"', "tables.a.view must be true or false"),
        ('[tables.a]\nkey = ["k"]\ncolumns = { a = "int" }', "key column 'k' is not among its columns"),
        ("[tables.a]\ncolumns = { a = 1 }", "a column's type must be text"),
        ('[tables.a]\ncolumns = { a = "int" }\nreferences = { a = "b" }', "no table 'b'"),
    ],
)
def test_a_faulty_file_says_where(text: str, message: str) -> None:
    with pytest.raises(InvalidTables, match=message):
        tablesfile.read(text)


def test_a_views_column_is_found_by_each_of_its_names_but_not_where_two_share_one() -> None:
    view = tablesfile.read(
        "[tables.v]\nview = true\n"
        'columns = { pk_k = "int", sv_fname = "text", fk_mv__idg__mbr_of = "int",'
        ' sv_x = "text", mv_x = "text" }'
    ).get("v")
    for name in ("sv_fname", "fname", "FNAME", "SV_Fname"):
        assert view.column(name) is view.columns["sv_fname"]
    for name in ("fk_mv__idg__mbr_of", "fk_mbr_of", "mbr_of", "MV_mbr_of", "fk_1__idg__mbr_of"):
        assert view.column(name) is view.columns["fk_mv__idg__mbr_of"]
    for name in ("pk_k", "k", "pk__k__k"):
        assert view.column(name) is view.columns["pk_k"]
    assert view.column("sv_x") is view.columns["sv_x"]
    assert view.column("x") is None


@pytest.mark.parametrize(
    ("type_name", "dialect", "bounds"),
    [
        ("smallint", None, (-32768, 32767)),
        ("integer", "postgresql", (-(2**31), 2**31 - 1)),
        ("int(11)", "mysql", (-(2**31), 2**31 - 1)),
        ("int(10) unsigned", "mariadb", (0, 2**32 - 1)),
        ("bigint unsigned", "mysql", (0, 2**64 - 1)),
        ("tinyint(4)", "mysql", (-128, 127)),
        ("tinyint", "mssql", None),
        ("bigint", None, (-(2**63), 2**63 - 1)),
        ("numeric(5)", "postgresql", (-99999, 99999)),
        ("number(3,0)", "oracle", (-999, 999)),
        ("integer", "oracle", None),
        ("year", "mysql", None),
        ("numeric(5,2)", None, None),
        ("varchar(9)", None, None),
    ],
)
def test_the_range_of_an_integer_type(
    type_name: str, dialect: str | None, bounds: tuple[int, int] | None
) -> None:
    assert bounds_of(type_name, dialect) == bounds


@pytest.mark.parametrize(
    ("type_name", "dialect", "number"),
    [
        ("numeric(5,2)", None, Precision.EXACT),
        ("numeric", "postgresql", Precision.EXACT),
        ("number", "oracle", Precision.EXACT),
        ("float(20)", "oracle", Precision.EXACT),
        ("decimal(5,2) unsigned", "mysql", Precision.EXACT),
        ("double precision", "postgresql", Precision.DOUBLE),
        ("double unsigned", "mysql", Precision.DOUBLE),
        ("real", "postgresql", Precision.SINGLE),
        ("float", "mariadb", Precision.SINGLE),
        ("binary_float", "oracle", Precision.SINGLE),
        ("integer", None, None),
        ("text", None, None),
    ],
)
def test_how_the_numbers_of_a_type_are_compared(
    type_name: str, dialect: str | None, number: Precision | None
) -> None:
    assert number_of(type_name, dialect) == number


@pytest.mark.parametrize(
    ("written", "meant"),
    [("intger", "integer"), ("TIMESTMP(6)", "timestamp"), ("numerc(5,2)", "numeric"), ("bolean", "boolean")],
)
def test_a_type_with_a_typing_mistake_is_refused_with_the_name_that_is_meant(
    written: str, meant: str
) -> None:
    message = f"tables.usr.columns.a: no database has a type {written!r}; did you mean {meant!r}?"
    with pytest.raises(InvalidTables, match=re.escape(message)):
        tablesfile.described({"tables": {"usr": {"columns": {"a": written}}}})


TYPES = """
varchar2(20), nvarchar2(20), nclob, bfile, urowid, xmltype, interval day(2) to second(6), anydata,
int unsigned, bigint(20) unsigned zerofill, middleint, enum('a','b'), set('a'), longtext, inet4,
lvarchar(300), datetime year to second, smallfloat, serial8, bson, money(16,2), nchar varying(5), extfile,
datetimeoffset(7), uniqueidentifier, sql_variant, rowversion, hierarchyid, ntext, uint16,
binary_float, geometry, float64, timestamp_ntz
"""


def test_every_type_of_a_database_is_taken(postgres: Database) -> None:
    with postgres.engine().connect() as connection:
        query = text("select format_type(oid, null) from pg_type where typtype in ('b', 'r', 'p', 'm')")
        types = [*connection.scalars(query), *(name.strip() for name in definitions(TYPES))]
    columns = {f"c{number}": name for number, name in enumerate(types)}
    assert len(columns) > 150
    assert len(tablesfile.described({"tables": {"usr": {"columns": columns}}}).get("usr").columns) == len(
        columns
    )
