"""How the suite runs: nothing is compiled again and again, and nothing long begins last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import frugal, parallel

pytestmark = pytest.mark.quick


def test_programs_are_compiled_once_also_where_nobody_wants_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dont_write_bytecode", "pycache_prefix"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    frugal.keep_bytecode()
    asked = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert told.stdout == f"False {sys.prefix}/bytecode\n"


def test_what_takes_long_has_its_turn_first(request: pytest.FixtureRequest) -> None:
    turns = [parallel.turn(Path(item.path)) for item in request.session.items]
    assert turns == sorted(turns)
    folders = {path.parent.name for path in Path(__file__).parents[1].glob("*/test_*.py")}
    assert folders > set(parallel.LONG)
    assert [parallel.turn(Path("tests", name, "test_a.py")) for name in ("chaos", "spark", "core")] == [
        0,
        2,
        5,
    ]
