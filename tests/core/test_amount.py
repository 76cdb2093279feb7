"""Numbers in sentences: the word before is that of the number."""

from __future__ import annotations

import pytest

from eventlog.core.plurals import quantity

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("number", "said"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (11, "11 rows")])
def test_one_is_one_and_all_others_are_more(number: int, said: str) -> None:
    assert quantity(number, "row") == said


def test_words_that_change_otherwise_are_given() -> None:
    assert [quantity(number, "row is", "rows are") for number in (1, 2)] == ["1 row is", "2 rows are"]
