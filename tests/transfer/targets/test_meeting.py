"""A group that meets another transaction is done again; a followed run ends after a whole one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.change import Op
from eventlog.sql.connect import DatabaseFailed, connect
from eventlog.transfer.targets.tables import database as applying
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import Database, Group
from tests.kit.commands import environment
from tests.kit.databases import Database as Placed
from tests.kit.statements import run_statements, select_rows
from tests.kit.support import patient, until
from tests.transfer.targets.model import changed
from tests.transfer.targets.support import TABLES, apply
from tests.transfer.targets.test_cli import line_of

pytestmark = pytest.mark.quick

WAITING = {
    "postgresql": "select count(*) from pg_locks where not granted",
    "mysql": "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
}
# the slower one to look for a deadlock does not end it; the one that changed more rows wins there
STRONG = {"postgresql": "set deadlock_timeout = '1h'", "mysql": "update other set n = n + 1"}


LOOK_AGAIN = 0.15  # seconds; within a tenth InnoDB repeats its last answer


def kind(engine: Engine) -> str:
    return "postgresql" if engine.dialect.name == "postgresql" else "mysql"


def test_a_group_that_ends_in_a_deadlock_is_done_again(engine: Engine) -> None:
    run_statements(engine, "create table other (k integer primary key, n integer)")
    run_statements(engine, f"insert into other values {', '.join(f'({k}, 0)' for k in range(2_000))}")
    apply(engine, [changed(Op.INSERT, k, fname="a", lname="b", n=0) for k in range(1, 4)], source="first")
    reported = []

    def work() -> None:
        reported.append(apply(engine, [changed(Op.UPDATE, k, n=5) for k in (1, 3, 2)], source="second"))

    applier = threading.Thread(target=work)
    with engine.connect() as blocker, engine.connect() as watcher:
        for statement in (STRONG[kind(engine)], "update usr set lname = 'c' where idu = 3"):
            blocker.execute(text(statement))
        applier.start()
        until(lambda: _count(watcher, WAITING[kind(engine)]), pause=LOOK_AGAIN)
        blocker.execute(text("update usr set lname = 'c' where idu = 1"))
        blocker.commit()
    applier.join(patient(60))
    ((tally, refused),) = reported
    assert refused == []
    assert tally.updated == 3
    assert select_rows(engine, "select lname, n from usr order by idu") == [("c", 5), ("b", 5), ("c", 5)]
    assert select_rows(engine, "select rounds from eventlog_applied where source = 'second'") == [(1,)]


def test_a_row_that_another_transaction_changes_moves_as_that_one_leaves_it(engine: Engine) -> None:
    apply(engine, [changed(Op.INSERT, k, fname="a", lname="b", n=0) for k in (1, 2)], source="first")
    moves = [changed(Op.UPDATE, 3, 1), changed(Op.UPDATE, 1, 2, fname="c"), changed(Op.UPDATE, 2, 3)]
    applier = threading.Thread(target=lambda: apply(engine, moves, source="second"))
    with engine.connect() as blocker, engine.connect() as watcher:
        blocker.execute(text("update usr set n = 7 where idu = 1"))
        applier.start()
        until(lambda: _count(watcher, WAITING[kind(engine)]), pause=LOOK_AGAIN)
        blocker.commit()
    applier.join(patient(60))
    assert select_rows(engine, "select idu, fname, n from usr order by idu") == [(1, "c", 0), (2, "a", 7)]


def _count(connection: Connection, query: str) -> int:
    count = int(connection.execute(text(query)).scalar_one())
    connection.rollback()
    return count


def test_one_that_always_meets_another_ends_the_run_and_leaves_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """End the run if the deadlock comes each time, because then it is no other transaction."""
    run_statements(
        engine, "create table usr (idu integer primary key, fname varchar(9), lname varchar(9), n integer)"
    )
    for statement in RAISING[kind(engine)]:
        run_statements(engine, statement)
    monkeypatch.setattr(applying, "PAUSES", (0.0, 0.0))
    with (
        closing(Database(engine, "s", TABLES, ApplySettings(), print)) as target,
        pytest.raises(DatabaseFailed, match="serialize"),
    ):
        target.apply(Group([changed(Op.INSERT, 1, n=1)], "a"))
    assert select_rows(engine, "select * from usr") == []
    assert select_rows(engine, "select state, rounds from eventlog_applied") == [(None, 0)]


_NEVER = "raise exception 'cannot serialize' using errcode = '40001'"
_SIGNAL = "signal sqlstate '40001' set mysql_errno = 1213, message_text = 'cannot serialize'"
RAISING = {
    "postgresql": (
        f"create function never() returns trigger language plpgsql as $$ begin {_NEVER}; end $$",
        "create trigger never before insert on usr for each row execute function never()",
    ),
    "mysql": (f"create trigger never before insert on usr for each row {_SIGNAL}",),
}
NUMBERED = '[tables.usr]\nkey = ["idu"]\nnumber = 1\ncolumns = { idu = "integer", fname = "varchar(8)" }\n'


@pytest.mark.slow("it starts a process and sends it a signal")
def test_a_run_that_follows_applies_what_comes_and_ends_by_a_signal(tmp_path: Path, postgres: Placed) -> None:
    """A capture grows, once in the middle of a transaction."""
    engine = connect(postgres.url)
    run_statements(engine, "create table usr (idu integer primary key, fname varchar(8))")
    (tmp_path / "t.toml").write_text(NUMBERED)

    def capture(number: int) -> bytes:
        """Return a capture of so many inserts."""
        lines = "".join(line_of(n, "usr", "insert", n) for n in range(1, number + 1))
        words = ("convert", "--from", "changes", "--to", "gbase", "--tables", "t.toml", "-")
        done = subprocess.run(
            [sys.executable, "-m", "eventlog", *words],
            input=lines.encode(),
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            check=True,
        )
        return done.stdout

    whole, some = capture(3), len(capture(2))
    (tmp_path / "stream.bin").write_bytes(whole[:some])
    words = ("apply", "--from", "gbase", "--to-url", postgres.address, "--tables", "t.toml", "--follow")
    following = subprocess.Popen(
        [sys.executable, "-m", "eventlog", *words, "--follow-interval", "0.1", "stream.bin"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )

    def applied(number: int) -> bool:
        return len(select_rows(engine, "select * from usr")) == number or following.poll() is not None

    try:
        until(lambda: applied(2))
        for piece in (whole[some:-20], whole[-20:]):
            with (tmp_path / "stream.bin").open("ab") as stream:
                stream.write(piece)
            time.sleep(0.3)  # it may look at the half transaction, or not
        until(lambda: applied(3))
        following.send_signal(signal.SIGTERM)
        _, said = following.communicate(timeout=patient(60))
    finally:
        following.kill()
    assert (following.returncode, said) == (0, "eventlog: 3 inserted, 0 updated, 0 deleted\n")


def test_what_cannot_be_followed_is_misuse(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text("")
    words = ("--to-url", "postgresql://127.0.0.1:1/none")
    command = [sys.executable, "-m", "eventlog", "apply", *words, "--follow", "c.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert "--follow: files of changes have no positions" in done.stderr
