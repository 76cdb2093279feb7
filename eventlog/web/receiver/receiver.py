"""The receiver: a document comes, is kept and is answered; everything else is a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

from eventlog.web.receiver import incoming, pages
from eventlog.web.receiver.archive import Archive, Filter, ListPlace
from eventlog.web.receiver.incoming import Incoming
from eventlog.web.receiver.rules import Rule, Spoiled, Verdict, decide
from eventlog.web.server import PLAIN, Answerer, HttpReply, Request, asset, sorry

LARGEST = 64 << 20  # bytes of one document
XML = "application/xml; charset=utf-8"
GARBAGE = b"\x00\xff<nds><output>this is no answer"

_REPLIES: dict[Spoiled | None, Callable[[bytes], HttpReply | None]] = {
    None: lambda answer: HttpReply(answer, XML),
    Spoiled.GARBAGE: lambda answer: HttpReply(GARBAGE, XML),
    Spoiled.CUT: lambda answer: HttpReply(answer[: len(answer) // 2], XML),
    Spoiled.EMPTY: lambda answer: HttpReply(b"", XML),
    Spoiled.REFUSED: lambda answer: sorry(HTTPStatus.SERVICE_UNAVAILABLE, "a rule answers so"),
    Spoiled.SILENCE: lambda answer: None,
}


def receiver(
    archive: Archive,
    rules: Sequence[Rule],
    clock: Callable[[], str],
    rest: Callable[[float], None] = time.sleep,
) -> Answerer:
    """Return what answers the requests for documents and pages."""

    def answer(request: Request) -> HttpReply | None:
        if request.method == "POST":
            read = incoming.read(request.body)
            verdict = _receive(archive, rules, clock(), request.body, read)
            rest(verdict.delay)
            return _REPLIES[verdict.spoiled](verdict.reply)
        return asset(request) or _page(archive, request)

    return answer


def _receive(archive: Archive, rules: Sequence[Rule], at: str, body: bytes, read: Incoming) -> Verdict:
    with archive.writing() as writer:
        verdict = decide(rules, read, writer.earlier)
        writer.keep(at, body, read, verdict)
        return verdict


def _page(archive: Archive, request: Request) -> HttpReply:
    if request.path == "/":
        return HttpReply(pages.listing(archive, _filter(request), _cursor(request)))
    if request.path == "/object":
        return HttpReply(pages.history(archive, request.query.get("association", "")))
    if request.path == "/healthz":
        return HttpReply("ready\n", PLAIN)
    return _document(archive, request.path)


def _document(archive: Archive, path: str) -> HttpReply:
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
        return HttpReply(kept.body, "application/octet-stream", headers=attached)
    return HttpReply(pages.document(archive, kept))


def _filter(request: Request) -> Filter:
    names = ("class", "operation", "key", "status")
    return Filter(*(request.query.get(name, "") for name in names))


def _cursor(request: Request) -> ListPlace | None:
    for way in ("before", "after"):
        document, dot, part = request.query.get(way, "").partition(".")
        if dot and (document + part).isascii() and document.isdigit() and part.isdigit():
            return ListPlace("before" if way == "before" else "after", int(document[:15]), int(part[:15]))
    return None
