"""The sizes of columns in metadata messages: `length` is in bytes, and no value that is sent is longer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Value
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.formats.qlik import metadata
from tests.formats.qlik.helpers import change, read_messages, seq, write_messages
from tests.formats.qlik.message_samples import METADATA, REFRESH, only
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick


def table_of(sql_type: str) -> Tables:
    return tablesfile.read(f'[tables.t]\nkey = ["c"]\ncolumns = {{ c = "{sql_type}" }}\n')


def insert(value: Value, **reported: Any) -> Change:
    return Change(Op.INSERT, None, "t", (), (Field("c", ABSENT, value),), seq(1), **reported)


def sizes(message: dict[str, Any], name: str = "c") -> tuple[str, int, int, int]:
    """Return the type of a column in a metadata message, its length, precision and scale."""
    column = message["message"]["tableStructure"]["tableColumns"][name]
    return column["type"], column["length"], column["precision"], column["scale"]


# --- the rule of each type


@pytest.mark.parametrize(
    ("sql_type", "described"),
    [
        ("varchar(9)", ("STRING", 36, 0, 0)),
        ("nvarchar(20)", ("STRING", 80, 0, 0)),
        ("varchar2(20 byte)", ("STRING", 80, 0, 0)),
        ("character varying(3)", ("STRING", 12, 0, 0)),
        ("varchar(999999999)", ("STRING", 2**31 - 1, 0, 0)),
        ("varchar", ("STRING", 0, 0, 0)),
        ("interval day(2) to second(6)", ("STRING", 0, 0, 0)),
        ("varchar(9)[]", ("STRING", 0, 0, 0)),
        ("clob(100)", ("CLOB", 0, 0, 0)),
        ("varbinary(9)", ("BYTES", 9, 0, 0)),
        ("blob", ("BLOB", 0, 0, 0)),
        ("boolean", ("BOOLEAN", 1, 0, 0)),
        ("smallint", ("INT2", 5, 0, 0)),
        ("bigint", ("INT8", 19, 0, 0)),
        ("real", ("REAL4", 7, 0, 0)),
        ("double precision", ("REAL8", 14, 0, 0)),
        ("numeric(10,2)", ("NUMERIC", 0, 10, 2)),
        ("numeric", ("NUMERIC", 0, 0, 0)),
        ("time(3)", ("TIME", 0, 0, 3)),
        ("timestamp(6)", ("DATETIME", 0, 0, 6)),
    ],
)
def test_each_type_has_its_sizes(sql_type: str, described: tuple[str, int, int, int]) -> None:
    message, _ = write_messages([insert(None)], table_of(sql_type))
    assert sizes(message) == described


def test_an_integer_and_a_date_have_the_lengths_of_a_real_message() -> None:
    tables = tablesfile.read(
        '[tables.salaries]\nschema = "employees"\nkey = ["emp_no", "from_date"]\n'
        'columns = { emp_no = "integer", salary = "integer", from_date = "date", to_date = "date" }\n'
    )
    written, _ = write_messages([only(METADATA, REFRESH)], tables)
    for name in REFRESH["message"]["data"]:
        assert sizes(written, name) == sizes(METADATA, name)


def test_a_bit_string_of_mysql_has_the_bytes_that_it_fills() -> None:
    tables = tablesfile.read('dialect = "mysql"\n[tables.t]\nkey = ["c"]\ncolumns = { c = "bit(12)" }\n')
    message, _ = write_messages([insert(b"\x0f\xff")], tables)
    assert sizes(message) == ("BYTES", 2, 0, 0)


def test_a_decimal_of_informix_without_a_scale_states_no_digits() -> None:
    """A DECIMAL(5) has a floating point there."""
    tables = tablesfile.read('dialect = "informix"\n[tables.t]\ncolumns = { c = "decimal(5)" }\n')
    message, data = write_messages([insert("12.345")], tables)
    assert (sizes(message), data["message"]["data"]) == (("NUMERIC", 0, 0, 0), {"c": "12.345"})


def test_a_capture_states_lengths_in_bytes_too() -> None:
    columns = ("columns", "c nvarchar(20,0), d char(2)")
    message, _ = write_messages([insert("a", extra=(columns,))._replace(key=(("d", "b"),))])
    assert (sizes(message), sizes(message, "d")) == (("STRING", 80, 0, 0), ("STRING", 8, 0, 0))


def test_lengths_that_were_published_are_in_bytes_already() -> None:
    first, _ = write_messages([insert("a")], table_of("varchar(9)"))
    published = (metadata.read(first["message"]),)
    for tables in (table_of("varchar(9)"), Tables()):
        assert [m["type"] for m in write_messages([insert("b")], tables, published=published)] == ["DT"]


# --- what is longer


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize(
    ("sql_type", "longest", "longer", "words"),
    [
        ("varchar(3)", "\U0001f600" * 3, "\U0001f600" * 3 + "x", "a value of 13 bytes is longer"),
        ("varchar(3)", "a" * 12, "a" * 13, "a value of 13 bytes is longer than its column, which has 12"),
        ("varchar(1)", 1000, 10000, "a value of 5 bytes is longer"),
        ("varbinary(2)", b"\xff\xff", b"\xff\xff\xff", "a value of 3 bytes is longer"),
        ("integer", -(2**31), 2**31, "2147483648 is not an integer from -2147483648 to 2147483647 (INT4)"),
        ("tinyint unsigned", 255, 256, "256 is not an integer from 0 to 255 (UINT1)"),
        ("numeric(4,2)", "-12.34", "123.45", "'123.45' does not fit decimal(4, 2)"),
        ("numeric(4,2)", "1.5E+1", "1.5E+2", "'1.5E+2' does not fit decimal(4, 2)"),
        ("numeric(4,2)", "1.230", "1.234", "'1.234' does not fit decimal(4, 2)"),
        ("numeric(3)", 999, 1000, "'1000' does not fit decimal(3, 0)"),
        ("numeric(3)", 7, "\u0663", "'\u0663' is not a number (NUMERIC)"),
        ("numeric(2,2)", "0.12", "5.12", "'5.12' does not fit decimal(2, 2)"),
        ("numeric(2,4)", "0.0099", "0.01", "'0.01' does not fit decimal(2, 4)"),
        ("numeric(3,2)", "0.5", ".5", "'.5' is not a number (NUMERIC)"),
    ],
)
def test_the_longest_value_is_sent_and_a_longer_one_refused(
    sql_type: str, longest: Value, longer: Value, words: str, encoding: str
) -> None:
    tables = table_of(sql_type)
    found = read_messages(write_messages([insert(longest)], tables, encoding=encoding), tables)
    sent = change(found[-1]).after["c"]
    assert sent == (str(longest) if sql_type == "varchar(1)" else longest)
    (refused,) = write_messages([insert(longer)], tables, encoding=encoding)
    assert isinstance(refused, Refused)
    assert f"column c: {words}" in refused.reason


def test_a_text_that_is_too_long_before_an_update_is_refused_too() -> None:
    fields = (Field("c", "a" * 13, "b"),)
    (refused,) = write_messages([Change(Op.UPDATE, None, "t", (), fields, seq(1))], table_of("varchar(3)"))
    assert "column c: a value of 13 bytes" in refused.reason


def test_without_a_declared_length_none_is_stated_and_any_is_sent() -> None:
    for tables in (Tables(), table_of("text")):
        message, data = write_messages([insert("a" * 10_000)], tables)
        assert sizes(message)[1] == 0
        assert len(data["message"]["data"]["c"]) == 10_000


NUMBER = r"-?[0-9]{1,5}(\.[0-9]{0,6})?([eE]-?[0-9])?"
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "varchar(2)": st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.integers(),
    "varbinary(3)": st.binary(max_size=6),
    "smallint": st.integers(-(2**17), 2**17),
    "numeric(5,2)": st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str) | st.integers(),
    "bigint unsigned": st.integers(0, 10**22),
}


@settings(max_examples=drawn(200))
@given(st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name])))
def test_no_value_that_is_sent_is_longer_than_its_sizes(drawn_value: tuple[str, Value]) -> None:
    """Compare the sent value with the sizes of its metadata message, as a consumer can."""
    sql_type, value = drawn_value
    written = write_messages([insert(value)], table_of(sql_type))
    if isinstance(written[0], Refused):
        return
    data_type, length, precision, scale = sizes(written[0])
    sent = written[1]["message"]["data"]["c"]
    if data_type == "STRING":
        assert len(sent.encode()) <= length
    elif data_type == "BYTES":
        assert len(bytes.fromhex(sent)) <= length
    elif data_type == "NUMERIC":
        whole, _, fraction = sent.lstrip("-").partition(".")
        assert len(whole.lstrip("0")) <= precision - scale
        assert len(fraction.rstrip("0")) <= scale
    else:
        assert len(str(sent).lstrip("-")) <= length


@settings(max_examples=drawn(200))
@given(st.integers(1, 4), st.integers(0, 5), st.from_regex(NUMBER, fullmatch=True))
def test_a_number_is_sent_if_and_only_if_it_fits(precision: int, scale: int, text: str) -> None:
    (*_, answer) = write_messages([insert(text)], table_of(f"numeric({precision},{scale})"))
    number = Decimal(text)
    fits = abs(number) < Decimal(10) ** (precision - scale) and number == round(number, scale)
    assert isinstance(answer, dict) == fits
    assert not fits or answer["message"]["data"] == {"c": text}
