"""`spark-submit` with our wheel on a standalone cluster of two executors, whose Python has no eventlog."""

from __future__ import annotations

import os
import re
import subprocess
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit import frugal
from tests.kit.installed import ROOT, build, everything, source
from tests.kit.support import patient
from tests.spark.helpers import TABLES, by_object, converted, job, lines, write_log
from tests.spark.test_failures import ROWS

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed")

pytestmark = pytest.mark.long

SPARK = Path(pyspark.__file__).parent
MASTER = re.compile(r"spark://[0-9.]+:\d+")


def bare_python(folder: Path) -> Path:
    """Return a Python with all packages of this environment but ours."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name, path in everything().items():
        (site / name).symlink_to(path)
    return folder / "bin" / "python"


@contextmanager
def spark_class(folder: Path, environment: dict[str, str], name: str, *words: str) -> Iterator[Path]:
    """A daemon of Spark's standalone cluster; its messages are in a file."""
    log = folder / f"{name}.log"
    command: list[str | Path] = [
        SPARK / "bin" / "spark-class",
        f"org.apache.spark.deploy.{name.lower()}.{name}",
        *words,
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file)
        try:
            yield log
        finally:
            process.kill()
            process.wait()


def found_in(log: Path, pattern: re.Pattern[str]) -> str:
    """Return what a daemon reports, as soon as it does."""
    deadline = time.monotonic() + patient(120)
    while time.monotonic() < deadline:
        if match := pattern.search(log.read_text("utf-8", "replace")):
            return match[0]
        time.sleep(0.1)
    raise TimeoutError(log.read_text("utf-8", "replace"))


def test_a_wheel_on_two_executors(tmp_path: Path) -> None:
    from eventlog_spark.session import find_java

    python = bare_python(tmp_path / "env")
    assert subprocess.run([python, "-c", "import eventlog"], cwd=tmp_path, capture_output=True).returncode
    (tmp_path / "source").mkdir()
    wheel = build(source(tmp_path / "source"), tmp_path)
    packed = wheel.rename(tmp_path / "eventlog.zip")  # executors leave a file of another name out
    (tmp_path / "logs").mkdir()
    for number in range(4):
        name = f"{number}.{'parquet' if number else 'csv'}"
        write_log(tmp_path / "logs" / name, ROWS[number::4])
    (tmp_path / "tables.toml").write_text(TABLES, "utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "JAVA_HOME": str(find_java()),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    submit = SPARK / "bin" / "spark-submit"
    words: list[str | Path] = [ROOT / "examples" / "submit_backlog.py", "--from", "log", "--to", "xds"]
    words += ["--tables", "tables.toml", "--partitions", "4", "-o", tmp_path / "out", tmp_path / "logs"]
    conf = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.executor.extraJavaOptions": frugal.JAVA,
        "spark.ui.enabled": "false",
    }
    given = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    with spark_class(tmp_path, environment, "Master", "--host", "127.0.0.1", "--port", "0") as log:
        master = found_in(log, MASTER)
        own = ("--cores", "2", "--memory", "1100m", "--work-dir", str(tmp_path / "work"), master)
        with spark_class(tmp_path, environment, "Worker", *own) as worker:
            done = subprocess.run(
                [submit, "--master", master, "--py-files", packed, *given, *words],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=patient(300),
                check=False,
            )
            executors = set(
                re.findall(r"Asked to launch executor (\S+)", worker.read_text("utf-8", "replace"))
            )
    assert done.returncode == 0, done.stderr
    assert len(executors) == 2
    logs = sorted((tmp_path / "logs").iterdir())
    expected, _ = converted(job(logs, tmp_path / "expected"))
    assert by_object(lines(tmp_path / "out"), ROWS) == by_object(expected, ROWS)
