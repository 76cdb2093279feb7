"""The receiver through its public door: documents in, answers and pages out."""

from __future__ import annotations

import re
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from eventlog.web.app import make_app, page
from eventlog.web.receiver.archive import PAGE, Archive
from eventlog.web.receiver.incoming import Incoming, ReceivedEvent
from eventlog.xds import answers
from eventlog.xds.answers import Level
from eventlog.xds.documents import HEARTBEAT
from tests.kit.support import patient
from tests.web.receiver.conftest import ADD, DELETE, HOST, HOSTILE, MODIFY, Client, nds, receiving, served

pytestmark = pytest.mark.quick

EVENT_COUNT = 10_000


def levels(reply: str) -> dict[str | None, str]:
    return {status.event_id: status.level.name.lower() for status in answers.read(reply.encode())}


def test_a_document_is_answered_for_each_event_and_shown(client: Client) -> None:
    assert levels(client.post(ADD, DELETE)) == {"log:1": "success", "log:3": "success"}
    page = client.get("/document/1")
    assert '<td data-label="Value" class="text"><div>Jack</div></td>' in page
    assert "/object?association=idu%3D1%2Ctable%3Dusr%2Cschema%3Dindirect" in page
    assert "1 document is kept" in client.get()


def test_a_heartbeat_is_a_success_and_is_listed(client: Client) -> None:
    status, reply, _ = client.ask("POST", "/", HEARTBEAT.encode())
    assert (status, levels(reply)) == (200, {None: "success"})
    assert client.get("/?operation=heartbeat").count("<tr>") == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body is empty"),
        (b"nonsense", "no nds document begins here"),
        (b'<!DOCTYPE nds [<!ENTITY a "b">]><nds/>', "document type declaration is not accepted"),
        (b'<nds dtdversion="4.0"><input></input></nds><nds/>', "Extra content"),
        (b'<nds dtdversion="4.0"><input><add>', "cut short"),
    ],
)
def test_what_is_not_valid_is_an_error_with_its_reason_and_is_kept(
    client: Client, body: bytes, reason: str
) -> None:
    status, reply, _ = client.ask("POST", "/", body)
    (answer,) = answers.read(reply.encode())
    assert (status, answer.level, answer.type) == (200, Level.ERROR, "invalid-document")
    assert reason in answer.text
    assert "Not valid" in client.get("/document/1")


def test_the_page_sets_the_level_of_the_answers(client: Client) -> None:
    for level in ("retry", "warning", "error", "fatal", "success"):
        status, _, headers = client.ask("POST", "/answer", f"level={level}".encode())
        assert (status, headers["Location"]) == (303, "/")
        assert levels(client.post(ADD, DELETE)) == {"log:1": level, "log:3": level}
        assert client.get(f"/?status={level}").count("<tr>") == 3
        assert f'<option value="{level}" selected>' in client.get()
    assert client.ask("POST", "/answer", b"level=perhaps")[0] == 400


def test_hostile_values_are_text_everywhere(client: Client) -> None:
    escaped = HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    client.post(
        f'<add class-name="{escaped}" event-id="{escaped}"><association>{escaped}</association>'
        f'<add-attr attr-name="{escaped}"><value type="string">{escaped}</value></add-attr></add>'
    )
    client.ask("POST", "/", HOSTILE.encode())
    association = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27%26%E2%80%AE"
    paths = ("/", "/document/1", "/document/2", f"/object?association={association}", f"/?key={association}")
    for path in paths:
        page = client.get(path)
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;⟨U+202E⟩" in page


