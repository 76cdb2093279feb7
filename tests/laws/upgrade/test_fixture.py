"""The log of 0.1.0 goes on under a later version: nothing is lost, and its events keep their event-ids."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import pytest
from sqlalchemy import inspect
from sqlalchemy.engine import Engine

from eventlog.core.entry import Letter
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from eventlog.web.receiver import incoming
from eventlog.web.receiver.archive import Archive, Filter
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.laws.upgrade import fixture
from tests.laws.upgrade.fixture import BEFORE, FOLDER, GROWN, LOGS
from tests.laws.upgrade.test_upgrade import LEADER, rows_of, without
from tests.sql.test_install import schema

pytestmark = pytest.mark.quick
DIGESTED = re.compile(r'\[\d+\],\d+,"[\w+/]{11}"\]')  # an event on record with the digest of its text


@pytest.fixture(params=["this version", pytest.param("the next version", marks=pytest.mark.long)])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """The commands of a version, in a folder with the files of 0.1.0."""
    version = Shell(tmp_path) if request.param == "this version" else request.getfixturevalue("next_version")
    shutil.rmtree(version.folder, ignore_errors=True)
    shutil.copytree(BEFORE, version.folder)
    shutil.copytree(GROWN, version.folder, dirs_exist_ok=True)
    return version


@pytest.fixture
def restored(engine: Engine, database: Database) -> str:
    """The events that the log of 0.1.0 in this database has yet to send."""
    script = FOLDER / f"{database.dialect.name}.sql"
    if not script.exists():
        pytest.skip(f"{database.dialect.title}: no server was at hand when 0.1.0 was made")
    fixture.restore(engine, script.read_text())
    return script.with_suffix(".txt").read_text()


@pytest.mark.slow("a log is restored, upgraded and published to its end")
def test_a_log_is_upgraded_and_sends_what_it_has(
    engine: Engine, database: Database, restored: str, shell: Shell
) -> None:
    run, before = fixture.run_on(database.address, shell), rows_of(engine)
    for name in LOGS:
        run("install", "--log-table", name)
    after = {name: rows for name, rows in rows_of(engine).items() if name in before}
    changed = (*LEADER, "version_num", "next_remark", "who")
    assert without(after, *changed) == without(before, *changed)
    assert fixture.publish(run, engine, shell.folder) == restored
    assert {row["status"] for row in rows_of(engine)["eventlog"]} <= {"S", "W", "E", "F"}


@pytest.mark.slow("two readers of topics wait for the brokers")
def test_the_files_are_converted_on_from_their_states(shell: Shell) -> None:
    assert fixture.convert(shell) == (FOLDER / "parts.jsonl").read_text()


def test_the_file_of_a_receiver_is_read_and_written_on(tmp_path: Path) -> None:
    shutil.copy(BEFORE / "received", tmp_path)
    with contextlib.closing(Archive(tmp_path / "received")) as archive:
        before = archive.lines(Filter())
        assert [line.event_id for line in before[::-1]] == ["e0.0", "e0.1", "e0.2"]
        body = b"".join(path.read_bytes() for path in sorted(BEFORE.glob("delivered/*.xml")))
        archive.keep("2026-11-29T12:00:00Z", body, incoming.read(body), "success", b"<nds/>")
        after = [line.event_id for line in archive.history(before[0].association, 9)]
        assert after == ["e0.0", "e0.2", "e0.0", "e0.2"]


@pytest.mark.slow("three logs are restored")
def test_the_fixture_has_rows_in_every_state(engine: Engine, restored: str) -> None:
    rows = rows_of(engine)
    filled = {name for name, of_table in rows.items() if of_table}
    assert {row["status"] for row in rows["eventlog"]} == {*Letter}
    assert [row["settled_at"] for row in rows["eventlog_batch"]].count(None) == 1
    names = {
        f"eventlog_{name}"
        for name in ("retry", "held", "failed", "resync", "notice", "tracked", "answer", "try", "sent")
    }
    assert names | {"compared_known", "eventlog_applied"} <= filled
    for log in ("eventlog", "compared"):
        assert any(DIGESTED.search(row["content"]) for row in rows[f"{log}_batch"]), log
    assert bool(rows.get("slotted_slot")) == engine.dialect.name.startswith("postgresql")


@pytest.mark.slow("all tables of three logs are made twice")
def test_the_first_revision_makes_the_tables_of_the_fixture(
    engine: Engine, restored: str, database: Database
) -> None:
    """Make the fixture anew (`python -m tests.laws.upgrade.fixture`) until 0.1.0 is released."""
    made = schema(engine)
    cascade = " cascade" if database.dialect.sessions.has_slots else ""
    child_before_parent = sorted(made, reverse=True)
    run_statements(engine, *(f"drop table {name}{cascade}" for name in child_before_parent))
    assert inspect(engine).get_table_names() == []
    for name in LOGS:
        migrate.install(engine, Log(database.dialect, name), future_events=True)
    anew = schema(engine)
    assert {name: of_table for name, of_table in made.items() if name in anew} == anew
