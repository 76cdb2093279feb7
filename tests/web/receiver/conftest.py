"""A receiver on a free port, asked by plain HTTP."""

from __future__ import annotations

import asyncio
import http.client
import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.receiver import Receiver
from eventlog.web.server import serve

HOST = "127.0.0.1"
HOSTILE = "<script>alert(1)</script>\"'&\u202e"
ADD = (
    '<add class-name="usr" event-id="log:1"><association>idu=1,table=usr,schema=indirect</association>'
    '<add-attr attr-name="fname"><value type="string">Jack</value></add-attr></add>'
)
MODIFY = (
    '<modify class-name="usr" event-id="log:2"><association>idu=1,table=usr,schema=indirect</association>'
    '<modify-attr attr-name="fname"><remove-value><value type="string">Jack</value></remove-value>'
    '<add-value><value type="string">John</value></add-value></modify-attr></modify>'
)
DELETE = '<delete class-name="grp" event-id="log:3"><association>idg=7,table=grp</association></delete>'


def nds(*events: str) -> bytes:
    return f'<nds dtdversion="4.0"><input>{"".join(events)}</input></nds>'.encode()


class Client:
    """A client of a server."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.port = port
        self._source = (source, 0)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, 20, source_address=self._source)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace"), answer.headers
        finally:
            connection.close()

    def post(self, *events: str) -> str:
        return self.ask("POST", "/", nds(*events))[1]

    def get(self, path: str = "/") -> str:
        status, text, _ = self.ask("GET", path)
        assert status == 200, text
        return text


@contextmanager
def served(app: ASGIApp) -> Iterator[Client]:
    """Serve an application of the test's own, on a free port."""
    with serve(app, HOST, 0) as address:
        yield Client(address.port)


@dataclass
class Site:
    """One server for the tests of a process, because each start and end takes a fifth of a second."""

    client: Client
    app: ASGIApp | None = None

    @contextmanager
    def showing(self, app: ASGIApp) -> Iterator[Client]:
        self.app = app
        yield self.client
        self.app = None


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    async def current(scope: Scope, receive: Receive, send: Send) -> None:
        assert new_site.app is not None
        await new_site.app(scope, receive, send)

    with served(current) as client:
        new_site = Site(client)
        yield new_site


@contextmanager
def receiver_app(folder: Path, keep: int = 100) -> Iterator[ASGIApp]:
    """The application of a receiver whose clock ticks once a document."""
    ticks = itertools.count()
    clock = lambda: f"2025-03-23 10:57:{next(ticks) % 60:02}.000"  # noqa: E731
    with closing(Archive(folder / "received.sqlite", keep)) as archive:
        yield Receiver(archive, clock=clock).app(HOST)


@contextmanager
def receiving(folder: Path, keep: int = 100) -> Iterator[Client]:
    """A receiver with a server of its own."""
    with receiver_app(folder, keep) as app, served(app) as client:
        yield client


@pytest.fixture
def client(tmp_path: Path, site: Site) -> Iterator[Client]:
    with receiver_app(tmp_path) as app, site.showing(app) as new_client:
        yield new_client


def ask(app: ASGIApp, method: str, path: str, body: bytes = b"") -> tuple[int, str]:
    """Return the status and the text that an application answers, without a server."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        sent.append(message)

    name, _, query = path.partition("?")
    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": method, "path": name, "raw_path": name.encode(), "headers": headers}
    scope |= {"query_string": query.encode(), "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    asyncio.run(app(scope | {"scheme": "http", "root_path": ""}, receive, send))  # type: ignore[arg-type]
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()
