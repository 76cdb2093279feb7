"""The receiver: a document comes, is kept and is answered; everything else is a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

from eventlog.web.receiver import incoming, pages
from eventlog.web.receiver.archive import Archive, Cursor, Filter
from eventlog.web.receiver.incoming import Incoming
from eventlog.web.receiver.rules import Rule, Spoiled, Verdict, about, decide
from eventlog.web.server import PLAIN, Answerer, Reply, Request, asset, sorry

LARGEST = 64 << 20  # bytes of one document
XML = "application/xml; charset=utf-8"
GARBAGE = b"\x00\xff<nds><output>this is no answer"

_REPLIES: dict[Spoiled | None, Callable[[bytes], Reply | None]] = {
    None: lambda answer: Reply(answer, XML),
    Spoiled.GARBAGE: lambda answer: Reply(GARBAGE, XML),
    Spoiled.CUT: lambda answer: Reply(answer[: len(answer) // 2], XML),
    Spoiled.EMPTY: lambda answer: Reply(b"", XML),
    Spoiled.REFUSED: lambda answer: sorry(HTTPStatus.SERVICE_UNAVAILABLE, "a rule says so"),
    Spoiled.SILENCE: lambda answer: None,
}


def receiver(
    archive: Archive,
    rules: Sequence[Rule],
    clock: Callable[[], str],
    rest: Callable[[float], None] = time.sleep,
) -> Answerer:
    """What answers the requests of documents and of pages."""

    def answer(request: Request) -> Reply | None:
        if request.method == "POST":
            read = incoming.read(request.body)
            if (earlier := _asked(archive, read)) is not None:
                return Reply(earlier, XML)
            number, verdict = _receive(archive, rules, clock(), request.body, read)
            rest(verdict.delay)
            if verdict.questions:
                return Reply(verdict.ask(number), XML)
            return _REPLIES[verdict.spoiled](verdict.reply)
        return asset(request) or _page(archive, request)

    return answer


def _asked(archive: Archive, read: Incoming) -> bytes | None:
    """Where these are answers to our questions: what the document is answered about which we asked."""
    number = about(read)
    kept = None if number is None else archive.document(number)
    return None if kept is None else kept.reply


def _receive(
    archive: Archive, rules: Sequence[Rule], at: str, body: bytes, read: Incoming
) -> tuple[int, Verdict]:
    with archive.writing() as writer:
        verdict = decide(rules, read, writer.earlier)
        return writer.keep(at, body, read, verdict), verdict


def _page(archive: Archive, request: Request) -> Reply:
    if request.path == "/":
        return Reply(pages.listing(archive, _filter(request), _cursor(request)))
    if request.path == "/object":
        return Reply(pages.history(archive, request.query.get("association", "")))
    if request.path == "/healthz":
        return Reply("ready\n", PLAIN)
    return _document(archive, request.path)


def _document(archive: Archive, path: str) -> Reply:
    name = path.removeprefix("/document/")
    number = name.removesuffix(".xml")
    known = path.startswith("/document/") and number.isascii() and number.isdigit() and len(number) < 16
    kept = archive.document(int(number)) if known else None
    if kept is None:
        return sorry(
            HTTPStatus.NOT_FOUND, "there is nothing here; documents are posted to /, and listed there"
        )
    if name.endswith(".xml"):
        attached = {"Content-Disposition": f'attachment; filename="document-{kept.id}.xml"'}
        return Reply(kept.body, "application/octet-stream", headers=attached)
    return Reply(pages.document(archive, kept))


def _filter(request: Request) -> Filter:
    names = ("class", "operation", "key", "status")
    return Filter(*(request.query.get(name, "") for name in names))


def _cursor(request: Request) -> Cursor | None:
    for way in ("before", "after"):
        document, dot, part = request.query.get(way, "").partition(".")
        if dot and (document + part).isascii() and document.isdigit() and part.isdigit():
            return Cursor("before" if way == "before" else "after", int(document[:15]), int(part[:15]))
    return None
