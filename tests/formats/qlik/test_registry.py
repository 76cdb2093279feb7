"""The client of a schema registry, against a small HTTP server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import InvalidValue
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.transfer.sources.schema_registry import Registry, RegistryFault
from tests.formats.qlik.helpers import read_messages, seq, write_messages
from tests.kit.receivers import dripping, say, serving
from tests.kit.support import patient

pytestmark = pytest.mark.quick


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    schemas: list[tuple[str, str]] = []

    def answer(handler: Any) -> None:
        if handler.command == "POST":
            schemas.append((handler.path, json.loads(handler.body)["schema"]))
            say(200, json.dumps({"id": len(schemas)}).encode())(handler)
        elif (number := int(handler.path.rpartition("/")[2])) <= len(schemas):
            say(200, json.dumps({"schema": schemas[number - 1][1]}).encode())(handler)
        else:
            handler.send_error(404)

    with serving(answer) as url:
        yield url, schemas


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
    with dripping(first, again) as port:
        begun = time.monotonic()
        with pytest.raises(RegistryFault, match=r"no complete answer within 0\.3 seconds|headers"):
            Registry(f"http://127.0.0.1:{port}", seconds=0.3).schema_of(1)
        assert time.monotonic() - begun < patient(20)


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with (
        dripping(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 1_000_000) as port,
        pytest.raises(RegistryFault, match="no object of at most 8000000 bytes"),
    ):
        Registry(f"http://127.0.0.1:{port}").schema_of(1)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "registry", "http://host:port"])
def test_only_http(url: str) -> None:
    with pytest.raises(InvalidValue, match="is not an address"):
        Registry(url)


def test_the_wire_format_of_confluent_is_avro_without_asking() -> None:
    assert MessageSettings(framing="confluent").encoding == "avro"
    assert MessageSettings().encoding == "json"
