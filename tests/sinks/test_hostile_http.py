"""Receivers over HTTP that send garbage, too much or nothing, and close connections at bad moments."""

from __future__ import annotations

import fcntl
import gzip
import logging
import socket
import ssl
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from eventlog.sinks import open_sink
from eventlog.sinks.sink import Item, OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status, write
from tests.kit.certificates import certificate
from tests.kit.receivers import dripping, hang_up, receiver, say
from tests.kit.support import patient, until
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

OUTPUT = b'<nds><output><status level="warning" event-id="eventlog:1">so</status></output></nds>'
OF_NO_EVENT = b'<nds><output><status level="warning">so</status></output></nds>'
OK = b"HTTP/1.1 200 OK\r\n"


def post(url: str, *documents: OutgoingDocument, **settings: Any) -> list[Reply]:
    sink = open_sink("http", {"http_url": url, "http_timeout": patient(20)} | settings)
    try:
        return list(sink.deliver(documents or [make(1)]))
    finally:
        sink.close()


ENDLESS = {
    "a body": (OK + b"\r\n", b" " * (4 << 20), "over the limit"),
    "a body of a huge length": (OK + b"Content-Length: 9999999999999\r\n\r\n", b" " * (4 << 20), "limit"),
    "chunks": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n",
        b"400000\r\n" + b" " * (4 << 20) + b"\r\n",
        "over the limit",
    ),
    "a chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\n", b" " * (4 << 20), "limit"),
    "a chunk of a negative size": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        b" " * (4 << 20),
        "over the limit",
    ),
    "a chunk's size": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * (1 << 20), "chunk size"),
    "a status line": (b"HTTP/1.1 200 ", b"O" * (1 << 20), "status line"),
    "a header": (OK + b"X: ", b"x" * (1 << 20), "header line"),
    "headers": (OK, b"X: x\r\n" * 100, "more than 100 headers"),
    "garbage": (b"g" * 60_000 + b"\r\n\r\n", b"", "ggg"),
    "a reason": (b"HTTP/1.1 500 " + b"r" * 60_000 + b"\r\nContent-Length: 0\r\n\r\n", b"", "500 rrr"),
    "no HTTP": (b"", b"\x00\xff garbage\r\n\r\n", "garbage"),
    "two lengths": (OK + b"Content-Length: 1, 2\r\n\r\n", b" ", "different values: 1, 2"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_has_no_end_is_not_read_to_its_end(what: str) -> None:
    first, drop, reason = ENDLESS[what]
    with dripping(first, drop) as port:
        (reply,) = post(f"http://127.0.0.1:{port}/")
    assert reason in str(reply.fault)
    assert len(str(reply.fault)) < 500
    assert reply.arrived


@pytest.mark.parametrize("content", [OUTPUT, b" " * (64 << 20)], ids=["answer", "bomb"])
def test_a_packed_answer_is_not_unpacked(content: bytes) -> None:
    with receiver(say(200, gzip.compress(content), ("Content-Encoding", "gzip"))) as url:
        (reply,) = post(url)
    assert "no XML" in str(reply.fault)


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_receiver_that_reads_slowly_gains_no_time(encrypted: bool, tmp_path: Path) -> None:
    server_files, public = certificate(tmp_path, "receiver")

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with suppress(OSError), secured(connection, encrypted, server_files) as connection:
            while connection.recv(1 << 18):
                threading.Event().wait(0.05)

    large = OutgoingDocument("large", (Item("large", "x" * (64 << 20)),))
    with served(serve) as port:
        begun = time.monotonic()
        (reply,) = post(url_at(port, encrypted), large, http_ca=public, http_timeout=0.5)
        assert time.monotonic() - begun < patient(7)
    assert "no complete answer within 0.5 seconds" in str(reply.fault)


def test_headers_that_are_none_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def answer(handler: Any) -> None:
        handler.wfile.write(OK + b"no header\x1b[31m\r\nContent-Length: 2\r\n\r\n<>")
        handler.close_connection = True

    with receiver(answer) as url:
        (reply,) = post(f"{url}&code=hunter2")
    assert reply.fault is not None
    assert not caplog.records


def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    server, public = certificate(tmp_path, "receiver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    with receiver(say(200, OUTPUT), context) as url:
        (reply,) = post(url.replace("127.0.0.1", "localhost"), http_ca=public)
    assert "CERTIFICATE_VERIFY_FAILED" in str(reply.fault)
    assert not reply.arrived


def test_a_document_on_a_connection_that_was_closed_goes_again() -> None:
    bodies: list[bytes] = []

    def answer_first(handler: Any) -> None:
        bodies.append(handler.body)
        (hang_up if len(bodies) == 2 else say(200, OF_NO_EVENT))(handler)

    with receiver(answer_first) as url:
        replies = post(url, make(1, "<a/>"), make(2, "<b/>"))
    assert [reply.fault for reply in replies] == [None, None]
    assert bodies == [b"<a/>", b"<b/>", b"<b/>"]


def test_a_document_on_a_new_connection_goes_once() -> None:
    bodies: list[bytes] = []

    def refuse(handler: Any) -> None:
        bodies.append(handler.body)
        hang_up(handler)

    with receiver(refuse) as url:
        (reply,) = post(url)
    assert reply.arrived
    assert len(bodies) == 1


def test_a_document_may_have_arrived_if_only_its_repeat_did_not() -> None:
    """The receiver dies when it has read the second document: no one knows what it did with it."""

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(OUTPUT) + OUTPUT)
            connection.recv(1 << 16)
            server.close()

    with served(serve) as port:
        replies = post(f"http://127.0.0.1:{port}/", make(1), make(2), make(3))
    assert "refused" in str(replies[1].fault)
    assert replies[1].arrived


def test_a_refusal_before_the_body_is_read_is_heard() -> None:
    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 10)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)

    large = OutgoingDocument("large", (Item("large", "x" * (64 << 20)),))
    with served(serve) as port:
        (reply,) = post(f"http://127.0.0.1:{port}/", large)
    assert "answered 413 Too Large" in str(reply.fault)


