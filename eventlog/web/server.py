"""A small HTTP server for our pages: routes in a table, and the headers that keep a page to itself."""

from __future__ import annotations

import errno
import io
import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from eventlog import __version__
from eventlog.sinks.timed import TimedSocket

logger = logging.getLogger("eventlog.page")

FIELDS = 50  # of a query
PATIENCE = 30.0  # seconds in which a request must be here, and as many in which its reply must be taken
CLIENTS = 64  # at a time; for one more, the one that has been about to ask for the longest must go
HEAD = 128 << 10  # bytes of the lines before a body
BODIES = 4  # of the largest size, at a time
HTML = "text/html; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"
SAFE = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without one, browsers withhold the Origin of our own forms too
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Request:
    """A client's request."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    visitor: str = ""  # the address of the client


@dataclass(frozen=True)
class HttpReply:
    """The answer to a client; None closes the connection."""

    body: bytes | str = b""
    type: str = HTML
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


Answerer = Callable[[Request], HttpReply | None]


class BadFields(ValueError):
    """An error in the fields of a query or a form; its text is the reason."""


def read_fields(text: str, max_fields: int = FIELDS) -> dict[str, str]:
    """Return the last value of each field of a query or a form. Raise BadFields for too many, and for NUL."""
    try:
        fields = parse_qs(text, max_num_fields=max_fields)
    except ValueError:
        raise BadFields(f"at most {max_fields} fields are taken") from None
    if any("\0" in value for values in fields.values() for value in values):
        raise BadFields("a field holds no character U+0000")
    return {name: values[-1] for name, values in fields.items()}


def sorry(status: HTTPStatus, sentence: str, **headers: str) -> HttpReply:
    """Return a refusal, in plain text."""
    return HttpReply(f"{sentence}\n", PLAIN, status, headers)


def asset(request: Request) -> HttpReply | None:
    """Return the style or the script, or None if it is neither."""
    kind = {"/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8"}
    if request.path not in kind:
        return None
    return HttpReply(packaged(request.path[1:]), kind[request.path])


@cache
def packaged(name: str) -> str:
    """Return the text of a file next to this one."""
    return files("eventlog.web").joinpath(name).read_text("utf-8")


class PageServer(ThreadingHTTPServer):
    """Serves what `answer` answers; a request larger than `limit` is refused."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, host: str, port: int, answer: Answerer, limit: int = 1 << 20, share: int = CLIENTS
    ) -> None:
        if not host:  # the system would take it for all addresses
            raise OSError(errno.EADDRNOTAVAIL, "the address is empty; 0.0.0.0 names all of this machine's")
        self.answer = answer
        self.limit = limit
        self.share = share  # connections of one visitor
        self.loopback = is_loopback(host)
        self._lock = threading.Lock()
        self._clients: dict[TimedSocket, str] = {}  # with their addresses
        self._asking: dict[TimedSocket, None] = {}  # clients whose request is not here yet, in their order
        self._room = BODIES * limit  # bytes
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        name = str(host)
        return f"http://{f'[{name}]' if ':' in name else name}:{port}/"

    def get_request(self) -> tuple[TimedSocket, Any]:
        plain, address = self.socket.accept()
        return TimedSocket(fileno=plain.detach()), address

    def process_request(self, request: Any, client_address: Any) -> None:
        visitor = str(client_address[0])
        with self._lock:
            connections = sum(address == visitor for address in self._clients.values())
            if connections >= self.share:
                has_room = self._make_room(visitor)
            else:
                has_room = len(self._clients) < CLIENTS or self._make_room()
            if has_room:
                self._clients[request] = visitor
        if has_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._clients.pop(request, None)
                self._asking.pop(request, None)

    def _make_room(self, visitor: str | None = None) -> bool:
        """Close the longest idle connection, of all or of one visitor. Return False if none is idle."""
        idle = (at for at in self._asking if visitor is None or self._clients.get(at) == visitor)
        client = next(idle, None)
        if client is None:
            return False
        del self._asking[client]
        self._clients.pop(client, None)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        return True

    def await_request(self, client: TimedSocket) -> None:
        """Note that a client is about to send a request."""
        with self._lock:
            self._asking.pop(client, None)
            if client in self._clients:
                self._asking[client] = None
        client.until = time.monotonic() + PATIENCE

    def request_arrived(self, client: TimedSocket) -> None:
        """Note that the client's request is here."""
        with self._lock:
            self._asking.pop(client, None)

    @contextmanager
    def reserve_body(self, size: int) -> Iterator[bool]:
        """Reserve room for a body while it is needed. Return whether there was room."""
        with self._lock:
            fits = size <= self._room
            self._room -= size if fits else 0
        try:
            yield fits
        finally:
            with self._lock:
                self._room += size if fits else 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        logger.debug("a client went away", exc_info=True)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Head(io.BufferedReader):
    """A reader of requests; the lines of one request are limited together."""

    bytes_left = HEAD

    def readline(self, limit: int | None = -1, /) -> bytes:
        line = super().readline(limit)
        self.bytes_left -= len(line)
        if self.bytes_left < 0:
            raise HTTPException(f"the part before a body has at most {HEAD} bytes")
        return line


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = f"eventlog/{__version__}"
    sys_version = ""
    disable_nagle_algorithm = True  # else a reply of two writes waits 40 ms for the client's delayed ACK
    wbufsize = 1 << 16
    server: PageServer
    connection: TimedSocket

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = self._head = _Head(self.connection.makefile("rb", buffering=0))

    def handle_one_request(self) -> None:
        self.server.await_request(self.connection)
        self._head.bytes_left = HEAD
        super().handle_one_request()

    def handle_expect_100(self) -> bool:
        """Answer a client that waits for permission to send its body."""
        refusal = self._refusal()
        if refusal is not None:
            self.close_connection = True
            self._send(refusal)
            return False
        continues = super().handle_expect_100()
        self.wfile.flush()
        return continues

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because the page shows what requests brought."""

    def _serve(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            self.close_connection = True  # its body was not read
            self._send(refusal)
            return
        with self.server.reserve_body(self._length()) as reserve_body:
            reply = self._receive() if reserve_body else BUSY
        if reply is None or not reserve_body:
            self.close_connection = True
        if reply is not None:
            self._send(reply)

    def _receive(self) -> HttpReply | None:
        body = self.rfile.read(self._length())
        self.server.request_arrived(self.connection)
        return self._answer(body) if len(body) == self._length() else None

    def _answer(self, body: bytes) -> HttpReply | None:
        method = "GET" if self.command == "HEAD" else self.command
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            parts = urlsplit(self.path)
        except ValueError:
            return sorry(HTTPStatus.BAD_REQUEST, "that is no address")
        try:
            query = read_fields(parts.query)
            visitor = str(self.client_address[0])
            return self.server.answer(Request(method, parts.path, query, headers, body, visitor))
        except BadFields as fault:
            return sorry(HTTPStatus.BAD_REQUEST, str(fault))
        except Exception:
            logger.exception("%s %s", method, parts.path)
            return sorry(HTTPStatus.INTERNAL_SERVER_ERROR, "this failed; standard error has the reason")

    def _refusal(self) -> HttpReply | None:
        if "Transfer-Encoding" in self.headers or self._length() < 0:
            return sorry(HTTPStatus.LENGTH_REQUIRED, "say the Content-Length")
        if self._length() > self.server.limit:
            return sorry(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {self.server.limit} bytes are not taken"
            )
        hosts = self.headers.get_all("Host", ["localhost"])
        if self.server.loopback and not all(map(_names_loopback, hosts)):
            return sorry(HTTPStatus.MISDIRECTED_REQUEST, "ask for localhost")
        if self.command == "POST" and self._is_of_another_site():
            return sorry(HTTPStatus.FORBIDDEN, "another site's page may not send this")
        return None

    def _length(self) -> int:
        """Return the length of the body; -1 if it is missing, or given twice differently."""
        lengths = {value.strip() for value in self.headers.get_all("Content-Length", ["0"])}
        length = lengths.pop()
        return (
            int(length) if not lengths and length.isascii() and length.isdigit() and len(length) < 16 else -1
        )

    def _is_of_another_site(self) -> bool:
        """Return whether another site's page sends this.

        Browsers report it. Old ones, and those without encryption to another machine, only report the page's
        site.
        """
        site, origin = self.headers.get("Sec-Fetch-Site"), self.headers.get("Origin")
        if site is not None:
            return site not in ("none", "same-origin")
        return origin is not None and origin.partition("://")[2] != self.headers.get("Host")

    def _send(self, reply: HttpReply) -> None:
        self.connection.until = time.monotonic() + PATIENCE
        body = reply.body.encode("utf-8", "replace") if isinstance(reply.body, str) else reply.body
        self.send_response(reply.status)
        for name, value in {"Content-Type": reply.type, **SAFE, **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


BUSY = sorry(
    HTTPStatus.SERVICE_UNAVAILABLE, "too much is on its way here; come again", **{"Retry-After": "1"}
)


def _names_loopback(host: str) -> bool:
    """Return whether the request names this machine, against DNS rebinding by pages of other sites."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
