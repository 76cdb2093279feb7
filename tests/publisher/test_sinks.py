"""Each sink against a receiver of its own kind: answers, silence, half an answer, and nobody there."""

from __future__ import annotations

import io
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import Misuse
from eventlog.sinks import SINKS, open_sink, sink_kind
from eventlog.sinks.files import FilesSettings, FilesSink, FolderFailed, highest_in
from eventlog.sinks.sink import ACCEPTED, Item, OutgoingDocument, Reply
from eventlog.sinks.stdout import StdoutSink
from eventlog.xds.answers import Level
from tests.brokers import own_name
from tests.smalldisk import NoSmallDisk, small_disk

OUTPUT = b'<nds><output><status level="warning" event-id="eventlog:1">so</status></output></nds>'


def make(number: int, text: str | None = None) -> OutgoingDocument:
    event = f'<delete event-id="eventlog:{number}"><association>idu={number},table=usr</association></delete>'
    return OutgoingDocument(f"{number}-{number}", [Item(f"eventlog:{number}", event)], text)


def test_every_sink_can_be_opened_by_its_name() -> None:
    assert [sink_kind(name).settings.__name__ for name in SINKS] == [
        "StdoutSettings", "FilesSettings", "HttpSettings", "CommandSettings", "KafkaSinkSettings",
    ]  # fmt: skip
    with pytest.raises(Misuse, match="known are stdout, files"):
        open_sink("smtp", {})


