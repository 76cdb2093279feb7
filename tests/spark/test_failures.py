"""A task, an executor or the driver that dies: the same output, nothing twice, nothing missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.backlog.job import Backlog, run_job
from eventlog_spark.io.output_folder import Occupied, OtherJob, Running

from eventlog.core.errors import EventlogError
from tests.spark.helpers import CLOCK, TABLES, backlogged, by_object, converted, job, write_log

pytestmark = pytest.mark.long

ROWS = [
    (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n % 50}", "fname", str(n), str(n + 1))
    for n in range(1, 400)
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.parquet", ROWS)


def test_the_same_job_again_changes_nothing(spark: Any, log: Path, tmp_path: Path) -> None:
    wanted = Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2)
    first = run_job(spark, wanted)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    again = run_job(spark, wanted)
    assert again.before
    assert again.manifest == first.manifest
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == times


def test_another_job_is_kept_out(spark: Any, log: Path, tmp_path: Path) -> None:
    run_job(spark, Backlog(job([log], tmp_path / "out"), CLOCK, partitions=1))
    with pytest.raises(OtherJob):
        run_job(spark, Backlog(job([log], tmp_path / "out", time_syntax=2), CLOCK))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "part-1").write_text("precious")
    with pytest.raises(Occupied):
        run_job(spark, Backlog(job([log], tmp_path / "mine"), CLOCK))


@pytest.mark.parametrize("marker", [b'{"job": "3f', b"[]", b"\xff"])
def test_a_folder_whose_job_cannot_be_reported_is_of_another(
    marker: bytes, spark: Any, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_job.json").write_bytes(marker)
    with pytest.raises(OtherJob, match="cut off or changed"):
        run_job(spark, Backlog(job([log], tmp_path / "out"), CLOCK))


def test_two_jobs_do_not_write_to_one_folder(spark: Any, log: Path, tmp_path: Path) -> None:
    wanted = Backlog(job([log], tmp_path / "out"), CLOCK, partitions=1)
    inner: list[type[BaseException]] = []

    def meanwhile(stage: str) -> None:
        if stage == "fold":
            with pytest.raises(Running) as caught:
                run_job(spark, wanted)
            inner.append(caught.type)

    run_job(spark, wanted, meanwhile)
    assert inner == [Running]


def test_a_damaged_output_is_noticed(spark: Any, log: Path, tmp_path: Path) -> None:
    wanted = Backlog(job([log], tmp_path / "out"), CLOCK, partitions=1)
    run_job(spark, wanted)
    (tmp_path / "out" / "part-00000.xml").write_text("")
    with pytest.raises(EventlogError, match="differs from the manifest"):
        run_job(spark, wanted)


def test_a_job_that_died_leaves_nothing_that_counts(spark: Any, log: Path, tmp_path: Path) -> None:
    class Died(Exception):
        pass

    def die(stage: str) -> None:
        if stage == "commit":
            raise Died

    wanted = Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2)
    with pytest.raises(Died):
        run_job(spark, wanted, die)
    assert not list((tmp_path / "out").glob("part-*"))
    assert list((tmp_path / "out" / "_temporary").iterdir())
    expected, _ = converted(job([log], tmp_path / "expected"))
    found, _ = backlogged(spark, wanted.job, partitions=2)
    assert by_object(found, ROWS) == by_object(expected, ROWS)


CLUSTER = """
import os, signal, sys
from pathlib import Path
from eventlog_spark.backlog.job import Backlog, run_job
from eventlog_spark.cluster.session import start
from tests import frugal
from tests.spark.helpers import CLOCK, job

once, log, out = map(Path, sys.argv[1:4])
small = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": frugal.JAVA}
spark = start("local-cluster[2,1,1024]", small)

def killed_once(batches):
    # the executor itself dies, once, in the middle of a task
    try:
        once.touch(exist_ok=False)
    except FileExistsError:
        yield from batches
        return
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    executor = int(status.partition("PPid:")[2].split()[0])
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
    os.kill(executor, signal.SIGKILL)

from eventlog_spark.backlog import pipeline
plain = pipeline.answers_of
def answers_of(frame, work):
    return plain(frame.mapInArrow(killed_once, frame.schema), work)
pipeline.answers_of = answers_of
os.chdir(log.parent)  # a worker starts in a folder of its own, wherever the driver stands
run_job(spark, Backlog(job([Path(log.name)], out), CLOCK, partitions=3))
spark.stop()
"""


def test_separate_executors_one_of_which_is_killed(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", ROWS)
    once = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, once, log, tmp_path / "out"],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert once.exists()
    expected, _ = converted(job([log], tmp_path / "expected"))
    assert by_object(_documents(tmp_path / "out"), ROWS) == by_object(expected, ROWS)


def test_a_killed_driver_and_its_rerun(spark: Any, log: Path, tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(TABLES, "utf-8")
    command = [sys.executable, "-m", "eventlog", "backlog", "--from", "log", "--to", "xds", "--tables"]
    command += [str(tmp_path / "tables.toml"), "-o", str(tmp_path / "out"), "--partitions", "2", str(log)]
    command += ["--master", "local[1]"]
    driver = subprocess.Popen(command, env=_environment(), stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "out" / "_temporary").exists() and time.monotonic() < deadline:
        assert driver.poll() is None
        time.sleep(0.05)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert f"{len(ROWS)} rows" in done.stderr
    expected, _ = converted(job([log], tmp_path / "expected"))
    assert by_object(_documents(tmp_path / "out"), ROWS) == by_object(expected, ROWS)


def _environment() -> dict[str, str]:
    root = Path(__file__).resolve().parents[2]
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(root), str(root / "spark")))}


def _documents(folder: Path) -> list[str]:
    return [line for path in sorted(folder.glob("part-*")) for line in path.read_text("utf-8").splitlines()]
