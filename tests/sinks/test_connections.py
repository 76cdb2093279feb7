"""The http sink with several connections: what is at the receiver at once, and what a fault leaves."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from eventlog.sinks import open_sink
from eventlog.sinks.sink import Item, OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status, write
from tests.kit.certificates import certificate
from tests.kit.receivers import Answering, hang_up, receiver
from tests.kit.support import patient
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

FIFTH = 5


def number_of(handler: Any) -> int:
    """Return the number of the document that a request has."""
    match = re.search(r'event-id="eventlog:(\d+)"', handler.document)
    assert match is not None
    return int(match[1])


def accept(handler: Any, level: Level = Level.SUCCESS) -> None:
    handler.reply(write([Status(level, f"eventlog:{number_of(handler)}")]).encode())


def post(
    url: str, documents: Iterable[OutgoingDocument], is_over: Callable[[list[Reply]], bool], **settings: Any
) -> list[Reply]:
    """Return the replies to documents, which end where that is over."""
    replies: list[Reply] = []
    departing = takewhile(lambda document: not is_over(replies), documents)
    sink = open_sink("http", {"http_url": url, "http_timeout": patient(10)} | settings)
    replies.extend(sink.deliver(departing))
    sink.close()
    return replies


def post_all(url: str, documents: Iterable[OutgoingDocument], **settings: Any) -> list[Reply]:
    return post(url, documents, lambda replies: False, **settings)


def names(replies: Sequence[Reply]) -> list[str | None]:
    """Return the event that each reply names, None without an answer."""
    return [reply.statuses[0].event_id if reply.statuses else None for reply in replies]


def test_as_many_documents_are_at_the_receiver_as_there_are_connections() -> None:
    """The receiver answers when four are there, the last one first."""
    together = threading.Barrier(4)
    turn, last = threading.Condition(), [4]

    def answer(handler: Any) -> None:
        together.wait(patient(10))
        with turn:
            turn.wait_for(lambda: last[0] == number_of(handler), patient(10))
            last[0] -= 1
            accept(handler)
            turn.notify_all()

    with receiver(answer) as url:
        replies = post_all(url, [make(n) for n in range(1, 5)], http_connections=4)
    assert names(replies) == [f"eventlog:{n}" for n in range(1, 5)]


def unavailable(handler: Any) -> None:
    handler.reply(b"", None, 503, [("Retry-After", "7")])


def wait_too_long(handler: Any) -> None:
    threading.Event().wait(1.0)


FAULTS: dict[str, Answering] = {
    "500": lambda handler: handler.reply(b"", None, 500),
    "503": unavailable,
    "413": lambda handler: handler.reply(b"", None, 413),
    "fatal": lambda handler: accept(handler, Level.FATAL),
    "hang up": hang_up,
    "no answer": wait_too_long,
    "none": accept,
}


@pytest.mark.parametrize("connections", [1, 4, 16])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.family
def test_what_left_around_a_fault_is_a_prefix_with_a_reply_for_each(fault: str, connections: int) -> None:
    """Let nothing more leave after the fault, or the fifth reply, and take the replies to those under way."""
    seen: list[int] = []

    def answer(handler: Any) -> None:
        seen.append(number := number_of(handler))
        (FAULTS[fault] if number == FIFTH else accept)(handler)

    with receiver(answer) as url:
        timeout = 0.5 if fault == "no answer" else patient(10)
        documents = [make(n) for n in range(40)]
        replies = post(
            url, documents, lambda r: len(r) > FIFTH, http_connections=connections, http_timeout=timeout
        )
    assert sorted(set(seen)) == list(range(len(replies)))
    assert FIFTH < len(replies) <= FIFTH + 2 * connections
    expected: list[str | None] = [f"eventlog:{n}" for n in range(len(replies))]
    if fault not in ("none", "fatal"):
        expected[FIFTH] = None
    assert names(replies) == expected
    assert replies[FIFTH].halts == (fault != "none")
    assert replies[FIFTH].wait == (7.0 if fault == "503" else None)


def close_each(handler: Any) -> None:
    handler.close_connection = True
    accept(handler)


def as_http_1_0(handler: Any) -> None:
    handler.protocol_version = "HTTP/1.0"
    close_each(handler)


def announce_the_end(handler: Any) -> None:
    body = write([Status(Level.SUCCESS, f"eventlog:{number_of(handler)}")]).encode()
    handler.reply(body, None, 200, [("Connection", "close")])
    handler.close_connection = True


@pytest.mark.parametrize("answer", [close_each, as_http_1_0, announce_the_end])
@pytest.mark.parametrize("connections", [1, 4])
def test_a_receiver_may_close_connections(answer: Answering, connections: int) -> None:
    with receiver(answer) as url:
        replies = post_all(url, [make(n) for n in range(30)], http_connections=connections)
    assert names(replies) == [f"eventlog:{n}" for n in range(30)]


@pytest.mark.parametrize("tickets", [0, 4])
def test_the_tickets_of_tls_are_no_answer(tickets: int, tmp_path: Path) -> None:
    """The first document is answered when the third one came, which leaves when the second is answered."""
    server, public = certificate(tmp_path, "receiver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    context.num_tickets = tickets
    third = threading.Event()

    def answer(handler: Any) -> None:
        if number_of(handler) == 3:
            third.set()
        if number_of(handler) != 1 or third.wait(patient(10)):
            accept(handler)

    with receiver(answer, context) as url:
        replies = post_all(
            url, [make(n) for n in range(1, 9)], http_connections=2, http_ca=public, http_timeout=patient(20)
        )
    assert names(replies) == [f"eventlog:{n}" for n in range(1, 9)]


def test_each_document_has_the_token_of_its_moment(tmp_path: Path) -> None:
    file, seen = tmp_path / "token", set[tuple[int, str]]()
    file.write_text("old")

    def answer(handler: Any) -> None:
        seen.add((number_of(handler), handler.headers["Authorization"]))
        accept(handler)

    documents = [make(n) for n in range(40)]
    with receiver(answer) as url:

        def renew(replies: list[Reply]) -> bool:
            file.write_text("new" if len(replies) > 9 else "old")
            return False

        post(url, documents, renew, http_connections=4, http_token_file=str(file))
    assert {n for n, token in seen if token == "Bearer old"} >= set(range(10))
    assert {n for n, token in seen if token == "Bearer new"} >= set(range(17, 40))
    assert len(seen) == 40


def test_uploads_to_entra_go_one_by_one() -> None:
    at_once, most = threading.Semaphore(1), []

    def answer(handler: Any) -> None:
        most.append(at_once.acquire(blocking=False))
        threading.Event().wait(0.01)
        at_once.release()
        handler.reply(b"", None, 202)

    items = [[Item(f"eventlog:{n}", "{}", f"idu={n},table=usr")] for n in range(6)]
    documents = [OutgoingDocument(f"{n}-{n}", each) for n, each in enumerate(items)]
    with receiver(answer) as url:
        replies = post_all(url, documents, http_connections=16, document="entra-bulk")
    assert most == [True] * 6
    assert not any(reply.fault for reply in replies)
