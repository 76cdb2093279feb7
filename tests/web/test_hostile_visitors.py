"""A publisher whose port many hostile visitors reach: rows leave, memory is bounded, others are answered."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy.engine import Engine

from eventlog.sql.connect import execute_plain
from tests.kit.databases import Database
from tests.kit.support import patient, until
from tests.web.receiver.conftest import Client
from tests.web.test_flow import ROOT, free_port, run, wait_for

pytestmark = [pytest.mark.long]  # a publisher runs for a while, under 500 connections

ROWS = 30_000
CONNECTIONS = 500
MOST_GROWTH = 32 << 20  # bytes
FIELD = b"x" * (10 << 20)
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /errors HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"

Attack = Callable[[socket.socket, threading.Event], None]


def drip_head(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(GET % b"/" + b"X: ")
    drip(connection, ended)


def drip_body(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(POST % 1_000_000 + b"reason=")
    drip(connection, ended)


def drip(connection: socket.socket, ended: threading.Event) -> None:
    while not ended.wait(0.5):
        connection.sendall(b"x")


def send_long_body(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(POST % len(b"reason=" + FIELD) + b"reason=" + FIELD)


def send_long_query(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(GET % (b"/errors?reason=" + FIELD) + b"\r\n")


def send_long_header(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(GET % b"/" + b"X: " + FIELD + b"\r\n\r\n")


def pipeline(connection: socket.socket, ended: threading.Event) -> None:
    """Ask a thousand times in one go, and take no reply."""
    connection.sendall((GET % b"/errors" + b"\r\n") * 1000)
    ended.wait(5)


ATTACKS: tuple[Attack, ...] = (
    *(drip_head, drip_body, send_long_body, send_long_query, send_long_header, pipeline),
)


@contextmanager
def hostile_visitors(port: int) -> Iterator[None]:
    """Let visitors of each kind come again and again, next to many connections that send nothing."""
    ended = threading.Event()

    def attack(kind: Attack) -> None:
        while not ended.wait(0.05):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), patient(20)) as connection:
                kind(connection, ended)

    threads = [threading.Thread(target=attack, args=(kind,)) for kind in ATTACKS for _ in range(4)]
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), patient(20)))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def memory(process: int) -> int:
    """Return the bytes that a process has in memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


def cpu(process: int) -> float:
    """Return the seconds of CPU that a process took."""
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def publish(engine: Engine, process: int, name: str, first: int) -> int:
    """Write rows, and wait until all have left. Return the most memory that the publisher had meanwhile."""
    highest = 0

    def pending() -> int:
        nonlocal highest
        highest = max(highest, memory(process))
        with engine.connect() as connection:
            rows = connection.exec_driver_sql("select count(*) from eventlog where status = 'N'").scalar()
        return int(rows or 0)

    used = cpu(process)
    with engine.begin() as connection:
        rows = f"select n, 'Jack' from generate_series({first}, {first + ROWS - 1}) n"
        execute_plain(connection, f"insert into usr {rows}")
    until(lambda: pending() < ROWS, 120)  # the publisher has them
    began, pending_rows = time.monotonic(), pending()
    until(lambda: not pending(), 120, 0.05)
    seconds, used = time.monotonic() - began, cpu(process) - used
    print(f"{name}: {pending_rows / seconds:.0f} rows/s, {used:.1f} s of CPU, {highest >> 20} MiB at most")
    return highest


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_hostile_visitors_hold_no_row_no_memory_and_no_other_visitor(
    postgres: Database, tmp_path: Path
) -> None:
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
    with (tmp_path / "log").open("w") as log:
        publisher = subprocess.Popen(
            [sys.executable, "-m", "eventlog", "run"],
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            cwd=tmp_path,
            stderr=log,
        )
    port = int(environment["EVENTLOG_MONITOR_PORT"])
    visitor, neighbour = Client(port, "127.0.0.2"), Client(port)
    try:
        wait_for(visitor, "/", "Idle")
        before = max(publish(engine, publisher.pid, "alone", n * ROWS) for n in range(2))
        with hostile_visitors(port):
            highest = publish(engine, publisher.pid, "under hostile visitors", 2 * ROWS)
            assert neighbour.get("/healthz") == "alive\n"
            for path in ("/", "/errors", "/metrics", "/healthz"):
                assert visitor.get(path)
        highest = max(highest, publish(engine, publisher.pid, "afterwards", 3 * ROWS))
        assert highest - before < MOST_GROWTH
    finally:
        publisher.terminate()
        assert publisher.wait(patient(30)) == 0
        engine.dispose()
    assert "Traceback" not in (tmp_path / "log").read_text()
