"""A backlog that dies at any step and runs again; and the password of the database, never printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.output_folder import OutputFolder

from eventlog.publisher import backlog_rows
from eventlog.sql.log.leader_transaction import NO_PRECONDITION, LeaderTransaction, Precondition
from eventlog.sql.log.store import Store
from tests.kit.databases import Database
from tests.kit.logs import Crash
from tests.spark.lives import (
    ROWS,
    backlog,
    documents,
    documents_of,
    failures,
    letters,
    make_store,
    pending,
    published,
    write,
)

pytestmark = pytest.mark.quick

DYING = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from eventlog.publisher import backlog_rows
from eventlog_spark.session import start
from eventlog.sql.connect import connect, dialect_at
from eventlog.sql.log.store import Store
from tests.spark.lives import backlog, log_of

class Dying(Store):
    # dies in the third transaction that finishes rows, before it ends
    works = 0

    @contextmanager
    def as_leader(self, epoch):
        with super().as_leader(epoch) as work:
            yield work
            self.works += 1
            if self.works == 5:
                os.kill(os.getpid(), signal.SIGKILL)

backlog_rows._CHUNK = 4
engine = connect(sys.stdin.read())
store = Dying(engine, log_of(engine, dialect_at(engine)))
spark = start("local[1]", {"spark.sql.shuffle.partitions": "2"})
backlog(spark, store, Path(sys.argv[1]), finish=True)
"""


class Dying(Store):
    """A log whose transaction of one number fails, before or after it is committed."""

    works = 0
    last = 0
    committed = False

    @contextmanager
    def as_leader(self, epoch: int, demand: Precondition = NO_PRECONDITION) -> Iterator[LeaderTransaction]:
        with super().as_leader(epoch, demand) as work:
            yield work
            self.works += 1
            if self.works == self.last and not self.committed:
                raise Crash
        if self.works == self.last:
            raise Crash


@pytest.mark.slow("two jobs of Spark")
def test_refused_rows_are_finished_as_errors(spark: Any, store: Store, tmp_path: Path) -> None:
    expected = published(store)
    refused = dict(expected.refused)
    backlog(spark, store, tmp_path / "out", finish=True)
    assert letters(store) == "".join("E" if n in refused else "S" for n in range(1, len(ROWS) + 1))
    assert failures(store) == refused
    assert sorted(documents(tmp_path / "out")) == sorted(documents_of(expected))


@pytest.mark.long
@pytest.mark.parametrize(
    ("last", "committed"),
    [
        pytest.param(last, committed, marks=() if committed == (last % 2 == 0) else pytest.mark.nightly)
        for last in range(1, 9)
        for committed in (False, True)
    ],
)
def test_a_run_that_died_in_a_transaction_is_ended_by_the_next(
    spark: Any,
    postgres: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: int,
    committed: bool,
) -> None:
    """The tables, the record, five parts of the rows, the batch."""
    monkeypatch.setattr(backlog_rows, "_CHUNK", 4)
    store = make_store(postgres.engine(), postgres.dialect)
    dying = Dying(store.engine, store.log)
    dying.last, dying.committed = last, committed
    expected = documents_of(published(store))
    refused = dict(published(store).refused)
    with pytest.raises(Crash):
        backlog(spark, dying, tmp_path / "out", finish=True)
    write(store, ROWS[:2])
    was_recorded = last > 2 or (last == 2 and committed)
    result = backlog(spark, store, tmp_path / "out", finish=True)
    done = len(ROWS) if was_recorded else len(ROWS) + 2
    found = letters(store)
    assert found[:done].count("N") == 0
    assert found[done:] == "N" * (len(ROWS) + 2 - done)
    assert result.rows is not None
    assert result.rows <= done
    if was_recorded:
        assert sorted(documents(tmp_path / "out")) == sorted(expected)
        assert failures(store) == refused
    assert not store.remembered()


@pytest.mark.one_database
@pytest.mark.long
@pytest.mark.parametrize("step", ["copy", "fold", "finish"])
def test_a_run_that_died_at_a_step_is_ended_by_the_next(
    spark: Any, store: Store, tmp_path: Path, step: str
) -> None:
    expected = documents_of(published(store))
    refused = dict(published(store).refused)

    def die() -> None:
        raise Crash

    with pytest.raises(Crash):
        backlog(spark, store, tmp_path / "out", die, finish=True, at=step)
    assert (tmp_path / "out" / "done").exists() == (step == "finish")
    result = backlog(spark, store, tmp_path / "out", finish=True)
    assert result.rows == len(ROWS)
    assert sorted(documents(tmp_path / "out")) == sorted(expected)
    assert failures(store) == refused


@pytest.mark.one_database
@pytest.mark.long
def test_documents_of_a_run_that_left_no_marker_are_replaced(
    spark: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(output: object, marker: str) -> None:
        raise Crash

    monkeypatch.setattr(OutputFolder, "finish", die)
    with pytest.raises(Crash):
        backlog(spark, store, tmp_path / "out", finish=True)
    before = documents(tmp_path / "out")
    monkeypatch.undo()
    write(store, ROWS)
    assert backlog(spark, store, tmp_path / "out", finish=True).rows == len(ROWS)
    assert sorted(documents(tmp_path / "out")) == sorted(before)


@pytest.mark.one_database
@pytest.mark.long
def test_a_finish_that_is_killed_is_finished_by_the_next(
    spark: Any, store: Store, database: Database, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    refused = dict(published(store).refused)
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(out)],
        input=database.address,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert letters(store).count("N") == pending(store) == len(ROWS) - 8
    before = documents(out)
    result = backlog(spark, store, out, finish=True)
    assert result == (0, 0, len(ROWS) - 8)
    assert documents(out) == before
    assert letters(store) == "".join("E" if n in refused else "S" for n in range(1, len(ROWS) + 1))
    assert failures(store) == refused


@pytest.mark.long
def test_the_password_is_in_no_file_and_no_words(
    spark: Any, store: Store, database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    password = database.url.password
    if password is None:
        pytest.skip("the embedded server has no password")
    backlog(spark, store, tmp_path / "out")
    reported = capfd.readouterr()
    assert password not in reported.out + reported.err
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or password.encode() not in path.read_bytes()
