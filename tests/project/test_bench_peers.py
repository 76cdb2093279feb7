"""Ours and peers: those that cannot run here have a reason, and the others are measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.peers import installing

pytestmark = pytest.mark.quick


def bench(*words: str) -> list[str]:
    """Return the output of `eventlog bench peers` if nothing may be installed."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    command = [sys.executable, "-m", "eventlog", "bench", "peers", *words]
    return subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.long
def test_without_a_folder_for_them_peers_are_skipped_and_ours_run() -> None:
    reported = bench("200", "--rounds", "1", "--only", "capture")
    skipped = {line.split()[0] for line in reported if "SKIPPED: EVENTLOG_PEERS names no folder" in line}
    assert skipped == {"PgQ", "Debezium"}
    ran = [line for line in reported if line.startswith("eventlog, ")]
    assert len(ran) == 2  # query-back and per field
    assert all(" RUN " in line and "/s " in line for line in ran)


def test_mariadb_is_skipped_where_none_is_named() -> None:
    assert "SKIPPED: EVENTLOG_TEST_URLS names none" in bench("200", "--only", "mariadb")[0]


@pytest.mark.parametrize("program", ["mvn", "apt-get"])
def test_what_cannot_be_fetched_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVENTLOG_PEERS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    name = {"mvn": "debezium", "apt-get": "pgq"}[program]
    monkeypatch.delenv("CI_FULL", raising=False)
    assert installing.main([name]) == 0
    assert f"{name}: SKIPPED: " in capsys.readouterr().out
    monkeypatch.setenv("CI_FULL", "1")
    assert installing.main([name]) == 1
