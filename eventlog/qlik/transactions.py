"""Transactions put together: their changes come out when they are complete, each once, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.qlik.numbering import transaction_of

MAX_OPEN = 1_000_000  # changes of transactions that are not complete

Group = list[Change]


def whole(changes: Iterable[Change | Refused]) -> Iterator[Change | Refused]:
    """Yield the changes of complete transactions, in the order of their last changes.

    A transaction ends with the message that is marked as its last. Without such marks, as in change tables,
    it ends where another begins. Changes that were sent twice after a failure come out once.
    """
    open_: dict[tuple[str, str], Group] = {}
    uncounted: tuple[str, str] | None = None
    held = 0
    for item in changes:
        key = None if isinstance(item, Refused) else _key(item)
        if isinstance(item, Refused) or key is None:
            yield item
            continue
        last = item.fact("last_event")
        if uncounted is not None and (key != uncounted or last is not None):
            held -= len(open_[uncounted])
            yield from _closed(open_.pop(uncounted))
            uncounted = None
        open_.setdefault(key, []).append(item)
        held += 1
        if last is None:
            uncounted = key
        elif last:
            group = open_.pop(key)
            held -= len(group)
            yield from _closed(group)
        if held > MAX_OPEN:
            held -= len(open_[key])
            yield from _given_up(open_.pop(key), f"over {MAX_OPEN} changes wait for the end of transactions")
            uncounted = None
    if uncounted is not None:
        yield from _closed(open_.pop(uncounted))
    for group in open_.values():
        yield from _given_up(group, "its transaction is not complete: its last message is missing")


def _key(change: Change) -> tuple[str, str] | None:
    """Return the id alone if messages mark the last change, because until then the id is not reused."""
    if change.transaction is not None and change.fact("last_event") is not None:
        return change.transaction, ""
    return transaction_of(change)


def _closed(group: Group) -> Iterator[Change | Refused]:
    """Yield the changes in their order, without repetitions; a gap makes the transaction incomplete."""
    if group[0].fact("event_counter") is None:
        yield from group
        return
    counted = {change.fact("event_counter"): change for change in group}
    if len(counted) != max(_counter(change) for change in group):
        yield from _given_up(
            list(counted.values()), "its transaction lacks a message: its counters have a gap"
        )
        return
    yield from sorted(counted.values(), key=_counter)


def _counter(change: Change) -> int:
    counter = change.fact("event_counter")
    return counter if isinstance(counter, int) else 0


def _given_up(group: Group, reason: str) -> Iterator[Refused]:
    for change in group:
        yield Refused(f"{change.table}:{change.position}", f"transaction {change.transaction}: {reason}")
