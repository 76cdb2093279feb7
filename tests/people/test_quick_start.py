"""The quick start, word by word, on a database of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from eventlog import embedded
from eventlog.embedded import FAST, embedded_postgres

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quick-start.md"
SESSION = re.compile(r"^```shell-session\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
CHANGING = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?|\d+\.\d+ s|\d+ events/s|[\w.-]+:\d{3,}")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment with the program, psql, and a fresh database."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "eventlog").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eventlog "$@"\n')
    (folder / "eventlog").chmod(0o755)
    with embedded_postgres(settings=FAST) as server:
        url = make_url(server.url)
        yield os.environ | {
            "PATH": f"{folder}:{embedded.programs()}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "EVENTLOG_URL": server.url,
            "PGHOST": str(url.query["host"]),
            "PGUSER": str(url.username),
            "PGPASSWORD": str(url.password),
            "PGDATABASE": "postgres",
        }


def run(command: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    return done.stdout


def test_the_quick_start_prints_what_stands_there(shell: dict[str, str]) -> None:
    told = [step for session in SESSION.findall(PAGE.read_text("utf-8")) for step in COMMAND.findall(session)]
    assert len(told) > 5
    for command, output in told:
        assert CHANGING.sub("~", run(command, shell)) == CHANGING.sub("~", output), command
