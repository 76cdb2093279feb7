"""A receiver on a free port, asked by plain HTTP."""

from __future__ import annotations

import http.client
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.receiver import LARGEST, Receiver
from eventlog.web.server import CLIENTS, Answerer, PageServer

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
def served(answer: Answerer, share: int = CLIENTS) -> Iterator[Client]:
    """A server of the test's own, on a free port."""
    server = PageServer("127.0.0.1", 0, answer, LARGEST, share)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Client(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def receiving(folder: Path, keep: int = 100) -> Iterator[Client]:
    """A receiver whose clock ticks once a document."""
    archive = Archive(folder / "received.sqlite", keep)
    ticks = itertools.count()
    clock = lambda: f"2025-03-23 10:57:{next(ticks) % 60:02}.000"  # noqa: E731
    try:
        with served(Receiver(archive, clock)) as client:
            yield client
    finally:
        archive.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with receiving(tmp_path) as new_client:
        yield new_client
