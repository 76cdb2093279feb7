"""The publisher's pages: how it stands, what failed, what becomes of an object's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eventlog.convert.by_row import PlacedEntry
from eventlog.core.entry import shown
from eventlog.core.errors import EventlogError
from eventlog.fold import Outcome
from eventlog.publisher.standing import Standing
from eventlog.sql.log.upkeep import FailedRow, Which
from eventlog.web.chart import chart
from eventlog.web.layout import MenuEntry, PageColumn, clipped, facts, level, live, page, search, state, table
from eventlog.web.markup import Markup, Node, address, link, tag
from eventlog.web.monitor.board import PAGE, Board
from eventlog.web.words import are, count, duration
from eventlog.xds import documents

PRODUCT = "eventlog publisher"
PLACES = (
    MenuEntry("Status", "/"),
    MenuEntry("Errors", "/errors"),
    MenuEntry("Next", "/next"),
    MenuEntry("Settings", "/settings"),
)
LONGEST = 2_000  # characters of a reason, a key
LONGEST_DOCUMENT = 200_000
LETTERS = {"N": "new", "S": "success", "W": "warning", "E": "error", "F": "fatal"}


def status(board: Board) -> str:
    """How the log stands."""
    standing = board.standing()
    samples = board.samples_until(standing)
    seen = samples[-1].at - samples[0].at
    charts = [
        chart("Pending rows", [float(sample.pending) for sample in samples], count, seen),
        chart("Age of the oldest", [sample.oldest for sample in samples], duration, seen),
        chart("Events a second", board.rates(), count, seen),
    ]
    columns = (PageColumn("Status", "short"), "Table", PageColumn("Rows", "number"))
    empty = (
        "The log is empty. Rows come when somebody changes a tracked table: eventlog check tells which are."
    )
    content: list[Node] = [
        _state(board, standing),
        facts(_facts(standing)),
        tag("div", charts, class_="pair"),
        table("Rows of the log", columns, _counts(board.counts()), empty),
    ]
    return _page("Status", live("status", *content), here="/")


def failures(board: Board, which: Which, after: int, told: Iterable[str] = ()) -> str:
    """The rows that failed, by their reasons and oldest first; with what was done about them just now."""
    wanted = {"table": which.table or "", "reason": which.reason or ""}
    found = board.failures(which, after)
    rows = [
        (
            link(f"{failed.record_id}", f"/errors/{failed.record_id}"),
            level(LETTERS.get(failed.status, "")),
            _object(failed.table_name, failed.table_key),
            clipped(failed.reason or "no reason is kept", LONGEST),
            f"{failed.failed_at or ''}"[:19],
        )
        for failed in found[:PAGE]
    ]
    headings = (
        PageColumn("Row", "number"),
        PageColumn("Status", "short"),
        "Object",
        "Reason",
        PageColumn("When (UTC)", "short"),
    )
    more = found[PAGE - 1].record_id if len(found) > PAGE else None
    turn = (
        tag("p", link("More", "/errors", {**wanted, "after": str(more)}, rel="next"), class_="turn")
        if more
        else None
    )
    look = tag(
        "form",
        search("table", "Table", wanted["table"]),
        search("reason", "Reason holds", wanted["reason"]),
        tag("button", "Show"),
        class_="filter",
        role="search",
    )
    said = [tag("p", sentence, class_="notice", role="status") for sentence in told]
    content = [
        _reasons(board, which),
        table(
            "Rows with E and F, oldest first",
            headings,
            rows,
            "Nothing failed. A row that the receiver refuses, or that nobody understands, would stand here.",
        ),
        turn,
    ]
    ways = (
        _ways_out(board, address("/errors", wanted), "all of these") if any(wanted.values()) and found else []
    )
    return _page("Errors", *said, look, *ways, live("errors", *content), here="/errors")


def _reasons(board: Board, which: Which) -> Node:
    """The reasons, with how many rows have each; nothing where there is but one."""
    groups = board.reasons(which)
    if len(groups) < 2:
        return None
    rows = [
        (
            count(number),
            link(reason, "/errors", {"table": which.table or "", "reason": reason})
            if reason
            else "no reason is kept",
        )
        for reason, number in groups
    ]
    return table("By reason, most first", (PageColumn("Rows", "number"), "Reason begins"), rows)


def failure(board: Board, event: Sequence[FailedRow]) -> str:
    """An event that failed, with its rows and its document, and the ways to be done with it."""
    failed = next((row for row in event if row.document), event[0])
    rows = [
        (row.record_id, shown(row.event_type), row.column_name, level(LETTERS.get(row.status, row.status)))
        for row in event
    ]
    content: list[Node] = [
        facts(
            [
                ("Object", _object(failed.table_name, failed.table_key)),
                ("Event", failed.event_id),
                ("Tries", failed.tries),
                ("When (UTC)", f"{failed.failed_at or ''}"[:19]),
            ]
        ),
        table("Rows of this event", ("Row", "Type", "Column", "Status"), rows),
        tag("h2", "Reason"),
        tag("pre", clipped(failed.reason or "no reason is kept", LONGEST_DOCUMENT), tabindex="0"),
    ]
    if failed.document:
        content += [
            tag("h2", "Document"),
            tag("pre", clipped(_pretty(failed.document), LONGEST_DOCUMENT), tabindex="0"),
        ]
    content += _ways_out(board, f"/errors/{failed.record_id}", "this event", f"{failed.record_id}")
    return _page(_title(row.record_id for row in event), *content)


def became(number: int, rows: Sequence[tuple[PlacedEntry, Outcome]], told: Iterable[str] = ()) -> str:
    """What has become of rows that failed once, and what was done about them just now."""
    said = [tag("p", sentence, class_="notice", role="status") for sentence in told]
    ids = [found.entry.record_id for found, _ in rows] or [number]
    return _page(_title(ids), *said, _explanation("What becomes of it", _explained(rows)))


def _title(ids: Iterable[int]) -> str:
    listed = list(ids)
    return f"Row {listed[0]}" if len(listed) == 1 else f"Rows {', '.join(map(str, listed[:20]))}"


def coming(board: Board) -> str:
    """What the next cycle does with each row."""
    rows = _explained(board.explain())
    look = tag(
        "form",
        search("table", "Table", ""),
        search("key", "Key", ""),
        tag("button", "Explain"),
        action="/object",
        class_="look filter",
    )
    others = [tag("p", sentence) for sentence in board.left_out()]
    return _page("Next", look, *others, _explanation("What the next cycle does", rows), here="/next")


def explained(board: Board, name: str, key: str) -> str:
    """What becomes of each row of an object, and why."""
    content = _explanation("Rows of this object", _explained(board.explain(name or None, key)))
    return _page(f"{name} {key}".strip(), content)


def settings(board: Board) -> str:
    """The settings that were given."""
    rows = list(board.settings())
    return _page(
        "Settings",
        table("Given by flag, environment or file", (PageColumn("Setting", "short"), "Value"), rows),
        here="/settings",
    )


def fault(sentence: str) -> str:
    """A page that says why there is none."""
    return _page("Not now", live("fault", tag("p", sentence, class_="notice")))


def _page(title: str, *content: Node, here: str = "") -> str:
    return page(title, *content, product=PRODUCT, places=PLACES, here=here)


def _state(board: Board, standing: Standing) -> Markup:
    """How the whole stands, in a word and a colour."""
    down = standing.cycle.get("down")
    if standing.paused:
        return state("Paused", f"by {standing.paused}", "warning")
    if not board.leads:
        return state("Standing by", f"{standing.leader or 'nobody'} leads this log", "quiet")
    if down:
        since = board.down_since(standing)
        return state("Receiver down", f"since {since} UTC: {down}", "error")
    if standing.pending and standing.cycle.get("events"):
        return state("Publishing", f"{are(standing.pending, 'row')} pending", "success")
    if standing.waiting:
        return state("Waiting", f"{are(standing.waiting, 'event')} waiting for a retry", "retry")
    return state(
        "Idle",
        "every row that may go is published" if not standing.pending else "looking for work",
        "success",
    )


def _facts(standing: Standing) -> Iterable[tuple[str, Node]]:
    yield "Pending", count(standing.pending)
    yield "Oldest", "none" if standing.oldest_age is None else duration(standing.oldest_age)
    yield "Waiting for a retry", count(standing.waiting)
    yield "Next retry (UTC)", f"{standing.next_retry or 'none'}"[:19]
    yield "Leader", standing.leader or "none yet"
    yield "Holds the lock", str(standing.holder or "nobody, as far as we may see")
    yield "Leads since (UTC)", f"{standing.leader_since or 'nobody yet'}"[:19]
    yield "Rows are finished by", standing.finish_mode
    cycle = standing.cycle
    for name, why in cycle.get("unread", {}).items():
        yield "Not published", clipped(f"{name}: {why}", 400)
    told = ", ".join(f"{count(cycle.get(name, 0))} {name}" for name in ("rows", "events", "refused"))
    yield "Last cycle", f"{told} in {duration(cycle.get('seconds', 0))}" if cycle else "none yet"
    if standing.cycle_at is not None:
        yield "At (UTC)", f"{standing.cycle_at}"[:19]


def _counts(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[Node, Node, Node]]:
    return [
        ([f"{letter} ", level(LETTERS[letter]) if letter in LETTERS else None], name, count(rows))
        for letter, tables in sorted(counts.items())
        for name, rows in sorted(tables.items())
    ]


def _object(name: str | None, key: str | None) -> Node:
    if name is None or key is None:
        return clipped(f"{name or 'no table'} {key or 'no key'}", 200)
    shown = clipped(f"{name} {key}", 200)
    return link(shown, "/object", {"table": name, "key": key[:LONGEST]})


def _explained(found: Iterable[tuple[PlacedEntry, Outcome]]) -> list[tuple[Node, ...]]:
    rows: list[tuple[Node, ...]] = []
    for (entry, *_), outcome in found:
        if len(rows) == PAGE * 4:
            break
        because = f": {outcome.reason}" if outcome.reason else ""
        by = f", by row {outcome.by}" if outcome.by is not None else ""
        rows.append(
            (
                entry.record_id,
                entry.event_type,
                _object(entry.table_name, entry.table_key),
                entry.column_name,
                clipped(f"{outcome.fate}{by}{because}", LONGEST),
                outcome.event_id,
            )
        )
    return rows


def _explanation(caption: str, rows: list[tuple[Node, ...]]) -> Markup:
    headings = (
        PageColumn("Row", "number"),
        PageColumn("Type", "number"),
        "Object",
        PageColumn("Column", "short"),
        "Outcome",
        "Event",
    )
    return table(
        caption,
        headings,
        rows,
        "No row is pending. Change a row of a tracked table to see what becomes of it.",
    )


def _ways_out(board: Board, action: str, what: str, ids: str = "…") -> list[Node]:
    """Redrive and skip, for who knows the token."""
    if not board.may_redrive:
        told = f"To be done with {what}: eventlog redrive {ids}, or eventlog skip {ids};"
        return [tag("p", f"{told} with monitor-token there are buttons.", class_="quiet")]
    why = tag("label", tag("span", "why"), tag("input", name="reason", required=True))
    return [
        _form(action, "redrive", f"Redrive {what}"),
        _form(action, "skip", f"Skip {what}", why),
    ]


def _form(action: str, act: str, words: str, *more: Node) -> Markup:
    password = tag("input", type="password", name="token", required=True, autocomplete="current-password")
    return tag(
        "form",
        tag("input", name="act", value=act, hidden=True),
        tag("input", name="user", value="monitor", autocomplete="username", hidden=True),
        tag("label", tag("span", "monitor-token"), password),
        *more,
        tag("button", words),
        method="post",
        action=action,
        class_="filter",
    )


def _pretty(text: str) -> str:
    try:
        return documents.indent(text)
    except EventlogError:
        return text
