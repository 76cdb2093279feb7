"""What was done to a log, as sentences."""

from __future__ import annotations

import json
from typing import Any

from eventlog.core.plurals import number, quantity
from eventlog.sql.log.log_record import Notice, NoticeKind

SENTENCES = {  # by the kinds of notices
    "audit": "{rows}: {breaches}, digest {digest}",
    "capture off": "in session {session_id}: {words}",
    "compare": "the state of this table begins",
    "gap": "{words}",
    "gap closed": "it was compared, and what differed is logged",
    "pass": "{row_count} {words}",
    "pause": "{words}",
    "publish": "the tables and columns that are published from now on",
    "purge": "{rows} of {answer} {words}",
    "redrive": "{rows}{condition}",
    "resume": "",
    "resync": "{rows} {words}",
    "retry": "{tried}",
    "skip": "{rows}: {words}",
    "start": "{words}",
    "stop": "{words}",
    "takeover": "{words}",
}


def sentence_of(notice: Notice) -> str:
    """Return what was done, after the table or the object that it is about."""
    object_name = " ".join(name for name in (notice.table_name, notice.table_key) if name)
    result = _facts(notice)
    breaches = quantity(result.get("breaches", 0), "breach", "breaches")
    digest = str(result.get("digest", ""))[:12]
    tried = notice.words or _rows(notice)
    condition = f": {result['condition']}" if result.get("condition") else ""
    facts = notice._asdict() | {"rows": _rows(notice), "breaches": breaches, "digest": digest, "tried": tried}
    facts["condition"] = condition
    sentence = SENTENCES[notice.kind].format(**facts)
    return ": ".join(part for part in (object_name, sentence) if part)


def command_of(notice: Notice) -> str | None:
    """Return the mark of the command that left a notice, if it may have left several."""
    return _facts(notice).get("command")


def _facts(notice: Notice) -> dict[str, Any]:
    """Return the facts that some kinds of notices have as JSON in their words."""
    facts: dict[str, Any] = json.loads(notice.words or "{}") if notice.kind in _WITH_FACTS else {}
    return facts


_WITH_FACTS = (NoticeKind.AUDIT, NoticeKind.REDRIVE)
_LISTED = 20  # rows that are named each by its number


def _rows(notice: Notice) -> str:
    """Return which rows, or how many."""
    if notice.record_ids[_LISTED:]:
        return f"{number(len(notice.record_ids))} rows from {notice.first_id} to {notice.last_id}"
    if notice.record_ids:
        return f"{'rows' if notice.record_ids[1:] else 'row'} {', '.join(map(str, notice.record_ids))}"
    return "rows" if notice.row_count is None else quantity(notice.row_count, "row")
