"""A task, an executor or the driver that dies: the same output, nothing twice, nothing missing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.output_folder import OutputFolder
from pyspark.sql import DataFrameWriter

from eventlog.core.errors import Misuse
from eventlog.core.state_versions import NewerState, NoVersion
from tests.kit.commands import environment
from tests.kit.support import patient, until
from tests.laws.resume.stops import When
from tests.laws.upgrade.fixture import BEFORE
from tests.spark.helpers import (
    CLOCK,
    TABLES,
    backlogged,
    by_object,
    converted,
    count_reasons,
    job,
    lines,
    write_log,
)

pytestmark = pytest.mark.long

ROWS = [
    (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n % 50}", "fname", str(n), str(n + 1))
    for n in range(1, 400)
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.parquet", ROWS)


def test_a_backlog_that_is_done_is_left_as_it_is(spark: Any, log: Path, tmp_path: Path) -> None:
    wanted = Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2)
    run(spark, wanted)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    with pytest.raises(Misuse, match="holds a backlog that is done"):
        run(spark, wanted)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == times


def test_the_output_of_a_newer_version_is_refused_and_stays(spark: Any, log: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "documents").mkdir(parents=True)
    (tmp_path / "out" / "documents" / "part-1").write_text("precious")
    for text, error in (("eventlog backlog 2", NewerState), ("xds", NoVersion)):
        (tmp_path / "out" / "job").write_text(text)
        with pytest.raises(error, match="out/job is "):
            run(spark, Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2))
    assert (tmp_path / "out" / "documents" / "part-1").read_text() == "precious"


def test_the_output_of_the_released_version_is_done(spark: Any, log: Path, tmp_path: Path) -> None:
    shutil.copytree(BEFORE / "backlog", tmp_path / "out")
    with pytest.raises(Misuse, match="holds a backlog that is done"):
        run(spark, Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2))


def test_documents_of_somebody_else_are_not_replaced(spark: Any, log: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "documents").mkdir(parents=True)
    (tmp_path / "mine" / "documents" / "part-1").write_text("precious")
    for _ in range(2):
        with pytest.raises(Misuse, match="no backlog began it"):
            run(spark, Backlog(job([log], tmp_path / "mine"), CLOCK))
    assert (tmp_path / "mine" / "documents" / "part-1").read_text() == "precious"


def test_a_job_that_died_is_run_again(
    spark: Any, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(Exception):
        pass

    def die(output: object, marker: str) -> None:
        raise Died

    monkeypatch.setattr(OutputFolder, "finish", die)
    wanted = Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2)
    with pytest.raises(Died):
        run(spark, wanted)
    assert not (tmp_path / "out" / "done").exists()
    monkeypatch.undo()
    expected, _ = converted(job([log], tmp_path / "expected"))
    found, _ = backlogged(spark, wanted.job, partitions=3)
    assert by_object(found, ROWS) == by_object(expected, ROWS)


class Killed(BaseException):
    """The end of a process."""


@contextmanager
def killed_at(*places: tuple[str, When]) -> Iterator[None]:
    """Stop a run at the first of these folders and markers: before, within or after it is written."""

    def stopping(write: Callable[..., None]) -> Callable[..., None]:
        def stopped(writer: Any, path: str) -> None:
            folder = Path(path.removeprefix("file://"))
            whens = [when for name, when in places if name == folder.name]
            if When.WITHIN in whens:  # what was there is removed, and nothing is there instead
                shutil.rmtree(folder, ignore_errors=True)
                (folder / "_temporary").mkdir(parents=True)
            if When.AFTER in whens:
                write(writer, path)
            if whens:
                raise Killed
            write(writer, path)

        return stopped

    replace = Path.replace

    def marked(begun: Path, marker: Path) -> Path:
        whens = [when for name, when in places if name == marker.name]
        if When.AFTER in whens:
            replace(begun, marker)
        if whens:  # within: what is begun has not got its name
            raise Killed
        return replace(begun, marker)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", marked)
        for name in ("text", "json", "parquet"):
            patch.setattr(DataFrameWriter, name, stopping(getattr(DataFrameWriter, name)))
        yield


BEGINNINGS = [("job", when) for when in When]
STOPS = [(name, when) for name in ("documents", "refused", "done") for when in (When.WITHIN, When.AFTER)][:-1]


def test_a_job_that_is_killed_twice_at_any_place_is_run_again(spark: Any, tmp_path: Path) -> None:
    bad = (400, "N", 2, "2025-03-23 10:57:19", None, "usr", "idu", "fname", "1", "2")
    log = write_log(tmp_path / "log.parquet", [*ROWS, bad])
    expected, left_out = converted(job([log], tmp_path / "expected"))
    wanted = job([log], tmp_path / "out")
    twice = [stops for stop in STOPS for stops in ([stop], [("job", When.WITHIN), stop])]
    for stops in [*([stop] for stop in BEGINNINGS), *twice]:
        with killed_at(*stops), pytest.raises(Killed):
            run(spark, Backlog(wanted, CLOCK, partitions=1))
    documents, refused = backlogged(spark, wanted, partitions=1)
    assert by_object(documents, ROWS) == by_object(expected, ROWS)
    assert refused == count_reasons(left_out)
    assert refused.total() == 1


CLUSTER = """
import os, signal, sys
from pathlib import Path
from eventlog_spark import fold
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.session import start
from tests.kit import frugal
from tests.spark.helpers import CLOCK, job

