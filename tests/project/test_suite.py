"""How the suite runs: what it starts does not compile the same programs again and again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import frugal


def test_programs_are_compiled_once_also_where_nobody_wants_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dont_write_bytecode", "pycache_prefix"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    frugal.keep_bytecode()
    asked = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert told.stdout == f"False {sys.prefix}/bytecode\n"
