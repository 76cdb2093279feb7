"""The publisher's pages: which one is asked for, what it shows, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import NamedTuple
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

from eventlog.core.entry import MAX_RECORD_ID, Letter
from eventlog.core.errors import EventlogError
from eventlog.core.plurals import are
from eventlog.core.redaction import one_line
from eventlog.core.remedies import Remedy
from eventlog.fold import Fate
from eventlog.operate.account import EVER, deeds_of, read_accounts, read_object, try_lines
from eventlog.operate.history import read_history
from eventlog.operate.left_out import why_left_out
from eventlog.operate.notice_sentences import sentence_of
from eventlog.operate.recent import NEWEST, RecordPlace, recent_records
from eventlog.operate.redriving import redrive_by
from eventlog.operate.upkeep import Retried, commands_for, retry_now, skip, whole_events
from eventlog.publisher.monitor import Monitor
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.log_lock import LogLocked
from eventlog.status.verdict import Verdict, worst_of
from eventlog.web.app import Handler, busy, make_app, page, read_fields
from eventlog.web.monitor.page_data import PAGE, NoToken, PageData, WrongToken, loads_of
from eventlog.web.rendering import address, render

MISSING = (
    "there are /, /errors, /waiting, /next, /recent, /history, /settings, /object, /row, /find, /metrics,"
    " /healthz and /readyz"
)
ACTS = ("redrive", "skip")
NOTHING = "No row is pending. Change a row of a tracked table to follow it here."
TABLES = 12  # on the first page
LOOKED_AT = 200  # rows of the next cycle, or of an object
MOST_AT_ONCE = 10_000  # rows that one button redrives or skips
TOGETHER = 4  # pages that are made at a time
WAITING = 3  # requests of one visitor that wait for their turn
PATIENCE = 10.0  # seconds


def monitor_app(monitor: Monitor, page_data: PageData, host: str) -> ASGIApp:
    """Return the application of a publisher that listens at a host."""

    def metrics(request: Request) -> Response:
        text, content_type = monitor.exposition(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type})

    async def healthz(request: Request) -> Response:
        return _health(monitor.healthy(), "alive")

    def readyz(request: Request) -> Response:
        why = monitor.why_not_ready or ("" if monitor.healthy() else "the loop does not run")
        look = page_data.watch.look()
        facts = look.verdicts[0].sentence, f"read {look.age:.1f} s ago"
        return _health(not why, f"ready{f': {one_line(why)}' if why else ''}", *facts)

    health = [page("/metrics", metrics), Route("/healthz", healthz), page("/readyz", readyz)]
    return pages_app(page_data, host, health)


def pages_app(page_data: PageData, host: str, further: Sequence[Route] = ()) -> ASGIApp:
    """Return the application of the pages about a log, with further routes."""
    run = Turns().run
    routes = [
        page("/", partial(_status, page_data), post=True, run=run),
        page("/find", partial(_find, page_data), run=run),
        page("/errors", partial(_errors, page_data), post=True, run=run),
        page("/row/{number}", partial(_row, page_data), post=True, run=run),
        page("/history", partial(_history, page_data), run=run),
        page("/waiting", partial(_waiting, page_data), run=run),
        page("/next", partial(_next, page_data), run=run),
        page("/object", partial(_object, page_data), run=run),
        page("/recent", partial(_recent, page_data), run=run),
        page("/settings", partial(_settings, page_data), run=run),
    ]
    faults: Mapping[type[Exception], ExceptionHandler] = {EventlogError: _away(page_data)}
    missing = partial(_missing, page_data)
    return make_app([*further, *routes], host, faults=faults, missing=MISSING, show_missing=missing)


def _show(
    page_data: PageData,
    template: str,
    status: int = HTTPStatus.OK,
    *,
    verdicts: Sequence[Verdict] = (),
    **values: object,
) -> Response:
    """Return a page in its frame, which names the log, where it is, who publishes it, and its state."""
    verdicts = verdicts or page_data.watch.look().verdicts
    frame = {
        "place": page_data.place,
        "publisher": page_data.publisher,
        "verdicts": verdicts,
        "severity": worst_of(verdicts),
    }
    return render(template, status, **frame | values)


def _missing(page_data: PageData, sentence: str) -> Response:
    """Return the page of what is not there, with the way to the others."""
    return _show(page_data, "missing.html", HTTPStatus.NOT_FOUND, frame="monitor/frame.html", fault=sentence)


def _health(good: bool, word: str, *facts: str) -> Response:
    lines = [word if good else f"not {word}", *map(one_line, facts)]
    return PlainTextResponse("".join(f"{line}\n" for line in lines), 200 if good else 503)


def _away(page_data: PageData) -> ExceptionHandler:
    """Return what shows that the log cannot be read, with what was known last; or that a page failed."""

    def show(request: Request, fault: Exception) -> Response:
        watch = page_data.watch
        look = watch.unread(fault) if isinstance(fault, LogLocked) else watch.look(0.0)
        is_page_fault = look.log is not None
        return _show(
            page_data,
            "monitor/away.html",
            HTTPStatus.BAD_GATEWAY if is_page_fault else HTTPStatus.SERVICE_UNAVAILABLE,
            title="The log could not be read" if is_page_fault else look.verdicts[0].word,
            verdict=None if is_page_fault else look.verdicts[0],
            fault=str(fault),
            log=watch.last_read,
        )

    return show


def _status(page_data: PageData, request: Request) -> Response:
    """Return the page of the whole: a sentence, the figures, their course, and details in small print."""
    form, messages, status = _form(request), list[str](), HTTPStatus.OK
    if request.method == "POST":
        try:
            who = page_data.person(form.get("token", ""))
            if form.get("act") == "retry":
                messages = _retried(retry_now(page_data.store_to_change, (), who))
            else:
                with page_data.store_to_change.admin() as admin:
                    admin.resume(who)
        except (WrongToken, NoToken) as fault:
            messages, status = [f"{fault}.".capitalize()], HTTPStatus.FORBIDDEN
    look = page_data.look()
    assert look.log is not None
    log_status, verdicts, loads = look.log, look.verdicts, loads_of(look.log)
    samples = page_data.samples_until(log_status)
    with page_data.store.admin() as admin:
        has_skips = Letter.WARNING in log_status.counts and admin.has_skips()
    return _show(
        page_data,
        "monitor/status.html",
        status,
        messages=messages,
        may_change=page_data.settings.may_change,
        readiness=page_data.process.readiness,
        leads=page_data.process.leads,
        verdicts=verdicts,
        log=log_status,
        cycle=log_status.cycle,
        readers=page_data.settings.readers,
        failed=log_status.failed_rows,
        unread=log_status.cycle.get("unread", {}),
        has_skips=has_skips,
        samples=samples,
        seconds=samples[-1].at - samples[0].at,
        rates=page_data.rates(),
        loads=loads if request.state.query.get("all") else loads[:TABLES],
        further=0 if request.state.query.get("all") else len(loads[TABLES:]),
    )


def _retried(retried: Retried) -> list[str]:
    """Return what the button of all waiting events did, and what it did not do."""
    rows = f"{are(len(retried.rows), 'row')} sent again now." if retried.rows else "No event waits."
    if retried.tries_receiver:
        return [rows, "The receiver is tried now."]
    return [rows] if retried.rows else [rows, "The receiver is not down. Nothing was changed."]


def _errors(page_data: PageData, request: Request) -> Response:
    """Return the rows that failed, newest first, below their reasons; a form redrives or skips them."""
    query = {name: request.state.query.get(name, "") for name in ("table", "reason", "whole")}
    selection = FailureFilter((), query["table"] or None, query["reason"] or None, query["whole"] or None)
    act, messages = request.state.query.get("act", ""), list[str]()
    is_asked = act in ACTS or request.method == "POST"  # a link asks for the page that confirms
    if is_asked and any(query.values()):
        failures = islice(page_data.failures(selection), MOST_AT_ONCE)
        ids = tuple(row.record_id for row in failures)
        form = _form(request)
        is_confirmed = request.method == "POST" and form.get("rows") == str(len(ids))  # else ask again
        result = FormResult()
        if is_confirmed and ids:
            result = _apply_form(page_data, FailureFilter(ids), form, selection)
            messages = [*result.messages]
        if not is_confirmed or not ids or result.status != HTTPStatus.OK:
            return _show(
                page_data,
                "monitor/confirm.html",
                result.status,
                act="skip" if "skip" in (act, form.get("act")) else "redrive",
                rows=len(ids),
                query=query,
                messages=messages,
                typed=form,
            )
    upto = _number(request.state.query.get("upto", "")) or MAX_RECORD_ID
    rows = list(islice(page_data.failures(selection, upto), PAGE + 1))
    reasons = page_data.reasons(selection)
    failed = sum(reason.rows for reason in reasons)
    return _show(
        page_data,
        "monitor/errors.html",
        messages=messages,
        query=query,
        may_change=page_data.settings.may_change,
        reasons=reasons[:PAGE],
        failed=failed,
        total=min(failed, MOST_AT_ONCE),
        rows=rows[:PAGE],
        commands=commands_for(Letter.ERROR, [row.record_id for row in rows[:PAGE]]),
        older=str(rows[PAGE - 1].record_id - 1) if len(rows) > PAGE else "",
    )


def _row(page_data: PageData, request: Request) -> Response:
    """Return the page of a row: its event, what became of it, and what people may do and did."""
    record_id = _number(request.path_params["number"])
    form, result = _form(request), FormResult()
    with page_data.store.admin() as admin:
        ids = whole_events(admin, (record_id,))
    if request.method == "POST":
        result = _apply_form(page_data, FailureFilter((record_id,)), form)
    with page_data.explain_lock:
        rows = [*read_accounts(page_data.config, page_data.store, ids=ids)]
    account = next((row for row in rows if row.record_id == record_id), None)
    is_gone = all(row.outcome.fate is Fate.NOT_IN_LOG for row in rows)
    if account is None or (not result.messages and is_gone):
        raise HTTPException(HTTPStatus.NOT_FOUND, f"there is no row {record_id}")
    failures = [row.failure for row in rows if row.failure is not None]
    is_waiting = account.outcome.fate is Fate.HELD
    return _show(
        page_data,
        "monitor/row.html",
        result.status,
        title=f"Row {record_id}",
        messages=result.messages,
        typed=form,
        account=account,
        kind=_COLOURS.get(account.state, "quiet"),
        is_waiting=is_waiting,
        commands=commands_for(account.entry.status, (record_id,), wait=is_waiting),
        failed=next((failure for failure in failures if failure.document), account.failure),
        rows=rows[:PAGE],
        tries=try_lines(rows),
        notices=deeds_of(rows),
        sentence_of=sentence_of,
        may_change=page_data.settings.may_change,
    )


_COLOURS = {  # of the states of rows
    "waiting": "retry",
    "handled": "success",
    "handled with a warning": "warning",
    "failed": "error",
}


def _find(page_data: PageData, request: Request) -> Response:
    """Return the place of a row by its number, or of an object by its key or by its table and key."""
    words = " ".join(request.state.query.get("q", "").split())
    if record_id := _number(words):
        return RedirectResponse(f"/row/{record_id}", HTTPStatus.SEE_OTHER)
    name, _, key = words.partition(" ")
    if not key or "=" in name:  # all words are a key, such as `a=1 b=2`
        name, key = "", words
    target = address("/object", {"table": name, "key": key}) if key else "/next"
    return RedirectResponse(target, HTTPStatus.SEE_OTHER)


def _history(page_data: PageData, request: Request) -> Response:
    """Return what was done to the log, newest first."""
    page_number = _number(request.state.query.get("page", ""))
    with page_data.store.admin() as admin:
        notices = read_history(admin, (page_number + 1) * PAGE + 1)[page_number * PAGE :]
    return _show(
        page_data,
        "monitor/history.html",
        notices=notices[:PAGE],
        sentence_of=sentence_of,
        older=str(page_number + 1) if len(notices) > PAGE else "",
    )


def _waiting(page_data: PageData, request: Request) -> Response:
    """Return the events that wait for a retry, and when each goes again."""
    with page_data.store.snapshot() as snapshot:
        now = datetime.fromisoformat(snapshot.now())
    events = page_data.store.waiting(EVER, PAGE + 1)
    return _show(
        page_data,
        "monitor/waiting.html",
        events=events[:PAGE],
        hint=f"These are the first {PAGE}; more wait." if len(events) > PAGE else "",
        command=Remedy.RETRY_ALL,
        now=now,
    )


def _next(page_data: PageData, request: Request) -> Response:
    """Return what the next cycle does with each row."""
    table = request.state.query.get("table", "")
    left_out = why_left_out(page_data.config, page_data.store)
    with page_data.explain_lock:
        accounts = read_accounts(page_data.config, page_data.store, table or None, limit=LOOKED_AT)
        rows = list(islice(accounts, LOOKED_AT + 1))
    return _show(
        page_data,
        "monitor/rows.html",
        title="Next",
        caption=f"What the next cycle does{' with rows of ' + table[:200] if table else ''}",
        rows=rows[:LOOKED_AT],
        obstacles=dict.fromkeys(row.obstacle for row in rows if row.obstacle),
        left_out=left_out.items(),
        nothing="No other row is pending." if left_out else NOTHING,
    )


def _recent(page_data: PageData, request: Request) -> Response:
    """Return what was sent, held back or refused last, with its answer."""
    batch, _, number = request.state.query.get("before", "").partition(".")
    before = RecordPlace(_number(batch), _number(number)) if batch else NEWEST
    records, older = recent_records(page_data.store, PAGE, before)
    next_place = older and f"{older.batch}.{older.number}"
    return _show(page_data, "monitor/recent.html", records=records, older=next_place)


def _object(page_data: PageData, request: Request) -> Response:
    """Return the page of an object: each of its rows, what became of it, and its present row."""
    name, key = request.state.query.get("table", ""), request.state.query.get("key", "")
    with page_data.explain_lock:
        account = read_object(page_data.config, page_data.store, name, key, LOOKED_AT + 1)
    return _show(
        page_data,
        "monitor/object.html",
        title=f"{name} {key}".strip(),
        account=account._replace(rows=account.rows[:LOOKED_AT]),
        hint=f"These are the first {LOOKED_AT} rows; `{Remedy.EXPLAIN_KEY.command(KEY=key)}` shows all."
        if account.rows[LOOKED_AT:]
        else "",
    )


def _settings(page_data: PageData, request: Request) -> Response:
    """Return the settings that were given."""
    return _show(page_data, "monitor/settings.html", settings=list(page_data.config.shown()))


def _form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form; none of a page that is only asked for."""
    return read_fields(request.state.body.decode("utf-8", "replace"), 10)


