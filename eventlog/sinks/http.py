"""Documents by POST; the response's body is the answer."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult

from eventlog import __version__
from eventlog.core.errors import Misuse, shortened
from eventlog.core.redaction import header_word, http_address, one_line
from eventlog.core.settings import setting
from eventlog.files.small_files import read_secret
from eventlog.sinks.document_kinds import document_kind, document_setting
from eventlog.sinks.sink import (
    ACCEPTED,
    OutgoingDocument,
    Reply,
    Sink,
    SinkKind,
    answered,
    too_large,
    unanswered,
    unreachable,
)
from eventlog.sinks.webhook import read_signing_file, signed

LONGEST_ANSWER = 16 << 20  # bytes
LONGEST_WAIT = 3600.0  # seconds that a receiver may ask for
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
    http_ca: str | None = setting(
        None, "certificates that are trusted instead of the system's", metavar="FILE"
    )
    http_cert: str | None = setting(None, "our own certificate and key, for servers that ask", metavar="FILE")
    http_signing_file: str | None = setting(
        None, "a file of whsec_ secrets, one a line, that sign each document", metavar="FILE"
    )
    document: str = document_setting()


class HttpSink(Sink):
    """A sink that sends documents one after another over one connection that is kept."""

    def __init__(self, settings: HttpSettings) -> None:
        from eventlog.clients.http_client import (  # urllib3, which a help does not need
            HttpClient,
            tls_context,
        )

        self._address = address = _need_address(settings)
        self._path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        self._headers = _headers(settings)
        self._token_file = settings.http_token_file
        self._kind = document_kind(settings.document)
        self._secrets = read_signing_file(settings.http_signing_file) if settings.http_signing_file else []
        is_plain = address.scheme == "http"
        context = None if is_plain else tls_context("http", settings.http_ca, settings.http_cert)
        self._client = HttpClient(address, settings.http_timeout, LONGEST_ANSWER, context)

    def deliver(self, documents: Sequence[OutgoingDocument]) -> Iterator[Reply]:
        for document in documents:
            reply = self._post(document)
            yield reply
            if not reply.arrived:
                return

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _post(self, document: OutgoingDocument) -> Reply:
        from eventlog.clients.http_client import NoResponse, authorization

        place = self._address.netloc
        kind = self._kind
        if kind is not None and len(document.items) > kind.max_events:
            return Reply(divide=True)
        if kind is not None and document.items:
            kind_headers, body = kind.request(document.items)
        elif kind is None or kind.answers_xds:
            kind_headers, body = {}, document.text.encode()
        else:
            return ACCEPTED  # no heartbeat is of this kind
        headers = self._headers | kind_headers | document.begin()
        if self._secrets:
            headers |= signed(document, body, self._secrets)
        try:
            if self._token_file is not None:
                headers |= authorization(None, None, _read_token(self._token_file))
            answer = self._client.request("POST", self._path, body, headers)
        except Misuse as fault:
            return unreachable(str(fault))
        except NoResponse as fault:
            return (unanswered if fault.was_sent else unreachable)(f"{place}: {fault}")
        if kind is None or kind.answers_xds:
            if 200 <= answer.status < 300:
                return self._answered(answer.body, document)
        elif answer.status in kind.taken:
            return ACCEPTED
        wait = _retry_after(answer.headers.get("Retry-After", "")) if answer.status in _WAITING else None
        reason = f"{place} answered {answer.status} {answer.reason}"
        if kind is not None and not kind.answers_xds:
            reason += _words(answer.body)
            if answer.status in _OF_CONTENT:
                return too_large(document, reason)
            if answer.status in _OF_SENDER:
                return unreachable(reason, wait)
        if answer.status in _MOVED:
            reason += "; redirects are not followed, so http-url must be the new address"
        return unanswered(reason, wait)

    def _answered(self, body: bytes, document: OutgoingDocument) -> Reply:
        """Return the reply; after what is no answer to it the next document gets a new connection."""
        reply = answered(body, document)
        if reply.fault is not None:
            self._client.close()
        return reply


def _need_address(settings: HttpSettings) -> SplitResult:
    if settings.http_url is None:
        raise Misuse("the http sink needs the setting http-url")
    return http_address(settings.http_url)


def _headers(settings: HttpSettings) -> dict[str, str]:
    from eventlog.clients.http_client import authorization

    headers = {"Content-Type": "application/xml; charset=utf-8", "User-Agent": f"eventlog/{__version__}"}
    return headers | authorization(settings.http_user, settings.http_password, settings.http_token)


def _check(settings: HttpSettings) -> None:
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
        raise Misuse(f"http-token-file {name}: {fault}") from None
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
        wait = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), LONGEST_WAIT)


KIND = SinkKind(HttpSettings, HttpSink, check=_check, place="http_url", span="CLIENT")
