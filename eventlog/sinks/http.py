"""Documents by POST; the response's body is the answer."""

from __future__ import annotations

import email.utils
import http.client
import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult

from eventlog import __version__
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.redaction import header_word, http_address
from eventlog.core.settings import setting
from eventlog.sinks.secured import authorization, tls_context
from eventlog.sinks.sink import OutgoingDocument, Reply, SinkKind, answered, unanswered, unreachable
from eventlog.sinks.timed import TimedConnection

LONGEST_ANSWER = 16 << 20  # bytes
LONGEST_WAIT = 3600.0  # seconds that a receiver may ask for
_WAITING = (429, 503)  # RFC 6585, 4 and RFC 9110, 15.6.4: come back later
_HUNG_UP = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
_PLAIN = "http"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    http_url: str | None = setting(None, "where documents are posted", metavar="URL", check=http_address)
    http_user: str | None = setting(None, "the user of basic authentication", metavar="USER")
    http_password: str | None = setting(None, "its password; better in the environment", metavar="WORD")
    http_token: str | None = setting(
        None,
        "the token of bearer authentication; better in the environment",
        metavar="TOKEN",
        check=header_word,
    )
    http_timeout: float = setting(
        30.0, "seconds until a document counts as not answered", metavar="S", within=(0.01, 86_400)
    )
    http_ca: str | None = setting(
        None, "certificates that are trusted instead of the system's", metavar="FILE"
    )
    http_cert: str | None = setting(None, "our own certificate and key, for servers that ask", metavar="FILE")


class TooLate(EventlogError):
    """no complete answer within {0:g} seconds"""


class HttpSink:
    """A sink that sends documents one after another over one connection that is kept."""

    def __init__(self, settings: HttpSettings) -> None:
        self._address = _need_address(settings)
        self._timeout = settings.http_timeout
        self._headers = _headers(settings)
        self._context = (
            None
            if self._address.scheme == _PLAIN
            else tls_context("http", settings.http_ca, settings.http_cert)
        )
        self._connection: TimedConnection | None = None

    def deliver(self, documents: Sequence[OutgoingDocument]) -> Iterator[Reply]:
        for document in documents:
            reply = self._post(document.text)
            yield reply
            if not reply.arrived:
                return

    def knows(self, name: str) -> bool:
        return False

    def _post(self, text: str) -> Reply:
        """Return the answer; a kept connection that the receiver closed meanwhile is tried anew, once."""
        until = time.monotonic() + self._timeout
        open_before = self._connection
        reply, hung_up = self._exchange(text, until)
        if hung_up and open_before is not None:
            reply, _ = self._exchange(text, until)
        return reply

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, text: str, until: float) -> tuple[Reply, bool]:
        """Return the reply, and whether the receiver hung up without a word."""
        try:
            connection = self._connected(until)
        except OSError as fault:
            self.close()
            return unreachable(f"{self._address.netloc}: {fault}"), False
        try:
            connection.request("POST", self._path, text.encode(), self._headers)
            response = connection.getresponse()
            body = self._read(response)
        except TimeoutError:
            self.close()
            return unanswered(f"{self._address.netloc}: {TooLate(self._timeout)}"), False
        except (OSError, http.client.HTTPException) as fault:
            self.close()
            reason = f"{self._address.netloc}: {str(fault) or type(fault).__name__}"
            return unanswered(reason), isinstance(fault, _HUNG_UP)
        return self._judge(response, body), False

    def _judge(self, response: http.client.HTTPResponse, body: bytes) -> Reply:
        if 200 <= response.status < 300:
            return answered(body)
        wait = _retry_after(response.getheader("Retry-After", "")) if response.status in _WAITING else None
        return unanswered(f"{self._address.netloc} answered {response.status} {response.reason}", wait)

    def _connected(self, until: float) -> TimedConnection:
        """Return the connection, which lasts so long; a new one where the receiver has closed the old one."""
        if self._connection is not None and _is_closed(self._connection):
            self.close()
        if self._connection is None:
            self._connection = TimedConnection(
                str(self._address.hostname), self._address.port, self._context, until
            )
            self._connection.connect()
        self._connection.limit(until)
        return self._connection

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        """Return the whole body, up to a byte more than an answer may have."""
        body = bytearray()
        while len(body) <= LONGEST_ANSWER:
            piece = response.read1(1 << 16)
            if not piece:
                break
            body += piece
        if response.length:
            raise http.client.IncompleteRead(bytes(body[:100]), response.length)
        response.close()  # so that the connection can carry the next request
        if response.will_close or len(body) > LONGEST_ANSWER:
            self.close()
        return bytes(body)

    @property
    def _path(self) -> str:
        return (self._address.path or "/") + (f"?{self._address.query}" if self._address.query else "")


def _need_address(settings: HttpSettings) -> SplitResult:
    if settings.http_url is None:
        raise Misuse("the http sink needs the setting http-url")
    return http_address(settings.http_url)


def _is_closed(connection: http.client.HTTPConnection) -> bool:
    """Return whether the other side closed the connection; between two requests it sends nothing else."""
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def _headers(settings: HttpSettings) -> dict[str, str]:
    headers = {"Content-Type": "application/xml; charset=utf-8", "User-Agent": f"eventlog/{__version__}"}
    return headers | authorization(settings.http_user, settings.http_password, settings.http_token)


def _retry_after(text: str) -> float | None:
    """Return the wait of a Retry-After header (RFC 9110, 10.2.3): seconds, or a date."""
    text = text.strip()
    if text.isdecimal():
        return min(float(text), LONGEST_WAIT)
    try:
        wait = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), LONGEST_WAIT)


KIND = SinkKind(HttpSettings, HttpSink, need=_need_address)
