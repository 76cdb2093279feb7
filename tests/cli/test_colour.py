"""Outcomes have a colour on a terminal that shows one, and nowhere else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.cli.explain import COLOURS
from eventlog.fold import Fate
from tests.commands import environment
from tests.databases import Database
from tests.support import HEADER, USR
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.quick

WORDS = ("explain", "--tables", "usr.toml", "log.csv")
ROWS = "1,1,usr,idu=1,fname,,Jack\n2,9,usr,idu=2,,,\n3,4,usr,idu=\x1b[31m3,,,\n"
STYLE = re.compile(rb"\x1b\[[0-9;]*m")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "usr.toml").write_text(USR)
    (tmp_path / "log.csv").write_text(HEADER + ROWS)
    return tmp_path


def test_outcomes_are_coloured_and_what_a_value_holds_is_not_obeyed(folder: Path) -> None:
    written = on_a_terminal(folder, *WORDS)
    assert b"\x1b[32msent\x1b[0m in eventlog:1" in written
    assert b"\x1b[31m3" not in written
    assert b"\x1b" not in STYLE.sub(b"", written)


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_who_wants_no_colour_gets_none(folder: Path, setting: dict[str, str]) -> None:
    written = on_a_terminal(folder, *WORDS, **setting)
    assert b"sent in eventlog:1" in written
    assert b"\x1b" not in written


def test_a_pipe_gets_no_colour(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eventlog", *WORDS],
        cwd=folder, env=environment(TERM="xterm"), capture_output=True,
    )  # fmt: skip
    assert b"sent in eventlog:1" in done.stdout
    assert b"\x1b" not in done.stdout + done.stderr


def test_every_outcome_has_a_colour() -> None:
    assert COLOURS.keys() == set(Fate)


@pytest.mark.long
def test_findings_and_facts_are_coloured(postgres: Database, tmp_path: Path) -> None:
    url = postgres.url.render_as_string(hide_password=False)
    on_a_terminal(tmp_path, "install", EVENTLOG_URL=url)
    engine = postgres.engine()
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "insert into eventlog (event_type, table_name, table_key, status) values (6, 'gone', 'id=1', 'E')"
        )
    engine.dispose()
    assert b"\x1b[31mE\x1b[0m 6  gone id=1" in on_a_terminal(tmp_path, "errors", EVENTLOG_URL=url)
    assert b"\x1b[31mE error     \x1b[0m 1" in on_a_terminal(tmp_path, "status", EVENTLOG_URL=url)
    assert json.loads(on_a_terminal(tmp_path, "status", "--json", EVENTLOG_URL=url))["pending"] == 0
    plain = on_a_terminal(tmp_path, "errors", EVENTLOG_URL=url, NO_COLOR="1")
    assert b"E 6  gone id=1" in plain
    narrow = on_a_terminal(tmp_path, "errors", EVENTLOG_URL=url, NO_COLOR="1", COLUMNS="31")
    assert narrow.split() == plain.split()
    assert max(map(len, narrow.splitlines())) <= 31  # no word is divided
