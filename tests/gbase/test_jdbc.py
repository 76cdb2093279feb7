"""The way to a server through JDBC, as far as it goes without the vendor's jar."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kit.commands import ROOT, environment

pytestmark = pytest.mark.quick

EXPECTED = """\
Misuse the vendor's driver is not part of eventlog: name its file w
Misuse there is no none.jar: name its file with --jar (com.ibm.info
Misuse the driver com.informix.jdbc.IfxDriver is in none of the jar
[('string', 1, 'a'), ('int', 2, 1), ('long', 3, 1099511627776)]
(None, 7, 1099511627776, True, 0.5, '1000', '-0.500', 'größe', '2024-03-15') None
ServerError [-951] user cdc, password ***: no
01ff7f
"""


@pytest.mark.skipif(find_spec("jpype") is None, reason="the extra informix is not installed")
def test_values_errors_and_bytes_of_java(tmp_path: Path) -> None:
    script = ROOT / "tests" / "gbase" / "through_java.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "empty.jar")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.stdout == EXPECTED
