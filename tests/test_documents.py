"""Every session printed in README and docs is run as a newcomer runs it, and prints what stands there.

The program is the bare wheel, without extras, in an environment with a home and a path. A `console` session
needs only the files of the clone; the `shell-session`s of a page are one story, on a fresh database.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from eventlog import embedded
from eventlog.embedded import FAST, embedded_postgres
from tests.installed import ROOT, Installation, base, build, source

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What differs from one run to the next.
CHANGING = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?|\d+\.\d+ s|\d+ events/s|[\w.-]+:\d{3,}")


def steps(page: Path, kind: str) -> list[tuple[str, str]]:
    """The commands of a page's sessions of that kind, each with what it prints."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [step for session in found for step in COMMAND.findall(session)]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


SESSIONS = [(name(page), *step) for page in PAGES for step in steps(page, "console")]
STORIES = [page for page in PAGES if steps(page, "shell-session")]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, as the bare wheel brings it."""
    folder = tmp_path_factory.mktemp("bare")
    wheel = build(source(folder / "source"), folder / "wheel")
    installed = Installation(folder / "installed", wheel, base())
    script = folder / "bin" / "eventlog"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{installed.python}" -P -m eventlog "$@"\n')
    script.chmod(0o755)
    return script.parent


@pytest.fixture
def bare(programs: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a newcomer."""
    return {"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def with_database(bare: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same with psql and a fresh database."""
    with embedded_postgres(settings=FAST) as server:
        url = make_url(server.url)
        yield bare | {
            "PATH": f"{embedded.programs()}:{bare['PATH']}",
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


@pytest.mark.parametrize(("page", "command", "output"), SESSIONS)
def test_a_printed_session_prints_what_stands_there(
    page: str, command: str, output: str, bare: dict[str, str]
) -> None:
    assert run(command, bare) == output, page


@pytest.mark.parametrize("page", STORIES, ids=name)
def test_a_story_on_a_database_prints_what_stands_there(page: Path, with_database: dict[str, str]) -> None:
    for command, output in steps(page, "shell-session"):
        found = run(command, with_database)
        assert CHANGING.sub("~", found) == CHANGING.sub("~", output), command


def test_the_pages_for_newcomers_have_sessions() -> None:
    told = {page for page, *_ in SESSIONS} | {name(page) for page in STORIES}
    pages = ("quick-start", "identity-engineers", "data-engineers", "operators", "faq")
    assert {f"docs/{page}.md" for page in pages} <= told