once, log, out = map(Path, sys.argv[1:])
spark = start("local-cluster[2,1,1024]", {
    "spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": frugal.JAVA,
    "spark.shuffle.spill.numElementsForceSpillThreshold": "5",  # shares that each sort writes to its disk
})
killing = f'''
import os, signal
from pathlib import Path
once = Path({str(once)!r})
def killed_once(batches):
    for number, batch in enumerate(batches):
        yield batch
        try:
            once.touch(exist_ok=False)
        except FileExistsError:
            continue
        status = Path(f"/proc/{{os.getppid()}}/status").read_text()
        executor = int(status.partition("PPid:")[2].split()[0])
        assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{{executor}}/cmdline").read_bytes()
        os.kill(executor, signal.SIGKILL)
'''
names = {}
exec(killing, names)
from eventlog_spark import backlog
plain = backlog.LogFiles.rows
backlog.LogFiles.rows = lambda *given: (made := plain(*given)).mapInArrow(names["killed_once"], made.schema)
os.chdir(log.parent)  # a worker starts in a folder of its own, wherever the driver is
run(spark, Backlog(job([Path(log.name)], out), CLOCK, partitions=3))
spark.stop()
"""


@pytest.mark.nightly
def test_separate_executors_that_spill_and_one_of_which_is_killed(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", ROWS)
    once = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, once, log, tmp_path / "out"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patient(200),
    )
    assert done.returncode == 0, done.stderr
    assert once.exists()
    expected, _ = converted(job([log], tmp_path / "expected"))
    assert by_object(lines(tmp_path / "out"), ROWS) == by_object(expected, ROWS)


def test_a_killed_driver_and_its_rerun(log: Path, tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(TABLES, "utf-8")
    command = [sys.executable, "-m", "eventlog", "backlog", "--from", "log", "--to", "xds", "--tables"]
    command += [str(tmp_path / "tables.toml"), "-o", str(tmp_path / "out"), "--partitions", "2", str(log)]
    command += ["--master", "local[1]"]
    driver = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True)
    until(lambda: driver.poll() is not None or (tmp_path / "out" / "documents").exists(), 120)
    assert driver.poll() is None
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert not (tmp_path / "out" / "done").exists()
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=patient(200))
    assert done.returncode == 0, done.stderr
    expected, _ = converted(job([log], tmp_path / "expected"))
    assert f"{len(expected)} documents" in done.stderr
    assert by_object(lines(tmp_path / "out"), ROWS) == by_object(expected, ROWS)
