"""A receiver over HTTP: answers, silence, half an answer, and no receiver."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import Misuse
from eventlog.sinks import open_sink
from eventlog.sinks.sink import Item, OutgoingDocument, Reply
from eventlog.xds.answers import Level
from tests.kit.certificates import certificate
from tests.kit.receivers import Answering, dripping, hang_up, receiver, say
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

OUTPUT = b'<nds><output><status level="warning" event-id="eventlog:1">so</status></output></nds>'
OF_NO_EVENT = b'<nds><output><status level="warning">so</status></output></nds>'


def post(answering: Answering, *documents: OutgoingDocument, **settings: Any) -> list[Reply]:
    with receiver(answering) as url:
        sink = open_sink("http", {"http_url": url, "http_timeout": 0.3} | settings)
        replies = list(sink.deliver(documents or [make(1)]))
        sink.close()
        return replies


def test_http_posts_documents_and_reads_answers() -> None:
    seen: list[tuple[str, str, str, bytes]] = []

    def answer(handler: Any) -> None:
        seen.append((handler.path, handler.headers["Content-Type"], handler.client_address[1], handler.body))
        say(200, OF_NO_EVENT)(handler)

    replies = post(answer, make(1), make(2, "<ü/>"))
    assert [reply.statuses[0].level for reply in replies] == [Level.WARNING, Level.WARNING]
    assert seen[0][:2] == ("/in?a=b", "application/xml; charset=utf-8")
    assert seen[0][2] == seen[1][2]  # one connection for both
    assert seen[1][3] == "<ü/>".encode()


def _raw(content: bytes) -> Answering:
    """Return what sends an answer of these headers and this body, and ends the connection."""

    def answer(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + content)
        handler.close_connection = True

    return answer


@pytest.mark.parametrize("between", [b", ", b"\r\nContent-Length: "])
def test_http_an_answer_may_have_its_length_twice(between: bytes) -> None:
    """The connection stays open, so that only the length shows where the answer ends."""
    length = b"%d" % len(OUTPUT)

    def answer(handler: Any) -> None:
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: " + length + between + length + b"\r\n\r\n" + OUTPUT
        )

    (reply,) = post(answer)
    assert reply.statuses[0].level is Level.WARNING


@pytest.mark.parametrize(
    ("answering", "reason"),
    [
        (say(200), "no XML"),
        (say(204), "no XML"),
        (say(200, b"thank you"), "no XML"),
        (say(200, b"<html/>"), "no nds document"),
        (say(200, b'<!DOCTYPE nds [<!ENTITY a "b">]><nds><output/></nds>'), "document type"),
        (say(200, OUTPUT[:20], length=len(OUTPUT)), "IncompleteRead"),
        pytest.param(say(200, OUTPUT, length=1000), "IncompleteRead", id="cut after an answer"),
        (_raw(b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b" % (len(OUTPUT), OUTPUT)), "IncompleteRead"),
        (_raw(b"Content-Length: %d, 9999\r\n\r\n%b" % (len(OUTPUT), OUTPUT)), "different values"),
        (_raw(b"Content-Length: %d\r\nContent-Length: 1\r\n\r\n%b" % (len(OUTPUT), OUTPUT)), "different"),
        (say(302, b"", ("Location", "http://elsewhere/")), "302 Found; redirects are not followed"),
        (say(400, OUTPUT), "400"),
        (say(500), "500"),
        (hang_up, ""),
        (lambda handler: threading.Event().wait(1.0), "within 0.3 seconds"),
    ],
)
def test_http_what_is_no_answer_is_none(answering: Answering, reason: str) -> None:
    (reply,) = post(answering)
    assert reply.fault is not None
    assert reason in reply.fault
    assert reply.arrived
    assert reply.wait is None


@pytest.mark.parametrize("status", [429, 503])
def test_http_waits_as_long_as_the_receiver_asks(status: int) -> None:
    assert post(say(status, b"", ("Retry-After", "7")))[0].wait == 7.0
    assert post(say(status, b"", ("Retry-After", "99999")))[0].wait == 3600.0
    assert post(say(status, b"", ("Retry-After", "Fri, 01 Jan 2010 00:00:00 GMT")))[0].wait == 0.0
    assert post(say(status, b"", ("Retry-After", "soon")))[0].wait is None
    beyond = f"Fri, {10**20} Jan 2010 00:00:00 GMT"
    assert post(say(status, b"", ("Retry-After", beyond)))[0].wait is None


@pytest.mark.usefixtures("kathmandu")
def test_http_a_date_without_a_zone_is_of_utc() -> None:
    soon = time.asctime(time.gmtime(time.time() + 600))
    (reply,) = post(say(503, b"", ("Retry-After", soon)))
    assert reply.wait is not None
    assert 0 < reply.wait <= 600


def test_http_a_slow_answer_ends_in_time() -> None:
    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b" ")
            threading.Event().wait(0.05)

    (reply,) = post(drip)
    assert "within 0.3 seconds" in str(reply.fault)


DRIPPING = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Drip: 1\r\n"),
    "a header": (b"HTTP/1.1 200 OK\r\nX-Drip: ", b"1"),
    "no status": (b"", b"H"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "chunk size": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
}


@pytest.mark.parametrize("what", DRIPPING)
def test_http_a_dripping_answer_ends_in_time(what: str) -> None:
    """End it, because it would go on for ever."""
    with dripping(*DRIPPING[what]) as port:
        sink = open_sink("http", {"http_url": f"http://127.0.0.1:{port}/", "http_timeout": 0.3})
        (reply,) = sink.deliver([make(1)])
    assert "within 0.3 seconds" in str(reply.fault)
    assert reply.arrived


def test_http_a_receiver_that_does_not_read_ends_in_time() -> None:
    large = OutgoingDocument("large", (Item("large", "x" * (64 << 20)),))
    with dripping(b"", b"", reads=False) as port:
        sink = open_sink("http", {"http_url": f"http://127.0.0.1:{port}/", "http_timeout": 0.3})
        (reply,) = sink.deliver([large])
    assert "within 0.3 seconds" in str(reply.fault)


def test_http_a_dripping_handshake_ends_in_time() -> None:
    with dripping(b"\x16\x03\x03\x40\x00", b"\x00") as port:
        sink = open_sink("http", {"http_url": f"https://127.0.0.1:{port}/", "http_timeout": 0.3})
        (reply,) = sink.deliver([make(1)])
    assert not reply.arrived
    assert "no connection within 0.3 seconds" in str(reply.fault)


def test_http_where_nobody_listens_nothing_arrives() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    replies = list(open_sink("http", {"http_url": url}).deliver([make(1), make(2)]))
    assert [reply.arrived for reply in replies] == [False, False]


def test_http_connects_again_where_the_receiver_has_hung_up_between() -> None:
    def answer_and_close(handler: Any) -> None:
        say(200, OF_NO_EVENT)(handler)
        handler.close_connection = True

    replies = post(answer_and_close, make(1), make(2), make(3))
    assert [reply.fault for reply in replies] == [None, None, None]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"http_user": "jo", "http_password": "päss"}, "Basic am86cMOkc3M="),
        ({"http_token": "t0ken"}, "Bearer t0ken"),
    ],
)
def test_http_authentication(given: dict[str, str], expected: str | None) -> None:
    seen = []

    def answer(handler: Any) -> None:
        seen.append(handler.headers["Authorization"])
        say(200, OUTPUT)(handler)

    post(answer, **given)
    assert seen == [expected]


def test_http_a_token_in_a_file_is_renewed_between_documents(tmp_path: Path) -> None:
    seen, file = [], tmp_path / "token"
    renewed = {"Bearer first": "second\n", "Bearer second": ""}

    def answer(handler: Any) -> None:
        seen.append(handler.headers["Authorization"])
        file.write_text(renewed[handler.headers["Authorization"]])
        say(200, OUTPUT)(handler)

    file.write_text("first")
    replies = post(answer, make(1), make(2), make(3), http_token="old", http_token_file=str(file))
    assert seen == ["Bearer first", "Bearer second"]
    assert [reply.arrived for reply in replies] == [True, True, False]
    assert replies[-1].fault == f"http-token-file {file}: it is empty"


@pytest.mark.parametrize(
    ("token", "reason"), [("hus\nh", "more than one line"), ("hüsh", "no header can hold")]
)
def test_http_a_token_file_that_holds_no_token_is_named_and_not_shown(
    tmp_path: Path, token: str, reason: str
) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    (reply,) = post(say(200, OUTPUT), http_token_file=str(file))
    assert not reply.arrived
    assert reason in str(reply.fault)
    assert "sh" not in str(reply.fault).replace(str(file), "")
    (reply,) = post(say(200, OUTPUT), http_token_file=str(tmp_path / "none"))
    assert "No such file" in str(reply.fault)


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("variable", "header"),
    [
        (TRACE, TRACE),
        ("", None),
        (f"{TRACE}\r\nX: y", None),
        (TRACE.upper(), None),
        (f"{TRACE}-more", None),
        (f"ff{TRACE[2:]}", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01", None),
    ],
)
def test_http_passes_the_trace_on(monkeypatch: pytest.MonkeyPatch, variable: str, header: str | None) -> None:
    headers: list[str | None] = []

    def answer(handler: Any) -> None:
        headers.append(handler.headers["traceparent"])
        say(200, OUTPUT)(handler)

    monkeypatch.setenv("TRACEPARENT", variable)
    post(answer, make(1), make(2))
    assert headers == [header, header]


@pytest.mark.parametrize(
    ("parent", "state", "header"),
    [
        (TRACE, "rojo=00f067aa0ba902b7, congo@v=t61", "rojo=00f067aa0ba902b7, congo@v=t61"),
        ("", "rojo=1", None),
        (TRACE, "", None),
        (TRACE, "rojo=1\r\nX: y", None),
        (TRACE, "no member", None),
        (TRACE, ",".join(f"k{n}=1" for n in range(32)), ",".join(f"k{n}=1" for n in range(32))),
        (TRACE, ",".join(f"k{n}=1" for n in range(33)), None),
        (TRACE, f"k={'1' * 255},l={'1' * 255}", None),
    ],
    ids=["two members", "no parent", "none", "line end", "no pair", "32 members", "33 members", "too long"],
)
def test_http_passes_the_state_of_the_trace_on(
    monkeypatch: pytest.MonkeyPatch, parent: str, state: str, header: str | None
) -> None:
    headers: list[str | None] = []

    def answer(handler: Any) -> None:
        headers.append(handler.headers["tracestate"])
        say(200, OUTPUT)(handler)

    monkeypatch.setenv("TRACEPARENT", parent)
    monkeypatch.setenv("TRACESTATE", state)
    post(answer, make(1))
    assert headers == [header]


def test_http_address_holds_no_password() -> None:
    with pytest.raises(Misuse) as caught:
        open_sink("http", {"http_url": "http://jo:secret@host/"})
    assert "secret" not in str(caught.value)


def test_http_over_tls_only_with_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    server, public = certificate(tmp_path, "receiver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    with receiver(say(200, OUTPUT), context) as url:
        trusting = open_sink("http", {"http_url": url, "http_ca": public})
        (reply,) = trusting.deliver([make(1)])
        trusting.close()
        assert reply.fault is None
        (reply,) = open_sink("http", {"http_url": url}).deliver([make(1)])
        assert not reply.arrived
        assert "CERTIFICATE_VERIFY_FAILED" in str(reply.fault)


@pytest.mark.parametrize("form", ["cloudevents-binary", "cloudevents-structured"])
def test_http_events_are_cloudevents_as_their_own_package_reads_them(form: str) -> None:
    from cloudevents.core.bindings.http import HTTPMessage, from_http
    from cloudevents.core.formats.json import JSONFormat

    arrived: list[HTTPMessage] = []

    def answer(handler: Any) -> None:
        arrived.append(HTTPMessage(headers=dict(handler.headers.items()), body=handler.body))
        say(200, OUTPUT)(handler)

    event = '<add class-name="usr" event-id="eventlog:1"><association>idu=ü 1%,table=usr</association></add>'
    alone = OutgoingDocument("1-1", [Item("eventlog:1", event, "idu=ü 1%,table=usr", "add")])
    several = OutgoingDocument("1-2", [*make(1).items, *make(2).items])
    replies = post(answer, alone, several, document=form)
    assert [reply.divide for reply in replies] == [False, True]
    (message,) = arrived
    cloud_event = from_http(message, JSONFormat())
    facts = (
        cloud_event.get_id(),
        cloud_event.get_source(),
        cloud_event.get_type(),
        cloud_event.get_subject(),
    )
    assert facts == ("eventlog:1", "/eventlog/eventlog", "eventlog.add", "idu=ü 1%,table=usr")
    data = cloud_event.get_data()
    assert (data.decode() if isinstance(data, bytes) else data) == alone.text
    assert str(cloud_event.get_datacontenttype()).startswith("application/xml")