def test_all_addresses_of_a_name_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(8)]  # so that the next one gets no answer
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(address)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: resolve(*args, **more)[:1] * 10)
        begun = time.monotonic()
        (reply,) = post(f"http://127.0.0.1:{address[1]}/", http_timeout=1)
        assert time.monotonic() - begun < patient(5)
        for client in waiting:
            client.close()
    assert "no connection within 1 seconds" in str(reply.fault)
    assert not reply.arrived


def test_a_name_that_cannot_be_is_unreachable() -> None:
    (reply,) = post("http://a..b/")
    assert not reply.arrived


def answer_to(number: int, level: Level = Level.SUCCESS) -> bytes:
    """Return the final answer to the document of that number."""
    body = write([Status(level, f"eventlog:{number}")]).encode()
    return OK + b"Content-Length: %d\r\n\r\n" % len(body) + body


HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
INFORMATIONAL = {
    "103": [HINTS],
    "two of them": [HINTS, b"HTTP/1.1 102 Processing\r\n\r\n"],
    "two at once": [b"HTTP/1.1 100 Continue\r\n\r\n" + HINTS],
}


@pytest.mark.parametrize("what", INFORMATIONAL)
def test_an_informational_answer_is_read_over(what: str) -> None:
    """The final answers come late, so that one that is not waited for is read as that of the next."""
    levels = {1: Level.SUCCESS, 2: Level.ERROR, 3: Level.WARNING}

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            for number, level in levels.items():
                connection.recv(1 << 16)
                for piece in INFORMATIONAL[what]:
                    connection.sendall(piece)
                    threading.Event().wait(0.05)
                connection.sendall(answer_to(number, level))

    with served(serve) as port:
        replies = post(f"http://127.0.0.1:{port}/", make(1), make(2), make(3))
    assert [[status.level for status in reply.statuses] for reply in replies] == [
        [x] for x in levels.values()
    ]


