"""Nothing that is text becomes markup, wherever it stands."""

from __future__ import annotations

import html
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from eventlog.page.chart import chart
from eventlog.page.layout import clipped, page, table
from eventlog.page.markup import Markup, address, render, tag
from eventlog.shown import visible


class Elements(HTMLParser):
    """The elements and attributes that a browser sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_text_stays_text_in_content_and_in_attributes(content: str, value: str) -> None:
    seen = Elements(tag("p", content, title=value))
    assert seen.seen == [("p", {"title": visible(value)})]
    assert seen.text == visible(content)


@given(st.text())
def test_only_markup_is_taken_as_it_is(text: str) -> None:
    assert render(Markup(text)) == text
    assert html.unescape(render(text)) == visible(text)


@given(st.text())
def test_a_page_of_hostile_names_has_no_element_of_theirs(text: str) -> None:
    ours = Elements(page("x", table("x", ["x"], [["x"]]), product="x"))
    theirs = Elements(page(text, table(text, [text], [[text]]), product=text))
    assert [name for name, _ in theirs.seen] == [name for name, _ in ours.seen]


@given(st.dictionaries(st.text(), st.text(), max_size=3))
def test_an_address_holds_no_character_that_ends_it(query: dict[str, str]) -> None:
    assert not set(address("/", query)) & set("\"'<> \n")


def test_attributes_are_written_or_left_out() -> None:
    assert tag("input", class_="a", aria_label="b", required=True, hidden=False, name=None) == (
        '<input class="a" aria-label="b" required>'
    )


def test_long_text_says_how_long_it_is() -> None:
    assert render(clipped("x" * 5, 5)) == "xxxxx"
    assert "1,000 characters in all" in render(clipped("x" * 1000, 5))


def test_a_chart_tells_its_values_in_words_too() -> None:
    drawn = chart("Pending", [0, 10, 5], " s")
    assert "Pending: now 5 s, at most 10 s" in drawn
    assert 'points="0.0,100.0 300.0,5.0 600.0,52.5"' in drawn
    assert "nothing yet" in chart("Pending", [])
