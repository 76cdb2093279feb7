"""A remedy names a setting in the user's form: a flag, or a line of the settings file."""

from __future__ import annotations

import pytest

from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.kit.support import HEADER, USR

pytestmark = pytest.mark.quick

STRANGE = HEADER + "1,4,strange,id=1,,,\n"


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"usr.toml": USR, "log.csv": STRANGE})


@pytest.mark.parametrize("words", ["convert --to xds", "explain"])
def test_a_command_with_flags_alone_names_the_flag(words: str, shell: Shell) -> None:
    done = shell.run(*words.split(), "--tables", "usr.toml", "log.csv")
    assert done.code == 1
    assert "publish such rows as strings (--unknown-tables string)" in done.stdout + done.stderr


def test_who_has_a_settings_file_is_reported_its_line(shell: Shell, postgres: Database) -> None:
    url = postgres.url.render_as_string(hide_password=False)
    assert shell.run("install", EVENTLOG_URL=url).code == 0
    engine = postgres.engine()
    run_statements(
        engine,
        "insert into eventlog (event_type, table_name, table_key, perpetrator)"
        " values (4, 'strange', 'id=1', 'hr')",
    )
    engine.dispose()
    done = shell.run("explain", EVENTLOG_URL=url)
    assert "publish such rows as strings (--unknown-tables string)" in done.stdout
    (shell.folder / "eventlog.toml").write_text("polling-interval = 3\n")
    done = shell.run("explain", EVENTLOG_URL=url)
    assert 'publish such rows as strings (unknown-tables = "string" in eventlog.toml)' in done.stdout
    (shell.folder / "other.toml").write_text("polling-interval = 3\n")
    done = shell.run("explain", "--config", "other.toml", EVENTLOG_URL=url)
    assert 'publish such rows as strings (unknown-tables = "string" in other.toml)' in done.stdout


def test_a_setting_that_is_missing_is_named_likewise(shell: Shell) -> None:
    (shell.folder / "in.xml").write_text("<nds/>")
    done = shell.run("deliver", "--sink", "http", "in.xml")
    assert (done.code, done.stderr) == (2, "eventlog: the http sink needs --http-url\n")
    (shell.folder / "eventlog.toml").write_text('sink = "http"\n')
    done = shell.run("deliver", "in.xml")
    assert (done.code, done.stderr) == (2, "eventlog: the http sink needs http-url in eventlog.toml\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--allow-loopback false", "--no-allow-loopback"),
        ("--allow-loopback=no", "--no-allow-loopback"),
        ("--allow-loopback true", "--allow-loopback"),
    ],
)
def test_a_flag_with_a_value_is_answered_by_the_flag_that_is_meant(
    words: str, meant: str, shell: Shell
) -> None:
    done = shell.run("run", *words.split())
    assert done.code == 2
    assert f"--allow-loopback takes no value: write {meant}" in done.stderr


def test_a_limit_is_named_likewise(shell: Shell) -> None:
    (shell.folder / "in.xml").write_text("<nds><input><add a='" + "x" * 9000)
    assert "(--max-record)" in shell.run("deliver", "--max-record", "5000", "in.xml").stderr
    (shell.folder / "eventlog.toml").write_text("max-record = 5000\n")
    assert "(max-record in eventlog.toml)" in shell.run("deliver", "in.xml").stderr


def test_what_a_value_says_is_no_hint(shell: Shell) -> None:
    (shell.folder / "log.csv").write_text(HEADER + "1,'unknown-tables = string',usr,idu=1,,,\n")
    done = shell.run("convert", "--to", "xds", "--tables", "usr.toml", "log.csv")
    assert "unknown-tables = string" in done.stderr
