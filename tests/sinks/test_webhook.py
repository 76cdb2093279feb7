"""Signed documents, judged by the package of Standard Webhooks."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from eventlog.core.errors import Misuse
from eventlog.sinks import open_sink
from eventlog.sinks.sink import Item, OutgoingDocument
from tests.kit.receivers import receiver, say
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

OUTPUT = b'<nds><output><status level="success"/></output></nds>'


def secret(size: int = 32) -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(size)).decode()}"


def post(folder: Path, text: str, *documents: OutgoingDocument) -> list[tuple[dict[str, str], bytes]]:
    """Send documents that are signed by the secrets of a text; return their headers and bodies."""
    arrived: list[tuple[dict[str, str], bytes]] = []

    def answer(handler: Any) -> None:
        arrived.append((dict(handler.headers), handler.body))
        say(200, OUTPUT)(handler)

    (folder / "whsec").write_text(text)
    with receiver(answer) as url:
        sink = open_sink("http", {"http_url": url, "http_signing_file": str(folder / "whsec")})
        assert all(reply.fault is None for reply in sink.deliver(documents))
        sink.close()
    return arrived


def ids(folder: Path, *documents: OutgoingDocument) -> list[str]:
    return [headers["webhook-id"] for headers, _ in post(folder, secret(), *documents)]


def events(*event_ids: str) -> OutgoingDocument:
    return OutgoingDocument("name", [Item(event_id, "<a/>") for event_id in event_ids])


@pytest.mark.parametrize("size", [24, 32, 64])
def test_a_document_is_signed(tmp_path: Path, size: int) -> None:
    key = secret(size)
    ((headers, body),) = post(tmp_path, key + "\n", make(1, "<ü/>"))
    Webhook(key).verify(body, headers, json_parse=False)
    assert headers["webhook-id"] == "eventlog:1"
    for other_key, other_body, change in (
        (secret(), body, {}),
        (key, body + b" ", {}),
        (key, body, {"webhook-id": "eventlog:2"}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(other_key).verify(other_body, headers | change, json_parse=False)


def test_each_secret_of_the_file_signs(tmp_path: Path) -> None:
    old, new = secret(), secret()
    ((headers, body),) = post(tmp_path, f"{new}\r\n\n  {old}  ", make(1))
    assert len(headers["webhook-signature"].split(" ")) == 2
    for key in (old, new):
        Webhook(key).verify(body, headers, json_parse=False)


def test_an_id_repeats_with_the_same_events_alone(tmp_path: Path) -> None:
    documents = [events("a:1", "a:2"), events("a:1"), events("a:2", "a:1"), events("a:1", "a:2", "a:3")]
    first, repeat = ids(tmp_path, *documents), ids(tmp_path, *documents)
    assert first == repeat
    assert len(set(first)) == len(documents)
    assert ids(tmp_path, OutgoingDocument("heartbeat-1", (), "<a/>")) == ["heartbeat-1"]


def test_an_id_has_no_character_that_a_header_or_the_signature_cannot_hold(tmp_path: Path) -> None:
    names = ["app.eventlog:1-3:0a1b", "журнал:1", "a b\r\nX: y", "", "x" * 1000]
    arrived = ids(tmp_path, *map(events, names))
    assert arrived[0] == "app%2Eeventlog:1-3:0a1b"
    assert all(re.fullmatch(r"[\w:%-]{1,200}", name, re.ASCII) for name in arrived)


A_SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
MALFORMED: Sequence[str] = (
    "",
    "\n \n",
    base64.b64encode(b"x" * 32).decode(),  # without its prefix
    "whsec_",
    "whsec_" + base64.b64encode(b"s" * 23).decode(),
    "whsec_" + base64.b64encode(b"s" * 65).decode(),
    "whsec_" + "hunter2x!!!!" * 5,
    "whsk_" + base64.b64encode(b"x" * 32).decode(),  # asymmetric
    f"{A_SECRET}\nhunter2",
)


@pytest.mark.parametrize("text", MALFORMED)
def test_a_secret_that_is_none_is_reported_at_the_start_without_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "whsec"
    file.write_text(text)
    with pytest.raises(Misuse, match=r"http-signing-file .*whsec( line \d)?: ") as caught:
        open_sink("http", {"http_url": "http://127.0.0.1:1/", "http_signing_file": str(file)})
    message = str(caught.value).replace(str(file), "")
    contents = [word.removeprefix("whsec_") for word in text.split()]
    assert not [content for content in contents if content and content in message]
    assert caught.value.__cause__ is None


def test_a_file_of_secrets_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="none: No such file"):
        open_sink("http", {"http_url": "http://127.0.0.1:1/", "http_signing_file": str(tmp_path / "none")})
