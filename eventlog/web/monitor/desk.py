"""The status page's requests: which page is asked for, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.fold import Fate
from eventlog.sql.log.upkeep import FailureFilter
from eventlog.web.markup import are
from eventlog.web.monitor import failed, pages
from eventlog.web.monitor.board import Board, NoDatabase, NotAllowed
from eventlog.web.server import HttpReply, Request, asset, read_fields, sorry

_PAGES: dict[str, Callable[[Board, Request], str]] = {
    "/": lambda board, request: pages.status(board),
    "/errors": lambda board, request: failed.failures(
        board, _read_filter(request.query), _number(request.query.get("upto", "")) or MAX_RECORD_ID
    ),
    "/next": lambda board, request: pages.coming(board),
    "/object": lambda board, request: pages.explained(
        board, request.query.get("table", ""), request.query.get("key", "")
    ),
    "/settings": lambda board, request: pages.settings(board),
}


def answer(board: Board, request: Request) -> HttpReply:
    """Return the page that is asked for."""
    try:
        return asset(request) or _page_for(board, request)
    except NoDatabase as fault:
        return HttpReply(pages.fault(str(fault)), status=HTTPStatus.SERVICE_UNAVAILABLE)
    except NotAllowed as fault:
        return HttpReply(pages.fault(str(fault)), status=HTTPStatus.FORBIDDEN)
    except EventlogError as fault:
        return HttpReply(pages.fault(f"The log could not be read: {fault}"), status=HTTPStatus.BAD_GATEWAY)


def _page_for(board: Board, request: Request) -> HttpReply:
    if request.path.startswith("/errors/"):
        return _failure(board, request)
    if request.path == "/errors" and request.method == "POST":
        selection = _read_filter(request.query)
        return HttpReply(
            failed.failures(board, selection, MAX_RECORD_ID, _apply_form(board, selection, request))
        )
    show = _PAGES.get(request.path)
    if show is None or request.method != "GET":
        return sorry(HTTPStatus.NOT_FOUND, f"there are {', '.join(_PAGES)}, /metrics, /healthz and /readyz")
    return HttpReply(show(board, request))


def _failure(board: Board, request: Request) -> HttpReply:
    """Return the event of a row that failed, which a form redrives or skips; afterwards what became of it."""
    number = _number(request.path.removeprefix("/errors/"))
    event = board.event(number)
    if request.method == "GET" and event:
        return HttpReply(failed.failure(board, event))
    ids = [row.record_id for row in event] or [number]
    messages = (
        _apply_form(board, FailureFilter((number,)), request) if request.method == "POST" and event else []
    )
    rows = board.rows(ids)
    if not messages and all(outcome.fate is Fate.NOT_IN_LOG for _, outcome in rows):
        return sorry(HTTPStatus.NOT_FOUND, f"there is no row {number}")
    return HttpReply(failed.became(number, rows, messages))


def _read_filter(query: Mapping[str, str]) -> FailureFilter:
    """Return the failed rows that a filter means."""
    return FailureFilter(table=query.get("table") or None, reason=query.get("reason") or None)


def _apply_form(board: Board, selection: FailureFilter, request: Request) -> list[str]:
    """Do what a form asks for. Return sentences about the result."""
    form = read_fields(request.body.decode("utf-8", "replace"), 10)
    token, act, reason = (form.get(name, "") for name in ("token", "act", "reason"))
    if act == "skip":
        if not reason.strip():
            return ["Nothing is skipped: why? The reason is kept, with who skipped it."]
        skipped = board.skip(selection, token, reason)
        done = f"{are(skipped.rows, 'row')} skipped, and will not be published."
        return [done, *(f"{report}." for report in map(str, skipped.reports))]
    redriven = board.redrive(selection, token)
    new = [f"{are(redriven.rows, 'row')} new again, to go with the next cycle."] if redriven.rows else []
    return [*new, *(f"{message}." for message in map(str, redriven.reports))]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
