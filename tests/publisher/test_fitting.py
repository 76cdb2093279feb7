"""What fits a column, and what a database would quietly turn into something else."""

from __future__ import annotations

import pytest

from eventlog.errors import InvalidValue
from eventlog.sql.fitting import check_fits


@pytest.mark.parametrize(
    ("type_name", "fits", "does_not"),
    [
        ("integer", "-2147483648", "2147483648"),
        ("int(11)", "2147483647", "99999999999"),
        ("int(10) unsigned", "4294967295", "-1"),
        ("bigint", "9223372036854775807", "9223372036854775808"),
        ("smallint", "32767", "x"),
        ("numeric(5,2)", "999.90", "1000"),
        ("decimal(5,2)", "1.500", "1.501"),
        ("numeric(10,0)", "1E+9", "1E+10"),
        ("numeric", "1.25", "NaN"),
        ("double precision", "1e300", "1e999"),
        ("double", "0.1", "x"),
        ("varchar(3)", "ä🎈c", "abcd"),
        ("character varying(3)", "abc", "abcd"),
        ("timestamp(3)", "2020-01-01T00:00:00.1230", "2020-01-01T00:00:00.1234"),
        ("datetime", "2020-01-01T00:00:00.0", "2020-01-01T00:00:00.6"),
        ("time without time zone", "10:00:00", "10:00:00.1"),
        ("uuid", "6f2c1e9a-0000-4000-8000-000000000000", "6f2c"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(type_name: str, fits: str, does_not: str) -> None:
    check_fits(type_name, fits, fraction=0)
    with pytest.raises(InvalidValue):
        check_fits(type_name, does_not, fraction=0)


@pytest.mark.parametrize("type_name", ["text", "varchar", "inet", "enum('a','b')", "geometry(Point,4326)"])
def test_other_types_are_left_to_the_database(type_name: str) -> None:
    check_fits(type_name, "anything at all")
