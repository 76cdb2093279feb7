"""The status page's requests: which page is asked for, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qs

from eventlog.errors import EventlogError
from eventlog.monitor import pages
from eventlog.monitor.board import Board, NoDatabase, NotAllowed
from eventlog.page.server import Reply, Request, asset, sorry

_PAGES: dict[str, Callable[[Board, Request], str]] = {
    "/": lambda board, request: pages.status(board),
    "/errors": lambda board, request: pages.failures(board, _number(request.query.get("after", "0"))),
    "/next": lambda board, request: pages.coming(board),
    "/object": lambda board, request: pages.explained(
        board, request.query.get("table", ""), request.query.get("key", "")
    ),
    "/settings": lambda board, request: pages.settings(board),
}


def answer(board: Board, request: Request) -> Reply:
    """The page that is asked for."""
    try:
        return asset(request) or _answer(board, request)
    except NoDatabase as fault:
        return Reply(pages.fault(str(fault)), status=HTTPStatus.SERVICE_UNAVAILABLE)
    except NotAllowed as fault:
        return Reply(pages.fault(str(fault)), status=HTTPStatus.FORBIDDEN)
    except EventlogError as fault:
        return Reply(pages.fault(f"The log could not be read: {fault}"), status=HTTPStatus.BAD_GATEWAY)


def _answer(board: Board, request: Request) -> Reply:
    if request.path.startswith("/errors/"):
        return _failure(board, request)
    show = _PAGES.get(request.path)
    if show is None or request.method != "GET":
        return sorry(HTTPStatus.NOT_FOUND, f"there are {', '.join(_PAGES)}, /metrics, /healthz and /readyz")
    return Reply(show(board, request))


def _failure(board: Board, request: Request) -> Reply:
    """One row that failed; posting the token makes it new again."""
    number = _number(request.path.removeprefix("/errors/"))
    failed = board.failure(number)
    if failed is None:
        return sorry(HTTPStatus.NOT_FOUND, f"row {number} has not failed")
    if request.method == "GET":
        return Reply(pages.failure(board, failed))
    token = parse_qs(request.body.decode("utf-8", "replace"), max_num_fields=10).get("token", [""])[0]
    done = board.redrive(number, token)
    told = "It is new again, and goes with the next cycle."
    if done.refused:
        told = "It stays: a later event of its column was published, so it would set an old value."
    return Reply(pages.failure(board, failed, told))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
