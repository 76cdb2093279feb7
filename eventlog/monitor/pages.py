"""The publisher's pages: how it stands, what failed, what becomes of an object's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventlog.errors import EventlogError
from eventlog.fold import Outcome
from eventlog.monitor.board import PAGE, Board
from eventlog.page.chart import chart
from eventlog.page.layout import Place, clipped, facts, level, live, page, search, table
from eventlog.page.markup import Markup, Node, link, tag
from eventlog.pickup import Found
from eventlog.publishing.standing import Standing
from eventlog.sql.upkeep import Failed
from eventlog.xds import documents

PRODUCT = "eventlog publisher"
PLACES = (
    Place("Status", "/"),
    Place("Errors", "/errors"),
    Place("Next", "/next"),
    Place("Settings", "/settings"),
)
LONGEST = 2_000  # characters of a reason, a key
LONGEST_DOCUMENT = 200_000
LETTERS = {"N": "new", "S": "success", "W": "warning", "E": "error", "F": "fatal"}


def status(board: Board) -> str:
    """How the log stands."""
    standing = board.standing()
    samples = list(board.samples)
    charts = [
        chart("Pending rows", [float(sample.pending) for sample in samples]),
        chart("Age of the oldest", [sample.oldest for sample in samples], " s"),
        chart("Events a second", board.rates()),
    ]
    content: list[Node] = [
        tag("p", f"Paused by {standing.paused}", class_="notice") if standing.paused else None,
        tag("p", f"The sink takes nothing: {standing.cycle['down']}", class_="notice")
        if standing.cycle.get("down")
        else None,
        facts(_facts(standing)),
        tag("div", charts, class_="pair"),
        table("Rows of the log", ("Status", "Table", "Rows"), _counts(board.counts()), "The log is empty."),
    ]
    return _page("Status", live("status", *content), here="/")


def failures(board: Board, after: int) -> str:
    """The rows that failed, oldest first."""
    found = board.failures(after)
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
    headings = ("Row", "Status", "Object", "Reason", "When (UTC)")
    more = found[PAGE - 1].record_id if len(found) > PAGE else None
    turn = (
        tag("p", link("More", "/errors", {"after": str(more)}, rel="next"), class_="turn") if more else None
    )
    content = [table("Rows with E and F, oldest first", headings, rows, "Nothing failed."), turn]
    return _page("Errors", live("errors", *content), here="/errors")


def failure(board: Board, failed: Failed, told: str = "") -> str:
    """One row that failed, with its document, and a way to try it again."""
    content: list[Node] = [
        tag("p", told, class_="notice", role="status") if told else None,
        facts(
            [
                ("Status", level(LETTERS.get(failed.status, failed.status))),
                ("Event type", f"{failed.event_type}"),
                ("Object", _object(failed.table_name, failed.table_key)),
                ("Column", failed.column_name),
                ("Event", failed.event_id),
                ("Tries", failed.tries),
                ("When (UTC)", f"{failed.failed_at or ''}"[:19]),
            ]
        ),
        tag("h2", "Reason"),
        tag("pre", clipped(failed.reason or "no reason is kept", LONGEST_DOCUMENT), tabindex="0"),
    ]
    if failed.document:
        content += [
            tag("h2", "Document"),
            tag("pre", clipped(_pretty(failed.document), LONGEST_DOCUMENT), tabindex="0"),
        ]
    content.append(_redrive(board, failed))
    return _page(f"Row {failed.record_id}", *content)


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
    return _page("Next", look, _explanation("What the next cycle does", rows), here="/next")


def explained(board: Board, name: str, key: str) -> str:
    """What becomes of each row of an object, and why."""
    content = _explanation("Rows of this object", _explained(board.explain(name, key)))
    return _page(f"{name} {key}", content)


def settings(board: Board) -> str:
    """The settings that were given."""
    rows = list(board.settings())
    return _page(
        "Settings", table("Given by flag, environment or file", ("Setting", "Value"), rows), here="/settings"
    )


def fault(sentence: str) -> str:
    """A page that says why there is none."""
    return _page("Not now", live("fault", tag("p", sentence, class_="notice")))


def _page(title: str, *content: Node, here: str = "") -> str:
    return page(title, *content, product=PRODUCT, places=PLACES, here=here)


def _facts(standing: Standing) -> Iterable[tuple[str, Node]]:
    yield "Pending", f"{standing.pending:,}"
    yield "Oldest", "none" if standing.oldest_age is None else f"{standing.oldest_age:,.1f} s"
    yield "Waiting for a retry", f"{standing.waiting:,}"
    yield "Next retry (UTC)", f"{standing.next_retry or 'none'}"[:19]
    yield "Leader", standing.leader or "none yet"
    yield "Holds the lock", str(standing.holder or "nobody, as far as we may see")
    yield "Leads since (UTC)", f"{standing.leader_since or ''}"[:19]
    cycle = standing.cycle
    told = ", ".join(f"{cycle.get(name, 0):,} {name}" for name in ("rows", "events", "refused"))
    yield "Last cycle", f"{told} in {cycle.get('seconds', 0):.3f} s" if cycle else "none yet"
    yield "At (UTC)", f"{standing.cycle_at or ''}"[:19]


def _counts(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[Node, Node, Node]]:
    return [
        ([f"{letter} ", level(LETTERS[letter]) if letter in LETTERS else None], name, f"{rows:,}")
        for letter, tables in sorted(counts.items())
        for name, rows in sorted(tables.items())
    ]


def _object(name: str | None, key: str | None) -> Node:
    if name is None or key is None:
        return clipped(f"{name or 'no table'} {key or 'no key'}", 200)
    shown = clipped(f"{name} {key}", 200)
    return link(shown, "/object", {"table": name, "key": key[:LONGEST]})


def _explained(found: Iterable[tuple[Found, Outcome]]) -> list[tuple[Node, ...]]:
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
    headings = ("Row", "Type", "Object", "Column", "Outcome", "Event")
    return table(caption, headings, rows, "No row is pending.")


def _redrive(board: Board, failed: Failed) -> Markup:
    if not board.may_redrive:
        told = f"To try it again: eventlog redrive {failed.record_id}; with monitor-token there is a button."
        return tag("p", told, class_="quiet")
    password = tag("input", type="password", name="token", required=True, autocomplete="current-password")
    user = tag("input", name="user", value="monitor", autocomplete="username", hidden=True)
    return tag(
        "form",
        user,
        tag("label", tag("span", "monitor-token"), password),
        tag("button", "Redrive this row"),
        method="post",
        action=f"/errors/{failed.record_id}",
        class_="filter",
    )


def _pretty(text: str) -> str:
    try:
        return documents.indent(text)
    except EventlogError:
        return text
