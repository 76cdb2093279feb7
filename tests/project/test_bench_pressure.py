"""The benchmark of a queue under pressure: its figures, and a run of each kind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.pressure import SITUATIONS, flow_of

pytestmark = pytest.mark.quick


def test_a_row_that_did_not_come_out_counts_until_the_end() -> None:
    moments = [(float(n), n + 0.5 if n < 30 else None) for n in range(61)]
    flow = flow_of([*moments[:60], (60.0, 62.0)])
    assert (flow.offered, flow.published) == (61 / 60, 30 / 60)
    assert flow.waits[29:32] == [500.0, 32_000.0, 31_000.0]


def test_the_waits_are_those_of_the_first_a_middle_and_the_last_sixth() -> None:
    flow = flow_of([(float(n), n + 1.0 + n // 10) for n in range(60)])
    assert [p50 for p50, _ in flow.sixths()] == [1_000.0, 4_000.0, 6_000.0]


def _lines(*words: str) -> list[str]:
    named = {name: value for name, value in os.environ.items() if name != "EVENTLOG_PEERS"}
    command = [sys.executable, "-m", "eventlog", "bench", "pressure", "--rate", "400", *words]
    return subprocess.run(command, env=named, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.slow("a server and a publisher of its own")
def test_a_run_prints_what_was_published_and_how_it_compares() -> None:
    lines = _lines("--seconds", "1", "--only", "clean", "--mode", "delete")
    assert lines[1].split()[:3] == ["clean", "delete", "offered"]
    assert [line.split()[0] for line in lines[-3:]] == ["compared", "clean", "aim"]


@pytest.mark.nightly  # a minute: four runs, each with a server of its own
def test_every_situation_runs_in_every_way() -> None:
    lines = _lines("--seconds", "3")
    for mode in ("update", "delete"):
        runs = [line.split()[0] for line in lines if line.split()[1:2] == [mode] and " offered " in line]
        assert runs == list(SITUATIONS)
