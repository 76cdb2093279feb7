"""Masks: both byte orders, dropped bits, and the evidence for an order."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.qlik.mask import (
    InvalidMask,
    MaskLayout,
    MaskOrder,
    MaskTexts,
    evidence,
    join,
    load,
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
def test_evidence_never_proves_the_wrong_order(places: set[int], order: MaskOrder) -> None:
    bits = join(places)
    assert evidence(trimmed(bits, order), MaskLayout(0b1111111, 61)) in (order, None)


def test_a_bit_past_the_last_column_and_one_of_a_header_prove_the_order() -> None:
    layout = MaskLayout(0b1111111, 12)
    assert evidence(bytes.fromhex("0800"), layout) is MaskOrder.BIG, (
        "byte 0 first it would be bit 3, a header"
    )
    assert evidence(bytes.fromhex("8008"), layout) is MaskOrder.LITTLE, "as a number it would be bit 15 of 12"
    assert evidence(b"\x80", layout) is None


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
    assert split(read(MaskTexts(MaskLayout(0x7F, 27)).load(text), MaskOrder.BIG)) == (7, 16, 19)


@given(st.sets(st.integers(7, 26), min_size=1), st.sampled_from(MaskOrder), st.booleans())
@example({9, 12, 13, 14, 16, 20, 22, 23}, MaskOrder.BIG, False)  # 0XIA, which begins like hexadecimal text
def test_masks_in_base64_are_known_by_what_header_columns_allow(
    places: set[int], order: MaskOrder, hexadecimal: bool
) -> None:
    """Read BigQuery's Base64, though some texts of it are hexadecimal digits too."""
    data = trimmed(join(places), order)
    text = data.hex().upper() if hexadecimal else base64.b64encode(data).decode()
    texts = MaskTexts(MaskLayout(0x7F, 27))
    texts.load("gA" + "==" if not hexadecimal else "80")  # one of a neighbour, whose form is plain
    assert texts.load(text) == data


def test_a_text_that_is_both_is_what_the_layout_allows() -> None:
    texts = MaskTexts(MaskLayout(0x7F, 27))
    assert texts.load("AAAB") == b"\0\0\1"
    assert MaskTexts(MaskLayout(0, 64)).load("AAAB") == b"\xaa\xab"


def test_a_text_that_was_read_as_hexadecimal_among_base64_is_an_error() -> None:
    texts = MaskTexts(MaskLayout(0, 64))
    texts.load("AAAB")
    with pytest.raises(InvalidMask, match="'gA==' is Base64, but 'AAAB' was read as hexadecimal"):
        texts.load("gA==")
