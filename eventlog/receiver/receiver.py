"""The receiver: a document comes, is kept and is answered; everything else is a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

from eventlog.page.server import PLAIN, Answerer, Reply, Request, asset, sorry
from eventlog.receiver import incoming, pages
from eventlog.receiver.archive import Archive, Cursor, Filter
from eventlog.receiver.rules import Rule, Spoiled, Verdict, decide

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
            verdict = _receive(archive, rules, clock(), request.body)
            rest(verdict.delay)
            return _REPLIES[verdict.spoiled](verdict.reply)
        return asset(request) or _page(archive, request)

    return answer


def _receive(archive: Archive, rules: Sequence[Rule], at: str, body: bytes) -> Verdict:
    read = incoming.read(body)
    with archive.writing() as writer:
        verdict = decide(rules, read, writer.earlier)
        writer.keep(at, body, read, verdict)
    return verdict


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
