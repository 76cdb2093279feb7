"""The publisher's pages: which one is asked for, what it shows, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from itertools import islice
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

from eventlog.core.entry import COLUMNS, MAX_RECORD_ID, PlacedEntry
from eventlog.core.errors import EventlogError
from eventlog.fold import Fate, Outcome
from eventlog.opening.log_status import LogStatus
from eventlog.publisher.monitor import Monitor
from eventlog.sql.log.upkeep import FailedRow, FailureFilter
from eventlog.web.app import Answer, busy, make_app, page, read_fields
from eventlog.web.monitor import MonitorSettings
from eventlog.web.monitor.board import LOOKED_AT, PAGE, Board, NoDatabase, NoToken, WrongToken
from eventlog.web.rendering import are, render

MISSING = "there are /, /errors, /waiting, /next, /recent, /object, /settings, /metrics, /healthz and /readyz"
ACTS = ("redrive", "skip")
NOTHING = "No row is pending. Change a row of a tracked table to follow it here."
MOST_AT_ONCE = 10_000  # rows that one button redrives or skips
TOGETHER = 4  # pages that are made at a time
WAITING = 3  # requests of one visitor that wait for their turn
PATIENCE = 10.0  # seconds

Rows = Sequence[tuple[PlacedEntry, Outcome]]


def monitor_app(monitor: Monitor, board: Board, host: str) -> ASGIApp:
    """Return the application of a publisher that listens at a host."""

    def metrics(request: Request) -> Response:
        text, content_type = monitor.exposition(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type})

    async def healthz(request: Request) -> Response:
        return _health(monitor.healthy(), "alive")

    async def readyz(request: Request) -> Response:
        return _health(monitor.ready and monitor.healthy(), "ready")

    health = [page("/metrics", metrics), Route("/healthz", healthz), Route("/readyz", readyz)]
    return board_app(board, host, health)


def board_app(board: Board, host: str, further: Sequence[Route] = ()) -> ASGIApp:
    """Return the application of the pages of a board, with further routes."""
    run = Turns().run
    routes = [
        page("/", partial(_status, board), run=run),
        page("/errors", partial(_errors, board), post=True, run=run),
        page("/errors/{number}", partial(_failure, board), post=True, run=run),
        page("/waiting", partial(_waiting, board), run=run),
        page("/next", partial(_next, board), run=run),
        page("/object", partial(_object, board), run=run),
        page("/recent", partial(_recent, board), run=run),
        page("/settings", partial(_settings, board), run=run),
    ]
    return make_app([*further, *routes], host, faults=FAULTS, missing=MISSING)


def _health(good: bool, word: str) -> Response:
    return PlainTextResponse(f"{word if good else 'not ' + word}\n", 200 if good else 503)


def _shown_as(status: HTTPStatus, title: str) -> ExceptionHandler:
    """Return what shows a fault as a page."""

    async def show(request: Request, fault: Exception) -> Response:
        return render("monitor/fault.html", status, title=title, sentence=str(fault))

    return show


FAULTS: Mapping[type[Exception], ExceptionHandler] = {
    NoDatabase: _shown_as(HTTPStatus.SERVICE_UNAVAILABLE, "Not now"),
    WrongToken: _shown_as(HTTPStatus.FORBIDDEN, "Wrong token"),
    NoToken: _shown_as(HTTPStatus.FORBIDDEN, "No token is set"),
    EventlogError: _shown_as(HTTPStatus.BAD_GATEWAY, "The log could not be read"),
}


def _status(board: Board, request: Request) -> Response:
    """Return the page of the whole: a word, four figures, their course, and details in small print."""
    log_status = board.log_status()
    failed, unread = board.failed(log_status), log_status.cycle.get("unread", {})
    word, why, kind = _word(board, log_status)
    samples = board.samples_until(log_status)
    return render(
        "monitor/status.html",
        word=word,
        why=why,
        kind="error" if (failed or unread) and kind in ("success", "retry") else kind,
        log=log_status,
        cycle=log_status.cycle,
        readers=board.config.build(MonitorSettings).readers,
        failed=failed,
        unread=unread,
        down_since=board.down_since(log_status),
        samples=samples,
        seconds=samples[-1].at - samples[0].at,
        rates=board.rates(),
        counts=[
            (letter, name, rows)
            for letter, tables in sorted(board.counts().items())
            for name, rows in sorted(tables.items())
        ],
    )


def _word(board: Board, log_status: LogStatus) -> tuple[str, str, str]:
    down = log_status.cycle.get("down")
    if log_status.pausing:
        return "Pausing", f"by {log_status.paused}; the cycle ends first", "warning"
    if log_status.paused:
        return "Paused", f"by {log_status.paused}", "warning"
    if not board.leads:
        return "On standby", f"{log_status.leader or 'no publisher'} leads this log", "quiet"
    if down:
        return "Receiver down", f"since {board.down_since(log_status)} UTC: {down}", "error"
    if log_status.pending and log_status.cycle.get("events"):
        return "Publishing", f"{are(log_status.pending, 'row')} pending", "success"
    if log_status.waiting:
        return "Waiting", f"{are(log_status.waiting, 'event')} waiting for a retry", "retry"
    nothing = "looking for work" if log_status.pending else "every row that may go is published"
    return "Idle", nothing, "success"


def _errors(board: Board, request: Request) -> Response:
    """Return the rows that failed, newest first, below their reasons; a form redrives or skips them."""
    query = {name: request.state.query.get(name, "") for name in ("table", "reason", "whole")}
    selection = FailureFilter(table=query["table"] or None, reason=query["reason"] or None)
    act, messages = request.state.query.get("act", ""), list[str]()
    if any(query.values()) and (act in ACTS or request.method == "POST"):
        ids = tuple(row.record_id for row in islice(board.failures(selection, query["whole"]), MOST_AT_ONCE))
        form = _form(request)
        is_confirmed = request.method == "POST" and form.get("rows") == str(len(ids))
        if not is_confirmed or not ids:
            act = "skip" if "skip" in (act, form.get("act")) else "redrive"
            return render("monitor/confirm.html", act=act, rows=len(ids), query=query)
        messages = _apply_form(board, FailureFilter(ids), form)
    upto = _number(request.state.query.get("upto", "")) or MAX_RECORD_ID
    rows = list(islice(board.failures(selection, query["whole"], upto), PAGE + 1))
    reasons = board.reasons(selection, query["whole"])
    return render(
        "monitor/errors.html",
        messages=messages,
        query=query,
        may_change=board.may_redrive,
        reasons=reasons[:PAGE],
        total=min(sum(reason.rows for reason in reasons), MOST_AT_ONCE),
        rows=rows[:PAGE],
        older=str(rows[PAGE - 1].record_id - 1) if len(rows) > PAGE else "",
    )


def _failure(board: Board, request: Request) -> Response:
    """Return the event of a row that failed, which a form redrives or skips; afterwards what became of it."""
    record_id = _number(request.path_params["number"])
    event = board.event(record_id)
    if request.method == "GET" and event:
        return _failed_event(board, event)
    messages = (
        _apply_form(board, FailureFilter((record_id,)), _form(request))
        if request.method == "POST" and event
        else []
    )
    ids = [row.record_id for row in event] or [record_id]
    rows = board.rows(ids)
    if not messages and all(outcome.fate is Fate.NOT_IN_LOG for _, outcome in rows):
        raise HTTPException(HTTPStatus.NOT_FOUND, f"there is no row {record_id}")
    ids = [placed.entry.record_id for placed, _ in rows] or ids
    return _outcomes(_title(ids), "What becomes of it", rows, messages=messages)


def _failed_event(board: Board, event: Sequence[FailedRow]) -> Response:
    """Return the page of an event that failed: what to do, its rows with their values, its document."""
    cells = board.cells([row.record_id for row in event][:PAGE])

    def value(record_id: int, column: str) -> str:
        """Return a cell of a row as it is; nothing if the row has gone meanwhile."""
        cell = cells[record_id][COLUMNS.index(column)] if record_id in cells else None
        return "" if cell is None else str(cell)

    return render(
        "monitor/failure.html",
        title=_title([row.record_id for row in event]),
        failed=next((row for row in event if row.document), event[0]),
        event=event[:PAGE],
        values=value,
        may_change=board.may_redrive,
    )


def _waiting(board: Board, request: Request) -> Response:
    """Return the events that wait for a retry, and when each goes again."""
    events, now = board.waiting()
    return render(
        "monitor/waiting.html",
        events=events[:PAGE],
        hint=f"These are the first {PAGE}; more wait." if len(events) > PAGE else "",
        now=now,
    )


def _next(board: Board, request: Request) -> Response:
    """Return what the next cycle does with each row."""
    left_out = board.left_out()
    return _outcomes(
        "Next",
        "What the next cycle does",
        board.explain(),
        left_out=left_out.items(),
        nothing="No other row is pending." if left_out else NOTHING,
    )


def _recent(board: Board, request: Request) -> Response:
    """Return what was sent last, document by document, with its answer."""
    return render("monitor/recent.html", documents=board.sent())


def _object(board: Board, request: Request) -> Response:
    """Return the page of an object: each of its rows with its values, and what became of it."""
    name, key = request.state.query.get("table", ""), request.state.query.get("key", "")
    rows = board.explain(name or None, key)
    return render(
        "monitor/object.html",
        title=f"{name} {key}".strip(),
        rows=rows[:LOOKED_AT],
        hint=f"These are the first {LOOKED_AT} rows; eventlog explain --key shows all."
        if rows[LOOKED_AT:]
        else "",
    )


def _outcomes(
    title: str,
    caption: str,
    rows: Rows,
    *,
    messages: Sequence[str] = (),
    left_out: Iterable[tuple[str, str]] = (),  # fates, each with its sentence
    nothing: str = NOTHING,
) -> Response:
    return render(
        "monitor/rows.html",
        title=title,
        caption=caption,
        rows=rows[:LOOKED_AT],
        messages=messages,
        left_out=left_out,
        nothing=nothing,
    )


def _settings(board: Board, request: Request) -> Response:
    """Return the settings that were given."""
    return render("monitor/settings.html", settings=list(board.settings()))


def _form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form; none of a page that is only asked for."""
    return read_fields(request.state.body.decode("utf-8", "replace"), 10)


