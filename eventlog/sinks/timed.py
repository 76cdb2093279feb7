"""HTTP with one time limit for a whole exchange, so that a slow peer gains nothing by sending often.

A socket's own timeout begins anew with every byte. Here each call gets what is left of the limit.
"""

from __future__ import annotations

import http.client
import math
import socket
import ssl
import time
from typing import Any


class _Timed:
    """A socket whose calls raise TimeoutError after `until`, a time of the monotonic clock."""

    until = math.inf

    def recv_into(self, *buffer_and_size: Any) -> int:
        self._set_timeout()
        size: int = super().recv_into(*buffer_and_size)  # type: ignore[misc]
        return size

    def send(self, data: Any, flags: int = 0) -> int:
        self._set_timeout()
        size: int = super().send(data, flags)  # type: ignore[misc]
        return size

    def sendall(self, data: Any, flags: int = 0) -> None:
        with memoryview(data) as view, view.cast("B") as data_bytes:
            sent = 0
            while sent < len(data_bytes):
                sent += self.send(data_bytes[sent:], flags)

    def _set_timeout(self) -> None:
        self.settimeout(_seconds_until(self.until))  # type: ignore[attr-defined]


class TimedSocket(_Timed, socket.socket):
    """A plain connection."""


class TimedTLS(_Timed, ssl.SSLSocket):
    """An encrypted one."""


class TimedConnection(http.client.HTTPConnection):
    """A connection to a server, encrypted where there is a context; it is made within the time too."""

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext | None, until: float) -> None:
        if context is not None:
            self.default_port = http.client.HTTPS_PORT
            context.sslsocket_class = TimedTLS
        super().__init__(host, port)
        self._context = context
        self._until = until

    def limit(self, until: float) -> None:
        """Set the time by which the following calls end."""
        self._until = until
        if isinstance(self.sock, _Timed):
            self.sock.until = until

    def connect(self) -> None:
        plain = _connect(self.host, self.port, self._until)
        self.sock = plain if self._context is None else self._encrypted(plain, self._context)
        self.limit(self._until)

    def _encrypted(self, plain: socket.socket, context: ssl.SSLContext) -> socket.socket:
        plain.settimeout(_seconds_until(self._until))  # which holds for the whole handshake
        try:
            return context.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def _connect(host: str, port: int, until: float) -> socket.socket:
    """Return a connection to the first address of a host that answers."""
    fault: OSError = OSError("the name has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
        plain = TimedSocket(family, kind, protocol)
        try:
            plain.settimeout(_seconds_until(until))
            plain.connect(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return plain
        except OSError as refusal:
            plain.close()
            fault = refusal
    raise fault


def _seconds_until(until: float) -> float:
    """Return the seconds until then."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the time is over")
    return seconds
