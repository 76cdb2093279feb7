"""What a run leaves for later ones has a version: a newer one is refused by name, and stays as it is."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.audit.delivered import ReceiverFile
from eventlog.core import state_versions
from eventlog.core.errors import Misuse
from eventlog.core.state_versions import ARCHIVE, NewerState, NoVersion, StateForm
from eventlog.web.receiver.archive import Archive
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.laws.upgrade import fixture
from tests.laws.upgrade.fixture import BEFORE, GROWN
from tests.laws.upgrade.next_version import STATES

pytestmark = pytest.mark.quick

FORMS = [form for form in vars(state_versions).values() if isinstance(form, StateForm)]
NOWHERE = ("--kafka-brokers", "127.0.0.1:1")
TO_CHANGES = ("--to", "changes", "--tables", "tables.toml")
# the states, each with a command that goes on from it
GOING_ON = {
    "tables.state": ("convert", "--from", "qlik-table", "fish__ct.csv", *TO_CHANGES, "-o", "tables/"),
    "capture.state": ("convert", "--from", "gbase", "capture.bin", *TO_CHANGES, "-o", "capture/"),
    "messages.state": ("convert", "--from", "qlik-message", *TO_CHANGES, "-o", "messages/", "--kafka", "hr"),
    "debezium.state": ("convert", "--from", "debezium", *TO_CHANGES, "-o", "debezium/", "--kafka", "hr"),
    "documents.xml.delivered": (
        *("deliver", "documents.xml", "--sink", "files", "--files-folder", "elsewhere"),
    ),
    "delivered/.eventlog/record": (
        *("deliver", "documents.xml", "--state", "new", "--sink", "files", "--files-folder", "delivered"),
    ),
    "kept.parquet": ("compare", "kept.parquet", "pet.csv", *TO_CHANGES, "--table", "pet"),
}


def test_each_form_has_a_number_that_the_next_version_changes() -> None:
    assert len(FORMS) == STATES[2]


@pytest.mark.slow("two readers of topics wait for the brokers")
def test_the_states_of_a_newer_version_are_refused_and_stay(next_version: Shell, tmp_path: Path) -> None:
    shutil.rmtree(next_version.folder, ignore_errors=True)
    shutil.copytree(GROWN, next_version.folder)
    fixture.convert(next_version)
    shutil.copytree(next_version.folder, tmp_path, dirs_exist_ok=True)
    ours, before = Shell(tmp_path), files_of(tmp_path)
    for name, words in GOING_ON.items():
        state = ("--state", name) if name.endswith(".state") else ()
        kafka = NOWHERE if "--kafka" in words else ()
        done = ours.run(*words, *state, *kafka)
        assert (done.code, done.stdout) == (2, ""), (name, done)
        assert name in done.stderr, (name, done)
        assert "from a newer eventlog; this one knows " in done.stderr, (name, done)
        assert "use that version, or name another " in done.stderr
    assert before.items() <= files_of(tmp_path).items()


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_file_of_a_newer_receiver_is_refused_and_stays(tmp_path: Path) -> None:
    received = tmp_path / "received"
    shutil.copy(BEFORE / "received", received)
    with contextlib.closing(sqlite3.connect(received)) as file:
        assert file.execute("pragma user_version").fetchone() == (ARCHIVE.version,)
        file.execute(f"pragma user_version = {ARCHIVE.version + 1}")
    before = received.read_bytes()
    for open_file in (Archive, lambda path: ReceiverFile(path).mark()):
        with pytest.raises(NewerState, match=r"received is a receiver's file of version 2, from a newer"):
            open_file(received)
    assert received.read_bytes() == before


def test_a_database_that_is_no_receivers_file_is_refused_and_stays(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "mine")) as file:
        file.execute("create table document (id integer)")
    before = (tmp_path / "mine").read_bytes()
    with pytest.raises(NoVersion, match="mine is not a receiver's file"):
        Archive(tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == before


@pytest.mark.slow("a command of another version")
def test_what_a_newer_version_applied_is_refused(
    database: Database, engine: Engine, next_version: Shell, tmp_path: Path
) -> None:
    shutil.copytree(BEFORE, next_version.folder, dirs_exist_ok=True)
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    words = ("apply", "--from", "qlik-table", "--tables", "tables.toml", "--to-url", database.address)
    assert next_version.run(*words, "fish__ct.csv").code in (0, 1)  # some records are refused
    with engine.connect() as connection:
        before = connection.execute(text("select * from eventlog_applied")).all()
        connection.rollback()
        done = Shell(tmp_path).run(*words, "fish__ct.csv")
        assert connection.execute(text("select * from eventlog_applied")).all() == before
    assert (done.code, done.stdout) == (2, "")
    assert "what was applied from the source 'qlik-table' is a state of version 2" in done.stderr
    assert "use that version, or name another --source" in done.stderr


@pytest.mark.slow("a command of another version")
def test_what_a_newer_version_applied_to_a_lake_is_refused(next_version: Shell, tmp_path: Path) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    lake = tmp_path / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    words = ("apply", "--from", "qlik-table", "--tables", "tables.toml", "--to-lake", f"delta:{lake}")
    shutil.copytree(BEFORE, next_version.folder, dirs_exist_ok=True)
    assert next_version.run(*words, "fish__ct.csv").code in (0, 1)  # some records are refused
    before = files_of(lake)
    done = Shell(tmp_path).run(*words, "fish__ct.csv")
    assert (done.code, done.stdout) == (2, "")
    assert "what was applied from the source 'qlik-table' is a state of version 2" in done.stderr
    assert before
    assert files_of(lake) == before


@pytest.mark.parametrize("version", [None, 0, -1, True, "1", 1.0])
def test_a_version_that_is_no_number_is_never_guessed(version: object) -> None:
    for form in FORMS:
        with pytest.raises(NoVersion, match="because it does not begin with its version"):
            form.check("x", version)


def test_a_head_of_another_kind_is_refused() -> None:
    for form in FORMS:
        form.check_head("x", form.head)
        for line in ("", form.head[:-1], f"{form.head} ", "eventlog else 1", f"eventlog {form.name} 1x"):
            with pytest.raises(Misuse):
                form.check_head("x", line)
