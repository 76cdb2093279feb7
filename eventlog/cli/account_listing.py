"""The lines and JSON objects of the accounts of rows, as `explain` prints them of a live log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from eventlog.cli.outcome_listing import outcome_cells, outcome_facts
from eventlog.cli.terminal import ShownCell
from eventlog.core.errors import shortened
from eventlog.fold import Fate
from eventlog.operate.account import RowAccount, moment, try_words
from eventlog.operate.notice_sentences import sentence_of
from eventlog.sql.log.log_record import NoticeKind

if TYPE_CHECKING:
    from eventlog.sql.log.log_record import Try

_LONGEST = 400  # characters of a change


def account_cells(*, in_detail: bool) -> Callable[[RowAccount], tuple[ShownCell, ...]]:
    """Return a function that returns the cells of an account; the tries of an event come with its first row.

    In detail the cells have also the change, what stops it, and what people did with it.
    """
    shown: set[Try] = set()

    def cells(account: RowAccount) -> tuple[ShownCell, ...]:
        *names, words = outcome_cells(account.entry, account.outcome)
        further = [f"{try_words(each)} ({moment(each.at)})" for each in account.tries if each not in shown]
        shown.update(account.tries)
        if in_detail:
            further = [*_content(account), *further, *_deeds(account)]
        return (*names, (words, *further))

    return cells


def _content(account: RowAccount) -> Iterator[str]:
    if account.entry.event_type:
        yield shortened(account.change, _LONGEST)
    if account.obstacle and account.obstacle != account.outcome.reason:
        yield f"it does not go now: {account.obstacle}"


def _deeds(account: RowAccount) -> Iterator[str]:
    for deed in reversed(account.deeds):
        if deed.kind == NoticeKind.SKIP and account.outcome.fate is Fate.SKIPPED:
            continue  # the outcome has it
        yield f"{deed.kind} by {deed.person} at {moment(deed.at)}: {shortened(sentence_of(deed), _LONGEST)}"


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
            for document, event, settled_at, _ in account.sendings
            if event is not None
        ],
        "tries": [
            {
                "number": answered.number,
                "at": answered.at,
                "answer": answered.status.level.name.lower(),
                "words": answered.status.text,
            }
            for answered in account.tries
        ],
        "deeds": [
            {"at": deed.at, "who": deed.person, "what": deed.kind, "words": deed.words}
            for deed in account.deeds
        ],
    }
