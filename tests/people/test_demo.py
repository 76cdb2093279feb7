"""The demo, run as a newcomer runs it: it tells everything, ends, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.demo import backlog

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "eventlog", "demo", "--no-backlog"]


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'spark'}", "TMPDIR": str(folder)}


def processes_in(folder: str) -> list[str]:
    """The command lines that name the folder."""
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    return [line.decode() for line in lines if folder.encode() in line]


@pytest.fixture
def folder() -> Iterator[str]:
    """A short folder that the database's user may enter."""
    with tempfile.TemporaryDirectory(prefix="ev-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield made


def test_the_demo_tells_what_becomes_of_every_row_and_leaves_nothing(folder: str) -> None:
    for _ in range(2):
        done = subprocess.run(
            COMMAND, env=environment(Path(folder)), capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")
        for part in (
            '<add class-name="usr" event-id="eventlog:1-3:8a6ae151">',
            '<modify class-name="view_usr"',
            '<delete class-name="usr"',
            "E  6 salary idu=1; drop table usr: unknown table 'salary'",
        ):
            assert part in done.stdout
        assert "\x1b[" not in done.stdout
    assert list(Path(folder).iterdir()) == []
    assert processes_in(folder) == []


def test_with_keep_the_database_stays_until_somebody_ends_it(folder: str) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "--keep"], env=environment(Path(folder)), stdout=subprocess.PIPE, text=True
    )
    assert demo.stdout is not None
    told = next(line for line in demo.stdout if "EVENTLOG_URL=" in line)
    url = told.split("'")[1]
    script = f"from eventlog.sql.connect import connect; connect({url!r}).connect()"
    assert subprocess.run([sys.executable, "-c", script], env=environment(Path(folder))).returncode == 0
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(60) == 0
    demo.stdout.close()
    assert processes_in(folder) == []


def test_the_backlog_is_folded_without_spark_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backlog.show(tmp_path, rows=2_000, spark=False)
    assert "2000 rows in" in capsys.readouterr().out


def test_the_backlog_is_folded_on_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    backlog.show(tmp_path, rows=500)
    told = capsys.readouterr().out
    assert "  500 rows in" in told
    assert "WARN" not in told
    assert (tmp_path / "documents" / "_SUCCESS").exists()


def test_what_spark_says_is_told_when_it_fails(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    (tmp_path / "documents").write_text("in the way")
    with pytest.raises(backlog.BacklogFailed, match="documents"):
        backlog.show(tmp_path, rows=10, spark=True)
