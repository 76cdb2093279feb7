"""A random history through a catalogue that Iceberg's own project serves over REST, despite kills.

The servlet and the catalogue are fetched into the folder that EVENTLOG_PEERS names.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.transfer.job import Job
from tests.kit import judges
from tests.kit.lake import RestFolder, apply_job, write_changes
from tests.laws.lake_history import NAMES, TABLES, History
from tests.laws.test_lake import Judge, expected, run_despite_kills

pytestmark = pytest.mark.nightly

SERVER = Path(__file__).with_name("RestCatalogue.java")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RestFolder]:
    jars, folder = judges.java("iceberg-rest"), tmp_path / "lake"
    command = ["java", "-cp", os.pathsep.join(jars), str(SERVER), folder.as_uri()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        with RestFolder(folder, f"http://127.0.0.1:{int(server.stdout.readline())}") as lake:
            yield lake
        server.terminate()


def test_tables_of_a_server_are_equal_after_each_round_whatever_is_killed(
    lake: RestFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = list(History(1, 40).transactions(300, truncates=2))
    path = tmp_path / "changes.jsonl"
    write_changes(path, [change for each in history for change in each.changes])
    judge, job = Judge(lake, history), Job("changes", "changes", (str(path),), tables=TABLES)
    assert run_despite_kills(lake, job, judge, random.Random(1), monkeypatch) > 3
    assert judge.judged > 3
    last = history[-1].state
    assert [judge.rows(name) for name in NAMES] == [expected(last, name) for name in NAMES]
    assert apply_job(lake, job).tally.skipped == judge.changes