def _apply_form(board: Board, selection: FailureFilter, form: Mapping[str, str]) -> list[str]:
    """Do what a form asks for. Return sentences about the result."""
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


def _title(ids: Sequence[int]) -> str:
    return f"Row {ids[0]}" if len(ids) == 1 else f"Rows {', '.join(map(str, ids[:20]))}"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


# --- the turns of visitors whose pages are made


class Turns:
    """The order in which pages are made: one at a time for each visitor, and a few for all of them."""

    def __init__(self) -> None:
        self._pages = asyncio.Semaphore(TOGETHER)
        self._visitors = WeakValueDictionary[str, asyncio.Lock]()
        self._asking: Counter[str] = Counter()

    async def run(self, answer: Answer, request: Request) -> Response:
        """Return the page in its turn, or a refusal if its visitor asks for too many at once."""
        visitor = request.client.host if request.client else ""
        async with self._turn(visitor) as is_free:
            return await run_in_threadpool(answer, request) if is_free else busy()

    @asynccontextmanager
    async def _turn(self, visitor: str) -> AsyncIterator[bool]:
        """Wait for the turn of a visitor. Yield False if too many wait, or for too long."""
        if self._asking[visitor] > WAITING:
            yield False
            return
        self._asking[visitor] += 1
        lock = self._visitors.setdefault(visitor, asyncio.Lock())
        try:
            async with AsyncExitStack() as turn:
                try:
                    async with asyncio.timeout(PATIENCE):
                        await turn.enter_async_context(lock)
                        await turn.enter_async_context(self._pages)
                except TimeoutError:
                    yield False
                    return
                yield True
        finally:
            self._asking -= Counter((visitor,))  # drops those that are zero
