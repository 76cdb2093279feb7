"""The client of a schema registry, against a small one that speaks HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from eventlog.change import ABSENT, Change, Field, Op
from eventlog.errors import InvalidValue
from eventlog.qlik.registry import Registry
from tests.qlik.helpers import read_messages, seq, write_messages


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
    assert "schema registry: /schemas/ids/7: HTTP Error 404" in str(found[0])


@pytest.mark.parametrize("url", ["file:///etc/passwd", "registry", "http://host:port"])
def test_only_http(url: str) -> None:
    with pytest.raises(InvalidValue, match="is not an address"):
        Registry(url)
