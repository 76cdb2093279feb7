"""Each benchmark comes to its end at a small size; what it measures is not judged."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.kit.installed import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

SMALL = {
    "apply": "1000",
    "compare": "1000",
    "convert": "2000 --changes 400",
    "formats": "",
    "house": "",
    "latency": "100",
    "pressure": "--seconds 2 --mode update",
    "publisher": "2000 1000 100",
    "slot": "2000",
    "spark": "2000 1 even",
    "tracing": "2",
    "triggers": "200",
}
NOT_ALONE = {"report", "peers"}  # one runs the others, one needs peers


def test_each_benchmark_is_tried() -> None:
    names = {path.stem for path in (ROOT / "bench").glob("[!_]*.py")} | {"peers"}
    assert names == SMALL.keys() | NOT_ALONE


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_ends(name: str) -> None:
    command = [sys.executable, "-m", "eventlog", "bench", name, *SMALL[name].split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout != "") == (0, True), done.stderr
