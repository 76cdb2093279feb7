"""Column types: golden bytes, sizes, and the law that what is written is read."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import Undecoded, Value
from eventlog.core.errors import EventlogError, InvalidValue, NotExpressible
from eventlog.formats.gbase.columns import TYPES as DECLARED_TYPES
from eventlog.formats.gbase.columns import ColumnType, Text, column_type
from eventlog.formats.gbase.declared_types import read_declared
from eventlog.formats.gbase.faults import BadSchema, Corrupt
from eventlog.formats.gbase.schema import read_schema
from tests.formats.gbase import typed
from tests.formats.gbase.helpers import facts
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick


def entry(name: str, form: Text | None = None) -> ColumnType:
    column = column_type(read_declared(name), form or Text())
    assert column is not None
    return column


def load(name: str, data: bytes, form: Text | None = None) -> Value:
    of_type = entry(name, form)
    return of_type.load(struct.unpack(">" + of_type.code, data)[0] if of_type.code else data)


def dump(name: str, value: Value, form: Text | None = None) -> bytes:
    of_type = entry(name, form)
    dumped = of_type.dump(value)
    return struct.pack(">" + of_type.code, dumped) if of_type.code else dumped


@pytest.mark.parametrize(("name", "hex", "value"), facts("values.json"))
def test_bytes_and_value_stand_for_each_other(name: str, hex: str, value: Any) -> None:
    assert load(name, bytes.fromhex(hex)) == value
    assert type(load(name, bytes.fromhex(hex))) is type(value)
    assert dump(name, value).hex() == hex


@pytest.mark.parametrize(("name", "size"), facts("sizes.json").items())
def test_a_type_takes_so_many_bytes(name: str, size: int) -> None:
    assert entry(name).size == size


@pytest.mark.parametrize("case", facts("schemas.json"), ids=lambda case: case["text"][:30])
def test_a_schema_text_names_columns_and_sizes(case: dict[str, Any]) -> None:
    columns = read_schema(case["text"], Text()).columns
    assert [[column.name, column.type.size] for column in columns] == case["columns"]


@pytest.mark.parametrize("name", sorted(typed.TYPES))
def test_every_type_has_a_null(name: str) -> None:
    assert load(name, dump(name, None)) is None


@settings(max_examples=drawn(1500))
@given(st.data(), st.sampled_from(sorted(typed.TYPES)))
def test_what_is_written_is_read(data: st.DataObject, name: str) -> None:
    value = data.draw(typed.TYPES[name])
    written = dump(name, value)
    size = entry(name).size
    assert size is None or len(written) == size
    assert load(name, written) == value


@settings(max_examples=drawn(1500))
@given(st.data(), st.sampled_from(sorted(typed.TYPES)))
def test_any_bytes_are_a_value_that_writes_again_or_our_error(data: st.DataObject, name: str) -> None:
    size = entry(name).size
    low, high = (0, 20) if size is None else (size, size)
    noise = data.draw(st.binary(min_size=low, max_size=high))
    try:
        value = load(name, noise)
    except InvalidValue:
        return
    assert load(name, dump(name, value, Text(prefix=2 if len(noise) > 1 else 1))) == value


@pytest.mark.parametrize(("name", "text"), [("money", "7.00"), ("money(9)", "7.00"), ("money(1)", "0.7")])
def test_money_has_two_digits_after_its_point_unless_it_states_others(name: str, text: str) -> None:
    assert load(name, dump(name, text.rstrip("0").removesuffix("."))) == text


@pytest.mark.parametrize("value", [0, 1, 255])
def test_a_null_boolean_is_null_whatever_its_value_is(value: int) -> None:
    assert load("boolean", bytes((1, value))) is None


def test_the_largest_numbers_come_back() -> None:
    """One more pair of digits before the point, and a negative number would look like a null."""
    for bytes_of, value in (("ff01", "1" + "0" * 124), ("0163", "-1" + "0" * 122)):
        assert load("decimal(1)", bytes.fromhex(bytes_of)) == value
        assert dump("decimal(1)", value).hex() == bytes_of
    with pytest.raises(NotExpressible):
        dump("decimal(1)", "-1" + "0" * 124)


@pytest.mark.parametrize(
    ("name", "hex"),
    [
        ("int8", "00020000000000000000"),
        ("int8", "0001ffffffffffffffff"),
        ("boolean", "0002"),
        ("boolean", "0201"),
        ("date", "7fffffff"),
        ("decimal(5,2)", "c2016400"),
        ("decimal(5,2)", "c4010101"),
        ("decimal(5,2)", "7f000000"),
        ("decimal(5,1)", "c1010105"),
        ("datetime year to day", "c614180d01"),
        ("datetime hour to minute", "c31800"),
        ("datetime hour to minute", "c40101"),
        ("datetime year to second", "c714ff030f0a141e"),
        ("datetime year to second", "c71418021e0a141e"),
        ("datetime year to fraction(1)", "c71418030f0a141e47"),
        ("interval day(3) to second", "c40c18040500"),
        ("interval day(3) to second", "c50f0c030405"),
        ("interval hour(2) to hour", "3c64"),
        ("varchar(20,0)", "05616263"),
        ("varchar(20,0)", ""),
        ("varchar(20,0)", "000161627a"),
        ("lvarchar(20)", "000500616263"),
        ("lvarchar(20)", "000401616263"),
        ("lvarchar(20)", "000402616263"),
    ],
)
def test_corrupt_bytes_are_refused(name: str, hex: str) -> None:
    with pytest.raises(InvalidValue):
        load(name, bytes.fromhex(hex))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("smallint", -32768),
        ("smallint", True),
        ("integer", "15"),
        ("int8", "15"),
        ("int8", 1 << 63),
        ("lvarchar(2048)", "x" * 40_000),
        ("boolean", 1),
        ("date", "2024-02-30"),
        ("date", "20240203"),
        ("float", "one"),
        ("smallfloat", 1e300),
        ("char(3)", "abcd"),
        ("char(3)", "\0"),
        ("varchar(20,0)", "\0"),
        ("varchar(20,0)", "x" * 256),
        ("varchar(20,0)", 5),
        ("decimal(5,2)", "1234.5"),
        ("decimal(5,2)", "1.234"),
        ("decimal(5)", "12345678"),
        ("decimal(5)", "1" + "0" * 200),
        ("decimal(5)", ""),
        ("decimal(5)", "-"),
        ("datetime year to day", "2024-13-01"),
        ("datetime year to day", "2024-12-01T00"),
        ("interval day(2) to second", "100 00:00:00"),
        ("interval day(2) to second", "10 24:00:00"),
        ("blob", b"short"),
    ],
)
def test_a_value_without_room_is_not_expressible(name: str, value: Any) -> None:
    with pytest.raises(NotExpressible):
        dump(name, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c1",
        "c1 integer,",
        "c1 integer, c1 integer",
        "c1 text",
        "c1 set(integer not null)",
        "c1 decimal(33)",
        "c1 decimal(5,6)",
        "c1 char(0)",
        "c1 char(99999)",
        "c1 datetime",
        "c1 datetime day to year",
        "c1 datetime year(4) to day",
        "c1 datetime year to fraction(6)",
        "c1 interval month to day",
        "c1 interval day(0) to day",
        '"c1 integer',
    ],
)
def test_a_schema_text_that_does_not_add_up_is_refused(text: str) -> None:
    with pytest.raises(BadSchema):
        read_schema(text, Text())


def test_text_that_does_not_decode_keeps_its_bytes() -> None:
    assert load("varchar(9,0)", b"\2\xff\xfe") == Undecoded(b"\xff\xfe")
    assert dump("varchar(9,0)", Undecoded(b"\xff\xfe")) == b"\2\xff\xfe"
    assert load("char(4)", b"\xff\xfe  ") == Undecoded(b"\xff\xfe")


def test_the_code_set_is_that_of_the_database() -> None:
    form = Text("gb18030", prefix=2)
    assert load("varchar(9,0)", bytes.fromhex("0004d6d0cec4"), form) == "中文"
    assert dump("varchar(9,0)", "中文", form).hex() == "0004d6d0cec4"
    with pytest.raises(NotExpressible):
        dump("varchar(9,0)", "中", Text("latin-1"))


def test_the_blanks_of_char_may_be_kept() -> None:
    assert load("char(4)", b"ab  ", Text(trim=False)) == "ab  "


def test_a_varchar_prefix_is_one_byte_or_two_and_never_both() -> None:
    for size in range(600):
        for prefix in (1, 2):
            if size < 1 << 8 * prefix:
                data = size.to_bytes(prefix, "big") + b"x" * size
                assert load("varchar(255,0)", data) == "x" * size


@pytest.mark.parametrize("data", [b"\x05\x03abc", b"\x01\x03abc", b"\x05abc", b"\x03ab", b"\x00\x04abc"])
def test_a_length_that_its_bytes_do_not_have_is_no_varchar(data: bytes) -> None:
    with pytest.raises(EventlogError):
        load("varchar(255,0)", data)


@settings(max_examples=drawn(300))
@given(st.data(), typed.tables(), st.sampled_from(("big", "little")), st.sampled_from((1, 2)))
def test_rows_of_random_schemas_come_back(data: st.DataObject, table: Any, order: str, prefix: int) -> None:
    text, columns = table
    schema = read_schema(text, Text(prefix=prefix))
    values = tuple(data.draw(column) for column in columns)
    sizes, payload = schema.write(values, order)
    row = sizes + payload
    assert schema.read(row, 0, len(sizes), len(row)) == values
    assert schema.read_plainly(row, 0, len(sizes), len(row)) == values


@settings(max_examples=drawn(500))
@given(st.data(), typed.tables())
def test_the_compiled_plan_is_the_plain_one(data: st.DataObject, table: Any) -> None:
    """Both return the same values, or raise the same fault, also for bytes that are no row."""
    text, columns = table
    schema = read_schema(text, Text())
    sizes, payload = schema.write(tuple(data.draw(column) for column in columns))
    row = bytearray(sizes + payload)
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(row) - 1), st.integers(0, 255)), max_size=3)
    ):
        row[at] = byte

    def outcome(read: Any) -> object:
        try:
            return read(bytes(row), 0, len(sizes), len(row))
        except Corrupt as fault:
            return fault.args

    assert outcome(schema.read) == outcome(schema.read_plainly)


def test_every_declared_type_is_tried() -> None:
    tried = {read_declared(name).base for name in typed.TYPES}
    same = {
        "int": "integer",
        "serial8": "int8",
        "real": "smallfloat",
        "double precision": "float",
        "clob": "blob",
    }
    same |= {"character": "char", "dec": "decimal", "numeric": "decimal", "character varying": "varchar"}
    assert {same.get(name, name) for name in DECLARED_TYPES} == tried
    for name, other in same.items():
        assert DECLARED_TYPES[name] is DECLARED_TYPES[other]


def test_errors_of_ours_only() -> None:
    assert issubclass(BadSchema, EventlogError)
    assert str(Corrupt(3, "time", 7, "wrong")) == "byte 3: time is 7: wrong"
