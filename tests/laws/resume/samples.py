"""How many of the points at which a run can be stopped a test takes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from tests.laws.resume.stops import How, Stop
from tests.laws.resume.trials import Reference

SEED = int(os.environ.get("EVENTLOG_PROOF_SEED", "1"))


class Sample(NamedTuple):
    """A number of points at which runs are stopped, or of pairs of points; without both, all points."""

    name: str
    limit: int | None = None
    pairs: int = 0
    hows: Sequence[How] = tuple(How)

    def check(self, reference: Reference) -> None:
        """Check the points, and report all at which a run does not go on as it has to."""
        failures = []
        for points in self._chosen(list(reference.stops(self.hows))):
            try:
                reference.check(*points)
            except Exception as fault:
                places = ", ".join(map(reference.describe, points))
                failures.append(f"{places}: {type(fault).__name__}: {fault}")
        assert not failures, "\n".join(failures)

    def _chosen(self, stops: Sequence[Stop]) -> Iterator[tuple[Stop, ...]]:
        dice = random.Random(SEED)
        if self.pairs:
            yield from (tuple(dice.choices(stops, k=2)) for _ in range(self.pairs))
            return
        count = len(stops) if self.limit is None else min(self.limit, len(stops))
        yield from ((stop,) for stop in dice.sample(stops, count))


def samples(
    quick: int, long: int, pairs: int, hows: Sequence[How] = tuple(How), slow: str = "", dark: int = 0
) -> list[Any]:
    """Return the samples: a few points for each day; many, pairs of them, and every point for a night.

    `slow` is the reason if a quick test takes over three seconds. `dark` is how many points lose power.
    """
    marks = [pytest.mark.slow(slow)] if slow else []
    night = [pytest.mark.nightly, pytest.mark.timeout(7200)]
    by_name: dict[str, tuple[Sample, Any]] = {
        "some": (Sample("some", quick, hows=hows), marks),
        "dark": (Sample("dark", dark, hows=(How.DARK,)), marks),
        "many": (Sample("many", long, hows=hows), night),
        "pairs": (Sample("pairs", pairs=pairs, hows=hows), night),
        "all": (Sample("all", hows=hows), night),
    }
    return [
        pytest.param(sample, id=name, marks=tier)
        for name, (sample, tier) in by_name.items()
        if dark or name != "dark"
    ]
