"""Some runs of the simulator in each run of the tests."""

from __future__ import annotations

import pytest

from tests.kit.tiers import drawn
from tests.laws.simulate.decisions import Replayed, Seeded, smaller
from tests.laws.simulate.run import run

pytestmark = pytest.mark.quick

PARTS = 5  # so that each has time on a busy machine


@pytest.mark.slow("170 runs, because some planted faults break no earlier one")
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_promised_holds_in_any_order_of_events(part: int) -> None:
    for seed in range(part, drawn(1700), PARTS):
        broken = run(Seeded(seed))
        assert broken is None, f"seed {seed}: {broken.reason}"


def test_the_decisions_of_a_run_repeat_it() -> None:
    decisions = Seeded(7)
    first = run(decisions)
    again = Replayed(decisions.taken)
    assert (run(again), again.taken) == (first, decisions.taken)


def test_decisions_that_do_not_matter_are_left_out() -> None:
    assert smaller([3, 1, 4, 1, 5, 9, 2, 6], lambda numbers: 9 in numbers, tries=100) == [9]
