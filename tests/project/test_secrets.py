"""No secret is shown or handed on, and nothing that a terminal would obey reaches one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from eventlog.cli.log_options import ALL
from eventlog.core.redaction import shown_address, without_secrets
from eventlog.core.settings import declared
from eventlog.opening.config import read_config
from eventlog.sinks import open_sink
from eventlog.sinks.sink import Item, OutgoingDocument
from tests.kit.commands import Shell
from tests.kit.support import HEADER, USR
from tests.kit.terminal import on_a_terminal

pytestmark = pytest.mark.quick

SECRET = "hunter2"
ESCAPE = "\x1b]0;owned\x07\x9b31m"
LEGAL = "\x9b31mowned"  # XML can hold it


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a shell in a folder with a log whose names and values contain control sequences."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "usr.toml").write_text(USR)
    (folder / "log.csv").write_text(HEADER + f"1,2,usr,idu=1,fname,a,{LEGAL}\n2,4,{ESCAPE},idu=1,,,\n")
    return Shell(folder)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://jo:hunter2@host/db", "postgresql://***@host/db"),
        ("at postgresql://jo:hun@ter2@host/db?x=1: refused", "at postgresql://***@host/db?x=1: refused"),
        ("postgresql://jo:hun/t?e#r2@host/db", "postgresql://***@host/db"),
        ("postgresql://host/db?password=hunter2&sslmode=require", "postgresql://host/db?password=***&sslmode=require"),
        ("host=h PGPASSWORD=hunter2 user=jo", "host=h PGPASSWORD=*** user=jo"),
        ("at https://host/a?code=hunter2&x=1: refused", "at https://host/a?***: refused"),
        ("('https://host/a?sig=hunter2')", "('https://host/a?***')"),
        ("api_key=hunter2", "api_key=***"),
        ("named as postgresql://user:password@host:port/db", "named as postgresql://user:password@host:port/db"),
        ("https://host/a, mail jo@host", "https://host/a, mail jo@host"),
        ("", ""),
    ],
)  # fmt: skip
def test_addresses_are_shown_without_what_is_secret(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_the_program_of_the_command_sink_inherits_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "environment"
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib, sys\n"
        f"pathlib.Path({str(kept)!r}).write_text(repr(dict(os.environ)))\n"
        "sys.stdin.readline()\nprint('<nds><output/></nds>', flush=True)\n"
    )
    for name in ("EVENTLOG_URL", "EVENTLOG_HTTP_TOKEN", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "ANYTHING"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("WANTED", "yes")
    given = {"command": f"{sys.executable} {program}", "command_environment": ("WANTED",)}
    sink = open_sink("command", given)
    (reply,) = sink.deliver([OutgoingDocument("1", [Item("1", "<modify/>")])])
    sink.close()
    assert reply.fault is None
    inherited = kept.read_text()
    assert SECRET not in inherited
    assert "'WANTED': 'yes'" in inherited
    assert "'PATH'" in inherited


SECRET_METAVARS = {"URL", "WORD", "TOKEN", "SQL", "COMMAND", "N=V,…"}


def test_the_settings_page_shows_no_setting_that_may_hold_a_secret() -> None:
    fields = [field for _, settings in ALL for field in declared(settings)]
    secret = {field.name for field in fields if field.metadata["metavar"] in SECRET_METAVARS}
    assert {"url", "connection_init", "post_poll_stmt", "http_token", "http_password"} <= secret
    values: dict[str, Any] = dict.fromkeys(secret, f"https://ada:{SECRET}@host/?x={SECRET}")
    config = read_config((settings for _, settings in ALL), {}, {})
    shown = dict(type(config)(values).shown())
    assert set(shown.values()) == {"set, not shown", "https://***@host/?***"}
    assert len(shown) == len(secret)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql+psycopg://ada:s@cret@db1:5432/hr?sslpassword=secret", "postgresql+psycopg://***@db1:5432/hr?***"),
        ("jdbc:oracle:thin:ada/secret@//db1:1521/hr", "***@//db1:1521/hr"),
        ("jdbc:informix-sqli://db1:9088/hr:INFORMIXSERVER=ol;password=secret", "jdbc:informix-sqli://db1:9088/hr:INFORMIXSERVER=ol;***"),
        ("http://engine:8780/", "http://engine:8780/"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_secrets(address: str, shown: str) -> None:
    assert shown_address(address) == shown


def test_an_address_that_is_refused_is_shown_without_its_password(shell: Shell) -> None:
    done = shell.run("deliver", "log.csv", "--sink", "http", "--http-url", f"ftp://ada:a@{SECRET}@host/in")
    assert done.code == 2
    assert "'ftp://***@host/in'" in done.stderr
    assert SECRET not in done.stderr


COMMANDS = [
    ("convert", "--from", "log", "--to", "log", "--tables", "usr.toml", "log.csv"),
    ("convert", "--from", "log", "--to", "xds", "--tables", "usr.toml", "log.csv"),
    ("explain", "--tables", "usr.toml", "log.csv"),
    ("convert", "--from", "log", "--to", "xds", ESCAPE),
    (ESCAPE,),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0] if words[0] != ESCAPE else "escape")
def test_no_control_character_reaches_a_terminal(words: tuple[str, ...], shell: Shell) -> None:
    written = on_a_terminal(shell.folder, *words, NO_COLOR="1")
    assert b"owned" in written
    shown = written.decode().replace("\x1b[?25l", "").replace("\x1b[?25h", "")  # a bar hides the cursor
    assert not set(shown) & set("\x1b\x07\x9b")


def test_data_that_goes_elsewhere_stays_as_it_is(shell: Shell) -> None:
    done = shell.run("convert", "--from", "log", "--to", "log", "--tables", "usr.toml", "log.csv")
    assert LEGAL in done.stdout
    assert not set(done.stderr) & set("\x1b\x07\x9b")
