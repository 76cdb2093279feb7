"""Typed values and their texts."""

from __future__ import annotations

import pickle
import struct
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core import errors, values
from eventlog.core.entry import EVENT_TYPES, read_event_time
from eventlog.core.errors import EventlogError, IllegalCharacter, InvalidValue
from eventlog.core.typenames import kind_of
from eventlog.core.values import Kind, Precision

pytestmark = pytest.mark.quick


def test_every_kind_loads_and_dumps() -> None:
    assert values.CODECS.keys() == set(Kind)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.STRING, "a", "a"),
        (Kind.OCTET, "u7s=", b"\xbb\xbb"),
        (Kind.INT, "-5", -5),
        (Kind.STATE, "true", True),
        (Kind.DATE, "2024-02-29", "2024-02-29"),
        (Kind.TIME, "23:59:59.5", "23:59:59.5"),
        (Kind.TIMESTAMP, "2024-02-29 01:02:03.123456789", "2024-02-29T01:02:03.123456789"),
    ],
)
def test_a_text_is_loaded_and_dumped_again(kind: Kind, text: str, value: object) -> None:
    assert values.load(kind, text) == value
    assert values.dump(kind, values.load(kind, text)) == text


@pytest.mark.parametrize("text", ["u7\ns=", " u7s=\r\n", "u\t7\fs\v=", "u7s=" + "\n" * 1000])
def test_white_space_in_base64_is_read_past_and_never_written(text: str) -> None:
    assert values.load(Kind.OCTET, text) == b"\xbb\xbb"
    assert values.dump(Kind.OCTET, values.load(Kind.OCTET, text)) == "u7s="


@pytest.mark.parametrize("text", ["5", "05", "+5", " 5", "5 ", " +005 "])
def test_an_integer_is_read_as_such_and_written_canonically(text: str) -> None:
    assert values.load(Kind.INT, text) == 5
    assert values.dump(Kind.INT, values.load(Kind.INT, text)) == "5"


@pytest.mark.parametrize(
    ("number", "texts", "value"),
    [
        (Precision.EXACT, ("1.50", "+1.5", "1.5 ", "15e-1", "0.15E1", "01.500"), "1.5"),
        (Precision.EXACT, ("0", "-0.0", "0e5", ".0"), "0"),
        (Precision.EXACT, ("-1200", "-1.2e3"), "-1200"),
        (Precision.DOUBLE, ("1.0", "1e0", "1", "+1.", "10e-1"), 1.0),
        (Precision.DOUBLE, ("0.1", "0.10000000000000001"), 0.1),
        (Precision.DOUBLE, ("NaN", "nan"), "NaN"),
        (Precision.DOUBLE, ("-Infinity", "-inf", "-1e999"), "-Infinity"),
        (Precision.SINGLE, ("0.1", "0.10000000149", "1e-1"), 0.1),
    ],
)
def test_numbers_have_one_form(number: Precision, texts: tuple[str, ...], value: object) -> None:
    assert [values.read_number(number, text) for text in texts] == [value] * len(texts)


@pytest.mark.parametrize("text", ["", "x", "1,5", "0x1", "1e", "1e9999", "--1", "٣", "NaN", "1_0"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(EventlogError):
        values.read_number(Precision.EXACT, text)


def test_padding_of_char_columns_is_trimmed() -> None:
    assert values.load(Kind.PADDED, "ab  ") == "ab"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.INT, "1.5"),
        (Kind.INT, "1e3"),
        (Kind.INT, ""),
        (Kind.INT, "9" * 5000),
        (Kind.STATE, "maybe"),
        (Kind.DATE, "2023-02-29"),
        (Kind.DATE, "٢٠٢٣-٠٢-٠١"),
        (Kind.TIME, "24:00:01"),
        (Kind.TIME, "24:00:00.5"),
        (Kind.TIME, "23:59:60"),
        (Kind.TIMESTAMP, "2025-01-01 24:00:00"),
        (Kind.TIMESTAMP, "yesterday"),
        (Kind.TIMESTAMP, "2025-01-01 00:00:00+24"),
        (Kind.TIMESTAMP, "2025-01-01 00:00:00-01:60"),
        (Kind.TIME, "10:57:19+99"),
        (Kind.OCTET, "u7s"),
        (Kind.OCTET, "u7\u00a0s="),
        (Kind.OCTET, "u7\0s="),
    ],
)
def test_what_is_not_of_the_kind_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(EventlogError):
        values.load(kind, text)


