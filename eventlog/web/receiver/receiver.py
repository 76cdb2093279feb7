"""The receiver: a document comes, is kept and is answered by one level; everything else is a page."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from eventlog.web.receiver import incoming, pages
from eventlog.web.receiver.archive import Archive, Filter, ListPlace
from eventlog.web.receiver.incoming import Incoming
from eventlog.web.server import PLAIN, HttpReply, Request, asset, read_fields, sorry
from eventlog.xds import answers
from eventlog.xds.answers import Level, Status

LARGEST = 64 << 20  # bytes of one document
XML = "application/xml; charset=utf-8"


class Receiver:
    """The answers to the requests for documents and pages."""

    def __init__(self, archive: Archive, clock: Callable[[], str], level: Level = Level.SUCCESS) -> None:
        self._archive = archive
        self._clock = clock
        self._level = level  # by which documents are answered

    def __call__(self, request: Request) -> HttpReply:
        if request.method == "POST":
            return self._choose(request) if request.path == "/answer" else self._receive(request.body)
        return asset(request) or self._page(request)

    def _receive(self, body: bytes) -> HttpReply:
        read = incoming.read(body)
        level = Level.ERROR if read.fault else self._level
        reply = answers.write(_statuses(read, level)).encode()
        self._archive.keep(self._clock(), body, read, level.name.lower(), reply)
        return HttpReply(reply, XML)

    def _choose(self, request: Request) -> HttpReply:
        """Answer by the level of a form from now on."""
        name = read_fields(request.body.decode("utf-8", "replace"), 10).get("level", "").upper()
        if name not in Level.__members__:
            return sorry(HTTPStatus.BAD_REQUEST, f"there is no level {name[:40]}")
        self._level = Level[name]
        return HttpReply(status=HTTPStatus.SEE_OTHER, headers={"Location": "/"})

    def _page(self, request: Request) -> HttpReply:
        if request.path == "/":
            return HttpReply(pages.listing(self._archive, self._level, _filter(request), _cursor(request)))
        if request.path == "/object":
            return HttpReply(pages.history(self._archive, request.query.get("association", "")))
        if request.path == "/healthz":
            return HttpReply("ready\n", PLAIN)
        return self._document(request.path)

    def _document(self, path: str) -> HttpReply:
        name = path.removeprefix("/document/")
        number = name.removesuffix(".xml")
        is_number = (
            path.startswith("/document/") and number.isascii() and number.isdigit() and len(number) < 16
        )
        stored = self._archive.document(int(number)) if is_number else None
        if stored is None:
            return sorry(
                HTTPStatus.NOT_FOUND, "there is nothing here; documents are posted to /, and listed there"
            )
        if name.endswith(".xml"):
            attached = {"Content-Disposition": f'attachment; filename="document-{stored.id}.xml"'}
            return HttpReply(stored.body, "application/octet-stream", headers=attached)
        return HttpReply(pages.document(self._archive, stored))


def _statuses(read: Incoming, level: Level) -> list[Status]:
    """Return the answer to a document: a status for each event; an error if it could not be read."""
    if read.fault:
        return [Status(level, None, read.fault, "invalid-document")]
    return [Status(level, event.event_id) for event in read.events] or [Status(level)]


def _filter(request: Request) -> Filter:
    names = ("class", "operation", "key", "status")
    return Filter(*(request.query.get(name, "") for name in names))


def _cursor(request: Request) -> ListPlace | None:
    for direction in ("before", "after"):
        document, dot, part = request.query.get(direction, "").partition(".")
        if dot and (document + part).isascii() and document.isdigit() and part.isdigit():
            return ListPlace(
                "before" if direction == "before" else "after", int(document[:15]), int(part[:15])
            )
    return None
