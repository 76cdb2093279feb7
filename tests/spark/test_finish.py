"""--finish that dies half-way, and the password of the database, which is never printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.backlog.shares import Access, FreezeShare
from eventlog_spark.io.batches import ANSWER
from eventlog_spark.io.folder_files import LocalFiles
from eventlog_spark.io.pieces import load
from sqlalchemy.engine import Engine

from eventlog.sql.log.pending import Selection
from eventlog.sql.log.snapshot import HeldObjects
from eventlog.sql.log.store import Store
from tests.databases import Database
from tests.spark.lives import ROWS, backlog, documents, failures, letters, make_store, pending, published

pytestmark = pytest.mark.quick

DYING = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from eventlog_spark.backlog import live_log
from eventlog_spark.backlog.frozen import FrozenFolder
from eventlog_spark.io.output_folder import LocalFolder
from eventlog_spark.io.folder_files import LocalFiles
from eventlog.sql.connect import connect, dialect_at
from eventlog.sql.names import Log
from eventlog.sql.log.store import Store
from tests.spark.lives import CONFIG

class Dying(Store):
    # dies in its third transaction, before it ends
    works = 0

    @contextmanager
    def work(self, epoch):
        with super().work(epoch) as work:
            yield work
            self.works += 1
            if self.works == 3:
                os.kill(os.getpid(), signal.SIGKILL)

live_log._CHUNK = 4
engine = connect(sys.stdin.read())
store = Dying(engine, Log(dialect_at(engine)))
output = Path(sys.argv[1])
with store.lead("backlog") as leader:
    files = LocalFiles(str(output))
    left_out = LocalFolder(output, "").refused()
    live_log.finish(live_log.Live(store, CONFIG, True), leader, FrozenFolder(files), left_out)
"""


@pytest.fixture
def store(engine: Engine, database: Database) -> Store:
    return make_store(engine, database.dialect)


@pytest.mark.slow("two jobs of Spark")
def test_refused_rows_are_finished_as_errors(spark: Any, store: Store, tmp_path: Path) -> None:
    refused = dict(published(store).refused)
    backlog(spark, store, tmp_path / "out", finish=True)
    assert letters(store) == "".join("E" if n in refused else "S" for n in range(1, len(ROWS) + 1))
    assert failures(store) == refused


@pytest.mark.long
def test_a_finish_that_is_killed_is_finished_by_the_next(
    spark: Any, store: Store, database: Database, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    refused = dict(published(store).refused)
    backlog(spark, store, out)
    assert pending(store) == len(ROWS)
    before = documents(out)
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(out)],
        input=database.url.render_as_string(hide_password=False),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert letters(store).count("N") == pending(store) == len(ROWS) - 8
    result = backlog(spark, store, out, finish=True)
    assert result.before
    assert result.finished == len(ROWS) - 8
    assert documents(out) == before
    assert letters(store) == "".join("E" if n in refused else "S" for n in range(1, len(ROWS) + 1))
    assert failures(store) == refused


@pytest.mark.long
def test_the_password_stands_in_no_plan_and_no_words(
    spark: Any, store: Store, database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    password = database.url.password
    if password is None:
        pytest.skip("the embedded server has no password")
    backlog(spark, store, tmp_path / "out")
    made = Access(database.url, ("set role somebody",), store.log, None)
    assert password not in repr(made)
    assert "somebody" not in repr(made)
    reported = capfd.readouterr()
    assert password not in reported.out + reported.err
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or password.encode() not in path.read_bytes()
    files = LocalFiles(str(tmp_path))
    work = FreezeShare(made, Selection(), None, frozenset(), files, HeldObjects(frozenset()))
    frame = load(spark, ANSWER, [], work)
    frame.explain(True)
    plan = frame._jdf.queryExecution().toString()
    assert "MapInArrow" in plan
    assert password not in plan + capfd.readouterr().out
