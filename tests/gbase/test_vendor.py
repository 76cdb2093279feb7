"""The vendor's own client decodes our bytes to our values; `vendor` lists the differences."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.kit import judges
from tests.kit.commands import ROOT

pytestmark = pytest.mark.quick


@pytest.mark.nightly
@pytest.mark.skipif(find_spec("jpype") is None, reason="the extra informix is not installed")
@pytest.mark.parametrize("seed", [1, 2])
def test_the_vendors_client_says_the_same(seed: int) -> None:
    judges.java("informix")
    done = subprocess.run(
        [sys.executable, "-m", "tests.gbase.vendor", "--seed", str(seed)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    last = (done.stdout.splitlines() or [done.stderr])[-1]
    found = re.fullmatch(r"RUN: (\d+) values and records alike, \d+ known to differ, 0 not explained", last)
    assert found, done.stdout + done.stderr
    assert int(found[1]) > 4000