@given(st.text())
def test_the_character_check_is_that_of_xml(text: str) -> None:
    legal = all(
        c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000" for c in text
    )
    try:
        found = values.check_xml(text) == text
    except IllegalCharacter:
        found = False
    assert found == legal


moments = st.datetimes().map(lambda at: at.isoformat(" ", "microseconds"))


@given(moments, st.sampled_from([2, 3]))
def test_times_are_read_as_written(text: str, syntax: int) -> None:
    value = str(values.load(Kind.TIMESTAMP, text))
    back = values.read_time(Kind.TIMESTAMP, values.write_time(Kind.TIMESTAMP, value, syntax), syntax)
    assert back.rstrip("0") == value.rstrip("0")


def test_the_three_syntaxes_of_times() -> None:
    written = {
        kind: [values.write_time(kind, text, syntax) for syntax in (1, 2, 3)]
        for kind, text in (
            (Kind.TIMESTAMP, "2025-03-23T10:57:19.5"),
            (Kind.DATE, "1969-12-31"),
            (Kind.TIME, "01:00:00"),
        )
    }
    assert written == {
        Kind.TIMESTAMP: ["1742727439", "20250323105719500000000", "2025-03-23 10:57:19.5"],
        Kind.DATE: ["-86400", "19691231", "1969-12-31"],
        Kind.TIME: ["3600", "010000", "01:00:00"],
    }


@pytest.mark.parametrize(("syntax", "written"), [(1, "86400"), (2, "240000"), (3, "24:00:00")])
def test_the_end_of_a_day_is_not_its_beginning(syntax: int, written: str) -> None:
    assert values.load(Kind.TIME, "24:00:00") == "24:00:00"
    assert values.write_time(Kind.TIME, "24:00:00", syntax) == written
    assert values.read_time(Kind.TIME, written, syntax) == "24:00:00"


def test_a_zone_is_taken_into_utc() -> None:
    assert values.write_time(Kind.TIME, "23:00:00-01", 3) == "00:00:00"
    assert values.write_time(Kind.TIME, "24:00:00+02", 3) == "22:00:00"
    assert values.write_time(Kind.TIMESTAMP, "1970-01-01T02:00:00+01:30", 1) == "1800"
    assert values.dump(Kind.TIMESTAMP, "2025-03-23T10:57:19Z") == "2025-03-23 10:57:19"


def test_a_time_of_day_in_a_key_keeps_its_zone() -> None:
    """Take two times of day for one only if their zones are equal, as PostgreSQL does."""
    texts = ("10:00:00+00", "10:00:00Z", "10:00:00-00:00", "12:00:00+02", "12:00:00+02:00", "12:00:00.5-0130")
    assert [values.read_key_moment(Kind.TIME, text) for text in texts] == [
        *["10:00:00+00:00:00"] * 3,
        *["12:00:00+02:00:00"] * 2,
        "12:00:00.5-01:30:00",
    ]
    assert values.read_key_moment(Kind.TIME, "12:00:00+05:30:15") == "12:00:00+05:30:15"
    assert values.read_key_moment(Kind.TIMESTAMP, "2025-03-23 12:00:00+02") == "2025-03-23T10:00:00Z"


@given(
    st.lists(
        st.tuples(st.datetimes(), st.sampled_from(["", ".5", ".50", ".123456789"])), min_size=2, max_size=5
    )
)
def test_event_times_compare_as_texts(drawn: list[tuple[object, str]]) -> None:
    pairs = [(at.replace(microsecond=0), fraction) for at, fraction in drawn]  # type: ignore[attr-defined]
    texts = {(at, float(f or 0)): read_event_time(at.isoformat(" ") + f) for at, f in pairs}
    assert [texts[moment] for moment in sorted(texts)] == sorted(texts.values())


@example(999999986991104.0)  # as 1e15 it has fewer digits and more zeros
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_four_byte_float_has_its_shortest_text(number: float) -> None:
    short = values.shortest_float32(number)
    assert struct.pack("<f", short) == struct.pack("<f", number)
    assert len(_digits(short)) <= len(_digits(number))


