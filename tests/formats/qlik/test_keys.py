"""Keys of messages in Avro, a registry that asks who we are, and Avro in files that is read back."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Misuse
from eventlog.core.formats import Object, Source
from eventlog.core.settings import build
from eventlog.core.tables import Tables
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.message_writer import MessageWriter
from eventlog.formats.qlik.metadata import read_registered
from eventlog.formats.qlik.structure import DataColumn, Structure
from eventlog.formats.qlik.types import Spec
from eventlog.transfer.settings_by_name import service_options
from eventlog.transfer.sources.schema_registry import RegistryFault
from tests.formats.qlik.helpers import NONE, read_messages, seq
from tests.kit.certificates import certificate
from tests.kit.commands import Shell
from tests.kit.receivers import say, serving
from tests.kit.support import USR

pytestmark = pytest.mark.quick

USR_KEY = Structure(
    "app",
    "usr",
    (
        DataColumn("name", Spec("STRING", 20)),
        DataColumn("site", Spec("STRING", 4), 2, False, True),
        DataColumn("id", Spec("INT4"), 1, False, True),
        DataColumn("born", Spec("DATE"), 3, False, True),
    ),
)


def usr(number: int, *, op: Op = Op.INSERT) -> Change:
    key = (("id", number), ("site", "B"), ("born", "2024-03-15"))
    sides: list[tuple[str, str | int]] = [
        ("name", f"n{number}"),
        ("site", "B"),
        ("id", number),
        ("born", "2024-03-15"),
    ]
    fields = tuple(
        Field(name, value, ABSENT) if op is Op.DELETE else Field(name, ABSENT, value) for name, value in sides
    )
    return Change(op, "app", "usr", key, fields, seq(number), f"{0xAB:032X}")


class Schemas:
    """A registry in memory."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, str]] = []

    def of(self, number: int) -> str:
        return self.registered[number - 1][1]

    def add(self, table: str, schema: str) -> int:
        if (table, schema) not in self.registered:
            self.registered.append((table, schema))
        return self.registered.index((table, schema)) + 1

    def add_key(self, table: str, schema: str) -> int:
        return self.add(f"{table}-key", schema)


def through_registry(schemas: Schemas, changes: list[Change], *, keys: bool) -> list[Any]:
    """Return the changes, written to a topic of a registry and read again."""
    tables = Tables()
    settings = MessageSettings(encoding="avro", framing="confluent", register=schemas.add)
    writer = MessageWriter(tables, settings)
    fields = [{"name": "id", "type": "int"}, *({"name": name, "type": "string"} for name in ("site", "born"))]
    key_schema = {"type": "record", "name": "KeyRecord", "fields": fields}
    records: list[Object] = []
    for written in writer.write(changes):
        assert not isinstance(written, tuple), written
        assert written.change is not None
        key = None
        if keys:
            number = schemas.add_key("app.usr", json.dumps(key_schema))
            record = BytesIO()
            fastavro.schemaless_writer(record, fastavro.parse_schema(key_schema), dict(written.change.key))
            key = b"\0" + number.to_bytes(4, "big") + record.getvalue()
        records.append(Object(len(records), written.message, None, key))
    reader = MessageReader(NONE, MessageSettings(schema_of=schemas.of))
    return list(reader.run([Source("topic[0]", "topic", (), records)]))


def test_the_key_of_a_topic_tells_the_key_of_its_table() -> None:
    schemas = Schemas()
    changes = [usr(1), usr(2), usr(2, op=Op.DELETE)]
    read = through_registry(schemas, changes, keys=True)
    assert [change.key for change in read] == [change.key for change in changes]
    assert [name for name, _ in schemas.registered] == ["app.usr", "app.usr-key"]
    bare = through_registry(Schemas(), changes, keys=False)
    assert [change.key for change in bare[:2]] == [(), ()]  # a delete has its key in its mask


def test_a_key_that_names_other_columns_changes_nothing() -> None:
    schemas = Schemas()
    foreign = {"type": "record", "name": "KeyRecord", "fields": [{"name": "other", "type": "string"}]}
    number = schemas.add_key("x", json.dumps(foreign))
    settings = MessageSettings(encoding="avro", framing="confluent", register=schemas.add)
    (message,) = (
        written.message  # type: ignore[union-attr]
        for written in MessageWriter(NONE, settings).write([usr(1)])
    )
    key = b"\0" + number.to_bytes(4, "big") + b"\x02x"
    reader = MessageReader(NONE, MessageSettings(schema_of=schemas.of))
    for strange in (key, b"", b"text", b"\0\0"):
        (change,) = reader.run([Source("t", "t", (), [Object(1, message, None, strange)])])
        assert change.key == ()  # type: ignore[union-attr]
    assert read_registered(1, schemas.of(2)).structure.key == ()


