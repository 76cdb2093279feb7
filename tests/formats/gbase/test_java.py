"""Java's side: the way to a server through JDBC without the vendor's jar, and the vendor's own client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kit import judges
from tests.kit.commands import ROOT, environment
from tests.kit.support import patient

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(find_spec("jpype") is None, reason="the extra informix is not installed"),
]

EXPECTED = """\
Misuse the vendor's driver is not part of eventlog: name its file w
Misuse there is no none.jar: name its file with --jar (com.ibm.info
Misuse the driver com.informix.jdbc.IfxDriver is in none of the jar
[('string', 1, 'a'), ('int', 2, 1), ('long', 3, 1099511627776)]
(None, 7, 1099511627776, True, 0.5, '1000', '-0.500', 'größe', '2024-03-15') None
ServerError [-951] user cdc, password ***: no
01ff7f
"""


def test_values_errors_and_bytes_of_java(tmp_path: Path) -> None:
    script = ROOT / "tests" / "formats" / "gbase" / "through_java.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "empty.jar")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patient(120),
    )
    assert done.stderr == ""
    assert done.stdout == EXPECTED


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_the_vendors_client_says_the_same(seed: int) -> None:
    judges.java("informix")
    done = subprocess.run(
        [sys.executable, "-m", "tests.formats.gbase.vendor", "--seed", str(seed)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=patient(200),
        check=False,
    )
    last = (done.stdout.splitlines() or [done.stderr])[-1]
    found = re.fullmatch(r"RUN: (\d+) values and records alike, \d+ known to differ, 0 not explained", last)
    assert found, done.stdout + done.stderr
    assert int(found[1]) > 4000
