"""Objects are folded together with others, and never apart from themselves."""

from __future__ import annotations

from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.fold import whole_objects

pytestmark = pytest.mark.quick

MEBIBYTE = 1 << 20


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from((0, 1, MEBIBYTE, 9 * MEBIBYTE)))))
def test_rows_of_an_object_stay_together_and_long_ones_have_few_beside_them(
    rows: list[tuple[int, int]],
) -> None:
    rows.sort()
    reported = list(whole_objects(rows, itemgetter(0), itemgetter(1)))
    assert [row for chunk in reported for row in chunk] == rows
    objects = [{number for number, _ in chunk} for chunk in reported]
    assert sum(map(len, objects)) == len({number for number, _ in rows})
    for chunk in reported:
        *_, (last, _) = chunk
        assert sum(size for number, size in chunk if number != last) < 16 * MEBIBYTE


def test_many_short_rows_are_folded_together() -> None:
    reported = list(whole_objects(range(20_000), lambda row: row // 3, lambda row: 10))
    assert max(map(len, reported)) <= 5_002
    assert len(reported) == 4
