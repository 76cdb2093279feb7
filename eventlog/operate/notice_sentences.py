"""What people did to a log, as sentences."""

from __future__ import annotations

import json

from eventlog.core.plurals import quantity
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
    "redrive": "{rows}",
    "resume": "",
    "resync": "{rows} {words}",
    "skip": "{rows}: {words}",
    "try": "{rows}",
}


def sentence_of(notice: Notice) -> str:
    """Return what was done, after the table or the object that it is about."""
    object_name = " ".join(name for name in (notice.table_name, notice.table_key) if name)
    result = json.loads(notice.words or "{}") if notice.kind == NoticeKind.AUDIT else {}
    breaches = quantity(result.get("breaches", 0), "breach", "breaches")
    digest = str(result.get("digest", ""))[:12]
    facts = notice._asdict() | {"rows": _rows(notice), "breaches": breaches, "digest": digest}
    sentence = SENTENCES[notice.kind].format(**facts)
    return ": ".join(part for part in (object_name, sentence) if part)


def _rows(notice: Notice) -> str:
    """Return which rows, or how many."""
    if notice.record_ids:
        return f"{'rows' if notice.record_ids[1:] else 'row'} {', '.join(map(str, notice.record_ids))}"
    return "rows" if notice.row_count is None else quantity(notice.row_count, "row")
