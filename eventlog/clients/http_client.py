"""A client of one HTTP server: a connection that is kept, a limit for each exchange, and who we are.

A timeout of a socket begins anew with every byte. So each of its calls gets what is left of the limit, and a
slow server gains nothing by sending often.

The connection is http.client's. urllib3's costs half as much CPU again for each document, and checks only one
thing besides: whether an answer has its whole length, once. That check is here.
"""

from __future__ import annotations

import base64
import io
import math
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from email.message import Message
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult

from eventlog.core.errors import EventlogError, Misuse, shortened
from eventlog.files.ready import ready

T = TypeVar("T")
_PIECE = 1 << 16  # bytes
_AT_ONCE = 0.01  # seconds for an answer that came while others were read
_HUNG_UP = (BrokenPipeError, ConnectionResetError)
_FAULTS = (HTTPException, OSError, ValueError)


class NoResponse(EventlogError):
    """{0}"""

    def __init__(self, reason: str, was_sent: bool) -> None:
        super().__init__(reason, was_sent)
        self.was_sent = was_sent  # perhaps in part


class Response(NamedTuple):
    """An answer of a server, whatever its status is."""

    status: int
    reason: str
    headers: Message
    body: bytes  # up to a byte more than it may have


class HttpClient:
    """Sends requests one after another over one connection; no proxy, no redirects, nothing unpacked."""

    def __init__(
        self, address: SplitResult, seconds: float, max_bytes: int, context: ssl.SSLContext | None
    ) -> None:
        self._seconds, self._max_bytes = seconds, max_bytes
        self._connection = _LimitedConnection(str(address.hostname), address.port, context)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Return the answer, or raise NoResponse."""
        self.begin(method, path, body, headers)
        while (response := self.finish()) is None:
            pass
        return response

    def begin(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a request, or raise NoResponse; `finish` has the answer.

        A kept connection on which something is readable before the request is out of step, and is left.
        """
        self._request = method, path, body, headers or {}
        self._connection.until = time.monotonic() + self._seconds
        self._is_kept, self._was_sent = self._connection.is_connected, False
        try:
            self._send()
        except _FAULTS as fault:
            self._send_again(fault)

    def finish(self) -> Response | None:
        """Return the answer, or raise NoResponse. None if the request was sent again: a kept connection was
        closed."""
        self._connection.until = max(self._connection.until, time.monotonic() + _AT_ONCE)
        try:
            return self._receive()
        except _FAULTS as fault:
            self._send_again(fault)
            return None

    def is_answered(self) -> bool:
        """Return whether an answer comes on a connection that is readable."""
        return self._connection.is_answered()

    def seconds_left(self) -> float:
        """Return how long the answer may still take."""
        return max(0.0, self._connection.until - time.monotonic())

    def fileno(self) -> int:
        """Return the descriptor on which the answer comes."""
        return self._connection.sock.fileno()

    def close(self) -> None:
        """End the connection, and what is under way on it."""
        self._connection.discard()

    def _send(self) -> None:
        connection = self._connection
        if not self._is_kept:
            connection.close()
            connection.connect()
        self._was_sent = True
        with suppress(BrokenPipeError):  # a server may refuse a large body before it has read all
            connection.request(*self._request)
            connection.flush()

    def _send_again(self, fault: Exception) -> None:
        """Send the request on a new connection, if a kept one was closed; raise NoResponse otherwise."""
        self._connection.discard()
        if self._is_kept and isinstance(fault, _HUNG_UP):
            self._is_kept = False
            try:
                return self._send()
            except _FAULTS as next_fault:
                self._connection.discard()
                fault = next_fault
        raise NoResponse(self._words(fault), self._was_sent) from fault

    def _receive(self) -> Response:
        connection = self._connection
        with closing(connection.getresponse()) as response:
            content = bytearray()
            while len(content) <= self._max_bytes and (piece := response.read1(_PIECE)):
                content += piece
                if response.length == 0:
                    break
            else:
                if response.length and len(content) <= self._max_bytes:
                    raise IncompleteRead(bytes(content), response.length)
        if len(content) > self._max_bytes or response.status == HTTPStatus.SWITCHING_PROTOCOLS:
            connection.close()
        reason = shortened(response.reason or "")
        return Response(response.status, reason, response.headers, bytes(content))

    def _words(self, cause: BaseException) -> str:
        if isinstance(cause, TimeoutError):
            what = "complete answer" if self._was_sent else "connection"
            return f"no {what} within {self._seconds:g} seconds"
        return shortened(str(cause)) or type(cause).__name__


