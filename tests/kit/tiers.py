"""The tiers of the suite: what a test needs decides which runs it takes part in.

`make test` runs the first tier, `make test-all` the first three. A module states its tier with `pytestmark`.
A test or a parameter may state a more demanding one, and the most demanding of its marks counts.
Of a test with the mark `family` the quick tier takes the first parameter, the last one and those that find a
planted fault; the others are long. A test with the mark `one_database` is nightly on other servers than the
embedded one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import pytest

from tests.kit.databases import EMBEDDED
from tests.mutants.faults import faults, function_of

TIERS = ("quick", "servers", "long", "nightly")
QUICK, ALL = TIERS[:1], TIERS[:3]
LONGEST = 5  # tests that are named at the end
SLOW = 3.0  # seconds: a quick test that takes longer carries the mark `slow` with its reason

_EXAMPLES = {"quick": 30, "servers": 30, "long": 50, "nightly": 3000}
_STATED = 300  # the share of examples is one of these
_share = 1.0  # of the examples that a test states, drawn in this run


def add_option(parser: pytest.Parser) -> None:
    """Add --tiers: the tiers that run, separated by commas."""
    parser.addoption("--tiers", default="quick", help=f"tiers that run, of {', '.join(TIERS)}; or all")


def chosen(config: pytest.Config) -> tuple[str, ...]:
    """Return the tiers that this run takes."""
    names = str(config.getoption("--tiers"))
    tiers = ALL if names == "all" else tuple(names.split(","))
    if unknown := set(tiers) - set(TIERS):
        raise pytest.UsageError(f"--tiers {names}: unknown {', '.join(sorted(unknown))}")
    return tiers


def tier_of(item: pytest.Item) -> str | None:
    """Return the most demanding tier among the marks of a test."""
    names = {mark.name for mark in item.iter_markers()}
    return next((tier for tier in reversed(TIERS) if tier in names), None)


def thin_families(items: Iterable[pytest.Item]) -> None:
    """Give the mark `long` to parameters of families, except the first, the last and finders of faults."""
    families: defaultdict[str, list[pytest.Item]] = defaultdict(list)  # by function
    for item in items:
        if item.get_closest_marker("family") and tier_of(item) == "quick":
            families[function_of(item.nodeid)].append(item)
    finders = {test for fault in faults() for test in fault.finders} if families else set()
    for item in (item for family in families.values() for item in family[1:-1]):
        if item.nodeid not in finders:
            item.add_marker("long")


def thin_databases(items: Iterable[pytest.Item]) -> None:
    """Give the mark `nightly` to tests of one database, except on the embedded server."""
    for item in (item for item in items if item.get_closest_marker("one_database")):
        assert isinstance(item, pytest.Function)
        if item.callspec.params["server"] != EMBEDDED:
            item.add_marker("nightly")


def select(config: pytest.Config, items: list[pytest.Item]) -> Counter[str]:
    """Keep the tests of the chosen tiers in `items`; return how many others each tier has."""
    thin_families(items)
    thin_databases(items)
    by_item = [(item, tier_of(item)) for item in items]
    if without := sorted({item.nodeid.partition("::")[0] for item, tier in by_item if tier is None}):
        raise pytest.UsageError(f"no mark of a tier ({', '.join(TIERS)}): {', '.join(without)}")
    tiers = chosen(config)
    named = any("::" in word for word in config.args)  # a test named by its id runs, whatever its tier
    unchosen = [(item, tier) for item, tier in by_item if tier not in tiers and not named]
    items[:] = [item for item, tier in by_item if tier in tiers or named]
    config.hook.pytest_deselected(items=[item for item, _ in unchosen])
    return Counter(str(tier) for _, tier in unchosen)


def is_warm(item: pytest.Item) -> bool:
    """Return whether sessions outlive their connections in a test: in quick ones, except at night."""
    is_cold = item.get_closest_marker("cold") is not None
    return "nightly" not in chosen(item.config) and tier_of(item) == "quick" and not is_cold


def left_out(counts_by_tier: Counter[str]) -> str:
    """Return one line about the tiers that did not run."""
    counts = ", ".join(f"{counts_by_tier[tier]} {tier}" for tier in TIERS if counts_by_tier[tier])
    return f"left out: {counts}; `make test-all` runs all but nightly" if counts else "left out: nothing"


def set_examples(tiers: Sequence[str]) -> None:
    """Load the Hypothesis profile of these tiers. Deadlines are off, because tests never judge time."""
    from hypothesis import HealthCheck, settings  # pytest compiles it, which `frugal` keeps by now

    global _share
    max_examples = max(_EXAMPLES[tier] for tier in tiers)
    _share = max_examples / _STATED
    checks = [check for check in HealthCheck if check is not HealthCheck.filter_too_much]
    settings.register_profile(
        "eventlog", max_examples=max_examples, deadline=None, suppress_health_check=checks
    )
    settings.load_profile("eventlog")


def drawn(count: int) -> int:
    """Return the number of examples in this run of a test that states `count`: a sixth in `make test-all`."""
    return max(min(count, 3), round(count * _share))


def skips(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return one line for each reason for a skip, with its count."""
    reasons = Counter(report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple))
    return [f"skipped {count}: {reason.removeprefix('Skipped: ')}" for reason, count in reasons.most_common()]


def longest(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return lines about the tests that took longest, with all their parameters and fixtures."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        seconds[report.nodeid.partition("[")[0]] += report.duration
    tests = sorted(((duration, test) for test, duration in seconds.items()), reverse=True)[:LONGEST]
    head = f"of {sum(seconds.values()):.0f} s of all processes these tests took most:"
    return [head, *(f"{duration:6.1f} s {test}" for duration, test in tests)]


def over_limit(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return a line about the quick tests over the limit that state no reason, if there are any."""
    slow = [report for report in reports if report.duration > SLOW and report.keywords.keys() & QUICK]
    open_ones = sorted((report.duration, report.nodeid) for report in slow if "slow" not in report.keywords)
    if not open_ones:
        return []
    seconds, test = open_ones[-1]
    return [
        f"{len(open_ones)} quick tests took over {SLOW:.0f} s without a mark `slow`: {test} {seconds:.1f} s"
    ]
