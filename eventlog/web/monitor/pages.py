"""The publisher's pages: how it is, what becomes of an object's rows, the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventlog.publisher.log_status import LogStatus
from eventlog.web.chart import chart
from eventlog.web.layout import PageColumn, clipped, facts, level, live, search, state, table
from eventlog.web.markup import Markup, Node, are, count, duration, link, tag
from eventlog.web.monitor.board import LOOKED_AT, Board
from eventlog.web.monitor.frame import LETTERS, NAME, framed, outcomes

NOTHING = "The log is empty. Each change of a tracked table adds rows; eventlog track adds a table."


def status(board: Board) -> str:
    """Return the page of the whole: a word, four figures, their course, and details in small print."""
    log_status = board.log_status()
    failed = board.failed(log_status)
    samples = board.samples_until(log_status)
    seconds = samples[-1].at - samples[0].at
    charts = [
        chart("Pending rows", [float(sample.pending) for sample in samples], count, seconds),
        chart("Age of the oldest", [sample.oldest for sample in samples], duration, seconds),
        chart("Events a second", board.rates(), count, seconds),
    ]
    columns = (PageColumn("Status", "short"), "Table", PageColumn("Rows", "number"))
    content: list[Node] = [
        _state(board, log_status, failed),
        facts(_figures(board, log_status, failed), "figures"),
        tag("div", charts, class_="pair"),
        table("Rows of the log", columns, _counts(board.counts()), NOTHING),
        facts(_facts(log_status), "small"),
    ]
    return framed("Status", live("status", *content), here="/")


def coming(board: Board) -> str:
    """Return the page of what the next cycle does with each row."""
    look = tag(
        "form",
        search("table", "Table", ""),
        search("key", "Key", ""),
        tag("button", "Explain"),
        action="/object",
        class_="look filter",
    )
    left_out = [tag("p", sentence) for sentence in board.left_out()]
    return framed(
        "Next", look, *left_out, outcomes("What the next cycle does", board.explain()), here="/next"
    )


def explained(board: Board, name: str, key: str) -> str:
    """Return the page of an object: what becomes of each of its rows, and why."""
    rows = board.explain(name or None, key)
    content = [outcomes("Rows of this object", rows)]
    hint = f"These are the first {LOOKED_AT} rows; eventlog explain --key shows all."
    if rows[LOOKED_AT:]:
        content.append(tag("p", hint, class_="quiet"))
    return framed(f"{name} {key}".strip(), *content)


def settings(board: Board) -> str:
    """Return the page of the settings that were given."""
    rows = list(board.settings())
    return framed(
        "Settings",
        table("Given by flag, environment or file", (PageColumn("Setting", "short"), "Value"), rows),
        here="/settings",
    )


def fault(sentence: str) -> str:
    """Return a page with the reason why there is no page."""
    return framed("Not now", live("fault", tag("p", sentence, class_="notice")))


def _state(board: Board, log_status: LogStatus, failed: int) -> Markup:
    """Return how the whole is, in a word and a colour: never green if a row has failed or a table stopped."""
    word, why, kind = _word(board, log_status)
    faults: list[Node] = []
    if failed:
        faults += ["; ", link(_rows_failed(failed), "/errors")]
    if unread := log_status.cycle.get("unread"):
        faults += ["; ", f"{are(len(unread), 'table')} not published"]
    return state(word, [why, *faults], "error" if faults and kind in ("success", "retry") else kind)


def _word(board: Board, log_status: LogStatus) -> tuple[str, str, str]:
    down = log_status.cycle.get("down")
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


def _rows_failed(failed: int) -> str:
    return f"{count(failed)} row{'' if failed == 1 else 's'} failed"


def _figures(board: Board, log_status: LogStatus, failed: int) -> Iterable[tuple[str, Node]]:
    yield "Pending", count(log_status.pending)
    yield "Oldest", "none" if log_status.oldest_age is None else duration(log_status.oldest_age)
    yield "Errors", link(count(failed), "/errors", class_="error") if failed else "0"
    yield "Receiver", _receiver(board, log_status)


def _receiver(board: Board, log_status: LogStatus) -> Node:
    if log_status.cycle.get("down"):
        return [tag("span", "down", class_="error"), _small(f"since {board.down_since(log_status)} UTC")]
    return "takes documents" if log_status.cycle else "not asked yet"


def _small(text: str) -> Markup:
    return tag("span", text, class_="under quiet")


def _facts(log_status: LogStatus) -> Iterable[tuple[str, Node]]:
    cycle = log_status.cycle
    for name, why in cycle.get("unread", {}).items():
        yield "Not published", clipped(f"{name}: {why}", 400)
    yield "Waiting for a retry", count(log_status.waiting)
    yield "Next retry (UTC)", f"{log_status.next_retry or 'none'}"[:19]
    parts = ", ".join(f"{count(cycle.get(name, 0))} {name}" for name in ("rows", "events", "refused"))
    yield "Last cycle", f"{parts} in {duration(cycle.get('seconds', 0))}" if cycle else "none yet"
    if log_status.cycle_at is not None:
        yield "At (UTC)", f"{log_status.cycle_at}"[:19]
    yield "Leader", log_status.leader or "none yet"
    yield "Leads since (UTC)", f"{log_status.leader_since or 'no leader yet'}"[:19]
    yield "Holds the lock", str(log_status.holder or "no session, as far as this user may see")


def _counts(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[Node, Node, Node]]:
    """Return the rows by status and table, those that failed first."""
    return [
        (
            [f"{letter} ", level(LETTERS[letter]) if letter in LETTERS else None],
            clipped(name, NAME),
            count(rows),
        )
        for letter, tables in sorted(counts.items())
        for name, rows in sorted(tables.items())
    ]
