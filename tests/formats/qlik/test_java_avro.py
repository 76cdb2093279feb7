"""Apache's Java library for Avro reads what we write, and writes it again to the same bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.kit.commands import ROOT, environment
from tests.kit.support import patient

pytestmark = pytest.mark.long

MISSING = [name for name in ("jpype", "pyspark", "fastavro") if find_spec(name) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} are not installed: they bring Java's side")
def test_java_reads_and_writes_the_same() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "formats" / "qlik" / "through_avro.py")],
        env=environment() | {"CI": os.environ.get("CI", "")},
        capture_output=True,
        text=True,
        timeout=patient(200),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = re.fullmatch(r"RUN: (\d+) messages\n", done.stdout)
    assert found
    assert int(found[1]) > 200
