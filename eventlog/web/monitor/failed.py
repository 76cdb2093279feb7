"""The pages of what failed: the reasons, the rows, one event, and the ways to be done with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eventlog.core.errors import EventlogError
from eventlog.fold import Outcome
from eventlog.log_files.by_row import PlacedEntry
from eventlog.sql.log.pending import Cells
from eventlog.sql.log.upkeep import FailedRow, FailureFilter
from eventlog.web.layout import PageColumn, clipped, facts, level, live, search, state, table
from eventlog.web.markup import Markup, Node, address, count, link, tag
from eventlog.web.monitor.board import PAGE, Board
from eventlog.web.monitor.frame import (
    LETTERS,
    LONGEST,
    NAME,
    framed,
    linked_object,
    notices,
    outcomes,
    type_name,
)
from eventlog.xds import documents

LONGEST_DOCUMENT = 200_000
NO_REASON = "no reason is kept"


def failures(board: Board, selection: FailureFilter, upto: int, messages: Iterable[str] = ()) -> str:
    """Return the page of the rows that failed: their reasons, then the rows, newest first."""
    filtered = {"table": selection.table or "", "reason": selection.reason or ""}
    rows = board.failures(selection, upto)
    headings = (
        PageColumn("Row", "number"),
        PageColumn("Status", "short"),
        "Object",
        "Reason",
        PageColumn("When (UTC)", "short"),
    )
    empty = "Nothing failed. Rows that the receiver refuses or eventlog cannot read appear here."
    last = str(rows[PAGE - 1].record_id - 1) if len(rows) > PAGE else ""
    older = link("Older", "/errors", {**filtered, "upto": last}, rel="next")
    content = [
        _reasons(board, selection),
        table("Rows with E and F, newest first", headings, map(_failed_line, rows[:PAGE]), empty),
        tag("p", older, class_="turn") if last else None,
    ]
    ways = _ways_out(board, filtered) if rows else None
    return framed(
        "Errors", *notices(messages), _filter_form(filtered), ways, live("errors", *content), here="/errors"
    )


def failure(board: Board, event: Sequence[FailedRow]) -> str:
    """Return the page of an event that failed: what to do, its rows with their values, its document."""
    failed = next((row for row in event if row.document), event[0])
    cells = board.cells([row.record_id for row in event][:PAGE])
    headings = (
        PageColumn("Row", "number"),
        PageColumn("Status", "short"),
        PageColumn("Type", "short"),
        "Column",
        "Old value",
        "New value",
        "By",
    )
    content: list[Node] = [
        state("Failed", clipped(failed.reason or NO_REASON, LONGEST), "error"),
        tag("p", _remedy(failed)),
        _buttons(board, f"/errors/{failed.record_id}", "this event", f"{failed.record_id}"),
        facts(
            [
                ("Object", linked_object(failed.table_name, failed.table_key)),
                ("Event", failed.event_id),
                ("Tries", failed.tries),
                ("When (UTC)", f"{failed.failed_at or ''}"[:19]),
            ]
        ),
        table("Rows of this event", headings, [_values(row, cells) for row in event[:PAGE]]),
    ]
    if len(failed.reason or "") > LONGEST:
        content += [tag("h2", "Reason"), _text(failed.reason or "")]
    if failed.document:
        content += [tag("h2", "Document"), _text(_pretty(failed.document))]
    return framed(_title(row.record_id for row in event), *content)


def became(
    number: int,
    rows: Sequence[tuple[PlacedEntry, Outcome]],
    messages: Iterable[str] = (),
) -> str:
    """Return the page of what has become of rows that failed once, and of what was done just now."""
    ids = [placed.entry.record_id for placed, _ in rows] or [number]
    return framed(_title(ids), *notices(messages), outcomes("What becomes of it", rows))


def _failed_line(failed: FailedRow) -> Sequence[Node]:
    return (
        link(f"{failed.record_id}", f"/errors/{failed.record_id}"),
        level(LETTERS.get(failed.status, "")),
        linked_object(failed.table_name, failed.table_key),
        clipped(failed.reason or NO_REASON, LONGEST),
        f"{failed.failed_at or ''}"[:19],
    )


def _values(failed: FailedRow, cells: Mapping[int, Cells]) -> Sequence[Node]:
    """Return a row of the log as it is; its cells are absent if it has gone meanwhile."""
    _, _, _, _, user, _, _, _, old_value, new_value = cells.get(failed.record_id, (None,) * 10)
    return (
        failed.record_id,
        level(LETTERS.get(failed.status, failed.status)),
        type_name(failed.event_type),
        clipped(failed.column_name or "", NAME),
        *(None if cell is None else clipped(f"{cell}", LONGEST) for cell in (old_value, new_value)),
        clipped(f"{user or ''}", NAME),
    )


def _remedy(failed: FailedRow) -> str:
    """Return what to do about an event, in a sentence or two."""
    if failed.document:
        return (
            "The receiver refused this event. Mend the cause there, then redrive: the event is made from "
            "its rows. Skip it if it is not wanted."
        )
    return (
        "No event could be made of this row, so the receiver never saw it. Mend what the reason names (the "
        "settings, the table, or what writes the row), then redrive. Skip the row if it is not wanted."
    )


def _filter_form(filtered: Mapping[str, str]) -> Markup:
    return tag(
        "form",
        search("table", "Table", filtered["table"]),
        search("reason", "Reason contains", filtered["reason"]),
        tag("button", "Show"),
        class_="filter",
        role="search",
    )


def _reasons(board: Board, selection: FailureFilter) -> Node:
    """Return the reasons, with how many rows have each; nothing if there is only one."""
    groups = board.reasons(selection)
    if len(groups) < 2:
        return None
    name = selection.table or ""
    rows = [
        (
            count(group.rows),
            link(group.text or NO_REASON, "/errors", {"table": name, "reason": group.common})
            if group.common
            else group.text or NO_REASON,
        )
        for group in groups
    ]
    return table("By reason, most rows first; # is a number", (PageColumn("Rows", "number"), "Reason"), rows)


def _ways_out(board: Board, filtered: Mapping[str, str]) -> Node:
    """Return the ways to be done with the rows of a filter; without one, how to choose."""
    if any(filtered.values()):
        return _buttons(board, address("/errors", dict(filtered)), "all of these")
    return tag("p", "Choose a row, or a reason to redrive or skip all rows that have it.", class_="quiet")


def _buttons(board: Board, action: str, what: str, ids: str = "…") -> Markup:
    """Return one form with a token and a button for each way out, or how to come by it."""
    if not board.may_redrive:
        commands = [tag("code", f"eventlog redrive {ids}"), " or ", tag("code", f"eventlog skip {ids}")]
        return tag(
            "p",
            "On the command line: ",
            commands,
            ". Set monitor-token to have buttons here.",
            class_="quiet",
        )
    reason = tag("input", name="reason", required=True, autocomplete="off")
    password = tag("input", type="password", name="token", required=True, autocomplete="current-password")
    return tag(
        "form",
        tag("input", name="user", value="monitor", autocomplete="username", hidden=True),
        tag("label", tag("span", "monitor-token"), password),
        tag("button", f"Redrive {what}", name="act", value="redrive", formnovalidate=True),
        tag("label", tag("span", "why (to skip)"), reason),
        tag("button", f"Skip {what}", name="act", value="skip"),
        method="post",
        action=action,
        class_="filter",
    )


def _title(ids: Iterable[int]) -> str:
    listed = list(ids)
    return f"Row {listed[0]}" if len(listed) == 1 else f"Rows {', '.join(map(str, listed[:20]))}"


def _text(text: str) -> Markup:
    return tag("pre", clipped(text, LONGEST_DOCUMENT), tabindex="0")


def _pretty(text: str) -> str:
    try:
        return documents.indent(text)
    except EventlogError:
        return text