def test_pages_may_load_nothing_from_elsewhere(client: Client) -> None:
    _, page, headers = client.ask("GET", "/")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src 'self'; style-src 'self'")
    assert policy.endswith("form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
    assert "http" not in page.replace("http-equiv", "")
    for path in ("/page.css", "/page.js"):
        assert client.ask("GET", path)[2]["X-Content-Type-Options"] == "nosniff"


def test_a_document_as_it_came_is_never_shown_by_the_browser(client: Client) -> None:
    client.post(ADD)
    _, text, headers = client.ask("GET", "/document/1.xml")
    assert text.startswith("<nds")
    assert headers["Content-Disposition"].startswith("attachment")
    assert headers["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "["}, 421),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, 200),
    ],
)
def test_pages_of_other_sites_are_kept_out(client: Client, headers: dict[str, str], status: int) -> None:
    assert client.ask("POST", "/", b"x", headers)[0] == status


def test_filters_and_pages(client: Client) -> None:
    for number in range(PAGE + 5):
        client.post(ADD.replace("idu=1", f"idu={number}").replace("log:1", f"log:{number}"))
    client.post(DELETE)
    assert client.get("/?class=grp").count("<tr>") == 2
    assert client.get("/?operation=add&key=idu%3D7").count("<tr>") == 2
    first = client.get("/?operation=add")
    assert first.count("<tr>") == PAGE + 1
    assert "operation=add&amp;before=6.1" in first
    second = client.get("/?operation=add&before=6.1")
    assert second.count("<tr>") == 6
    assert "after=5.1" in second
    assert client.get("/?operation=add&after=5.1").count("<tr>") == PAGE + 1
    newer = client.get("/?operation=add&after=3.1")  # and there are more on that way
    assert "after=53.1" in newer
    assert "before=4.1" in newer


def test_the_history_of_an_object_ends_in_what_is_left(client: Client) -> None:
    client.post(ADD)
    client.post(MODIFY)
    page = client.get("/object?association=idu%3D1%2Ctable%3Dusr%2Cschema%3Dindirect")
    assert page.index("fname + Jack") < page.index("fname − Jack") < page.index("fname + John")
    assert '<td data-label="Values" class="text"><div><div>John</div></div></td>' in page


def test_what_was_not_taken_leaves_nothing(client: Client) -> None:
    client.post(ADD)
    client.ask("POST", "/answer", b"level=error")
    client.post(MODIFY)
    page = client.get("/object?association=idu%3D1%2Ctable%3Dusr%2Cschema%3Dindirect")
    assert '<td data-label="Values" class="text"><div><div>Jack</div></div></td>' in page
    client.ask("POST", "/answer", b"level=success")
    client.post(DELETE)
    assert "It is deleted." in client.get("/object?association=idg%3D7%2Ctable%3Dgrp")


def test_an_object_that_was_deleted_is_begun_again_by_an_add_or_a_modify_alone(client: Client) -> None:
    page = "/object?association=idg%3D7%2Ctable%3Dgrp"
    status = '<status type="sync" level="success"><association>idg=7,table=grp</association></status>'
    for begin in (ADD, MODIFY):
        client.post(DELETE, status)
        assert "It is deleted." in client.get(page)
        client.post(re.sub("<association.*association>", "<association>idg=7,table=grp</association>", begin))
        assert "It is deleted." not in client.get(page)


def test_the_oldest_make_room(tmp_path: Path) -> None:
    with receiving(tmp_path, keep=2) as client:
        for _ in range(3):
            client.post(ADD)
        assert client.ask("GET", "/document/1")[0] == 404
        assert "2 documents are kept" in client.get()


def test_the_file_is_as_small_as_what_is_kept(tmp_path: Path) -> None:
    with receiving(tmp_path, keep=2) as client:
        for _ in range(9):
            client.post(ADD, DELETE)
    with closing(sqlite3.connect(tmp_path / "received.sqlite")) as file:
        assert file.execute("select count(*) from event").fetchone() == (4,)


def test_events_go_with_their_documents(tmp_path: Path) -> None:
    with receiving(tmp_path, keep=2) as client:
        client.post(DELETE)
        assert ">grp<" in client.get()
        for _ in range(2):
            client.post(ADD)
        assert ">grp<" not in client.get()


def test_what_is_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    with receiving(tmp_path) as client:
        client.post(ADD)
    with receiving(tmp_path) as client:
        assert "log:1" in client.get()


@pytest.mark.parametrize(
    "path", ["/document/", "/document/x", "/document/99", "/etc/passwd", "/document/1/../2"]
)
def test_what_is_not_there_is_said_so(client: Client, path: str) -> None:
    status, page, _ = client.ask("GET", path)
    assert status == 404
    assert "<title>Not found · eventlog receiver</title>" in page
    assert "documents are posted to /, and listed there" in page


@pytest.mark.long
def test_ten_thousand_documents_do_not_slow_a_page(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "received.sqlite")
    for number in range(EVENT_COUNT):
        event = ReceivedEvent("add", "usr", f"idu={number},table=usr", f"log:{number}")
        archive.keep("2025-03-23 10:57:19.000", b"<nds/>", Incoming((event,)), "success", b"<nds/>")
    archive.close()
    with receiving(tmp_path, keep=2 * EVENT_COUNT) as client:
        for path in ("/", "/?class=usr&status=success&key=idu%3D99", "/?before=5000.1", "/?status=error"):
            began = time.perf_counter()
            client.get(path)
            assert time.perf_counter() - began < patient(0.5), path


def test_a_document_that_breaks_off_is_not_kept(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n<nds>")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert "0 documents are kept" in client.get()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 99999999999", b"413"),
        (b"Content-Length: -1", b"400"),
        (b"Content-Length: 1\r\nContent-Length: 2", b"400"),
        (b"Transfer-Encoding: chunked", b"411"),
        (b"Transfer-Encoding: \r\nContent-Length: 1", b"400"),
    ],
)
def test_a_body_without_bounds_is_refused(client: Client, head: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
        assert connection.recv(100).split()[1] == status


def test_a_client_that_waits_for_leave_gets_it_at_once_or_a_refusal(client: Client) -> None:
    body = nds(ADD)
    asked = b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), patient(10)) as connection:
        connection.sendall(asked % len(body))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(100).split()[1] == b"200"
    with socket.create_connection(("127.0.0.1", client.port), patient(10)) as connection:
        connection.sendall(asked % 10**12)
        assert connection.recv(100).split()[1] == b"413"
    assert "1 document is kept" in client.get()


