"""Patterns of table names: whole names, Java's quoting, and clear errors."""

from __future__ import annotations

import pytest

from eventlog.core.patterns import LONGEST, InvalidPattern, Pattern

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "name", "matches"),
    [
        ("IDM_.*", "IDM_USR", True),
        ("IDM_.*", "idm_usr", False),
        ("(?i)IDM_.*", "idm_usr", True),
        ("IDM_.*", "X_IDM_USR", False),
        (r"BIN\$.{22}==\$0", "BIN$" + "x" * 22 + "==$0", True),
        ("^usr|grp$", "grp", True),
        (r"\Qa.b*\E+", "a.b**", True),
        (r"\Qa.b", "axb", False),
        (r"\w+", "\u00e9", False),
        ("", "", True),
        ("", "x", False),
    ],
)
def test_the_whole_name_is_matched(text: str, name: str, matches: bool) -> None:
    assert Pattern(text).matches(name) is matches


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a(b", "unterminated subpattern at position 1"),
        ("*a", "nothing to repeat at position 0"),
        (r"\p{Alpha}", r"bad escape \p at position 0"),
        ("[a&&b]", "set intersection at position 2"),
        ("a" * (LONGEST + 1), "longer than 1000 characters"),
    ],
)
def test_an_expression_that_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidPattern, match="is not a regular expression") as caught:
        Pattern(text)
    assert reason in str(caught.value)
