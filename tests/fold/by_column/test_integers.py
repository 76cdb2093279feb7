"""The pattern of certain integers, and its bounds: both have the same integers."""

from __future__ import annotations

import re

import pytest

from eventlog.core import tablesfile
from eventlog.fold.by_column.key_patterns import certain_bounds, int_form

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("kind", ["integer", "smallint", "bigint", "serial"])
def test_the_bounds_of_certain_integers_are_those_of_their_pattern(kind: str) -> None:
    tables = tablesfile.read(f'[tables.usr]\nkey = ["idu"]\ncolumns = {{ idu = "{kind}" }}\n')
    (column,) = tables.get("usr").key_columns
    low, high = certain_bounds(column)
    pattern = re.compile(int_form(column))
    for number in (low - 1, low, low + 1, -1, 0, 1, high - 1, high, high + 1):
        assert bool(pattern.fullmatch(str(number))) == (low <= number <= high)
