"""Comparing next to triggers: what they missed is found, and what the log explains is not sent again."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree
from sqlalchemy.engine import Engine

from eventlog.sql.capture.track import track, untrack
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.kit.commands import Shell, environment
from tests.kit.databases import Database
from tests.kit.statements import run_statements, select_rows
from tests.kit.support import until

pytestmark = pytest.mark.quick


class Audited:
    """A tracked table, and changes of it that its triggers do not see."""

    def __init__(self, database: Database, shell: Shell) -> None:
        self.engine: Engine = database.engine()
        self.log = Log(database.dialect)
        self._shell = shell
        self._url = database.address
        migrate.install(self.engine, self.log)
        self.change("create table usr (idu integer primary key, fname varchar(64))")
        for number in range(6):
            self.change(f"insert into usr values ({number}, 'Jack')")
        track(self.engine, self.log, "usr", Choice())

    def change(self, *statements: str) -> None:
        run_statements(self.engine, *statements)

    def unseen(self, *statements: str) -> None:
        """Change the table while it has no triggers."""
        untrack(self.engine, self.log, "usr", discard=True)
        self.change(*statements)
        track(self.engine, self.log, "usr", Choice())

    def run(self, *words: str, code: int = 0) -> str:
        done = self._shell.run(*words, "--url", self._url)
        assert done.code == code, done.stderr
        return done.stdout + done.stderr

    def rows(self) -> int:
        ((count,),) = select_rows(self.engine, "select count(*) from eventlog")
        return int(count)

    @contextlib.contextmanager
    def killed(self, *words: str) -> Iterator[None]:
        """A command that is killed where the block ends."""
        command = [sys.executable, "-m", "eventlog", *words, "--url", self._url]
        with subprocess.Popen(command, env=environment()) as process:
            try:
                yield
            finally:
                process.kill()

    def audit(self) -> str:
        return self.run("resync", "usr", "--compare")

    def cut_off(self) -> str:
        """Return the message of a comparison that the database ended in its middle."""
        ends = "check (object_key <> 'idu=4999' or digest is null) not valid"
        self.change(f"alter table eventlog_known add constraint ends {ends}")
        self.run("resync", "usr", "--compare", code=1)
        self.change("alter table eventlog_known drop constraint ends")
        return self.audit()

    def events(self) -> list[tuple[str, str]]:
        """Return the operation and the key of each event."""
        reported = self._shell.run("run", "--once", "--allow-loopback", "--url", self._url).stdout
        events = (
            event
            for line in reported.splitlines()
            for event in etree.fromstring(line.encode()).iterfind("input/*")
        )
        return [(str(event.tag), str(event.findtext("association")).partition(",")[0]) for event in events]


@contextlib.contextmanager
def auditing(database: Database, folder: Path) -> Iterator[Audited]:
    with contextlib.closing(Shell(folder)) as shell:
        audited = Audited(database, shell)
        yield audited
        audited.engine.dispose()


@pytest.fixture
def audited(postgres: Database, tmp_path: Path) -> Iterator[Audited]:
    with auditing(postgres, tmp_path) as database_audited:
        yield database_audited


@pytest.fixture
def audited_everywhere(database: Database, tmp_path: Path) -> Iterator[Audited]:
    with auditing(database, tmp_path) as database_audited:
        yield database_audited


@pytest.mark.slow("it compares a log again and again")
def test_what_triggers_missed_is_logged_and_nothing_else(audited_everywhere: Audited) -> None:
    audited = audited_everywhere
    assert "no state was kept" in audited.audit()
    assert "0 objects differed" in audited.audit()
    audited.change("update usr set fname = 'John' where idu = 1", "delete from usr where idu = 2")
    assert audited.events() == [("modify", "idu=1"), ("delete", "idu=2")]
    audited.unseen(
        "update usr set fname = 'Joe' where idu = 3",
        "delete from usr where idu = 4",
        "insert into usr values (9, 'New')",
    )
    audited.change("update usr set fname = 'Jim' where idu = 5")  # pending: it explains itself
    assert "3 objects differed and were logged" in audited.audit()
    assert sorted(audited.events()) == [
        ("delete", "idu=4"),
        ("modify", "idu=3"),
        ("modify", "idu=5"),
        ("modify", "idu=9"),
    ]
    assert "0 objects differed" in audited.audit()
    assert audited.events() == []


def test_a_row_that_is_there_again_is_reported_as_it_is(audited: Audited) -> None:
    audited.audit()
    audited.unseen("delete from usr where idu = 4")
    audited.audit()
    audited.change("insert into usr values (4, 'back')")
    reported = audited.events()
    assert [one for one in reported if one[0] == "delete"] == [("delete", "idu=4")]
    assert reported[-1] == ("modify", "idu=4")


@pytest.mark.long
def test_a_log_that_cannot_explain_is_refused_or_begun_anew(audited: Audited, tmp_path: Path) -> None:
    audited.audit()
    audited.change("update usr set fname = 'John'")
    audited.events()
    audited.run("purge", "--older-than", "0s")
    assert "no state was kept" in audited.audit()  # what was purged may have explained anything
    audited.change("update usr set fname = 'Joe'")
    audited.events()
    with audited.killed("purge", "--older-than", "0s", "--chunk", "2", "--rest", "60"):
        until(lambda: audited.rows() == 4)
    assert "no state was kept" in audited.audit()
    settings = tmp_path / "eventlog.toml"
    settings.write_text("post-poll-stmt = \"delete from eventlog where status = 'S'\"\n")
    assert "handled rows of this log are deleted" in audited.run("resync", "usr", "--compare", code=1)
    settings.unlink()
    settings.write_text("delete-from-log = true\n")
    assert "handled rows of this log are deleted" in audited.run("resync", "usr", "--compare", code=1)
    settings.unlink()
    assert "--where takes no part" in audited.run("resync", "usr", "--compare", "--where", "1 = 1", code=2)


@pytest.mark.long
def test_a_comparison_that_was_cut_off_makes_no_object_seem_missed(audited: Audited) -> None:
    """The first comparison, which keeps the state, and later ones report no missed object."""
    audited.change("insert into usr select n, 'Jack' from generate_series(100, 4999) n")
    for name in ("John", "Joe"):
        audited.change(f"update usr set fname = '{name}'")
        audited.events()
        reported = audited.cut_off()
        assert "no state was kept" in reported or ": 0 objects differed" in reported
        assert audited.events() == []
    audited.unseen("update usr set fname = 'Jim'")
    assert "objects differed and were logged" in audited.cut_off()  # those that were not logged before
    events = audited.events()
    assert len(events) == len(set(events)) == 4906
