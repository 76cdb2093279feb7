"""Receivers of documents over HTTP that answer as a test wants."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answering = Callable[[Any], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of the tests."""


@contextmanager
def receiver(answering: Answering, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """An HTTP server that answers every POST so; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.body = self.rfile.read(int(self.headers["Content-Length"]))
            answering(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}/in?a=b"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def say(status: int, body: bytes = b"", *headers: tuple[str, str], length: int | None = None) -> Answering:
    def answer(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        for header in headers:
            handler.send_header(*header)
        handler.end_headers()
        handler.wfile.write(body)
        if length is not None:
            handler.close_connection = True

    return answer


def hang_up(handler: Any) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