def test_standard_output_is_a_document_a_line() -> None:
    out = io.BytesIO()
    assert list(StdoutSink(out).deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    assert [line.count(b"eventlog:") for line in out.getvalue().splitlines()] == [1, 1]


# files


def out(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.xml"))


def test_files_are_whole_and_known_at_the_next_start(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    assert list(sink.deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    sink.close()
    assert out(tmp_path) == ["1-1.xml", "2-2.xml"]
    assert (tmp_path / "1-1.xml").read_text() == make(1).text + "\n"
    (tmp_path / "1-1.xml").unlink()  # a reader took it away
    again = FilesSink(tmp_path)
    assert [again.knows(name) for name in ("1-1", "2-2", "3-3")] == [True, True, False]
    again.close()


def test_the_highest_row_is_that_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it begins anew, with documents of lower rows."""
    settings = FilesSettings(files_folder=str(tmp_path))
    sink = FilesSink(tmp_path)
    assert sink.highest() is None
    for numbers in ([3, 10], [9]):
        list(sink.deliver([make(number) for number in numbers]))
        assert sink.highest() == highest_in(settings) == 10
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    list(sink.deliver([make(4)]))
    sink.close()
    again = FilesSink(tmp_path)
    assert sink.highest() == highest_in(settings) == again.highest() == 4
    again.close()


def test_what_is_on_record_gets_its_place_and_what_is_not_never_was(tmp_path: Path) -> None:
    FilesSink(tmp_path).close()
    aside = tmp_path / ".eventlog"
    for name in ("1-1", "2-2", "unfinished"):
        (aside / name).write_text("<nds/>")
    with (aside / "record").open("a") as record:
        record.write("\n1-1 out\n\n2-2 o")  # the crash cut the second line
    sink = FilesSink(tmp_path)
    assert out(tmp_path) == ["1-1.xml"]
    assert [sink.knows("1-1"), sink.knows("2-2")] == [True, False]
    assert sorted(path.name for path in aside.iterdir()) == ["record"]
    sink.close()


def test_documents_of_a_batch_in_one_file_are_out_together_or_not_at_all(tmp_path: Path) -> None:
    sink = open_sink("files", {"files_folder": str(tmp_path), "files_per_batch": True})
    assert list(sink.deliver([make(1), make(2), make(3)])) == [ACCEPTED] * 3
    assert list(sink.deliver([make(4)])) == [ACCEPTED]
    sink.close()
    assert out(tmp_path) == ["1-1.xml", "4-4.xml"]
    assert (tmp_path / "1-1.xml").read_text() == "".join(f"{make(n).text}\n" for n in (1, 2, 3))
    record = tmp_path / ".eventlog" / "record"
    whole = record.read_bytes()
    for kept in range(len(whole) + 1):  # a crash may cut the record anywhere
        record.write_bytes(whole[:kept])
        again = FilesSink(tmp_path, per_batch=True)
        assert len({again.knows(name) for name in ("1-1", "2-2", "3-3")}) == 1
        again.close()


def test_a_batch_that_cannot_be_put_on_record_never_was(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path, per_batch=True)
    (tmp_path / ".eventlog" / "unfinished").symlink_to("/dev/full")
    assert [reply.arrived for reply in sink.deliver([make(1), make(2)])] == [False]
    (tmp_path / "1-1.xml").write_text("mine")
    assert [reply.arrived for reply in sink.deliver([make(1), make(2)])] == [False]
    assert (tmp_path / "1-1.xml").read_text() == "mine"
    (tmp_path / "1-1.xml").unlink()
    assert list(sink.deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    sink.close()


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    with pytest.raises(FolderFailed, match="another process writes there"):
        FilesSink(tmp_path)
    sink.close()
    FilesSink(tmp_path).close()


def test_a_strange_file_of_the_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "1-1.xml").write_text("mine")
    sink = FilesSink(tmp_path)
    (reply,) = sink.deliver([make(1)])
    assert not reply.arrived
    assert "move it away" in str(reply.fault)
    assert (tmp_path / "1-1.xml").read_text() == "mine"
    sink.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    (tmp_path / ".eventlog" / "unfinished").symlink_to("/dev/full")
    replies = list(sink.deliver([make(1), make(2)]))
    assert [reply.arrived for reply in replies] == [False]
    assert "No space left" in str(replies[0].fault)
    assert out(tmp_path) == []
    assert [path.name for path in (tmp_path / ".eventlog").iterdir()] == ["record"]
    assert list(sink.deliver([make(1)])) == [ACCEPTED]
    sink.close()


def test_of_a_batch_that_finds_no_room_some_goes_out(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(tmp_path / "small", 40))
        except NoSmallDisk as fault:
            pytest.skip(f"no small disk can be mounted here: {fault}")
        sink = stack.enter_context(closing(FilesSink(disk.outside)))
        *gone, last = sink.deliver([make(number) for number in range(1, 100)])
        assert gone
        assert set(gone) == {ACCEPTED}
        assert (last.arrived, "No space left" in str(last.fault)) == (False, True)
        assert out(disk.outside) == sorted(f"{n}-{n}.xml" for n in range(1, len(gone) + 1))
        assert [sink.knows(f"{n}-{n}") for n in (len(gone), len(gone) + 1)] == [True, False]


# http

Answering = Callable[[Any], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of the tests."""


@contextmanager
def receiver(answering: Answering, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """An HTTP server that answers every POST so; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.body = self.rfile.read(int(self.headers["Content-Length"]))
            answering(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Silence."""

    server = _Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}/in?a=b"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def say(status: int, body: bytes = b"", *headers: tuple[str, str], length: int | None = None) -> Answering:
    def answer(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        for header in headers:
            handler.send_header(*header)
        handler.end_headers()
        handler.wfile.write(body)
        if length is not None:
            handler.close_connection = True

    return answer


def hang_up(handler: Any) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def post(answering: Answering, *documents: OutgoingDocument, **given: Any) -> list[Reply]:
    with receiver(answering) as url:
        sink = open_sink("http", {"http_url": url, "http_timeout": 0.3} | given)
        replies = list(sink.deliver(documents or [make(1)]))
        sink.close()
        return replies


def test_http_posts_documents_and_reads_answers() -> None:
    seen: list[tuple[str, str, str, bytes]] = []

    def answer(handler: Any) -> None:
        seen.append((handler.path, handler.headers["Content-Type"], handler.client_address[1], handler.body))
        say(200, OUTPUT)(handler)

    replies = post(answer, make(1), make(2, "<ü/>"))
    assert [reply.statuses[0].level for reply in replies] == [Level.WARNING, Level.WARNING]
    assert seen[0][:2] == ("/in?a=b", "application/xml; charset=utf-8")
    assert seen[0][2] == seen[1][2]  # one connection for both
    assert seen[1][3] == "<ü/>".encode()


@pytest.mark.parametrize(
    ("answering", "reason"),
    [
        (say(200), "no XML"),
        (say(204), "no XML"),
        (say(200, b"thank you"), "no XML"),
        (say(200, b"<html/>"), "no nds document"),
        (say(200, b'<!DOCTYPE nds [<!ENTITY a "b">]><nds><output/></nds>'), "document type"),
        (say(200, OUTPUT[:20], length=len(OUTPUT)), "IncompleteRead"),
        (say(302, b"", ("Location", "http://elsewhere/")), "302"),
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
    assert post(say(status, b"", ("Retry-After", "Fri, 01 Jan 2010 00:00:00 GMT")))[0].wait == 0.0
    assert post(say(status, b"", ("Retry-After", "soon")))[0].wait is None


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


@contextmanager
def dripping(first: bytes, drop: bytes, reads: bool = True) -> Iterator[int]:
    """A server that says something, and then a drop every 20 ms for ever; its port."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            if reads:
                connection.recv(1 << 16)
            connection.sendall(first)
            while not over.wait(0.02):
                connection.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("what", DRIPPING)
def test_http_a_dripping_answer_ends_in_time(what: str) -> None:
    """It would go on for ever."""
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
    assert "timed out" in str(reply.fault) or "time is over" in str(reply.fault)


def test_http_where_nobody_listens_the_first_document_is_the_last() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    replies = list(open_sink("http", {"http_url": url}).deliver([make(1), make(2)]))
    assert [reply.arrived for reply in replies] == [False]


def test_http_connects_again_where_the_receiver_has_hung_up_between() -> None:
    def answer_and_close(handler: Any) -> None:
        say(200, OUTPUT)(handler)
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


def test_http_address_holds_no_password() -> None:
    with pytest.raises(Misuse) as caught:
        open_sink("http", {"http_url": "http://jo:secret@host/"})
    assert "secret" not in str(caught.value)


def test_http_over_tls_only_with_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command += ["-keyout", str(certificate), "-out", str(tmp_path / "public.pem")]
    subprocess.run(command, check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + (tmp_path / "public.pem").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with receiver(say(200, OUTPUT), context) as url:
        trusting = open_sink("http", {"http_url": url, "http_ca": str(tmp_path / "public.pem")})
        (reply,) = trusting.deliver([make(1)])
        trusting.close()
        assert reply.fault is None
        (reply,) = open_sink("http", {"http_url": url}).deliver([make(1)])
        assert not reply.arrived
        assert "CERTIFICATE_VERIFY_FAILED" in str(reply.fault)


# command

ECHO = """
import sys
for line in sys.stdin:
    print('<nds><output>')
    print('<status level="error"/>' if 'eventlog:2' in line else '')
    print('</output></nds>', flush=True)
"""


def command(program: str, timeout: float = 5.0) -> Any:
    return open_sink("command", {"command": f"{sys.executable} -c '{program}'", "command_timeout": timeout})


def test_command_reads_documents_and_answers(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    sink = open_sink("command", {"command": f"{sys.executable} {tmp_path / 'echo.py'}"})
    replies = list(sink.deliver([make(1), make(2), make(3, "<nds>" + "x" * 1_000_000 + "</nds>")]))
    sink.close()
    assert [[status.level for status in reply.statuses] for reply in replies] == [[], [Level.ERROR], []]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit", "ended before it had answered"),
        ("import sys; sys.stdin.readline(); print(1)", "ended before"),
        ("import time; time.sleep(9)", "within 0.5 seconds"),
        ('print("</nds>", flush=True); import time; time.sleep(9)', "no XML"),
    ],
)
def test_command_what_is_no_answer_is_none(program: str, reason: str) -> None:
    sink = command(program, 0.5)
    (reply,) = sink.deliver([make(1)])
    sink.close()
    assert reply.arrived
    assert reason in reply.fault or "Broken pipe" in reply.fault


def test_command_that_cannot_be_started() -> None:
    replies = list(open_sink("command", {"command": "/no/such/program"}).deliver([make(1), make(2)]))
    assert [reply.arrived for reply in replies] == [False]


# kafka

kafka_missing = "confluent-kafka is not installed"


def test_kafka_an_event_is_a_message_whose_key_is_its_association(brokers: str) -> None:
    import confluent_kafka

    topic = own_name("eventlog")
    sink = open_sink("kafka", {"kafka_brokers": brokers, "kafka_topic": topic, "kafka_timeout": 10.0})
    both = OutgoingDocument("1-2", [*make(1).items, *make(2).items])
    assert [reply.fault for reply in sink.deliver([both, make(3)])] == [None, None]
    sink.close()
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages: list[Any] = [
        message for message in (consumer.poll(10.0) for _ in range(3)) if message is not None
    ]
    consumer.close()
    found: dict[str, Any] = {str(message.key(), "utf-8"): message for message in messages}
    assert sorted(found) == [f"idu={n},table=usr" for n in (1, 2, 3)]
    assert found["idu=2,table=usr"].value().decode() == make(2).text
    assert found["idu=2,table=usr"].headers() == [("event-id", b"eventlog:2")]


def test_kafka_without_a_broker_nothing_arrived() -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    sink = open_sink("kafka", {"kafka_brokers": "127.0.0.1:1", "kafka_timeout": 1.0})
    replies = list(sink.deliver([make(1), make(2)]))
    sink.close()
    assert len(replies) in (1, 2)
    assert replies[0].fault is not None


def test_kafka_needs_brokers() -> None:
    pytest.importorskip("confluent_kafka", reason=kafka_missing)
    with pytest.raises(Misuse, match="kafka-brokers"):
        open_sink("kafka", {})
    with pytest.raises(Misuse, match="kafka-options"):
        open_sink("kafka", {"kafka_brokers": "b:1", "kafka_options": "no.such=1"})
