"""The embedded server: it starts as root and as a user, stays in its folder and leaves nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from eventlog import embedded
from eventlog.core.extras import MissingExtra
from eventlog.embedded import FAST, FolderNotOurs, ServerFailed, embedded_postgres

pytestmark = pytest.mark.quick


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as parent:
        Path(parent).chmod(0o755)
        yield Path(parent) / "server"


def ask(url: str, question: str) -> object:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(question.encode()).fetchone()
        assert row is not None
        return row[0]


def _open_to_all(path: str | None) -> bool:
    return path is not None and all(parent.stat().st_mode & 0o001 for parent in Path(path).parents)


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_starts_keeps_its_data_and_leaves_no_process(folder: Path) -> None:
    with embedded_postgres(folder, FAST) as server:
        with psycopg.connect(server.url.replace("+psycopg", "")) as connection:
            connection.execute("create table kept as select 7 as n")
        pid = server.pid
        assert pid is not None
        assert folder.stat().st_mode & 0o777 == 0o700
    assert has_ended(pid)
    with embedded_postgres(folder, FAST) as server:
        assert ask(server.url, "select n from kept") == 7


def test_a_log_of_its_own_ends_as_its_command_does(folder: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "own_log.py"
    for command, code in (("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        done = subprocess.run([sys.executable, str(example), str(folder), "sh", "-c", command])
        assert done.returncode == code, command


def test_a_temporary_folder_goes_away() -> None:
    with embedded_postgres(settings=FAST) as server:
        folder = server.folder
        assert ask(server.url, "show fsync") == "off"
    assert not folder.exists()


def test_a_wrong_password_is_refused(folder: Path) -> None:
    with embedded_postgres(folder, FAST) as server:
        wrong = server.url.replace("eventlog:", "eventlog:x")
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            ask(wrong, "select 1")


def test_killed_it_starts_again_with_what_was_committed(folder: Path) -> None:
    with embedded_postgres(folder) as server:
        with psycopg.connect(server.url.replace("+psycopg", "")) as connection:
            connection.execute("create table kept as select 7 as n")
        server.kill()
        server.start()
        assert ask(server.url, "select n from kept") == 7


def test_the_server_goes_when_we_are_killed(folder: Path) -> None:
    program = (
        "import sys, time; from eventlog.embedded import embedded_postgres\n"
        "with embedded_postgres(sys.argv[1]) as s: print(s.pid, flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    child.kill()
    child.communicate()
    with embedded_postgres(
        folder
    ) as server:  # two cannot run in one folder: it waits until the first is gone
        assert server.pid != pid


@pytest.mark.parametrize("content", ["letter.txt", "data"])
def test_a_folder_with_other_things_is_left_alone(folder: Path, content: str) -> None:
    folder.mkdir()
    (folder / content).write_text("mine")
    before = folder.stat()
    with pytest.raises(FolderNotOurs, match="other files"), embedded_postgres(folder):
        pass
    assert [path.name for path in folder.iterdir()] == [content]
    assert (folder.stat().st_uid, folder.stat().st_mode) == (before.st_uid, before.st_mode)


def test_a_bad_setting_is_said_and_leaves_nothing(folder: Path) -> None:
    with (
        pytest.raises(ServerFailed, match="no_such_setting"),
        embedded_postgres(folder, {"no_such_setting": "1"}),
    ):
        pass


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_PACKAGE", "no_such_wheel")


@pytest.fixture
def bare_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which tests install a PostgreSQL; the machine's own are out of sight."""
    monkeypatch.setattr(embedded, "_DEBIAN", folder.parent / "debian")
    monkeypatch.setenv("PATH", str(folder.parent / "path"))
    return folder.parent


def install(programs: Path, version: str) -> Path:
    """Install programs that only report their version."""
    programs.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        program = programs / name
        program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version} (Debian {version}-1)'\n")
        program.chmod(0o755)
    return programs


@pytest.mark.usefixtures("no_wheel", "bare_machine")
def test_without_any_postgresql_both_ways_to_one_are_named() -> None:
    needed = r"pip install .*\[embedded\].*, or install PostgreSQL 13 or later"
    with pytest.raises(MissingExtra, match=needed), embedded_postgres():
        pass


@pytest.mark.usefixtures("no_wheel")
def test_without_the_wheel_an_installed_postgresql_is_used(bare_machine: Path) -> None:
    install(bare_machine / "debian" / "9" / "bin", "9.6.24")
    install(bare_machine / "debian" / "13" / "bin", "13.23")
    newest = install(bare_machine / "debian" / "15" / "bin", "15.18")
    assert embedded.programs() == newest


def test_the_demo_takes_an_installed_postgresql_and_tests_take_the_wheel(bare_machine: Path) -> None:
    wheel = embedded.programs()
    assert embedded.programs(prefer_installed=True) == wheel
    debian = install(bare_machine / "debian" / "15" / "bin", "15.18")
    assert embedded.programs(prefer_installed=True) == debian
    on_path = install(bare_machine / "opt" / "bin", "14.23")
    (bare_machine / "path").mkdir()
    (bare_machine / "path" / "initdb").symlink_to(on_path / "initdb")
    assert embedded.programs(prefer_installed=True) == on_path
    assert embedded.programs() == wheel


def test_a_postgresql_on_path_that_is_too_old_or_out_of_reach_is_passed_over(bare_machine: Path) -> None:
    old = install(bare_machine / "path", "9.6.24")
    assert embedded.programs(prefer_installed=True) == embedded.programs()
    (old / "postgres").chmod(0)
    assert embedded.programs(prefer_installed=True) == embedded.programs()


@pytest.mark.skipif(
    shutil.which("initdb") is None and not any(embedded._DEBIAN.glob("*/bin/initdb")),
    reason="no PostgreSQL is installed",
)
@pytest.mark.usefixtures("no_wheel")
def test_an_installed_postgresql_serves_as_the_wheels_does(folder: Path) -> None:
    with embedded_postgres(folder, FAST) as server:
        assert ask(server.url, "show unix_socket_directories") == str(folder)
        assert not (folder / "programs").exists()


@pytest.mark.long
def test_programs_that_the_servers_user_cannot_reach_are_copied(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def major(programs: Path, identity: object) -> int:
        return 18 * (programs.is_relative_to(folder) and (programs / "postgres").exists())

    monkeypatch.setattr(embedded, "_major", major)
    with embedded_postgres(folder, FAST) as server:
        assert ask(server.url, "select 1") == 1
        assert (folder / "programs").is_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not _open_to_all(embedded.__file__), reason="other users cannot enter the checkout")
def test_a_normal_user_runs_it_as_himself(folder: Path) -> None:
    folder.parent.chmod(0o777)
    program = (
        "import os, sys, encodings.idna; from eventlog.embedded import *; programs()\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "with embedded_postgres(sys.argv[1]) as s: print(os.stat(s.folder).st_uid)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True)
    assert done.stdout == "65534\n", done.stderr
