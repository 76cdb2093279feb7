"""Many clients that send little, but often: no one else waits, and time limits hold."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from eventlog.web import app, server
from eventlog.web.app import Handler, Runner, make_app, page
from eventlog.web.monitor.pages import WAITING, Turns
from eventlog.web.receiver.receiver import LARGEST
from eventlog.web.server import CLIENTS, PausingConnection, VisitorConnection, serve
from tests.kit.support import patient, until
from tests.web.receiver.conftest import HOST, Client, nds, receiving, served

pytestmark = pytest.mark.quick

BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
ESTABLISHED = "01"  # in the kernel's list of connections
BEGINNINGS = [b"G", b"GET / HTTP/1.1\r\n", BODY, b""]


def drip(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def take(connection: socket.socket) -> int:
    """Return the bytes that come before the end, or before the other side breaks off."""
    taken = 0
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            taken += len(piece)
    return taken


def is_kept(port: int, other_port: int) -> bool:
    """Return whether the kernel lists the connection of the side at this port with the other one."""
    places = (line.split()[1:4] for line in Path("/proc/self/net/tcp").read_text("ascii").splitlines()[1:])
    ends = {(int(here[-4:], 16), int(there[-4:], 16)): state for here, there, state in places}
    return ends.get((port, other_port)) == ESTABLISHED


def app_of(answer: Handler, run: Runner = run_in_threadpool) -> ASGIApp:
    return make_app([page("/{path:path}", answer, post=True, run=run)], HOST, LARGEST)


HELLO = app_of(lambda request: Response("hello"))


@contextmanager
def clients(port: int, number: int) -> Iterator[list[socket.socket]]:
    """Open so many connections that have begun a request."""
    with ExitStack() as stack:
        connected = []
        for at in range(number):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), patient(20)))
            connection.sendall(BEGINNINGS[at % len(BEGINNINGS)])
            connected.append(connection)
        yield connected


def test_a_visitor_with_many_connections_waits_and_another_does_not() -> None:
    asked: list[str] = []

    def hello(request: Request) -> Response:
        asked.append(request.client.host if request.client else "")
        return Response("hello")

    with serve(app_of(hello), HOST, 0, PausingConnection) as address, ExitStack() as stack:
        places = [(HOST, address.port)] * 20
        many = [stack.enter_context(socket.create_connection(place, patient(20))) for place in places]
        for connection in many:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        other = Client(address.port, "127.0.0.2")
        for _ in range(100):
            assert other.get() == "hello"
    assert asked.count("127.0.0.2") == 100
    assert 0 < asked.count(HOST) <= 200


def test_a_connection_that_ended_takes_no_memory() -> None:
    ended: list[weakref.ref[asyncio.Transport]] = []

    class Noted(PausingConnection):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            ended.append(weakref.ref(self.transport))

    def are_forgotten() -> bool:
        gc.collect()
        return len(ended) == 20 and not any(transport() for transport in ended)

    with serve(HELLO, HOST, 0, Noted) as address:
        for _ in range(20):
            assert Client(address.port).ask("GET", "/", headers={"Connection": "close"})[0] == 200
        until(are_forgotten, server.PATIENCE / 3)


@pytest.mark.long
def test_who_asks_is_answered_under_many_who_do_not() -> None:
    with served(HELLO) as client, clients(client.port, CLIENTS + 10) as waiting:
        for _ in range(5):
            assert client.get("/healthz") == "hello"
        latest = waiting[-1]
        latest.sendall(b"Host: localhost\r\n\r\n")
        assert latest.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert take(waiting[0]) == 0  # it made room


@pytest.mark.long
def test_one_visitor_takes_only_its_share_of_the_connections() -> None:
    with (
        served(HELLO) as client,
        socket.create_connection(("127.0.0.1", client.port), patient(20), ("127.0.0.2", 0)) as other,
        clients(client.port, CLIENTS) as waiting,
    ):
        assert take(waiting[0]) == 0
        other.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_one_visitor_takes_only_its_share_of_the_pages() -> None:
    """One page at a time, a few in a queue, and others are served meanwhile."""
    over = threading.Event()

    def make(request: Request) -> Response:
        assert request.url.path == "/" or over.wait(patient(20))
        return Response("made")

    with served(app_of(make, Turns().run)) as client, ThreadPoolExecutor() as pool:
        other = Client(client.port, "127.0.0.2")
        asked = [pool.submit(client.ask, "GET", "/slow") for _ in range(WAITING + 2)]
        refused = next(as_completed(asked))
        assert refused.result()[0] == 503
        assert other.get("/") == "made"
        over.set()
        assert sorted(done.result()[0] for done in asked) == [200] * (WAITING + 1) + [503]


@pytest.mark.parametrize("beginning", [b"G", b"GET / HTTP/1.1\r\nX: ", BODY])
def test_a_request_that_drips_ends_in_time(monkeypatch: pytest.MonkeyPatch, beginning: bytes) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.3)
    with (
        served(HELLO) as client,
        socket.create_connection(("127.0.0.1", client.port), patient(20)) as connection,
    ):
        connection.sendall(beginning)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            drip(connection)


def test_a_reply_that_is_not_taken_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.3)
    with (
        served(app_of(lambda request: Response(b"x" * (64 << 20)))) as client,
        socket.create_connection(("127.0.0.1", client.port), patient(20)) as connection,
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: not is_kept(client.port, connection.getsockname()[1]))
        assert take(connection) < 64 << 20


def test_a_reply_waits_for_no_acknowledgement() -> None:
    """A reply is two writes, and the second one would wait 40 ms for a delayed ACK."""
    options: list[int] = []

    class Noted(VisitorConnection):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            accepted = transport.get_extra_info("socket")
            options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            super().connection_made(transport)

    with serve(HELLO, HOST, 0, Noted) as address:
        assert Client(address.port).get() == "hello"
    assert options == [1]


def test_bodies_on_their_way_have_a_bound() -> None:
    with served(HELLO) as client, ExitStack() as stack:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (64 << 20)
        for _ in range(app.BODIES):
            stack.enter_context(socket.create_connection(("127.0.0.1", client.port), patient(20))).sendall(
                head
            )
        while client.ask("POST", "/", nds())[0] == 200:  # until the others are on their way
            time.sleep(0.01)
        assert client.ask("POST", "/", nds())[0] == 503
        assert client.get("/healthz") == "hello"


@pytest.mark.long
def test_the_receiver_ends_at_a_signal_under_many_who_do_not_ask(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "eventlog",
        "receive",
        "--port",
        "0",
        "--file",
        str(tmp_path / "r.sqlite"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = int(process.stderr.readline().split("/; ")[0].rpartition(":")[2])
        with clients(port, CLIENTS + 10):
            process.send_signal(signal.SIGTERM)
            process.wait(patient(20))
        assert process.returncode == 0


def test_a_small_hostile_document_does_not_hold_the_receiver(tmp_path: Path) -> None:
    with receiving(tmp_path) as client:
        for body in (b"<!---->" * 40 + b"<", b"<?a?>" * 60, b"<nds " * 20_000):
            assert "error" in client.ask("POST", "/", body)[1]
