"""The text of a value of each type, written out: what a log holds, whatever the session is set to."""

from __future__ import annotations

import pytest

from eventlog.core import values
from eventlog.core.typenames import kind_of
from eventlog.sql.common.expression import split_type
from eventlog.sql.dialects import DIALECTS
from tests.sql.columns import HOSTILE
from tests.sql.tracked import Tracked

pytestmark = pytest.mark.quick

POSTGRESQL = (
    ("smallint", "-7", "-7"),
    ("numeric", "1.500", "1.5"),
    ("numeric(8,3)", "1.5", "1.500"),
    ("numeric(8,0)", "12", "12"),
    ("real", "0.1", "0.1"),
    ("double precision", "1e20", "1e+20"),
    ("double precision", "'-Infinity'", "-Infinity"),
    ("boolean", "true", "true"),
    ("char(5)", "'ab'", "ab"),
    ("text", "' a '", " a "),
    ("date", "'2025-03-23'", "2025-03-23"),
    ("timestamp", "'2025-03-23 10:57:19.25'", "2025-03-23 10:57:19.25"),
    ("timestamp with time zone", "'2025-03-23 10:57:19+02'", "2025-03-23 08:57:19"),
    ("time", "'01:02:03'", "01:02:03"),
    ("bytea", "decode(repeat('aa', 60), 'hex')", "qqqq" * 20),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("interval", "'1 month 2 days 3.5 seconds'", "1 mon 2 days 00:00:03.5"),
    ("inet", "'10.0.0.1'", "10.0.0.1"),
    ("money", "1.5", "1.50"),
    ("integer[]", "'{1,2}'", "{1,2}"),
)
MYSQL = (
    ("smallint", "-7", "-7"),
    ("int(6) zerofill", "7", "7"),
    ("decimal(8,3)", "1.5", "1.500"),
    ("double", "0.1", "0.1"),
    ("tinyint(1)", "1", "true"),
    ("tinyint(1)", "0", "false"),
    ("bit(1)", "b'1'", "true"),
    ("bit(9)", "b'100000001'", "AQE="),
    ("char(5)", "'ab'", "ab"),
    ("varchar(9)", "' a '", " a "),
    ("date", "'2025-03-23'", "2025-03-23"),
    ("datetime(2)", "'2025-03-23 10:57:19.25'", "2025-03-23 10:57:19.25"),
    ("timestamp", "from_unixtime(1742720239)", "2025-03-23 08:57:19"),
    ("time", "'01:02:03'", "01:02:03"),
    ("varbinary(60)", "unhex(repeat('aa', 60))", "qqqq" * 20),
    ("year", "2025", "2025"),
)
TEXTS = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}


def test_the_text_of_each_type(tracking: Tracked) -> None:
    dialect = tracking.dialect
    known = TEXTS[dialect.name]
    columns = ", ".join(f"c{n} {kind}" for n, (kind, _, _) in enumerate(known))
    tracking.run(f"create table t (k integer primary key, {columns})")
    tracking.track("t", insert=1)
    given = ", ".join(value for _, value, _ in known)
    logged = tracking.after(*HOSTILE[dialect.name], f"insert into t values (1, {given})")
    assert [(row.column, row.new_value) for row in logged] == [
        (f"c{n}", text) for n, (_, _, text) in enumerate(known)
    ]
    for kind, _, text in known:
        values.load(kind_of(kind, dialect.name), text)


def test_a_type_is_split_into_its_name_and_arguments() -> None:
    assert split_type("TIMESTAMP(6) WITH TIME ZONE") == ("timestamp with time zone", "6")
    assert split_type("numeric(8, 3)") == ("numeric", "8,3")
    assert split_type("double precision") == ("double precision", "")


def test_every_expression_of_a_database_is_one_that_can_be_filled() -> None:
    for expressions in (dialect.values.expressions for dialect in DIALECTS.values()):
        for expression in (*expressions.by_type.values(), expressions.default):
            assert bool(expression.text) != bool(expression.unreadable)
            assert "{" not in expression.text.format(x="x")
            assert "{" not in expression.differs.format(a="a", b="b", name="n")
