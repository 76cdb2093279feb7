"""The server of our pages: uvicorn in a thread, with bounds on the connections of visitors."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 30.0  # seconds in which a request must be here, and as many in which its reply must be taken
CLIENTS = 64  # at a time; for one more, the one that has been about to ask for the longest must go
SHARE = CLIENTS // 2  # of one visitor
PAUSE = 0.01  # seconds
HEAD = 64 << 10  # bytes of the lines before a body
_END = 5.0  # seconds in which the server ends


class VisitorConnection(H11Protocol):
    """A visitor's connection: it ends if a request, or the taking of its reply, lasts too long.

    uvicorn has no such limits. If there are too many, the one that has been idle for the longest makes room.
    """

    deadline: asyncio.TimerHandle | None = None  # None while the reply is made

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_request()
        everyone, of_visitor = self.everyone(), self.of_visitor()
        if len(of_visitor) > SHARE or len(everyone) > CLIENTS:
            _close_idle(of_visitor if len(of_visitor) > SHARE else everyone)

    @property
    def visitor(self) -> str:
        """The address of the visitor."""
        return self.client[0] if self.client else ""

    def everyone(self) -> list[VisitorConnection]:
        """Return the connections of all visitors."""
        return [at for at in self.connections if isinstance(at, VisitorConnection)]

    def of_visitor(self) -> list[VisitorConnection]:
        """Return the connections of this visitor."""
        return [at for at in self.everyone() if at.visitor == self.visitor]

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_request()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE):  # the request is here
            self._end_request()

    def on_response_complete(self) -> None:
        self._begin_request()
        super().on_response_complete()

    def shutdown(self) -> None:
        if self.deadline is not None:
            self.transport.abort()
        else:
            super().shutdown()

    def _begin_request(self) -> None:
        self._end_request()
        self.deadline = self.loop.call_later(PATIENCE, self.transport.abort)

    def _end_request(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.deadline = None


class PausingConnection(VisitorConnection):
    """A visitor's connection to a process that has other work, which many requests must not hold up.

    The more connections a visitor has, the longer each of its requests waits: with two 10 ms, with 32 some
    10 s.
    """

    pause: asyncio.TimerHandle | None = None

    # asyncio declares a base class of transports; uvicorn and we need one of sockets
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow.pause_reading()
        self._go_on_later(self.flow.resume_reading)

    def on_response_complete(self) -> None:
        self._go_on_later(super().on_response_complete)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.pause is not None:
            self.pause.cancel()
        super().connection_lost(exc)

    def _go_on_later(self, go_on: Callable[[], None]) -> None:
        other_connections = len(self.of_visitor()) - 1
        if other_connections > 0:
            self.pause = self.loop.call_later(PAUSE * other_connections**2, go_on)
        else:
            go_on()


def _close_idle(connections: Sequence[VisitorConnection]) -> None:
    """Close the one that has been about to ask for the longest."""
    deadlines = {at: at.deadline.when() for at in connections if at.deadline}
    idle = min(deadlines, key=deadlines.__getitem__)
    idle.connections.discard(idle)
    idle.transport.abort()


class ListenAddress(NamedTuple):
    """An address that a server listens at."""

    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"


@contextmanager
def serve(
    app: ASGIApp, host: str, port: int, kind: type[VisitorConnection] = VisitorConnection
) -> Iterator[ListenAddress]:
    """Serve an application while the block runs. Raise OSError if the address is taken or is none."""
    if not host:  # the system would take it for all addresses
        raise OSError(errno.EADDRNOTAVAIL, "the address is empty; 0.0.0.0 names all of this machine's")
    config = uvicorn.Config(
        app,
        http=kind,
        loop="asyncio",
        lifespan="off",
        ws="none",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CLIENTS + 1,
        h11_max_incomplete_event_size=HEAD,
        timeout_keep_alive=int(PATIENCE),
        timeout_graceful_shutdown=1,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only for the protocol TCP by name; else a reply waits 40 ms for the delayed ACK
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(CLIENTS)
        server, has_ended = uvicorn.Server(config), threading.Event()
        threading.Thread(target=_run, args=(server, listener, has_ended), daemon=True).start()
        try:
            yield ListenAddress(*listener.getsockname()[:2])
        finally:
            server.should_exit = True
            try:
                has_ended.wait(_END)
            finally:
                has_ended.wait(_END)  # a signal may end the first wait, and the thread has the socket


def _run(server: uvicorn.Server, listener: socket.socket, has_ended: threading.Event) -> None:
    """Run a server to its end. Python takes a thread for ended if a signal interrupts its `join`."""
    try:
        server.run([listener])
    finally:
        has_ended.set()
