"""A client of one HTTP server: a connection that is kept, a limit for each exchange, and who we are.

A timeout of a socket begins anew with every byte. So each of its calls gets what is left of the limit, and a
slow server gains nothing by sending often.

The connection is urllib3's, without its pool: a document costs 0.26 ms of CPU so, 0.31 with a pool of one.
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
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from logging import ERROR, getLogger
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from eventlog.core.errors import EventlogError, Misuse, shortened

T = TypeVar("T")
_PIECE = 1 << 16  # bytes
_HUNG_UP = (BrokenPipeError, ConnectionResetError)

getLogger("urllib3").setLevel(ERROR)  # it logs addresses with the secrets of their queries


class NoResponse(EventlogError):
    """{0}"""

    def __init__(self, reason: str, was_sent: bool) -> None:
        super().__init__(reason, was_sent)
        self.was_sent = was_sent  # perhaps in part


class Response(NamedTuple):
    """An answer of a server, whatever its status is."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes  # up to a byte more than it may have


class HttpClient:
    """Sends requests one after another over one connection; no proxy, no redirects, nothing unpacked."""

    def __init__(
        self, address: SplitResult, seconds: float, max_bytes: int, context: ssl.SSLContext | None
    ) -> None:
        self._seconds, self._max_bytes = seconds, max_bytes
        host = str(address.hostname)
        self._connection = (
            _LimitedConnection(host, address.port or 80)
            if context is None
            else _EncryptedConnection(host, address.port or 443, ssl_context=context)
        )

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Return the answer, or raise NoResponse. Repeat it once on a kept connection that was closed.

        A kept connection on which something is readable before the request is out of step, and is left.
        """
        connection = self._connection
        connection.until = time.monotonic() + self._seconds
        is_kept, was_sent = connection.is_connected, False
        while True:
            try:
                if not is_kept:
                    connection.close()
                    connection.connect()
                was_sent = True
                return self._exchange(method, path, body, headers)
            except (HTTPError, HTTPException, OSError, ValueError) as fault:
                connection.discard()
                cause = _cause(fault)
                if not (is_kept and isinstance(cause, _HUNG_UP)):
                    raise NoResponse(self._words(cause, was_sent), was_sent) from fault
                is_kept = False

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> Response:
        connection = self._connection
        with suppress(BrokenPipeError):  # a server may refuse a large body before it has read all
            connection.request(method, path, body, headers, preload_content=False, decode_content=False)
            connection.flush()
        with closing(connection.getresponse()) as response:
            content = bytearray()
            while len(content) <= self._max_bytes and (piece := response.read1(_PIECE)):
                content += piece
                if response.length_remaining == 0:
                    break
        if len(content) > self._max_bytes or response.status == HTTPStatus.SWITCHING_PROTOCOLS:
            connection.close()
        reason = shortened(response.reason or "")
        return Response(response.status, reason, response.headers, bytes(content))

    def _words(self, cause: BaseException, was_sent: bool) -> str:
        if isinstance(cause, TimeoutError):
            what = "complete answer" if was_sent else "connection"
            return f"no {what} within {self._seconds:g} seconds"
        return shortened(str(cause)) or type(cause).__name__


def _cause(fault: BaseException) -> BaseException:
    """Return what an error of urllib3 was raised for."""
    causes = (cause for cause in (fault.__cause__, *fault.args) if isinstance(cause, BaseException))
    cause = next(causes, None)
    return fault if cause is None else _cause(cause)


class _LimitedConnection(HTTPConnection):
    """A connection whose calls raise TimeoutError after `until`, a time of the monotonic clock."""

    until = math.inf
    _incoming: _Incoming | None = None

    @property
    def is_connected(self) -> bool:
        """Return whether the connection is open, and nothing came that no request asked for."""
        has_rest = self._incoming is not None and self._incoming.has_rest
        return not has_rest and super().is_connected

    def connect(self) -> None:
        self._incoming = None
        super().connect()

    def seconds_left(self) -> float:
        """Return the timeout of the next call of the socket."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time is over")
        return seconds

    def _new_conn(self) -> socket.socket:
        """Connect; each address of the name has its share of the time, and TLS what is left then."""
        addresses = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        self.timeout = self.seconds_left() / len(addresses)
        connection = super()._new_conn()
        connection.settimeout(self.seconds_left())
        return connection

    def request(self, *args: Any, **settings: Any) -> None:
        self._unsent: list[bytes] = []
        super().request(*args, **settings)

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

    def response_class(self, *args: Any, **settings: Any) -> HTTPResponse:  # type: ignore[override]
        self._incoming = _Incoming(self)
        return _FinalResponse(self._incoming, *args[1:], **settings)  # type: ignore[arg-type]

    def discard(self) -> None:
        """Close the connection, and what of an answer is not read."""
        self.close()
        if self._incoming is not None:
            self._incoming.close()


class _EncryptedConnection(_LimitedConnection, HTTPSConnection):
    @property
    def is_connected(self) -> bool:
        # bytes that are decrypted already are no longer seen at the socket
        return super().is_connected and not self.sock.pending()  # type: ignore[union-attr]


class _FinalResponse(HTTPResponse):
    """An answer after informational ones; http.client reads over 100 alone."""

    def begin(self) -> None:
        super().begin()
        while self.status < HTTPStatus.OK and self.status != HTTPStatus.SWITCHING_PROTOCOLS:
            self.headers = None  # type: ignore[assignment]  # else nothing is read
            super().begin()


class _Incoming(io.RawIOBase):
    """The socket of a connection for HTTPResponse, with reads that end with the limit."""

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
        self._socket.settimeout(self._connection.seconds_left())
        return self._file.readinto(buffer)

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
            self.raw.has_rest = bool(self.peek())
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
    context = _loaded(f"{of}-ca {ca}", lambda: ssl.create_default_context(cafile=ca))
    if cert is not None:
        _loaded(f"{of}-cert {cert}", lambda: context.load_cert_chain(cert, None, _no_password))
    return context


def _loaded(setting: str, load: Callable[[], T]) -> T:
    """Return what a certificate file contains; raise Misuse if it is none."""
    try:
        return load()
    except ssl.SSLError as fault:
        raise Misuse(f"{setting}: it does not hold what it should, in PEM ({fault.reason})") from None
    except (OSError, ValueError) as fault:
        raise Misuse(f"{setting}: {getattr(fault, 'strerror', None) or fault}") from None


def _no_password() -> str:
    """Return no password, because a daemon has no one to ask for it."""
    raise ValueError("its key has a password, which a service cannot ask for")