class _LimitedConnection(HTTPConnection):
    """A connection whose calls raise TimeoutError after `until`, a time of the monotonic clock."""

    until = math.inf
    _incoming: _Incoming | None = None

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext | None) -> None:
        self.default_port = (HTTPConnection if context is None else HTTPSConnection).default_port
        super().__init__(host, port or self.default_port)
        self._context = context
        self._unsent: list[bytes] = []

    @property
    def is_connected(self) -> bool:
        """Return whether the connection is open, and nothing came that no request asked for."""
        if self.sock is None or (self._incoming is not None and self._incoming.has_rest):
            return False
        # bytes that are decrypted already are no longer seen at the socket
        is_pending = isinstance(self.sock, ssl.SSLSocket) and self.sock.pending()
        return not (is_pending or any(ready([self.sock])))

    def connect(self) -> None:
        """Connect; each address of the name has its share of the time, and TLS what is left then."""
        self._incoming = None
        addresses = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        self.timeout = self.seconds_left() / len(addresses)
        super().connect()
        self.sock.settimeout(self.seconds_left())
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host.rstrip("."))

    def seconds_left(self) -> float:
        """Return the timeout of the next call of the socket."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time is over")
        return seconds

    def request(self, *args: Any, **settings: Any) -> None:
        self._unsent.clear()
        super().request(*args, **settings)
        self._incoming = _Incoming(self)

    def send(self, data: Any) -> None:
        """Keep a part of the request for `flush`."""
        self._unsent.append(data)

    def flush(self) -> None:
        """Send the request, if it is small in one packet."""
        head, *body = self._unsent
        pieces = [head, *body] if sum(map(len, body)) > _PIECE else [b"".join(self._unsent)]
        for piece in pieces:
            self.sock.settimeout(self.seconds_left())
            self.sock.sendall(piece)  # its timeout is that of all bytes

    def is_answered(self) -> bool:
        """Return whether bytes of the answer are there. What is readable may be a ticket of TLS alone."""
        assert self._incoming is not None
        return self._incoming.look_ahead() if self._context is not None else True

    def response_class(self, *args: Any, **settings: Any) -> HTTPResponse:  # type: ignore[override]
        return _WholeResponse(self._incoming, *args[1:], **settings)  # type: ignore[arg-type]

    def discard(self) -> None:
        """Close the connection, and what of an answer is not read."""
        self.close()
        if self._incoming is not None:
            self._incoming.close()


class _WholeResponse(HTTPResponse):
    """An answer after informational ones, of one length; http.client reads over 100 alone."""

    def begin(self) -> None:
        super().begin()
        while self.status < HTTPStatus.OK and self.status != HTTPStatus.SWITCHING_PROTOCOLS:
            self.headers = None  # type: ignore[assignment]  # else nothing is read
            super().begin()
        stated = ", ".join(self.headers.get_all("Content-Length", ()))
        if "," in stated and not self.chunked:
            length = _one_length(stated)
            self.length = length if self.length is None else self.length


def _one_length(stated: str) -> int:
    """Return a length that an answer states several times (RFC 9110, 8.6); raise HTTPException otherwise."""
    length, *further = {length.strip() for length in stated.split(",")}
    if further or not length.isdecimal():
        raise HTTPException(f"Content-Length has different values: {stated}")
    return int(length)


class _Incoming(io.RawIOBase):
    """The socket of a connection for HTTPResponse, with reads that end with the limit."""

    _early_bytes = b""  # bytes that were read before the answer was asked for
    has_rest = False  # whether bytes after the end of the answer were read with it
    is_over = False  # whether no more is read

    def __init__(self, connection: _LimitedConnection) -> None:
        self._connection, self._socket = connection, connection.sock
        self._file = self._socket.makefile("rb", buffering=0)

    def makefile(self, mode: str) -> io.BufferedReader:
        return _Buffer(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.is_over:
            return None
        if self._early_bytes:
            piece, self._early_bytes = self._early_bytes[: len(buffer)], self._early_bytes[len(buffer) :]
            buffer[: len(piece)] = piece
            return len(piece)
        self._socket.settimeout(self._connection.seconds_left())
        return self._file.readinto(buffer)

    def look_ahead(self) -> bool:
        """Return whether a read would take no time, because bytes are there or no more will come."""
        self._socket.settimeout(0)
        try:
            self._early_bytes += self._socket.recv(_PIECE)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError:
            pass  # the read has it again
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


class _Buffer(io.BufferedReader):
    """The buffer of one answer. Its end notes whether bytes are left in it."""

    raw: _Incoming

    def flush(self) -> None:
        """Do nothing, because nothing is written. The base class raises if the connection is closed."""

    def close(self) -> None:
        if not (self.closed or self.raw.closed):
            self.raw.is_over = True
            self.raw.has_rest = bool(self.raw._early_bytes or self.peek())
        super().close()


# --- who we are


def authorization(user: str | None, password: str | None, token: str | None) -> dict[str, str]:
    """Return the header of bearer or basic authentication; none without a token and a user."""
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user:
        words = f"{user}:{password or ''}"
        return {"Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}
    return {}


def tls_context(of: str, ca: str | None, cert: str | None) -> ssl.SSLContext:
    """Return the TLS context of a connection; the settings are those of `http`, or of another section."""
    context = _loaded(
        f"{of}-ca {ca}", "it holds no certificate", lambda: ssl.create_default_context(cafile=ca)
    )
    if cert is not None:
        _loaded(
            f"{of}-cert {cert}",
            "it does not hold a certificate and its key",
            lambda: context.load_cert_chain(cert, None, _no_password),
        )
    return context


def _loaded(setting: str, lack: str, load: Callable[[], T]) -> T:
    """Return what a certificate file contains; raise Misuse with what it lacks if it is none."""
    try:
        return load()
    except ssl.SSLError as fault:
        reason = f" ({fault.reason})" if fault.reason else ""
        raise Misuse(f"{setting}: {lack}, in PEM{reason}") from None
    except (OSError, ValueError) as fault:
        raise Misuse(f"{setting}: {getattr(fault, 'strerror', None) or fault}") from None


def _no_password() -> str:
    """Return no password, because a daemon has no one to ask for it."""
    raise ValueError("its key has a password, which a service cannot ask for")
