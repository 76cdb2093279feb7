"""Documents by POST; the response's body is the answer."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from eventlog import __version__
from eventlog.core.errors import Misuse, shortened
from eventlog.core.redaction import header_word, http_address, one_line
from eventlog.core.settings import setting
from eventlog.core.tables import Tables
from eventlog.files.ready import readable
from eventlog.files.small_files import read_secret
from eventlog.sinks.document_kinds import document_kind, document_setting
from eventlog.sinks.flight import in_flight
from eventlog.sinks.sink import (
    ACCEPTED,
    Flaw,
    OutgoingDocument,
    Reply,
    Sink,
    SinkKind,
    Speedup,
    answered,
    larger_documents,
    too_large,
    unanswered,
    unreachable,
)
from eventlog.sinks.webhook import read_signing_file, signed

if TYPE_CHECKING:
    from eventlog.clients.http_client import HttpClient, NoResponse, Response

LONGEST_ANSWER = 16 << 20  # bytes
_CONNECTIONS = 16  # that are advised where the receiver is slow
LONGEST_WAIT = 3600.0  # seconds that a receiver may ask for
SUCCESSFUL = range(200, 300)
_WAITING = (429, 503)  # RFC 6585, 4 and RFC 9110, 15.6.4: come back later
_OF_CONTENT = (400, 413, 415, 422)  # the same document would be refused again
_OF_SENDER = (401, 403, 404, 407, 429)  # no document would be taken now
_MOVED = (301, 302, 303, 307, 308)


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
    http_token_file: str | None = setting(
        None, "a file with that token, read for each document, so that it may be renewed", metavar="FILE"
    )
    http_timeout: float = setting(
        30.0, "seconds until a document counts as not answered", metavar="S", within=(0.01, 86_400)
    )
    http_connections: int = setting(
        1,
        "documents that are under way at once, each on a connection of its own",
        metavar="N",
        within=(1, 100),
    )
    http_ca: str | None = setting(
        None, "certificates that are trusted instead of the system's", metavar="FILE"
    )
    http_cert: str | None = setting(None, "our own certificate and key, for servers that ask", metavar="FILE")
    http_signing_file: str | None = setting(
        None, "a file of whsec_ secrets, one a line, that sign each document", metavar="FILE"
    )
    document: str = document_setting()


class HttpSink(Sink):
    """A sink that posts documents, each on one of its connections, which are kept."""

    def __init__(self, settings: HttpSettings) -> None:
        from eventlog.clients.http_client import HttpClient, tls_context  # a help needs none

        address = _need_address(settings)
        context = (
            None if address.scheme == "http" else tls_context("http", settings.http_ca, settings.http_cert)
        )
        posts = Posts(settings)
        self._connections = [
            HttpConnection(HttpClient(address, settings.http_timeout, LONGEST_ANSWER, context), posts)
            for _ in range(_documents_at_once(settings))
        ]

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        return in_flight(documents, self._connections, _await_answers)

    def close(self) -> None:
        """End the connections."""
        for connection in self._connections:
            connection.close()


class HttpConnection:
    """A connection of the sink, with the document that is under way on it."""

    def __init__(self, client: HttpClient, posts: Posts) -> None:
        self.client = client
        self._posts = posts
        self._document: OutgoingDocument | None = None

    def begin(self, document: OutgoingDocument) -> Reply | None:
        """Send a document. Return the reply to one that does not leave, or on which the receiver hangs up."""
        from eventlog.clients.http_client import NoResponse

        try:
            request = self._posts.request(document)
            if isinstance(request, Reply):
                return request
            self._document = document
            self.client.begin("POST", self._posts.path, *request)
        except Misuse as fault:
            return unreachable(str(fault))
        except NoResponse as fault:
            return self._posts.without_response(fault)
        return None

    def finish(self) -> Reply | None:
        """Read the answer. None if the document was sent again, because the receiver had hung up before.

        After what is no answer to the document the next one gets a new connection.
        """
        from eventlog.clients.http_client import NoResponse

        try:
            response = self.client.finish()
        except NoResponse as fault:
            return self._posts.without_response(fault)
        if response is None:
            return None
        assert self._document is not None
        reply = self._posts.reply(self._document, response)
        if reply.fault is not None and response.status in SUCCESSFUL:
            self.client.close()
        return reply

    def fileno(self) -> int:
        """Return the descriptor on which the answer comes."""
        return self.client.fileno()

    def close(self) -> None:
        """End the connection."""
        self.client.close()


def _await_answers(connections: Sequence[HttpConnection]) -> Sequence[HttpConnection]:
    """Return the connections on which answers come, or the first one if its time is over."""
    if len(connections) == 1:
        return connections
    coming = readable(connections, connections[0].client.seconds_left())
    return [each for each in coming if each.client.is_answered()] if coming else connections[:1]


class Posts:
    """The requests for documents, and the replies that their responses are."""

    def __init__(self, settings: HttpSettings) -> None:
        address = _need_address(settings)
        self.path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        self._place = address.netloc
        self._headers = _headers(settings)
        self._token_file = settings.http_token_file
        self._kind = document_kind(settings.document)
        self._secrets = read_signing_file(settings.http_signing_file) if settings.http_signing_file else []

    def request(self, document: OutgoingDocument) -> tuple[bytes, dict[str, str]] | Reply:
        """Return the body and the headers of a document, or the reply to one that is not sent as it is."""
        from eventlog.clients.http_client import authorization

        kind = self._kind
        if kind is not None and len(document.items) > kind.max_events:
            return Reply(divide=True)
        if kind is not None and document.items:
            kind_headers, body = kind.request(document.items)
        elif kind is None or kind.answers_xds:
            kind_headers, body = {}, document.data
        else:
            return ACCEPTED  # no heartbeat is of this kind
        headers = self._headers | kind_headers | document.begin()
        if self._secrets:
            headers |= signed(document, body, self._secrets)
        if self._token_file is not None:
            headers |= authorization(None, None, _read_token(self._token_file))
        return body, headers

    def without_response(self, fault: NoResponse) -> Reply:
        """Return the reply to a document without a response."""
        return (unanswered if fault.was_sent else unreachable)(f"{self._place}: {fault}")

    def reply(self, document: OutgoingDocument, response: Response) -> Reply:
        """Return the reply that a response is."""
        kind = self._kind
        if kind is None or kind.answers_xds:
            if response.status in SUCCESSFUL:
                return answered(response.body, document)
        elif response.status in kind.taken:
            return ACCEPTED
        wait = _retry_after(response.headers.get("Retry-After", "")) if response.status in _WAITING else None
        reason = f"{self._place} answered {response.status} {response.reason}"
        if kind is not None and not kind.answers_xds:
            reason += _words(response.body)
            if response.status in _OF_CONTENT:
                return too_large(document, reason)
            if response.status in _OF_SENDER:
                return unreachable(reason, wait)
        if response.status in _MOVED:
            reason += "; redirects are not followed, so http-url must be the new address"
        return unanswered(reason, wait)


def _documents_at_once(settings: HttpSettings) -> int:
    """Return how many documents may be under way: one, if its events may need those of the one before."""
    kind = document_kind(settings.document)
    return 1 if kind is not None and kind.max_events > 1 else settings.http_connections


def _need_address(settings: HttpSettings) -> SplitResult:
    if settings.http_url is None:
        raise Misuse("the http sink needs the setting http-url")
    return http_address(settings.http_url)


def _headers(settings: HttpSettings) -> dict[str, str]:
    from eventlog.clients.http_client import authorization

    headers = {"Content-Type": "application/xml; charset=utf-8", "User-Agent": f"eventlog/{__version__}"}
    return headers | authorization(settings.http_user, settings.http_password, settings.http_token)


_WAYS_TO_LOG_IN = (("http_user", "http_password"), ("http_token",), ("http_token_file",))


def _demand_one_identity(settings: HttpSettings) -> None:
    """Raise Misuse for two ways to log in, and for half of one."""
    ways = [name for way in _WAYS_TO_LOG_IN if (name := next((n for n in way if getattr(settings, n)), ""))]
    if len(ways) > 1:
        first, second = (name.replace("_", "-") for name in ways[:2])
        raise Misuse(f"{first} and {second} are two ways to log in: give one")
    if settings.http_user and settings.http_password is None:
        raise Misuse("http-user has no http-password: set it, as an empty one if the receiver asks for none")
    if settings.http_password and not settings.http_user:
        raise Misuse("http-password has no http-user: set it, or leave the password out")


def _demand_use_of_tls(settings: HttpSettings) -> None:
    """Raise Misuse for a setting of TLS that an address without it leaves unused."""
    for name in ("http_ca", "http_cert"):
        if getattr(settings, name) is not None and _need_address(settings).scheme == "http":
            raise Misuse(
                f"{name.replace('_', '-')} takes part with https alone, and http-url begins with http: change"
                " the address, or leave the file out"
            )


def _check(settings: HttpSettings) -> None:
    _demand_one_identity(settings)
    _demand_use_of_tls(settings)
    HttpSink(settings).close()
    if settings.http_token_file is not None:
        _read_token(settings.http_token_file)


def _read_token(name: str) -> str:
    try:
        token = read_secret(name)
        if not token:
            raise Misuse("it is empty")
        header_word(token)
    except Misuse as fault:
        reason = str(fault).removeprefix(f"the secret in {name}: ")
        raise Misuse(f"http-token-file {name}: {reason}") from None
    return token


def _words(body: bytes) -> str:
    """Return the words of a refusal in JSON, as APIs write them, on one line; nothing if it has none."""
    try:
        error = json.loads(body)["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return f": {shortened(one_line(error))}" if isinstance(error, str) else ""


def _retry_after(text: str) -> float | None:
    """Return the wait of a Retry-After header (RFC 9110, 10.2.3): seconds, or a date."""
    text = text.strip()
    if text.isdecimal():
        return min(float(text), LONGEST_WAIT)
    try:
        moment = email.utils.parsedate_to_datetime(text)
        wait = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), LONGEST_WAIT)


def _flaws(settings: HttpSettings, tables: Tables) -> Iterator[Flaw]:
    """Yield which columns refer to rows that may come later, with several documents under way."""
    columns = [
        f"{table.name}.{column.name}"
        for table in tables
        for column in table.columns.values()
        if column.leaves and column.reference and tables.find(column.reference)
    ]
    if columns and _documents_at_once(settings) > 1:
        yield Flaw(
            f"with http-connections = {settings.http_connections} documents of different objects overtake"
            f" each other, so a row may come before the row to which it refers by {', '.join(columns)}",
            "leave http-connections at 1, if the receiver needs that row first",
            is_fault=False,
        )


def _remedy(settings: HttpSettings, fault: str) -> str:
    """Return what to do about a receiver that takes nothing; one that answered must not be started."""
    place = _need_address(settings).netloc
    return f"{'start' if fault.startswith(f'{place}: ') else 'mend'} the receiver at {place}"


def _speedups(settings: HttpSettings, batch_size: int) -> Iterator[Speedup]:
    """Yield what would make it faster; a kind of documents limits the events of a request."""
    kind = document_kind(settings.document)
    yield from larger_documents(batch_size) if kind is None else larger_documents(batch_size, kind.max_events)
    if settings.http_connections < _CONNECTIONS and (kind is None or kind.max_events == 1):
        factor = _CONNECTIONS / settings.http_connections
        yield Speedup(f"http-connections = {_CONNECTIONS}", factor, of_waiting=True)


KIND = SinkKind(
    HttpSettings,
    HttpSink,
    check=_check,
    flaws=_flaws,
    place="http_url",
    remedy=_remedy,
    speedups=_speedups,
    span="CLIENT",
)
