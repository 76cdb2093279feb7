"""Record layouts: what they explain exactly is decoded, everything else stays raw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import Undecoded, Value
from eventlog.core.errors import InvalidTables, InvalidValue, NotExpressible
from eventlog.core.values import shortest_float32
from eventlog.formats.linter.attributes import DispatchAttribute, read_attribute, read_attributes
from eventlog.formats.linter.images import ImageLayout, read_layout
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick


def layout(columns: dict[str, str], **form: str) -> ImageLayout:
    image_layout = read_layout("t", {"columns": columns, **form})
    assert image_layout is not None
    return image_layout


def read(stated: ImageLayout, image: bytes) -> dict[str, Value]:
    """Return the values in an image by their columns."""
    return dict(zip(stated.names, stated.read(image), strict=True))


GOLDEN: list[tuple[str, dict[str, str], str, Value]] = [
    ("smallint", {}, "feff", -2),
    ("smallint", {"order": "big"}, "fffe", -2),
    ("integer", {}, "0f000000", 15),
    ("bigint", {"order": "big"}, "0000000000000100", 256),
    ("real", {}, "0000c0bf", -1.5),
    ("double", {}, "0000000000000a40", 3.25),
    ("real", {}, "0000807f", "Infinity"),
    ("char(4)", {}, "61622020", "ab"),
    ("char(4)", {"encoding": "cp1251"}, "dfe12020", "Яб"),
    ("char(2)", {}, "ff20", Undecoded(b"\xff ")),
    ("varchar(9)", {}, "02006162", "ab"),
    ("varchar(9)", {"order": "big"}, "00026162", "ab"),
    ("varchar(2)", {}, "02006162", "ab"),
    ("varchar(9)", {}, "040061622020", "ab  "),
    ("varchar(4)", {"varying": "padded"}, "61622020", "ab"),
    ("nchar(2)", {}, "2f042000", "Я"),
    ("nvarchar(9)", {"nchar": "utf-16-be"}, "0200042f", "Я"),
    ("byte(3)", {}, "010203", b"\1\2\3"),
    ("varbyte(9)", {}, "0200ffee", b"\xff\xee"),
    ("boolean", {}, "01", True),
    ("date", {}, "00" * 15 + "01", b"\0" * 15 + b"\1"),
    ("blob(2)", {}, "abcd", b"\xab\xcd"),
    ("decimal", {}, "02" + "00" * 15, b"\2" + bytes(15)),
    ("decimal", {"decimals": "bcd"}, "02" + "00" * 9 + "12" + "5000000000", "12.5"),
    ("decimal", {"decimals": "base100"}, "01" + "00" * 9 + "0c" + "3200000000", "-12.5"),
    ("decimal(10,2)", {"decimals": "bcd"}, "00" * 16, "0"),
]


@pytest.mark.parametrize(("type_name", "form", "hex", "value"), GOLDEN)
def test_bytes_and_value_stand_for_each_other(
    type_name: str, form: dict[str, str], hex: str, value: Value
) -> None:
    stated = layout({"c": type_name}, **form)
    assert read(stated, bytes.fromhex(hex)) == {"c": value}
    assert stated.write({"c": value}).hex() == hex


@pytest.mark.parametrize(
    ("nulls", "row", "hex"),
    [
        ("flag", {"a": 1, "b": "x"}, "00" + "0100" + "00" + "0100" + "78"),
        ("flag", {"a": None, "b": None}, "01" + "0000" + "01" + "0000"),
        ("mask", {"a": None, "b": "x"}, "01" + "0000" + "0100" + "78"),
        ("mask", {"a": 1, "b": None}, "02" + "0100" + "0000"),
    ],
)
def test_nulls_stand_as_the_layout_says(nulls: str, row: dict[str, Value], hex: str) -> None:
    stated = layout({"a": "smallint", "b": "varchar(5)"}, nulls=nulls)
    assert stated.write(row).hex() == hex
    assert read(stated, bytes.fromhex(hex)) == row


@pytest.mark.parametrize("count", [1, 7, 8, 9])
def test_each_bit_of_a_mask_is_a_column_and_no_other_may_be_set(count: int) -> None:
    stated = layout({f"c{n}": "smallint" for n in range(count)}, nulls="mask")
    size = len(stated.write(dict.fromkeys((f"c{n}" for n in range(count)), 0))) - 2 * count
    for bit in range(8 * size):
        image = bytearray(stated.write({f"c{n}": None if n == bit else n for n in range(count)}))
        if bit < count:
            assert read(stated, bytes(image)) == {f"c{n}": None if n == bit else n for n in range(count)}
            continue
        image[bit // 8] |= 1 << bit % 8
        with pytest.raises(InvalidValue):
            stated.read(bytes(image))


@pytest.mark.parametrize(
    ("columns", "form", "hex"),
    [
        ({"a": "smallint"}, {}, "01"),
        ({"a": "smallint"}, {}, "010000"),
        ({"a": "varchar(2)"}, {}, "0300616263"),
        ({"a": "varchar(9)"}, {}, "03006162"),
        ({"a": "varchar(9)"}, {}, "03"),
        ({"a": "boolean"}, {}, "02"),
        ({"a": "smallint"}, {"nulls": "flag"}, "020100"),
        ({"a": "smallint"}, {"nulls": "flag"}, ""),
        ({"a": "smallint"}, {"nulls": "mask"}, "020100"),
        ({"a": "decimal"}, {"decimals": "bcd"}, "02" + "00" * 14 + "0a"),
        ({"a": "decimal"}, {"decimals": "base100"}, "02" + "00" * 14 + "64"),
        ({"a": "decimal"}, {"decimals": "bcd"}, "04" + "00" * 14 + "01"),
        ({"a": "decimal"}, {"decimals": "bcd"}, "00" + "00" * 14 + "01"),
    ],
)
def test_an_image_of_another_form_is_refused(columns: dict[str, str], form: dict[str, str], hex: str) -> None:
    with pytest.raises(InvalidValue):
        layout(columns, **form).read(bytes.fromhex(hex))


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("smallint", 1 << 15),
        ("smallint", "1"),
        ("smallint", None),
        ("boolean", 1),
        ("real", 1e300),
        ("char(2)", "abc"),
        ("char(2)", 1),
        ("byte(2)", "ab"),
        ("date", b"short"),
        ("decimal", "1.5"),
    ],
)
def test_a_value_without_room_is_not_expressible(type_name: str, value: Value) -> None:
    with pytest.raises(NotExpressible):
        layout({"c": type_name}).write({"c": value})


@pytest.mark.parametrize("value", ["1" * 21, "0.12345678901", "", "-", "1e5", 1.5])
def test_a_number_of_too_many_digits_is_not_expressible(value: Value) -> None:
    with pytest.raises(NotExpressible):
        layout({"c": "decimal"}, decimals="bcd").write({"c": value})


@pytest.mark.parametrize(
    "described",
    [
        {"colums": {}},
        {"columns": {}},
        {"columns": {"a": "money"}},
        {"columns": {"a": "char(0)"}},
        {"columns": {"a": "char"}, "order": "middle"},
        {"columns": {"a": "char"}, "encoding": "klingon"},
    ],
)
def test_a_layout_that_says_something_unknown_is_an_error_of_the_tables_file(
    described: dict[str, Any],
) -> None:
    with pytest.raises(InvalidTables):
        read_layout("t", described)


text = st.text(st.characters(codec="utf-8"), max_size=5).map(lambda value: value.rstrip(" "))
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "smallint": st.integers(-(1 << 15), (1 << 15) - 1),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "real": st.floats(width=32, allow_nan=False, allow_infinity=False).map(shortest_float32),
    "double": st.floats(allow_nan=False, allow_infinity=False) | st.just("NaN"),
    "char(20)": text,
    "varchar(20)": text,
    "nchar(10)": text,
    "nvarchar(20)": text,
    "byte(3)": st.binary(min_size=3, max_size=3),
    "boolean": st.booleans(),
    "decimal": st.decimals(-(10**15), 10**15, places=3).map(lambda d: f"{d.normalize() + 0:f}"),
    "date": st.binary(min_size=16, max_size=16),
    "blob(8)": st.binary(min_size=8, max_size=8),
}


@settings(max_examples=drawn(300))
@given(
    st.data(),
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5),
    st.sampled_from(("little", "big")),
    st.sampled_from(("flag", "mask")),
    st.sampled_from(("bcd", "base100")),
    st.sampled_from(("prefixed", "padded")),
)
def test_rows_of_any_layout_come_back(
    data: st.DataObject, types: list[str], order: str, nulls: str, decimals: str, varying: str
) -> None:
    columns = {f"c{at}": name for at, name in enumerate(types)}
    stated = layout(columns, order=order, nulls=nulls, decimals=decimals, varying=varying)
    row = {name: data.draw(st.none() | VALUES[of_type]) for name, of_type in columns.items()}
    image = stated.write(row)
    assert read(stated, image) == row
    with pytest.raises(InvalidValue):
        stated.read(image + b"\0")


@pytest.mark.parametrize("type_name", ["real", "double"])
def test_zeros_of_an_update_keep_their_signs(type_name: str) -> None:
    stated = layout({"c": type_name})
    images = [stated.write({"c": zero}) for zero in (0.0, -0.0)]
    assert repr(stated.read_sides(*images)) == "([0.0], [-0.0])"


@settings(max_examples=drawn(300))
@given(
    st.data(),
    st.lists(
        st.sampled_from(("double", "char(5)", "varchar(5)", "decimal", "boolean")), min_size=1, max_size=5
    ),
    st.sampled_from(("flag", "mask")),
)
def test_an_update_is_read_as_its_images_are(data: st.DataObject, types: list[str], nulls: str) -> None:
    """Draw rows that share most values, and images that no row has."""
    stated = layout({f"c{at}": name for at, name in enumerate(types)}, nulls=nulls, decimals="bcd")
    values: dict[str, st.SearchStrategy[Value]] = {
        "double": st.sampled_from((0.0, -0.0, "NaN", 1.5)),
        "boolean": st.booleans(),
        "decimal": st.sampled_from(("0", "1.5", "-1.5")),
    }
    texts: st.SearchStrategy[Value] = st.sampled_from(("", "a", "b "))
    rows = [
        {f"c{at}": data.draw(st.none() | values.get(name, texts)) for at, name in enumerate(types)}
        for _ in range(2)
    ]
    images = [stated.write(row) for row in rows]
    at, byte = data.draw(st.tuples(st.integers(0, len(images[1]) - 1), st.none() | st.integers(0, 255)))
    if byte is not None:
        images[1] = images[1][:at] + bytes((byte,)) + images[1][at + 1 :]
    assert answer(lambda: stated.read_sides(*images)) == answer(lambda: tuple(map(stated.read, images)))


def answer(read: Callable[[], object]) -> str:
    """Return what a function returns, where the zeros of floats differ; nothing for an image of no row."""
    try:
        return repr(read())
    except InvalidValue:
        return ""


def test_dispatch_attrs_becomes_tables_with_layouts() -> None:
    rows = [
        (7, "FNAME" + " " * 61, 2, 1, 0, 8),
        (7, "IDU", 1, 2, 1, 4),
        (7, "PRICE", 3, 5, 0, 16),
        (8, "W", 1, 11, "1", "20"),
    ]
    usr, other = read_attributes(map(read_attribute, rows), {"order": "big"})
    assert (usr.name, usr.number, usr.key) == ("table_7", 7, ("IDU",))
    assert {name: column.type for name, column in usr.columns.items()} == {
        "IDU": "integer",
        "FNAME": "char(8)",
        "PRICE": "decimal",
    }
    assert other.columns["W"].type == "nchar(10)"
    stated = read_layout("usr", usr.linter)
    assert stated is not None
    assert read(stated, bytes.fromhex("00000001") + b"Jack    " + bytes(16))["FNAME"] == "Jack"


def test_an_attribute_of_no_known_type_is_an_error() -> None:
    with pytest.raises(InvalidTables, match="TYP 2 and LEN 3"):
        read_attributes([DispatchAttribute(7, "A", 1, 2, False, 3)])
    with pytest.raises(InvalidTables):
        read_attribute((7, "A", "one", 2, 0, 4))
