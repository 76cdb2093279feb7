"""Ranges of record ids with letters give each id the letter of a plain table."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.sql.log.status_ranges import (
    StatusRange,
    difference,
    joined,
    size_of,
    status_ranges,
    without,
    without_ids,
)
from eventlog.sql.names import BLOCK

pytestmark = pytest.mark.quick

IDS = st.lists(st.integers(BLOCK - 30, BLOCK + 30), max_size=40)
STEPS = st.lists(st.tuples(st.sampled_from("SWE"), IDS), max_size=6)


def letters(ranges: list[StatusRange]) -> dict[int, str]:
    return {n: found.letter for found in ranges for n in range(found.first_id, found.last_id + 1)}


def built(steps: list[tuple[str, list[int]]]) -> tuple[list[StatusRange], dict[int, str]]:
    """Return the ranges after some steps that give letters to new rows, and the same as a table."""
    ranges: list[StatusRange] = []
    table: dict[int, str] = {}
    for letter, ids in steps:
        ranges = joined([*ranges, *without(status_ranges(ids, letter), ranges)])
        table = dict.fromkeys(ids, letter) | table
    return ranges, table


@given(STEPS)
def test_each_id_has_the_letter_that_it_was_given_first(steps: list[tuple[str, list[int]]]) -> None:
    ranges, table = built(steps)
    assert letters(ranges) == table
    assert size_of(ranges) == len(table)


@given(STEPS)
def test_ranges_are_as_few_as_they_can_be(steps: list[tuple[str, list[int]]]) -> None:
    ranges, _ = built(steps)
    assert all(found.last_id // BLOCK == found.first_id // BLOCK for found in ranges)
    for one, two in pairwise(ranges):
        touch = one.last_id + 1 == two.first_id and one.first_id // BLOCK == two.first_id // BLOCK
        assert one.last_id < two.first_id
        assert not (touch and one.letter == two.letter)


@given(STEPS, IDS)
def test_failed_ids_are_taken_out_and_others_are_not(
    steps: list[tuple[str, list[int]]], ids: list[int]
) -> None:
    ranges, table = built(steps)
    left = without_ids(ranges, ids, "E")
    assert letters(left) == {n: letter for n, letter in table.items() if letter != "E" or n not in ids}


@given(STEPS, STEPS)
def test_a_difference_turns_one_into_the_other(
    one: list[tuple[str, list[int]]], two: list[tuple[str, list[int]]]
) -> None:
    before, after = built(one)[0], built(two)[0]
    gone, changed, new = difference(before, after)
    kept = {found.first_id: found for found in before if found not in gone}
    assert {found.first_id for found in changed} <= kept.keys()
    assert not {found.first_id for found in new} & kept.keys()
    found = kept | {found.first_id: found for found in (*changed, *new)}
    assert sorted(found.values()) == sorted(after)
