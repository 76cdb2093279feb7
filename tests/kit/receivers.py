"""Receivers of documents over HTTP that answer as a test wants."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answering = Callable[[Any], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # connections that come at once

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of the tests."""


@contextmanager
def serving(answering: Answering, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """An HTTP server that answers every GET and POST so; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"] or 0)
            self.body = self.rfile.read(length)
            if len(self.body) < length:  # the client was killed while it sent this
                self.close_connection = True
            else:
                answering(self)

        do_GET = do_POST  # noqa: N815

        @property
        def document(self) -> str:
            return self.body.decode()

        def reply(
            self,
            body: bytes,
            length: int | None = None,
            status: int = 200,
            headers: Iterable[tuple[str, str]] = (),
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            for header in headers:
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(body)
            if length is not None:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def receiver(answering: Answering, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A receiver that answers every document so; its address."""
    with serving(answering, context) as url:
        yield f"{url}/in?a=b"


@contextmanager
def dripping(first: bytes, drop: bytes, reads: bool = True) -> Iterator[int]:
    """Run a server that sends something, and then a drop every 20 ms for ever; return its port."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            if reads:
                connection.recv(1 << 16)
            connection.sendall(first)
            while not over.wait(0.02):
                connection.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


def say(status: int, body: bytes = b"", *headers: tuple[str, str], length: int | None = None) -> Answering:
    return lambda handler: handler.reply(body, length, status, headers)


def hang_up(handler: Any) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
