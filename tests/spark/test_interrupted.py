"""A stopped job reports it in one line, from anywhere in Spark, and can be run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from eventlog_spark.session import JavaDied

from tests.kit.commands import environment
from tests.kit.support import HEADER, USR, until

pytestmark = pytest.mark.long


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a backlog of a log that takes seconds."""
    (folder / "usr.toml").write_text(USR)
    (folder / "log.csv").write_text(HEADER + "".join(f"{n},4,usr,idu={n},,,\n" for n in range(1, 20_000)))
    words = "backlog --from log --to xds --tables usr.toml --master local[1] -o out log.csv"
    return subprocess.Popen(
        [sys.executable, "-m", "eventlog", *words.split()],
        cwd=folder,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM])
def test_a_signal_in_the_midst_of_a_job_is_reported_in_a_line(number: signal.Signals, tmp_path: Path) -> None:
    with start(tmp_path) as process:
        assert process.stderr is not None
        begun = process.stderr.readline()
        os.killpg(process.pid, number)  # as a terminal does: Spark's own processes get it too
        reported = process.stderr.read()
    assert begun.startswith("eventlog: fold")
    assert reported == f"eventlog: stopped by {number.name}\n"
    assert process.returncode == 128 + number
    assert not (tmp_path / "out" / "done").exists()


@pytest.mark.parametrize("place", [pytest.param("job", marks=pytest.mark.nightly), "documents"])
def test_a_java_machine_that_is_killed_is_reported_in_a_line(place: str, tmp_path: Path) -> None:
    with start(tmp_path) as process:
        assert process.stderr is not None
        until(lambda: (tmp_path / "out" / place).exists(), 120)
        os.kill(java_of(process.pid), signal.SIGKILL)
        reported = process.stderr.read()
    assert reported == f"eventlog: fold\neventlog: {JavaDied()}\n"
    assert process.returncode == 1
    with start(tmp_path) as process:
        _, reported = process.communicate()
    assert process.returncode == 0, reported
    assert (tmp_path / "out" / "done").exists()


def java_of(parent: int) -> int:
    """Return the Java machine that a process started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (java,) = (pid for pid in map(int, children) if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return java
