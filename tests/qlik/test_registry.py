"""The client of a schema registry, against a small HTTP server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import InvalidValue
from eventlog.qlik.message_settings import MessageSettings
from eventlog.sources.schema_registry import Registry, RegistryFault
from tests.qlik.helpers import read_messages, seq, write_messages

pytestmark = pytest.mark.quick


class Handler(BaseHTTPRequestHandler):
    schemas: list[tuple[str, str]]

    def do_POST(self) -> None:
        schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        self.schemas.append((self.path, schema))
        self._answer({"id": len(self.schemas)})

    def do_GET(self) -> None:
        number = int(self.path.rpartition("/")[2])
        if number <= len(self.schemas):
            self._answer({"schema": self.schemas[number - 1][1]})
        else:
            self.send_error(404)

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    Handler.schemas = []
    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}", Handler.schemas
    http.shutdown()
    thread.join()
    http.server_close()


def test_messages_by_a_registry(server: tuple[str, list[tuple[str, str]]]) -> None:
    url, schemas = server
    registry = Registry(url)
    loaded = [Change(Op.INSERT, "app", "usr", (), (Field("id", ABSENT, i),), seq(i)) for i in (1, 2)]
    settings: dict[str, Any] = {"encoding": "avro", "framing": "confluent", "register": registry.register}
    written = write_messages(loaded, **settings)
    assert [path for path, _ in schemas] == ["/subjects/app.usr-value/versions"]
    assert [message[:5] for message in written] == [b"\0\0\0\0\1"] * 2
    assert read_messages(written, schema_of=registry.schema_of) == loaded


def test_what_a_registry_lacks_refuses_the_message_alone(server: tuple[str, object]) -> None:
    found = read_messages([b"\0\0\0\0\7x"], schema_of=Registry(server[0]).schema_of)
    assert "schema registry: /schemas/ids/7: it answers 404 Not Found" in str(found[0])


@contextmanager
def says(first: bytes, repeated_bytes: bytes) -> Iterator[str]:
    """Run a registry that sends something, and then the same little thing for ever."""
    over = threading.Event()

    def answer() -> None:
        peer, _ = listening.accept()
        with peer, suppress(OSError):
            peer.recv(1 << 16)
            peer.sendall(first)
            while not over.wait(0.02):
                peer.sendall(repeated_bytes)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n", b" "),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b""),
    ],
)
def test_a_registry_that_drips_is_heard_no_longer_than_one_that_is_silent(first: bytes, again: bytes) -> None:
    with says(first, again) as url:
        begun = time.monotonic()
        with pytest.raises(RegistryFault, match=r"no complete answer within 0\.3 seconds|headers"):
            Registry(url, seconds=0.3).schema_of(1)
        assert time.monotonic() - begun < 20


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with (
        says(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 1_000_000) as url,
        pytest.raises(RegistryFault, match="no object of at most 8000000 bytes"),
    ):
        Registry(url).schema_of(1)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "registry", "http://host:port"])
def test_only_http(url: str) -> None:
    with pytest.raises(InvalidValue, match="is not an address"):
        Registry(url)


def test_the_wire_format_of_confluent_is_avro_without_asking() -> None:
    assert MessageSettings(framing="confluent").encoding == "avro"
    assert MessageSettings().encoding == "json"
