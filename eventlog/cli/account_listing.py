"""The lines and JSON objects of the accounts of rows, as `explain` prints them of a live log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from eventlog.cli.outcome_listing import outcome_cells, outcome_facts
from eventlog.cli.terminal import ShownCell
from eventlog.core.errors import shortened
from eventlog.fold import Fate
from eventlog.operate.account import RowAccount
from eventlog.operate.notice_sentences import sentence_of
from eventlog.operate.tries import moment, try_words
from eventlog.sql.log.log_record import NoticeKind

if TYPE_CHECKING:
    from eventlog.sql.log.row_tries import Try

_LONGEST = 400  # characters of a change


def account_cells(*, in_detail: bool) -> Callable[[RowAccount], tuple[ShownCell, ...]]:
    """Return a function that returns the cells of an account; the tries of an event come with its first row.

    In detail the cells have also the change, what stops it, and what people did with it, among its tries.
    """
    shown: set[Try] = set()

    def cells(account: RowAccount) -> tuple[ShownCell, ...]:
        *names, words = outcome_cells(account.entry, account.outcome)
        tries = [each for each in account.tries if each not in shown]
        lines = [(each.at, f"{try_words(each)} ({moment(each.at)})") for each in tries]
        shown.update(account.tries)
        if in_detail:
            lines += _deeds(account)
        lines.sort(key=lambda line: line[0])
        content = _content(account) if in_detail else ()
        further = [*content, *(words for _, words in lines)]
        return (*names, (words, *further))

    return cells


def _content(account: RowAccount) -> Iterator[str]:
    if account.entry.event_type:
        yield shortened(account.change, _LONGEST)
    if account.obstacle and account.obstacle != account.outcome.reason:
        yield f"it does not go now: {account.obstacle}"


def _deeds(account: RowAccount) -> Iterator[tuple[datetime, str]]:
    for deed in reversed(account.deeds):
        if deed.kind == NoticeKind.SKIP and account.outcome.fate is Fate.SKIPPED:
            continue  # the outcome has it
        at, what = deed.at or datetime.max, shortened(sentence_of(deed), _LONGEST)
        yield at, f"{deed.kind} by {deed.person} at {moment(deed.at)}: {what}"


def account_facts(account: RowAccount) -> dict[str, object]:
    """Return an account as JSON has it."""
    return {
        **outcome_facts(account.entry, f"record_id {account.record_id}", account.outcome),
        "state": account.state,
        "obstacle": account.obstacle,
        **account.entry._asdict(),
        "hides_values": account.hides_values,
        "documents": [
            {"document": document, "event_id": event.run_id, "answered_at": settled_at}
            for document, event, settled_at, *_ in account.sendings
            if event is not None
        ],
        "tries": [
            {
                "number": answered.number,
                "at": answered.at,
                "event_id": answered.event_id,
                "answer": answered.answer,
                "words": answered.words,
            }
            for answered in account.tries
        ],
        "deeds": [
            {"at": deed.at, "who": deed.person, "what": deed.kind, "words": deed.words}
            for deed in account.deeds
        ],
    }