def test_another_protocol_is_no_answer_and_ends_the_connection() -> None:
    def serve(server: socket.socket) -> None:
        for answer in (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", answer_to(2)):
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)
                connection.recv(1 << 16)  # until the client ends the connection

    with served(serve) as port:
        refused, taken = post(f"http://127.0.0.1:{port}/", make(1), make(2))
    assert "101 Switching Protocols" in str(refused.fault)
    assert taken.statuses == [Status(Level.SUCCESS, "eventlog:2")]


def test_an_answer_that_comes_late_is_not_that_of_the_next_document() -> None:
    """The answer that names another event is a retry, and the next document has a connection of its own."""

    def serve(server: socket.socket) -> None:
        with server.accept()[0] as connection:
            connection.recv(1 << 16)
            connection.sendall(answer_to(1))
            connection.recv(1 << 16)
            connection.sendall(answer_to(1))  # a stray one
            if connection.recv(1 << 16):  # else the client has ended the connection
                connection.sendall(answer_to(2))
        with server.accept()[0] as connection:
            connection.recv(1 << 16)
            connection.sendall(answer_to(3))

    with served(serve) as port:
        replies = post(f"http://127.0.0.1:{port}/", make(1), make(2), make(3))
    assert "only events of other documents, first eventlog:1" in str(replies[1].fault)
    assert replies[1].arrived
    assert [reply.fault is None for reply in replies] == [True, False, True]
    assert replies[2].statuses == [Status(Level.SUCCESS, "eventlog:3")]


STRAY = OK + b"Content-Length: 12025\r\n\r\n<nds><output>" + b" " * 12_000 + b"</output></nds>"
STRAY_BYTES = {
    "at once": [answer_to(1) + STRAY],
    "later": [answer_to(1), STRAY],
    "its beginning": [answer_to(1) + STRAY[:30]],
    "an end of a line": [answer_to(1) + b"\r\n"],
}


def has_arrived(connection: socket.socket) -> bool:
    """Return whether the other end has all bytes that were sent."""
    waiting = fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4))
    return not int.from_bytes(waiting, sys.byteorder)


@pytest.mark.parametrize("what", STRAY_BYTES)
@pytest.mark.parametrize("encrypted", [False, True])
def test_a_connection_with_bytes_that_nobody_asked_for_is_left(
    what: str, encrypted: bool, tmp_path: Path
) -> None:
    """The stray answer names no event, so only the time of its arrival shows that it is none."""
    server_files, public = certificate(tmp_path, "receiver")
    arrived = threading.Event()

    def serve(server: socket.socket) -> None:
        for pieces in (STRAY_BYTES[what], [answer_to(2)]):
            with secured(server.accept()[0], encrypted, server_files) as connection:
                connection.recv(1 << 16)
                for piece in pieces:
                    connection.sendall(piece)
                until(lambda: has_arrived(connection))
                arrived.set()
                with suppress(OSError):
                    if connection.recv(1 << 16):  # else the client has ended the connection
                        connection.sendall(STRAY)

    with served(serve) as port:
        sink = open_sink(
            "http", {"http_url": url_at(port, encrypted), "http_ca": public, "http_timeout": patient(5)}
        )
        (first,) = sink.deliver([make(1)])
        arrived.wait()
        (second,) = sink.deliver([make(2)])
        sink.close()
    assert first.statuses == [Status(Level.SUCCESS, "eventlog:1")]
    assert second.statuses == [Status(Level.SUCCESS, "eventlog:2")]


@contextmanager
def served(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Let a thread serve on a port; yield it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        yield server.getsockname()[1]
        with suppress(OSError):  # it may be closed
            server.shutdown(socket.SHUT_RDWR)  # no further connection comes
        thread.join()


def url_at(port: int, encrypted: bool) -> str:
    """Return the address of a server on this machine."""
    return f"http{'s' if encrypted else ''}://127.0.0.1:{port}/"


def secured(connection: socket.socket, encrypted: bool, server_files: str) -> socket.socket:
    """Return the server's end of a connection, by TLS if it is encrypted."""
    if not encrypted:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_files)
    return context.wrap_socket(connection, server_side=True)
