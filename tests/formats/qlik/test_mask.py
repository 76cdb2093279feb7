"""Masks: both byte orders, dropped bits, and the orders in which a mask is possible."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.formats.qlik.mask import (
    InvalidMask,
    MaskLayout,
    MaskOrder,
    WrongMaskOrder,
    join,
    load,
    orders_of,
    padded,
    read,
    split,
    trimmed,
)

pytestmark = pytest.mark.quick

# 7 headers, 354 columns in all: masks of an export of a real warehouse, one big-endian number each
REAL = {
    "0800": (11,),
    "2800": (11, 13),
    "010000": (16,),
    "01A000": (13, 15, 16),
    "80" + "00" * 37 + "2800": (11, 13, 319),
    "02" + "00" * 44: (353,),
    "03" + "FF" * 43 + "80": tuple(range(7, 354)),
    "": (),
}


@pytest.mark.parametrize("text", REAL)
def test_masks_of_a_warehouse_export(text: str) -> None:
    bits = read(load(text), MaskOrder.BIG)
    assert split(bits) == REAL[text]
    assert trimmed(bits, MaskOrder.BIG).hex().upper() == text


def test_byte_0_holds_bits_7_to_0() -> None:
    assert split(read(bytes([0b10000001, 0b00000010]), MaskOrder.LITTLE)) == (0, 7, 9)


def test_trailing_zeros_are_dropped_and_may_stand() -> None:
    assert trimmed(join((0, 9)), MaskOrder.LITTLE) == b"\x01\x02"
    assert trimmed(0, MaskOrder.LITTLE) == b""
    assert read(b"\x01\x02\x00\x00", MaskOrder.LITTLE) == read(b"\x01\x02", MaskOrder.LITTLE)


def test_the_example_0b_is_ordinals_1_2_and_4() -> None:
    assert [place + 1 for place in split(read(load("0B"), MaskOrder.BIG))] == [1, 2, 4]


def test_masks_of_messages_are_whole() -> None:
    assert padded(join((7, 15)), 16, MaskOrder.BIG).hex() == "008080"
    assert padded(0, 16, MaskOrder.BIG).hex() == "000000"
    assert padded(0b10, 3, MaskOrder.BIG).hex() == "02"
    assert padded(join((7, 15)), 16, MaskOrder.LITTLE).hex() == "808000"


@given(st.sets(st.integers(0, 1023)), st.sampled_from(MaskOrder))
def test_both_orders_both_ways(places: set[int], order: MaskOrder) -> None:
    assert set(split(read(trimmed(join(places), order), order))) == places
    assert set(split(read(padded(join(places), 1024, order), order))) == places


@pytest.mark.parametrize("text", ["0", "0g", "0x1", " 01", "01 02"])
def test_hex_that_is_none(text: str) -> None:
    with pytest.raises(InvalidMask, match="is not an even number of hexadecimal digits"):
        load(text)


def test_a_mask_without_end() -> None:
    with pytest.raises(InvalidMask, match="at most"):
        load(bytes(130))


@given(st.sets(st.integers(7, 60), min_size=1), st.sampled_from(MaskOrder))
def test_a_mask_is_always_possible_in_its_own_order(places: set[int], order: MaskOrder) -> None:
    bits = join(places)
    assert order in orders_of(trimmed(bits, order), MaskLayout(0b1111111, 61), None)


def test_a_bit_past_the_last_column_and_one_of_a_header_prove_the_order() -> None:
    layout = MaskLayout(0b1111111, 12)
    assert orders_of(bytes.fromhex("0800"), layout, None) == (MaskOrder.BIG,), (
        "byte 0 first it would be bit 3, a header"
    )
    assert orders_of(bytes.fromhex("8008"), layout, None) == (MaskOrder.LITTLE,), (
        "as a number it would be bit 15 of 12"
    )
    assert orders_of(bytes.fromhex("8010"), layout, None) == (MaskOrder.BIG,), (
        "byte 0 first it would be bit 12 of 12"
    )
    assert orders_of(b"\x80", layout, None) == tuple(MaskOrder)


def test_a_mask_that_contradicts_the_stated_order_names_the_setting() -> None:
    layout = MaskLayout(0b1111111, 12)
    with pytest.raises(WrongMaskOrder, match="possible in big byte order alone, but mask-order is little"):
        orders_of(bytes.fromhex("0800"), layout, MaskOrder.LITTLE)
    assert orders_of(bytes.fromhex("FFFF"), layout, MaskOrder.BIG) == (MaskOrder.BIG,), "no order allows it"


# 7 headers and 20 columns: what a mask of the columns at places 7, 16 and 19 is in other texts
TEXTS = {
    "090080": "hexadecimal digits",
    "0x090080": "with a prefix",
    "X'090080'": "as SQL writes it",
    "09-00-80": "as .NET writes it",
    "B'000010010000000010000000'": "a bit string",
    "B'10010000000010000000'": "a bit string without its leading zeros",
}


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS.values())
def test_the_texts_of_a_mask(text: str) -> None:
    assert split(read(load(text, MaskLayout(0x7F, 27)), MaskOrder.BIG)) == (7, 16, 19)


@given(st.sets(st.integers(7, 26), min_size=1), st.sampled_from(MaskOrder), st.booleans())
@example({9, 12, 13, 14, 16, 20, 22, 23}, MaskOrder.BIG, False)  # 0XIA, which begins like hexadecimal text
def test_masks_in_base64_are_known_by_what_header_columns_allow(
    places: set[int], order: MaskOrder, hexadecimal: bool
) -> None:
    """Read BigQuery's Base64, though some texts of it are hexadecimal digits too."""
    data = trimmed(join(places), order)
    text = data.hex().upper() if hexadecimal else base64.b64encode(data).decode()
    assert load(text, MaskLayout(0x7F, 27), order) == data


@pytest.mark.parametrize(
    ("layout", "stated", "data"),
    [
        (MaskLayout(0x7F, 27), None, b"\0\0\1"),
        (MaskLayout(0, 16), None, b"\0\0\1"),  # a whole mask of a message
        (MaskLayout(0, 31), None, b"\xaa\xab"),
        (MaskLayout(0, 64), None, b"\xaa\xab"),
    ],
)
def test_a_text_that_is_both_is_what_the_columns_allow(
    layout: MaskLayout, stated: MaskOrder | None, data: bytes
) -> None:
    assert load("AAAB", layout, stated) == data


def test_a_text_that_the_columns_allow_as_both_needs_the_setting() -> None:
    layout = MaskLayout(0x7F, 27)
    with pytest.raises(WrongMaskOrder, match="'800A' is possible as hexadecimal digits and as Base64"):
        load("800A", layout)
    assert load("800A", layout, MaskOrder.LITTLE) == b"\x80\x0a"
    assert load("800A", layout, MaskOrder.BIG) == b"\xf3\x4d\0"
