"""What a task takes does not grow with the number of others; neither does the driver beyond its bound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.installed import ROOT
from tests.kit.support import patient

pytest.importorskip("pyspark", reason="Spark is not installed")

pytestmark = pytest.mark.nightly


def test_a_terabyte_costs_a_task_what_a_gigabyte_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("terabyte.py"), tmp_path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(280),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    figures = json.loads(done.stdout.splitlines()[-1])
    for few, many in (figures["tasks"][:2], figures["tasks"][2:]):
        assert few["tasks"] < 0.1 * many["tasks"]
        assert few["bytes_of_task"] + 16 > many["bytes_of_task"]
        assert few["bytes_of_all"] == many["bytes_of_all"] < 4096
    assert figures["largest_share"] < 256 << 20
    assert figures["driver"] < 1 << 30