def _digits(number: float) -> tuple[int, ...]:
    return Decimal(repr(number)).normalize().as_tuple().digits


@pytest.mark.parametrize(
    ("type_name", "dialect", "kind"),
    [
        ("varchar(64)", None, Kind.STRING),
        ("CHAR(5)", None, Kind.PADDED),
        ("numeric(10)", None, Kind.INT),
        ("numeric(10,0)", None, Kind.INT),
        ("numeric(10,2)", None, Kind.STRING),
        ("numeric", "postgresql", Kind.STRING),
        ("decimal", "mysql", Kind.INT),
        ("decimal(10)", "gbase", Kind.STRING),
        ("number(5)", "oracle", Kind.INT),
        ("date", "oracle", Kind.TIMESTAMP),
        ("date", None, Kind.DATE),
        ("timestamp(3) with time zone", None, Kind.TIMESTAMP),
        ("timestamp without time zone", None, Kind.TIMESTAMP),
        ("datetime year to second", "gbase", Kind.STRING),
        ("int unsigned", "mysql", Kind.INT),
        ("tinyint(1)", "mysql", Kind.STATE),
        ("double precision", None, Kind.STRING),
        ("long raw", "oracle", Kind.OCTET),
        ("uuid", None, Kind.STRING),
        ("jsonb", None, Kind.STRING),
    ],
)
def test_what_the_text_of_a_type_means(type_name: str, dialect: str | None, kind: Kind) -> None:
    assert kind_of(type_name, dialect) is kind


@pytest.mark.parametrize("shortest", [0.1, 1.5, 16777216.0, 3.1415927, 1.36441695e-05])
def test_a_float_of_4_bytes_has_the_digits_that_it_needs(shortest: float) -> None:
    single = struct.unpack("<f", struct.pack("<f", shortest))[0]
    assert values.shortest_float32(single) == shortest


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(struct.unpack("<f", struct.pack("<f", 1.36441695e-05))[0])
def test_the_text_of_a_float_of_4_bytes_is_the_shortest_that_means_it(number: float) -> None:
    shortest = values.shortest_float32(number)
    assert struct.pack("<f", shortest) == struct.pack("<f", number)
    digits = len(f"{Decimal(repr(shortest)):e}".partition("e")[0].replace(".", "").lstrip("-").rstrip("0"))
    assert digits <= 9
    if digits > 6:
        shorter = float(f"{number:.{digits - 1}g}")
        assert abs(shorter) > 3.4e38 or struct.pack("<f", shorter) != struct.pack("<f", number)


def test_the_event_types_are_those_of_the_specification() -> None:
    assert {n: (t.op.value, t.per_field, t.query_back) for n, t in EVENT_TYPES.items()} == {
        1: ("insert", True, False),
        2: ("update", True, False),
        3: ("update", True, False),
        4: ("delete", False, False),
        5: ("insert", False, True),
        6: ("update", False, True),
        7: ("insert", True, True),
        8: ("update", True, True),
    }


def test_every_error_pickles_and_tells_its_message() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EventlogError)
    ]
    assert len(kinds) > 10
    for kind in kinds:
        fault = kind(1, "two", "three")
        back = pickle.loads(pickle.dumps(fault))
        assert (type(back), str(back)) == (kind, str(fault))
        assert "{" not in str(InvalidValue("x", "y"))


@pytest.mark.parametrize(
    ("kind", "syntax", "text"),
    [
        (Kind.TIMESTAMP, 1, "1_000"),
        (Kind.TIMESTAMP, 1, " 5 "),
        (Kind.TIMESTAMP, 1, "٣"),
        (Kind.TIMESTAMP, 2, "20250101000000abc"),
        (Kind.TIMESTAMP, 2, "2025111111111"),
        (Kind.TIMESTAMP, 2, "20250101000000١"),
        (Kind.DATE, 2, "2025111"),
        (Kind.TIME, 2, "12345"),
    ],
)
def test_a_time_that_is_not_all_digits_is_none(kind: Kind, syntax: int, text: str) -> None:
    """Refuse a time that is not all digits, because Python's own readers read some of them as another
    time."""
    with pytest.raises(InvalidValue, match=f"is not a time of syntax {syntax}"):
        values.read_time(kind, text, syntax)
