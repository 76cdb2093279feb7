"""Some runs of the simulator in each run of the tests, and the runs that found faults."""

from __future__ import annotations

import pytest

from tests.simulate.decisions import Replayed, Seeded, smaller
from tests.simulate.run import run
from tests.tiers import drawn

pytestmark = pytest.mark.quick

FAULTS = {
    "a part follows one that waits": 189,
    "a refused part is forgotten at a restart": 604,
    "the same, of an event whose other rows are finished": 90,
    "tables are busy in the second reading": 1839,
}


@pytest.mark.slow("a hundred runs")
def test_what_is_promised_holds_in_any_order_of_events() -> None:
    for seed in range(drawn(1000)):
        broken = run(Seeded(seed))
        assert broken is None, f"seed {seed}: {broken.reason}"


@pytest.mark.parametrize("seed", FAULTS.values(), ids=FAULTS.keys())
def test_what_a_run_found_stays_mended(seed: int) -> None:
    broken = run(Seeded(seed))
    assert broken is None, broken.reason


def test_the_decisions_of_a_run_repeat_it() -> None:
    decisions = Seeded(7)
    first = run(decisions)
    again = Replayed(decisions.taken)
    assert (run(again), again.taken) == (first, decisions.taken)


def test_decisions_that_do_not_matter_are_left_out() -> None:
    assert smaller([3, 1, 4, 1, 5, 9, 2, 6], lambda numbers: 9 in numbers, tries=100) == [9]
