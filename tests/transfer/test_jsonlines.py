"""JSON as it comes: a value a line, pretty-printed, in an array; a bad record costs itself."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Row
from eventlog.files import jsonlines
from eventlog.files.limits import Limits
from eventlog.files.messages import message_at

pytestmark = pytest.mark.quick

VALUES = [{"a": 1, "b": {"c": ["}", "{", '"\\']}}, {}, {"x": "]\n["}]


def read(text: str) -> list[object]:
    answers = jsonlines.read(BytesIO(text.encode()), "f")
    return [item.value if isinstance(item, Object) else item.where for item in answers]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, VALUES)),
        "\n".join(json.dumps(value, indent=2) for value in VALUES),
        "\r\n".join(json.dumps(value, indent="\t") for value in VALUES),
        json.dumps(VALUES),
        json.dumps(VALUES, indent=2),
        "[\n" + ",\n".join(map(json.dumps, VALUES)) + "\n]\n",
        "[\n" + "\n,\n".join(json.dumps(value, indent=1) for value in VALUES) + "\n]\n",
    ],
)
def test_values_are_read_however_they_are_printed(text: str) -> None:
    assert read(text) == VALUES


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":\n{"b": 1}\n', ["f:1", {"b": 1}]),
        ('{"a": 1}\n{"cut": [1,\n{"b": 1}\n', [{"a": 1}, "f:2", {"b": 1}]),
        ('{\n  "a": 1,\n{"b": 1}\n', ["f:1", "f:2", {"b": 1}]),
        ('[\n{"a": 1},\n{"b": 1}\n', ["f:1", "f:2", {"b": 1}]),
        ("}\n{}\n", ["f:1", {}]),
    ],
)
def test_a_value_that_never_ends_costs_its_own_lines(text: str, found: list[object]) -> None:
    assert read(text) == found


@given(st.lists(st.sampled_from(["{", "[", "]", "}", '"', "\\", "1", ",", "\n", " ", '"a":']), max_size=60))
def test_every_line_is_read_or_refused(pieces: list[str]) -> None:
    text = "".join(pieces)
    for item in jsonlines.read(BytesIO(text.encode()), "f"):
        assert isinstance(item, Object | Refused)


@pytest.mark.parametrize("line", ["{\n", "[\n", " {\n", "{\n {\n", "[\n{\n", '"\n', "[{\n"])
def test_work_grows_with_the_file(line: str) -> None:
    def calls(times: int) -> int:
        file = Counting(line.encode() * times)
        for _ in jsonlines.read(file, "f"):
            pass
        return file.lines

    assert calls(400) <= 2 * calls(200) + 10


def test_no_more_lines_are_joined_than_a_record_may_have() -> None:
    file = Counting(b"{\n" + b' "a": 1,\n' * 1_000)
    first = next(jsonlines.read(file, "f", Limits(max_record=1_000)))
    assert isinstance(first, Refused)
    assert file.lines < 200


def test_a_value_over_several_lines_is_no_longer_than_a_record_may_be() -> None:
    lines = [f'"{name}": "{"x" * 600}"' for name in "abc"]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    assert isinstance(next(jsonlines.read(BytesIO(text.encode()), "f", Limits(max_record=3_000))), Object)
    assert isinstance(next(jsonlines.read(BytesIO(text.encode()), "f", Limits(max_record=1_000))), Refused)


class Counting(BytesIO):
    """A source that counts how often a line is asked for."""

    lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        self.lines += 1
        return super().readline(size)


@pytest.mark.parametrize(
    "data", ['{"a":1}'.encode("utf-16-be"), '{"a":1}\n[]'.encode("utf-16"), b"\x00[\x00]"]
)
def test_what_is_no_utf_8_is_refused(data: bytes) -> None:
    """Refuse it, though Python's own reader guesses UTF-16 and UTF-32."""
    found = list(jsonlines.read(BytesIO(data), "f"))
    assert found
    assert all(isinstance(item, Refused) for item in found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1, "b": 2, "a": 3}\n{"a": 1}\n', ["f:1: member 'a' is twice in an object", {"a": 1}]),
        ('{"b": {"a": null, "a": null}}', ["f:1: member 'a' is twice in an object"]),
        ('{"\\u0061": 1, "a": 1}', ["f:1: member 'a' is twice in an object"]),
        ('{"a": 1, "A": 2, "b": {"a": 3}}', [{"a": 1, "A": 2, "b": {"a": 3}}]),
    ],
)
def test_a_member_that_stands_twice_costs_its_record_and_not_a_value(text: str, found: list[object]) -> None:
    lines = jsonlines.read(BytesIO(text.encode()), "f")
    messages = (
        message_at("f", "json", number, one.encode()) for number, one in enumerate(text.splitlines(), 1)
    )
    for read in (lines, messages):
        reported = [one.value if isinstance(one, Object) else f"{one.where}: {one.reason}" for one in read]
        assert reported == found


def test_a_mark_of_utf_8_is_no_letter() -> None:
    assert [
        item.value
        for item in jsonlines.read(BytesIO(b'\xef\xbb\xbf{"a":1}\n'), "f")
        if isinstance(item, Object)
    ] == [{"a": 1}]


NUMBERS = {
    "1.5": 1.5,
    "1.50": 1.5,
    "-0.0": 0.0,
    "1e22": 1e22,
    "9007199254740993.0": "9007199254740993.0",
    "12345678901234567890.12": "12345678901234567890.12",
    "1e400": "1e400",
    "1e-400": "1e-400",
    "1e99999999999999999999": "1e99999999999999999999",
}


@pytest.mark.parametrize(("text", "cell"), NUMBERS.items())
def test_a_number_that_no_float_holds_is_its_text_in_a_row(text: str, cell: float | str) -> None:
    _, rows = jsonlines.read_rows(BytesIO(f'{{"a": {text}}}'.encode()), "f")
    (row,) = rows
    assert isinstance(row, Row)
    assert row.cells == (cell,)