# --- who we are to a registry


@contextmanager
def registry(context: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str | None]]]:
    """A registry that notes the authorization of each question."""
    authorizations: list[str | None] = []

    def answer(handler: Any) -> None:
        authorizations.append(handler.headers["Authorization"])
        status = 401 if handler.headers["Authorization"] == "Bearer wrong" else 200
        say(status, json.dumps({"schema": '"string"'}).encode())(handler)

    with serving(answer, context) as url:
        yield url, authorizations


def ask(**settings: Any) -> str:
    return str(service_options(settings)["schema_of"](1))


def test_a_registry_is_reported_who_asks(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the file\n")
    file = str(tmp_path / "secret")
    basic = ["Basic " + base64.b64encode(b"me:" + word).decode() for word in (b"word", b"of the file")]
    with registry() as (url, seen):
        ask(schema_registry=url)
        ask(schema_registry=url, registry_user="me", registry_password="word")
        ask(schema_registry=url, registry_user="me", registry_secret_file=file)
        ask(schema_registry=url, registry_token="token")
        ask(schema_registry=url, registry_secret_file=file)
    assert seen == [None, *basic, "Bearer token", "Bearer of the file"]


def test_a_refusal_tells_no_secret() -> None:
    with registry() as (url, _), pytest.raises(RegistryFault, match="401") as caught:
        ask(schema_registry=url, registry_token="wrong")
    assert "wrong" not in str(caught.value)


def test_two_ways_to_say_who_we_are_are_misuse() -> None:
    with pytest.raises(Misuse, match="registry-token"):
        ask(schema_registry="http://127.0.0.1:1", registry_user="me", registry_token="token")


def test_a_registry_that_asks_for_a_certificate_gets_one(tmp_path: Path) -> None:
    server, server_public = certificate(tmp_path, "server")
    client, client_public = certificate(tmp_path, "client")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_public)
    context.load_cert_chain(server)
    context.verify_mode = ssl.CERT_REQUIRED
    with registry(context) as (url, _):
        assert ask(schema_registry=url, registry_ca=server_public, registry_cert=client) == '"string"'
        with pytest.raises(RegistryFault):
            ask(schema_registry=url, registry_ca=server_public)
        with pytest.raises(RegistryFault, match="CERTIFICATE_VERIFY_FAILED"):
            ask(schema_registry=url, registry_cert=client)
    with pytest.raises(Misuse, match="registry-cert"):
        ask(schema_registry="https://127.0.0.1:1", registry_cert=str(tmp_path / "none"))


def test_secrets_stand_in_no_setting_that_is_shown() -> None:
    known = build(KafkaSettings, {"registry_secret_file": "none"})
    with pytest.raises(Misuse, match="the secret in none"):
        _ = known.registry_identity
    assert replace(known, registry_secret_file="").registry_identity == ("", "", "")


# --- files


@pytest.mark.parametrize("name", ["out.avro", "out.jsonl", "out.avro.gz"])
def test_avro_in_a_file_is_read_back_as_it_stands(shell: Shell, name: str) -> None:
    folder = shell.folder
    (folder / "t.toml").write_text(USR)
    row = '{{"op":"insert","schema":"indirect","table":"usr","key":{{"idu":{0}}},"fields":[]}}\n'
    (folder / "in.jsonl").write_text(row.format(1) + row.format(2))
    to = ("convert", "--from", "changes", "--to", "qlik-message", "--encoding", "avro", "--tables", "t.toml")
    back = ("convert", "--from", "qlik-message", "--to", "changes")
    assert shell.run(*to, "-o", name, "in.jsonl").code == 0
    done = shell.run(*back, name)
    assert (done.code, done.stderr) == (0, "eventlog: 2 changes were converted\n")
    piped = shell.run(*back, "-", stdin=shell.run(*to, "in.jsonl").stdout)
    for text in (done.stdout, piped.stdout):
        assert [json.loads(line)["key"] for line in text.splitlines()] == [{"idu": 1}, {"idu": 2}]


def test_a_text_that_is_no_message_is_refused() -> None:
    for text in ("", "x", "61", "6174", "00" * 5, "61744D5347", "zz" * 10):
        (refused,) = read_messages([text])
        assert not isinstance(refused, Change)
