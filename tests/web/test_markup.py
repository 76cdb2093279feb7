"""Text never becomes markup, wherever it is."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from eventlog.core.plurals import are, duration, number
from eventlog.core.redaction import visible
from eventlog.web.rendering import ENVIRONMENT, address, ceiling

pytestmark = pytest.mark.quick


class Elements(HTMLParser):
    """The elements and attributes that a browser sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


compiled = cache(ENVIRONMENT.from_string)


def from_string(source: str, **values: object) -> str:
    return compiled(source).render(values)


def written(source: str, **values: object) -> str:
    """Return what a template writes that has our macros."""
    return from_string('{% from "macros.html" import chart, clip %}' + source, **values)


@given(st.text(), st.text())
def test_text_stays_text_in_content_and_in_attributes(content: str, value: str) -> None:
    seen = Elements(written('<p title="{{ value }}">{{ content }}</p>', content=content, value=value))
    assert seen.tags == [("p", {"title": visible(value)})]
    assert seen.text == visible(content)


@given(st.text())
def test_a_page_of_hostile_names_has_no_element_of_theirs(text: str) -> None:
    source = (
        '{% extends "base.html" %}{% from "macros.html" import table %}{% block content %}'
        "{% call(row, cell) table(title, [title]) %}{{ cell(title, row) }}{% endcall %}{% endblock %}"
    )
    ours, theirs = (
        Elements(from_string(source, title=title, product=title, places=[(title, title)]))
        for title in ("x", text)
    )
    assert [name for name, _ in theirs.tags] == [name for name, _ in ours.tags]


@given(st.dictionaries(st.text(), st.text(), max_size=3))
def test_an_address_holds_no_character_that_ends_it(query: dict[str, str]) -> None:
    assert not set(address("/", query)) & set("\"'<> \n")


def test_a_name_that_no_page_gives_is_a_fault() -> None:
    with pytest.raises(UndefinedError, match="nobody"):
        written("{{ nobody }}")


def test_long_text_says_how_long_it_is() -> None:
    assert written("{{ clip('x' * 5, 5) }}") == "xxxxx"
    assert "1 000 characters in all" in written("{{ clip('x' * 1000, 5) }}")


def test_one_of_something_is_one() -> None:
    assert [are(amount, "row") for amount in (0, 1, 2, 1000)] == [
        "0 rows are", "1 row is", "2 rows are", "1 000 rows are",
    ]  # fmt: skip


def test_a_chart_tells_its_values_in_words_too() -> None:
    drawn = written('{{ chart("Age", [0, 90, 45], duration, 600) }}')
    assert "Age: now 45 s, at most 1 min 30 s" in drawn
    assert ">10 min ago</text>" in drawn
    assert ">1 min 40 s</text>" in drawn  # the axis ends at a round number: 100 s
    assert 'points="0.0,128.0 200.0,32.6 400.0,80.3 "' in drawn
    assert "Pending: nothing measured yet<" in written('{{ chart("Pending", [], number, 0) }}')


@pytest.mark.parametrize(
    ("most", "end"), [(0, 1), (0.3, 0.5), (1, 1), (3, 5), (99, 100), (100, 100), (101, 200), (19_330, 20_000)]
)
def test_an_axis_ends_at_a_round_number(most: float, end: float) -> None:
    assert ceiling(most) == pytest.approx(end)


@pytest.mark.parametrize(
    ("seconds", "reported"),
    [
        (0, "0 s"),
        (0.0123, "0.0123 s"),
        (9.5, "9.5 s"),
        (59.6, "1 min"),
        (282, "4 min 42 s"),
        (3_605, "1 h"),
        (90_000, "1 d 1 h"),
        (864_000_000, "10 000 d"),
    ],
)
def test_a_time_is_reported_in_its_two_greatest_units(seconds: float, reported: str) -> None:
    assert duration(seconds) == reported


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_a_longer_time_is_never_reported_as_a_shorter_one(one: float, other: float) -> None:
    assert (size(duration(min(one, other)))) <= size(duration(max(one, other)))


def size(reported: str) -> float:
    """Return the number of a displayed time."""
    units = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}
    figures = re.findall(r"([\d. e+-]+) (d|h|min|s)", reported)
    return sum(float(figure.replace(" ", "")) * units[unit] for figure, unit in figures)


@pytest.mark.parametrize(
    ("amount", "reported"), [(0, "0"), (19_330, "19 330"), (1.5, "1.5"), (1234.5, "1 234")]
)
def test_thousands_stand_apart(amount: float, reported: str) -> None:
    assert number(amount) == reported
