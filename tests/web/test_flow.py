"""What compose.yaml starts, without containers: a database, install, track, a publisher and a receiver."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy

from eventlog.sql.connect import execute_plain
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.kit.support import patient, until
from tests.project.test_docker import FOLDER, services
from tests.web.receiver.conftest import Client, receiving

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


def run(environment: dict[str, str], folder: Path, *command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eventlog", *command],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patient(60),
    )
    assert done.returncode == 0, done.stderr


def sample() -> list[str]:
    """Return the statements of the sample, with the role under a name that other tests do not use."""
    text = (FOLDER / "sample-postgresql.sql").read_text().replace(" hr", " hr_flow")
    return [statement for statement in text.split(";\n") if statement.strip()]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for(client: Client, path: str, words: str) -> str:
    """Return the page once it contains these words."""
    page = ""

    def has_come() -> bool:
        nonlocal page
        with contextlib.suppress(OSError):
            page = client.ask("GET", path)[1]
        return words in page

    until(has_come, 30, 0.05, lambda: page)
    return page


def test_the_sample_can_be_run_again(postgres: Database) -> None:
    """A page that begins with it works after another page that began with it."""
    engine = postgres.engine()
    for _ in range(2):
        run_statements(engine, *sample())
    engine.dispose()


def test_a_running_publisher_shows_how_it_stands(postgres: Database, tmp_path: Path) -> None:
    environment = {
        "EVENTLOG_URL": postgres.url.render_as_string(hide_password=False),
        "EVENTLOG_ALLOW_LOOPBACK": "yes",
        "EVENTLOG_SINK": "files",
        "EVENTLOG_MONITOR_PORT": str(free_port()),
        "EVENTLOG_MONITOR_TOKEN": "hush, hush, hush",
    }
    engine = postgres.engine()
    with engine.begin() as connection:
        execute_plain(connection, "create table usr (idu integer primary key, fname text)")
    for command in (["install"], ["track", "usr"]):
        run(environment, tmp_path, *command)
    publisher = subprocess.Popen(
        [sys.executable, "-m", "eventlog", "run"],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        client = Client(int(environment["EVENTLOG_MONITOR_PORT"]))
        with engine.begin() as connection:
            execute_plain(connection, "insert into usr values (1, 'Jack')")
        wait_for(client, "/", 'data-label="Success" class="number"><div>1<')
        assert "hush, hush, hush" not in wait_for(client, "/settings", "monitor-token")
        assert "eventlog_leader 1" in wait_for(client, "/metrics", "eventlog_leader 1")
    finally:
        publisher.terminate()
        assert publisher.wait(patient(30)) == 0
        engine.dispose()


@pytest.mark.long  # a publisher and a receiver run as processes
def test_what_people_do_arrives_at_the_receiver(postgres: Database, tmp_path: Path) -> None:
    engine = postgres.engine()
    with engine.begin() as connection:
        for statement in sample():
            execute_plain(connection, statement)
    with receiving(tmp_path) as receiver:
        environment = {
            "EVENTLOG_URL": postgres.url.render_as_string(hide_password=False),
            "EVENTLOG_LOG_TABLE": "indirect.eventlog",
            "EVENTLOG_SINK": "http",
            "EVENTLOG_HTTP_URL": f"http://127.0.0.1:{receiver.port}/",
        }
        for name in ("install", "track"):
            run(environment, tmp_path, *services()[name]["command"])
        with engine.begin() as connection:
            execute_plain(connection, "set local session authorization hr_flow")
            execute_plain(connection, "insert into indirect.usr (fname, lname) values ('Jack', 'Frost')")
        run(environment, tmp_path, "run", "--once")
        assert '<td data-label="Value" class="text"><div>Frost</div></td>' in receiver.get("/document/1")
    with engine.begin() as connection:
        letters = connection.execute(sqlalchemy.text("select distinct status from indirect.eventlog"))
        assert letters.scalars().all() == ["S"]
        execute_plain(connection, "drop owned by hr_flow")
        execute_plain(connection, "drop role hr_flow")
    engine.dispose()
