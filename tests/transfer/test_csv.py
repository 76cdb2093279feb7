"""Our CSV: null and "" apart, every byte inside quotes, a bad record costs its line."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import InvalidDocument, Refused
from eventlog.core.formats import Row
from eventlog.files import csv
from eventlog.files.limits import LIMITS

pytestmark = pytest.mark.quick

cells = st.none() | st.text(st.characters(exclude_categories=["Cs"]))
sheets = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1)
)


def read(data: bytes) -> list[tuple[str | None, ...] | str]:
    """Return the cells of each good row, the place and reason of each bad one."""
    _, rows = csv.read(io.BytesIO(data), "f")
    return [row.cells if isinstance(row, Row) else f"{row.where} {row.reason}" for row in rows]


@given(sheets)
def test_what_is_written_is_read(rows: list[list[str | None]]) -> None:
    file = io.BytesIO()
    names = [f"c{at}" for at in range(len(rows[0]))]
    writer = csv.CsvWriter(file, names)
    for row in rows:
        writer.write(row)
    assert read(file.getvalue()) == [tuple(row) for row in rows]


def test_null_is_an_unquoted_empty_field_and_an_empty_string_is_quoted() -> None:
    assert read(b'a,b,c\n,"",x\n') == [(None, "", "x")]


def test_byte_order_mark_and_crlf_are_accepted_and_a_missing_last_end_too() -> None:
    assert read(b'\xef\xbb\xbf"a",b\r\n1,"x\r\ny"\r\n2,3') == [("1", "x\r\ny"), ("2", "3")]


def test_quotes_double_and_commas_and_line_ends_count_inside_them() -> None:
    assert read(b'a,b\n"x""y,\nz","\t"\n') == [('x"y,\nz', "\t")]


def test_blank_lines_are_passed_over() -> None:
    assert read(b"a,b\n\n1,2\n\n") == [("1", "2")]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"1,\xff", "f:3 byte 3 is 0xFF, not UTF-8"),
        (b"1", "f:3 has 1 cells, the header 2"),
        (b"1,2,3", "f:3 has 3 cells, the header 2"),
        (b'1,a"b"', "f:3 character 3: a quote may only open or close a field, or be doubled"),
        (b'1,"a"b', "f:3 character 3: a quote may only open or close a field, or be doubled"),
        (b'1,"never closed', "f:3 a quote is never closed"),
    ],
)
def test_a_bad_record_is_reported_with_its_line_and_costs_nothing_else(bad: bytes, reason: str) -> None:
    assert read(b"a,b\n0,0\n" + bad + b"\n4,5\n6,7\n") == [("0", "0"), reason, ("4", "5"), ("6", "7")]


def test_a_bad_line_among_those_that_are_read_again_costs_no_other() -> None:
    assert read(b'a,b\n"1,2\n\xff1,2\n"a\nb",c\n4,5\n') == [
        "f:2 byte 6 is 0xFF, not UTF-8",
        "f:3 byte 1 is 0xFF, not UTF-8",
        ("a\nb", "c"),
        ("4", "5"),
    ]


def test_of_a_bad_record_over_lines_only_the_first_is_lost() -> None:
    assert read(b'a,b\n1,"x\n2,y\n3,"z" \n4,5\n') == [
        "f:2 a quote is never closed",
        ("2", "y"),
        "f:4 character 3: a quote may only open or close a field, or be doubled",
        ("4", "5"),
    ]


def test_many_open_quotes_are_read_in_one_pass() -> None:
    data = b"a,b\n" + b'1,"x\n' * 30_001
    assert len(read(data)) == 30_001


def test_a_refused_record_is_kept_as_it_came() -> None:
    _, rows = csv.read(io.BytesIO(b"a,b\n1,\xff\r\n"), "f")
    (refused,) = rows
    assert isinstance(refused, Refused)
    assert refused.raw == b"1,\xff\r\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"\x1f\x8b\x08" + bytes(40), "f: this is "), (b"a" * 101, "f: the header line has over 100")],
)
def test_a_header_that_is_packed_or_has_no_end_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        csv.read(io.BytesIO(data), "f", replace(LIMITS, max_record=100))


def test_cells_that_are_no_texts_are_written_as_texts() -> None:
    file = io.BytesIO()
    csv.CsvWriter(file, ["a", "b", "c", "d", "e"]).write(
        [b"\x0f\xff", True, False, dt.datetime(2024, 2, 29, 12, 0, 1), 1.5]
    )
    assert read(file.getvalue()) == [("0FFF", "true", "false", "2024-02-29 12:00:01", "1.5")]


def test_of_bad_records_among_lines_that_are_read_again_each_costs_its_first_line() -> None:
    """Join lines by an open quote, find a fault, and read all but the first again; more than once."""
    data = b'a,b\n1,"x\n2,"y\n3,z\n4,"u\n5,"v"w\n6,t\n'
    answers = read(data)
    assert [answer for answer in answers if not isinstance(answer, str)] == [("3", "z"), ("6", "t")]
    assert [answer.partition(" ")[0] for answer in answers if isinstance(answer, str)] == [
        f"f:{number}" for number in (2, 3, 5, 6)
    ]


@pytest.mark.parametrize("data", [b"", b"a,,b\n", b"a,a\n", b"a,\xff\n", b'"a\n'])
def test_a_file_without_a_sound_header_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument, match="f"):
        csv.read(io.BytesIO(data), "f")
