"""Patterns of names: as Java's and Python's expressions read them, and never slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.patterns import LONGEST, InvalidPattern, Pattern

pytestmark = pytest.mark.quick

letters = st.sampled_from("abAB_$01.")
names = st.text("abAB_$01.\n", max_size=12)
atoms = st.one_of(
    letters.map(re.escape),
    st.just("."),
    st.sampled_from(
        ("[ab]", "[^ab]", "[a-b0]", "[]a]", "[^]]", r"[\w$]", r"[\d-]", "[a-]", r"\d", r"\W", r"\.")
    ),
)
quantifiers = st.sampled_from(("", "", "*", "+", "?", "*?", "{2}", "{1,}", "{0,3}", "{2,3}?"))


def repeated(found: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(found, quantifiers).map("".join), max_size=4).map("".join)


expressions = st.recursive(
    repeated(atoms),
    lambda inner: repeated(st.lists(inner, min_size=1, max_size=3).map(lambda found: f"({'|'.join(found)})")),
    max_leaves=6,
)


@given(expressions, names)
def test_a_pattern_means_what_python_means_by_it(text: str, name: str) -> None:
    assert Pattern(text).matches(name) == bool(re.fullmatch(text, name, re.ASCII))


@given(expressions, names)
def test_without_case_too(text: str, name: str) -> None:
    assert Pattern(f"(?i){text}").matches(name) == bool(re.fullmatch(text, name, re.ASCII | re.IGNORECASE))


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("IDM_.*", "IDM_USR", True),
        ("IDM_.*", "idm_usr", False),
        ("(?i)IDM_.*", "idm_usr", True),
        ("IDM_.*", "X_IDM_USR", False),
        (r"BIN\$.{22}==\$0", "BIN$" + "x" * 22 + "==$0", True),
        ("^usr|grp$", "grp", True),
        (r"\Qa.b*\E+", "a.b**", True),
        (r"\Qa.b", "axb", False),
        ("", "", True),
        ("", "x", False),
    ],
)
def test_the_whole_name_is_matched(text: str, name: str, found: bool) -> None:
    assert Pattern(text).matches(name) is found


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("a(b", 4, "not closed"),
        ("a)b", 2, "closes nothing"),
        ("[a", 3, "not closed"),
        ("[a&&b]", 3, "&&"),
        ("a**", 3, "a quantifier behind a quantifier"),
        ("a*+", 3, "possessive"),
        ("*a", 1, "repeats nothing"),
        ("a{", 3, "is expected"),
        ("a{3,2}", 3, "greater than the most"),
        (r"(a)\1", 6, r"\1 is not known"),
        (r"\p{Alpha}", 3, r"\p is not known"),
        ("(?=a)", 3, "only"),
        ("a^b", 2, "within it"),
        ("a$b", 2, "within it"),
        ("[b-a]", 5, "goes down"),
        ("(" * 51 + ")" * 51, 52, "50 groups in groups"),
        ("((a{1000}){1000}){1000}", 1, "more than 10000 characters"),
        ("a" * (LONGEST + 1), LONGEST + 1, "longer than"),
        ("a\\", 3, "not known"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, at: int, reason: str) -> None:
    with pytest.raises(InvalidPattern) as caught:
        Pattern(text)
    assert caught.value.args[0] == at
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["(a+)+b", "(a|a)*b", "(a*)*b", "((a?){30}){30}b", ".*.*.*.*.*.*.*.*b"])
def test_no_pattern_makes_a_name_costly(text: str) -> None:
    """Each would take Python's own matcher longer than the age of the world."""
    calls = 0
    pattern = Pattern(text)

    class Counted(str):
        def __iter__(self) -> object:  # type: ignore[override]
            nonlocal calls
            for character in str(self):
                calls += 1
                yield character

    assert not pattern.matches(Counted("a" * 128 + "!"))
    assert calls == 129
