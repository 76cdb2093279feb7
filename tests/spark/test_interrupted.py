"""A stopped job reports it in one line, from anywhere in Spark, and can be run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import environment
from tests.support import HEADER, USR

pytestmark = pytest.mark.long


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_midst_of_a_job_is_reported_in_a_line(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "usr.toml").write_text(USR)
    (tmp_path / "log.csv").write_text(HEADER + "".join(f"{n},4,usr,idu={n},,,\n" for n in range(1, 100_000)))
    words = "backlog --from log --to xds --tables usr.toml --master local[1] -o out log.csv"
    with subprocess.Popen(
        [sys.executable, "-m", "eventlog", *words.split()],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        begun = process.stderr.readline()
        os.killpg(process.pid, number)  # as a terminal does: Spark's own processes get it too
        reported = process.stderr.read()
    assert begun.startswith("eventlog: fold")
    assert reported == f"eventlog: stopped by {number.name}\n"
    assert process.returncode == 128 + number
    assert not (tmp_path / "out" / "done").exists()
