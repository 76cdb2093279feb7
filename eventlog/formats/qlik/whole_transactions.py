"""Whole transactions of a sequence: complete by their counters, each once, in the order of their ends.

`WaitingTransactions` decides, also for a stream without an order. `assemble` asks it after each time of a
sorted sequence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Placed
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.numbering import transaction_of
from eventlog.formats.qlik.sequenced_messages import same_values
from eventlog.transactions.counted import DueTransaction, Incomplete, Key, TransactionProgress, size_of
from eventlog.transactions.open_transactions import MEMORY, Bounds, EndedTransaction, OpenTransactions, Spool
from eventlog.transactions.topic_progress import RECENT, remember

_ROW_KEY_PARTS: Final = 3  # of a row without a sequence
_AFTER_ALL: Final = "~"
_ALL: Final = ""  # Replicate numbers the changes of all tables together


@dataclass(slots=True)
class SequencedTransaction(TransactionProgress):
    """A transaction whose changes are still coming, with its place in the sequence."""

    first: str = _AFTER_ALL  # sequences
    last: str = ""
    last_round: int = 0  # in which its last change came
    count: int = 0  # of its changes
    number: int = 0  # of its last change, among all changes

    def add(self, placed: Placed, seq: str, number: int, round_number: int) -> None:
        """Add a change."""
        self.first, self.last = min(self.first, seq), max(self.last, seq)
        self.count += 1
        self.number, self.last_round = number, round_number
        self.sources.add(placed.source)
        if (counter := _counter(placed)) is not None:
            self.is_new(_ALL, counter)
            if placed.change.fact("last_event") is True:
                self.counts = {_ALL: max(counter, (self.counts or {}).get(_ALL, 0))}

    @property
    def is_open(self) -> bool:
        """Return whether its last change did not come yet."""
        return bool(self.numbers) and self.counts is None

    @property
    def lack(self) -> str:
        """Return what is missing, as far as its counters show; empty if nothing is."""
        return self.missing("its last change", (_ALL,)) if self.numbers else ""


def _counter(placed: Placed) -> int | None:
    counter = placed.change.fact("event_counter") if placed.change.extra else None
    return counter if type(counter) is int else None


def _order(placed: Placed) -> tuple[int, str]:
    return _counter(placed) or 0, placed.change.position or ""


def key_of(change: Change, number: int) -> Key:
    """Return the identity of changes that are handed out together: a transaction, a change_seq, or a row."""
    identity = transaction_of(change)
    if identity is not None:
        return identity
    return ("", change.position) if change.position else ("", "", str(number))


class WaitingTransactions:
    """The transactions that are not handed out yet, with their changes."""

    def __init__(
        self, policy: str, spool: Spool, memory: int = MEMORY, recent: dict[Key, None] | None = None
    ) -> None:
        """Take what to do with transactions that lack changes: stop, refuse or deliver.

        `recent` are the last transactions that were delivered, which are not taken again.
        """
        self.faults: dict[Key, str] = {}  # of transactions that are refused whatever the policy
        self._transactions = OpenTransactions[Key, SequencedTransaction, Placed](
            spool, Bounds(memory), order=_order
        )
        self._stops, self._delivers = policy == "stop", policy == "deliver"
        self._recent = recent
        self._released = ""  # the last delivered sequence
        self._number = 0

    @property
    def open(self) -> dict[Key, SequencedTransaction]:
        """Return the transactions that wait."""
        return {key: transaction.facts for key, transaction in self._transactions.open.items()}

    @property
    def size(self) -> int:
        """Return the bytes, about, of their changes."""
        return self._transactions.size

    def close(self) -> None:
        """Drop what waits."""
        self._transactions.close()

    def add(self, placed: Placed, seq: str, since: float = 0, round_number: int = 0) -> bool:
        """Add a change that came in a round; return False if its transaction was delivered before."""
        self._number += 1
        key = key_of(placed.change, self._number)
        if self._recent is not None and key in self._recent:
            return False
        transaction = self._transactions.open.get(key)
        if transaction is None:
            transaction = self._transactions.begin(key, SequencedTransaction(key, since))
        transaction.facts.add(placed, seq, self._number, round_number)
        self._transactions.add(transaction, placed, size_of(placed))
        return True

    def release(
        self, due: Mapping[Key, str], repeats: GroupedWarnings | None = None
    ) -> Iterator[DueTransaction]:
        """Yield the transactions of `due`, which has what each lacks, in the order of their ends.

        Each has its changes until the next. A row of a full load stays as long as an earlier change stays.
        Raise Incomplete before the first transaction that ends after the begin of one that lacks changes, if
        the policy is to stop.
        """
        waiting = self.open
        first_staying = min((p.first for key, p in waiting.items() if key not in due), default=_AFTER_ALL)
        incomplete = (waiting[key] for key, lack in due.items() if lack and key not in self.faults)
        blocking = min(incomplete, key=attrgetter("first"), default=None) if self._stops else None
        due_transactions = in_order({key: waiting[key] for key in due})
        for (key, progress), is_overlapped in zip(due_transactions, _overlaps(due_transactions), strict=True):
            if is_row(key) and progress.last >= first_staying:
                continue
            if blocking is not None and progress.last >= blocking.first:
                raise Incomplete(due[blocking.key])
            stored = self._transactions.end(key)
            assert stored is not None
            yield self._judge(stored, due[key], repeats)._replace(is_overlapped=is_overlapped)
            stored.close()

    def _judge(self, stored: Changes, lack: str, repeats: GroupedWarnings | None) -> DueTransaction:
        """Decide whether a transaction is refused, and note it as delivered if it is not."""
        progress = stored.facts
        changes, fault = (stored, "") if repeats is None else without_repeats(stored, repeats)
        fault = self.faults.pop(progress.key, fault) or ("" if self._delivers else lack)
        is_late = self._recent is not None and progress.last < self._released
        if not fault:
            self._released = max(self._released, progress.last)
            if self._recent is not None and is_final(progress):
                remember(self._recent, progress.key, None, RECENT)
        return DueTransaction(progress, changes, stored, fault, is_late)


def assemble(
    items: Iterable[Placed | Refused],
    policy: str,
    spool: Spool,
    memory: int = MEMORY,
    *,
    ended: bool = False,
) -> Iterator[DueTransaction | Refused]:
    """Yield the transactions of a sorted sequence; a change that belongs to none is alone.

    All changes of a transaction share the time part of their sequences, so a transaction is complete after
    the last change of its time. If changes in the middle are missing, `policy` decides, also of the last
    change if `ended`, which means that nothing more comes; else a transaction without its last is refused.
    """
    transactions = WaitingTransactions(policy, spool, memory)
    at = ""
    try:
        for item in items:
            if isinstance(item, Refused):
                if item.spoils is not None:
                    reason = f"transaction {item.spoils[0]}: rows of it contradict each other"
                    transactions.faults[item.spoils] = reason
                yield item
                continue
            seq = item.change.position if sequence.legal(item.change.position) else at
            assert seq is not None
            if seq[: sequence.TIME] != at[: sequence.TIME]:
                yield from _release_all(transactions, ended=ended)
            at = seq
            transactions.add(item, seq)
        yield from _release_all(transactions, ended=ended)
    finally:
        transactions.close()


def _release_all(transactions: WaitingTransactions, *, ended: bool) -> Iterator[DueTransaction | Refused]:
    waiting = transactions.open
    for key, progress in waiting.items():
        if progress.is_open and not ended:
            reason = f"transaction {key[0]}: its transaction is not complete: its last message is missing"
            transactions.faults.setdefault(key, reason)
    for transaction in transactions.release({key: progress.lack for key, progress in waiting.items()}):
        if transaction.fault:
            yield from transaction.refusals()
        else:
            yield transaction
    transactions.faults.clear()


def in_order(transactions: Mapping[Key, SequencedTransaction]) -> list[tuple[Key, SequencedTransaction]]:
    """Sort by the last change; a row without a sequence follows everything that began before it."""
    spans = sorted(
        (progress.first, progress.last) for key, progress in transactions.items() if not is_row(key)
    )
    latest = list(accumulate((last for _, last in spans), max))

    def end(item: tuple[Key, SequencedTransaction]) -> tuple[str, bool, int]:
        key, progress = item
        begun_count = bisect_right(spans, (progress.last, _AFTER_ALL)) if is_row(key) else 0
        last = max(progress.last, latest[begun_count - 1]) if begun_count else progress.last
        return last, is_row(key), progress.number

    return sorted(transactions.items(), key=end)


def _overlaps(transactions: Sequence[tuple[Key, SequencedTransaction]]) -> Iterator[bool]:
    """Return for each transaction whether a later one began before the end of one up to it."""
    ends = accumulate((progress.last for _, progress in transactions), max)
    reversed_begins = (progress.first for _, progress in reversed(transactions))
    begins = list(accumulate(reversed_begins, min, initial=_AFTER_ALL))
    return (begin < end for begin, end in zip(reversed(begins[:-1]), ends, strict=True))


def is_row(key: Key) -> bool:
    """Return whether the key is that of a row without a sequence."""
    return len(key) == _ROW_KEY_PARTS


def is_final(progress: SequencedTransaction) -> bool:
    """Return whether only repeats of a transaction can still come.

    It is final if it is one change, or if all its counters are there. Without counters it never is.
    """
    key = progress.key
    return not progress.lack and not is_row(key) and (bool(progress.numbers) or not key[0])


Changes = EndedTransaction[SequencedTransaction, Placed]


def without_repeats(changes: Changes, repeats: GroupedWarnings) -> tuple[Changes, str]:
    """Return the changes of a transaction without those that were sent twice.

    Where two that should be the same differ, return all, and the reason to refuse them.
    """
    count = 0
    for _, group in groupby(changes, key=_identity):
        first, *repeated = group
        count += 1
        for placed in repeated:
            change = placed.change
            if not same_values(first.change, change):
                name = f"changeSequence {change.position} of {change.table}"
                return changes, f"{name} has two different values"
            repeats.add(change.table, placed.where, placed.raw)
    if count == changes.count:
        return changes, ""
    return replace(
        changes, count=count, read=lambda: (next(group) for _, group in groupby(changes, key=_identity))
    ), ""


def _identity(placed: Placed) -> tuple[Any, ...]:
    change = placed.change
    return change.fact("event_counter") if change.extra else None, change.position, change.table, change.op
