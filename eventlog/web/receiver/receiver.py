"""The receiver: a document comes, is kept and is answered by one level; everything else is a page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from eventlog.web.app import BadFields, make_app, page, read_fields
from eventlog.web.receiver import incoming
from eventlog.web.receiver.archive import PAGE, Archive, EventLine, Filter, ListPlace
from eventlog.web.receiver.incoming import AttributeStep, Incoming, ReceivedEvent
from eventlog.web.rendering import render
from eventlog.xds import answers
from eventlog.xds.answers import Level, Status

LARGEST = 64 << 20  # bytes of one document
MOST_STEPS = 2_000  # attributes of a document
MOST_EVENTS = 200  # of a document's events, of an object's history, and of an attribute's values
MISSING = "there is nothing here; documents are posted to /, and listed there"
_LEVELS = [level.name.lower() for level in Level]
_ACCEPTED = ("success", "warning")  # what an engine has done after it answered so


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    return dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")


class Receiver:
    """The answers to documents, and the pages about them."""

    def __init__(
        self, archive: Archive, level: Level = Level.SUCCESS, clock: Callable[[], str] = now
    ) -> None:
        self._archive = archive
        self._clock = clock
        self._level = level  # by which documents are answered

    def app(self, host: str) -> ASGIApp:
        """Return the application of a receiver that listens at a host."""
        routes = [
            page("/healthz", lambda request: PlainTextResponse("ready\n")),
            page("/object", self._history),
            page("/document/{name}", self._document),
            page("/answer", self._choose, post=True),
            page("/{path:path}", self._documents, post=True),
        ]
        return make_app(routes, host, LARGEST, missing=MISSING, show_missing=_missing)

    def receive(self, body: bytes) -> bytes:
        """Keep a document. Return its answer."""
        read = incoming.read(body)
        level = Level.ERROR if read.fault else self._level
        reply = answers.write(_statuses(read, level)).encode()
        self._archive.keep(self._clock(), body, read, level.name.lower(), reply)
        return reply

    def _documents(self, request: Request) -> Response:
        """Answer a document; return the events that fit, newest first."""
        if request.method == "POST":
            return Response(self.receive(request.state.body), media_type="application/xml; charset=utf-8")
        if request.path_params["path"]:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        query = request.state.query
        chosen = Filter(*(query.get(name, "") for name in ("class", "operation", "key", "status")))
        cursor = _cursor(query)
        lines = self._archive.lines(chosen, cursor)
        is_newer = cursor is not None and cursor.way == "after"
        has_more = len(lines) > PAGE
        return render(
            "receiver/documents.html",
            archive=self._archive,
            chosen=chosen,
            levels=_LEVELS,
            level=self._level.name.lower(),
            lines=lines[-PAGE:] if is_newer else lines[:PAGE],
            older=is_newer or has_more,
            newer=has_more if is_newer else cursor is not None,
        )

    def _choose(self, request: Request) -> Response:
        """Answer by the level of a form from now on."""
        name = read_fields(request.state.body.decode("utf-8", "replace"), 10).get("level", "").upper()
        if name not in Level.__members__:
            raise BadFields(f"there is no level {name[:40]}")
        self._level = Level[name]
        return RedirectResponse("/", HTTPStatus.SEE_OTHER)

    def _history(self, request: Request) -> Response:
        """Return the events of one object, oldest first, and its state after them."""
        association = request.state.query.get("association", "")
        events = list(self._read(self._archive.history(association, MOST_EVENTS)))
        return render(
            "receiver/object.html",
            association=association,
            events=events,
            attributes=incoming.replay([event for line, event in events if line.level in _ACCEPTED]),
        )

    def _document(self, request: Request) -> Response:
        """Return one document: its events and their attributes, its answer, and its text; or only that."""
        name = request.path_params["name"]
        number = name.removesuffix(".xml")
        is_number = number.isascii() and number.isdigit() and len(number) < 16
        stored = self._archive.document(int(number)) if is_number else None
        if stored is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        if name.endswith(".xml"):
            attached = {"Content-Disposition": f'attachment; filename="document-{stored.id}.xml"'}
            return Response(stored.body, media_type="application/octet-stream", headers=attached)
        events = incoming.read(stored.body).events
        pairs = list(zip(events, self._archive.events(stored.id), strict=False))[:MOST_EVENTS]
        return render(
            "receiver/document.html",
            archive=self._archive,
            stored=stored,
            events=list(_limited(pairs)),
            more_events=max(len(events) - MOST_EVENTS, 0),
        )

    def _read(self, lines: Iterable[EventLine]) -> Iterator[tuple[EventLine, ReceivedEvent]]:
        """Yield the events of these lines, each document read once."""
        number, read = 0, Incoming(())
        for line in lines:
            if line.document != number:
                stored = self._archive.document(line.document)
                number, read = line.document, incoming.read(stored.body) if stored else Incoming(())
            if line.part <= len(read.events):
                yield line, read.events[line.part - 1]


def _missing(sentence: str) -> Response:
    """Return the page of what is not there."""
    return render("missing.html", HTTPStatus.NOT_FOUND, frame="receiver/frame.html", fault=sentence)


def _limited(
    pairs: Iterable[tuple[ReceivedEvent, EventLine]],
) -> Iterator[tuple[ReceivedEvent, EventLine, tuple[AttributeStep, ...]]]:
    """Yield events with their attributes, as far as a page shows them."""
    steps = MOST_STEPS
    for event, line in pairs:
        yield event, line, event.attributes[:steps]
        steps = max(steps - len(event.attributes), 0)


def _statuses(read: Incoming, level: Level) -> list[Status]:
    """Return the answer to a document: a status for each event; an error if it could not be read."""
    if read.fault:
        return [Status(level, None, read.fault, "invalid-document")]
    return [Status(level, event.event_id) for event in read.events] or [Status(level)]


def _cursor(query: dict[str, str]) -> ListPlace | None:
    for direction in ("before", "after"):
        document, dot, part = query.get(direction, "").partition(".")
        if dot and (document + part).isascii() and document.isdigit() and part.isdigit():
            return ListPlace(
                "before" if direction == "before" else "after", int(document[:15]), int(part[:15])
            )
    return None