def test_headers_without_bounds_are_refused_and_each_request_has_its_own(client: Client) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    long = b"X: " + b"x" * 30_000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", client.port), patient(20)) as connection:
        connection.sendall((asked + long + b"\r\n") * 5 + asked + long * 3)
        with connection.makefile("rb") as replies:
            reported = [line.split()[1] for line in replies if line.startswith(b"HTTP/1.1")]
    assert reported == [b"200"] * 5 + [b"400"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", b"400"),
        (b"GET http://[::1/ HTTP/1.1\r\nHost: localhost", b"404"),
    ],
)
def test_two_hosts_and_what_is_no_address_are_refused(client: Client, asked: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", client.port), patient(20)) as connection:
        connection.sendall(asked + b"\r\n\r\n")
        assert connection.recv(100).split()[1] == status


def test_what_fails_is_a_status_and_a_record(caplog: pytest.LogCaptureFixture) -> None:
    def fail(request: Request) -> Response:
        raise OSError("the disk is full")

    with served(make_app([page("/", fail, post=True)], HOST)) as client:
        assert client.ask("POST", "/", b"x")[0] == 500
    assert "the disk is full" in caplog.text


def test_a_query_without_bounds_is_refused(client: Client) -> None:
    assert client.ask("GET", "/?" + "a=1&" * 100)[0] == 400


def test_a_query_with_a_zero_character_is_refused(client: Client) -> None:
    status, page, _ = client.ask("GET", "/?key=a%00b")
    assert (status, "U+0000" in page) == (400, True)
