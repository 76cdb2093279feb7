"""The pages of conformance name tests that there are; and the statements that no other test holds."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from eventlog.core.entry import EVENT_TYPES
from tests.kit.support import run_convert

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "conformance").glob("*.md"))
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)(?:\[([\w-]+)\])?`")
STATEMENT = re.compile(r"^\| (?!statement )(.+) \| (.+) \|$", re.MULTILINE)
REASONS = ("does not hold", "advice", "cost")
COUNTS = re.compile(
    r"^Of (\d+) statements (\w+) (?:does|do) not hold, and (\w+) are advice or about cost\.$", re.MULTILINE
)
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the tests of a file."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def test_each_of_the_five_formats_has_its_page() -> None:
    assert [page.stem for page in PAGES] == ["event-log", "gbase", "linter", "qlik-message", "qlik-table"]


@each_page
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    named = TEST.findall(page.read_text("utf-8"))
    assert len(named) > 25
    for path, test, case in named:
        assert test in functions_of(path), f"{path}::{test}"
        assert not case or (ROOT / "tests" / "golden" / "events" / f"{case}.txt").is_file(), case


def test_every_threat_has_a_test_that_is_there() -> None:
    threats = (ROOT / "SECURITY.md").read_text("utf-8").partition("## Threats")[2]
    rows = STATEMENT.findall(threats.partition("|---|---|")[2])
    assert len(rows) > 15
    for threat, held in rows:
        assert TEST.search(held), threat
    for path, test, _ in TEST.findall(threats):
        assert test in functions_of(path), f"{path}::{test}"


@each_page
def test_every_statement_has_a_test_or_a_reason(page: Path) -> None:
    statements = STATEMENT.findall(page.read_text("utf-8"))
    without = [
        words for words, held in statements if not (TEST.search(held) or any(map(held.count, REASONS)))
    ]
    assert (len(statements) > 25, without) == (True, [])


def test_a_count_of_statements_is_that_of_the_rows() -> None:
    counted = {page.stem: match for page in PAGES if (match := COUNTS.search(page.read_text("utf-8")))}
    assert "event-log" in counted
    for page in PAGES:
        counts = re.findall(r"\b[Oo]f \w+ statements", page.read_text("utf-8"))
        assert len(counts) == (page.stem in counted), f"{page.stem}: it counts in other words"
    for name, match in counted.items():
        reasons = [held for _, held in STATEMENT.findall(match.string)]
        found = sum("does not hold" in held for held in reasons), sum(held in REASONS for held in reasons)
        stated = match[1], NUMBERS.index(match[2]), NUMBERS.index(match[3])
        assert stated == (str(len(reasons)), *found), name


def test_gaps_end_nothing(tmp_path: Path) -> None:
    header = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"
    rows = "".join(f"{number},4,usr,idu={number},,,\n" for number in (1, 2, 7, 9_000, 2**62))
    text, refused = run_convert(tmp_path, "log", "xds", header + rows)
    assert (text.count("<delete "), refused) == (5, [])


def test_the_categories_of_event_types() -> None:
    def those(per_field: bool | None = None, query_back: bool | None = None) -> set[int]:
        return {
            number
            for number, known in EVENT_TYPES.items()
            if per_field in (None, known.per_field) and query_back in (None, known.query_back)
        }

    assert those(per_field=True) == {1, 2, 3, 7, 8}
    assert those(per_field=False) == {4, 5, 6}
    assert those(query_back=False) == {1, 2, 3, 4}
    assert those(query_back=True) == {5, 6, 7, 8}
    assert those(True, False) == {1, 2, 3}
    assert those(True, True) == {7, 8}
    assert those(False, False) == {4}
    assert those(False, True) == {5, 6}


def test_the_blank_at_an_associations_end(tmp_path: Path) -> None:
    """The original's document, as it is printed: the blank is no part of the schema's name."""
    event = '<delete class-name="usr"><association>idu=1,table=usr,schema=indirect{}</association></delete>'
    read = [
        run_convert(tmp_path, "xds", "xds", f"<nds><input>{event.format(end)}</input></nds>")[0]
        for end in ("", " ")
    ]
    assert read[0] == read[1]
    assert "schema=indirect</association>" in read[1]