class FormResult(NamedTuple):
    """The result of a form: sentences, and the status of the page."""

    messages: tuple[str, ...] = ()
    status: HTTPStatus = HTTPStatus.OK


def _apply_form(
    page_data: PageData,
    selection: FailureFilter,
    form: Mapping[str, str],
    condition: FailureFilter | None = None,
) -> FormResult:
    """Do what a form asks for, unless its token is wrong."""
    act, reason = form.get("act", ""), form.get("reason", "")
    try:
        if act == "skip" and not reason.strip():
            return FormResult(("Nothing is skipped: why? The reason is kept, with who skipped it.",))
        who = page_data.person(form.get("token", ""))
        if act == "skip":
            skipped = skip(page_data.store_to_change, selection.ids, reason, who)
            done = f"{are(skipped.rows, 'row')} skipped, and will not be published."
            return FormResult((done, *(f"{report}." for report in map(str, skipped.reports))))
        if act == "retry":
            with page_data.store_to_change.admin() as admin:
                rows = admin.try_now(selection.ids, who)
            return FormResult(("It is sent again now." if rows else "It waits no longer.",))
        redriven = redrive_by(page_data.config, page_data.store_to_change, selection, who, condition)
    except (WrongToken, NoToken) as fault:
        return FormResult((f"{fault}.".capitalize(),), HTTPStatus.FORBIDDEN)
    finally:
        page_data.watch.forget()
    new = (f"{are(redriven.rows, 'row')} new again, to go with the next cycle.",) if redriven.rows else ()
    return FormResult((*new, *(f"{message}." for message in map(str, redriven.reports))))


def _number(text: str) -> int:
    """Return a number; 0 for other text, and for digits that may be too many for a record_id."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


# --- the turns of visitors whose pages are made


class Turns:
    """The order in which pages are made: one at a time for each visitor, and a few for all of them."""

    def __init__(self) -> None:
        self._pages = asyncio.Semaphore(TOGETHER)
        self._visitors = WeakValueDictionary[str, asyncio.Lock]()
        self._asking: Counter[str] = Counter()

    async def run(self, answer: Handler, request: Request) -> Response:
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
