"""Transactions of a sequence: complete by their counters, each once, in the order of their ends.

`assemble` groups a sorted sequence. `WaitingTransactions` decides which transactions of a stream without an
order are delivered; it reads and stores no changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any, Final, NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Placed
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.files.stores import MEMORY, KeyedStore, StoredItems
from eventlog.qlik import sequence
from eventlog.qlik.numbering import transaction_of
from eventlog.qlik.sequenced_messages import same_values
from eventlog.sequence.ranges import Ranges

Key = tuple[str, ...]
_CHANGE_BYTES: Final = 500  # of a change without content
_RECENT: Final = 1000  # delivered transactions that are recognised if they are sent again
_ROW_KEY_PARTS: Final = 3  # of a row without a sequence
_AFTER_ALL: Final = "~"
_MAX_NAMED_GAPS: Final = 5


class Incomplete(EventlogError):
    """{0}; --open-transactions refuse or deliver continues without them"""


@dataclass(slots=True)
class TransactionProgress:
    """The counts of a transaction whose changes are still coming."""

    first: str  # sequences
    last: str
    count: int = 0
    number: int = 0  # of its last change, among all changes
    counters: Ranges = field(default_factory=Ranges)
    last_counter: int | None = None  # the counter of the change that is marked as the last
    has_counters: bool = False
    sources: set[str] = field(default_factory=set)

    def add(self, change: Change, seq: str, source: str, number: int) -> int:
        """Add a change; return its counter in the transaction, or 0."""
        self.first, self.last = min(self.first, seq), max(self.last, seq)
        self.count += 1
        self.number = number
        self.sources.add(source)
        counter = change.fact("event_counter") if change.extra else None
        if type(counter) is not int:
            return 0
        self.has_counters = True
        self.counters.add(counter)
        if change.fact("last_event") is True:
            self.last_counter = max(self.last_counter or 0, counter)
        return counter

    @property
    def is_complete(self) -> bool:
        """Return whether nothing of the transaction is missing, as far as its counters show."""
        return not self.has_counters or (
            self.last_counter is not None and not self.counters.missing(1, self.last_counter)
        )

    @property
    def is_open(self) -> bool:
        """Return whether its last change did not come yet."""
        return self.has_counters and self.last_counter is None

    def describe_missing(self, identity: Key) -> str:
        """Return a sentence about what is missing."""
        gaps = self.counters.missing(1, self.last_counter or 0)
        gap_names = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in gaps[:_MAX_NAMED_GAPS]]
        unnamed = f" and {len(gaps) - _MAX_NAMED_GAPS} more gaps" if len(gaps) > _MAX_NAMED_GAPS else ""
        sources = ", ".join(sorted(self.sources))
        name = " at ".join(identity)
        missing_parts = [f"its changes {', '.join(gap_names)}{unnamed}"] * bool(gap_names)
        missing_parts += ["its last change"] * (self.last_counter is None)
        return f"transaction {name} lacks {' and '.join(missing_parts)} ({sources})"


def key_of(change: Change, number: int) -> Key:
    """Return the identity of changes that are handed out together: a transaction, a change_seq, or a row."""
    identity = transaction_of(change)
    if identity is not None:
        return identity
    return ("", change.position) if change.position else ("", "", str(number))


def order_key(counter: int, seq: str) -> str:
    """Return a text by which changes of a transaction sort: by counter, then by sequence."""
    return f"{counter + (1 << 63):020}{seq}"


def size_of(placed: Placed) -> int:
    """Return roughly how many bytes a change takes."""
    return _CHANGE_BYTES + 3 * len(placed.raw or b"") + 100 * len(placed.change.fields)


def assemble(
    items: Iterable[Placed | Refused],
    policy: str,
    memory: int = MEMORY,
    *,
    ended: bool = False,
) -> Iterator[Sequence[Placed] | Refused]:
    """Yield the changes of each transaction of a sorted sequence; a change that belongs to none is alone.

    All changes of a transaction share the time part of their sequences, so a transaction is complete after
    the last change of its time. If changes in the middle are missing, `policy` decides, also of the last
    change if `ended`, which means that nothing more comes; else a transaction without its last is refused.
    """
    group = _Group(policy, KeyedStore(memory), ended=ended)
    at = ""
    try:
        for item in items:
            if isinstance(item, Refused):
                if item.spoils is not None:
                    group.spoilt.add(item.spoils)
                yield item
                continue
            seq = item.change.position if sequence.legal(item.change.position) else at
            assert seq is not None
            if seq[: sequence.TIME] != at[: sequence.TIME]:
                yield from group.close()
            at = seq
            group.add(item, seq)
        yield from group.close()
    finally:
        group.store.close()


class _Group:
    """The changes of one time."""

    def __init__(self, policy: str, store: KeyedStore[Placed], *, ended: bool) -> None:
        self.store = store
        self._ended = ended
        self._policy = policy
        self._progress: dict[Key, TransactionProgress] = {}
        self.spoilt: set[Key] = set()  # refused as a whole, because one of their records was refused
        self._number = 0

    def add(self, placed: Placed, seq: str) -> None:
        """Add a change, in the order of the sequence."""
        self._number += 1
        key = key_of(placed.change, self._number)
        progress = self._progress.get(key)
        if progress is None:
            progress = self._progress[key] = TransactionProgress(seq, seq)
        counter = progress.add(placed.change, seq, placed.source, self._number)
        self.store.add(key, placed, size_of(placed), order_key(counter, seq))

    def close(self) -> Iterator[Sequence[Placed] | Refused]:
        """Yield the transactions in the order of their last changes."""
        transactions = in_order(self._progress)
        self._progress = {}
        stopping = [(key, progress) for key, progress in transactions if self._stops(key, progress)]
        first = min((progress.first for _, progress in stopping), default=None)
        for key, progress in transactions:
            if first is not None and progress.last >= first:
                blocking_key, blocking = stopping[0]
                raise Incomplete(blocking.describe_missing(blocking_key))
            changes = self.store.pop(key)
            yield from self._hand_out(key, progress, changes)
            changes.close()
        self.spoilt.clear()

    def _stops(self, key: Key, progress: TransactionProgress) -> bool:
        """Return whether the run stops before a transaction with missing changes."""
        has_gaps = not progress.is_complete and not self._is_open(progress)
        return self._policy == "stop" and has_gaps and key not in self.spoilt

    def _is_open(self, progress: TransactionProgress) -> bool:
        """Return whether the missing changes of a transaction may still come."""
        return progress.is_open and not self._ended

    def _hand_out(
        self, key: Key, progress: TransactionProgress, changes: StoredItems[Placed]
    ) -> Iterator[Sequence[Placed] | Refused]:
        if key in self.spoilt:
            yield from refuse_all(changes, f"transaction {key[0]}: rows of it contradict each other")
        elif progress.is_complete or (self._policy == "deliver" and not self._is_open(progress)):
            yield changes
        elif self._is_open(progress):
            reason = f"transaction {key[0]}: its transaction is not complete: its last message is missing"
            yield from refuse_all(changes, reason)
        else:
            yield from refuse_all(changes, progress.describe_missing(key))


def refuse_all(changes: Iterable[Placed], reason: str) -> Iterator[Refused]:
    """Yield a refusal of each change."""
    for placed in changes:
        yield Refused(placed.where, reason, placed.raw)


def in_order(transactions: Mapping[Key, TransactionProgress]) -> list[tuple[Key, TransactionProgress]]:
    """Sort by the last change; a row without a sequence follows everything that began before it."""
    spans = sorted(
        (progress.first, progress.last) for key, progress in transactions.items() if not is_row(key)
    )
    latest = list(accumulate((last for _, last in spans), max))

    def end(item: tuple[Key, TransactionProgress]) -> tuple[str, bool, int]:
        key, progress = item
        begun_count = bisect_right(spans, (progress.last, _AFTER_ALL)) if is_row(key) else 0
        last = max(progress.last, latest[begun_count - 1]) if begun_count else progress.last
        return last, is_row(key), progress.number

    return sorted(transactions.items(), key=end)


def is_row(key: Key) -> bool:
    """Return whether the key is that of a row without a sequence."""
    return len(key) == _ROW_KEY_PARTS


def is_final(key: Key, progress: TransactionProgress) -> bool:
    """Return whether only repeats of a transaction can still come.

    It is final if it is one change, or if all its counters are there. Without counters it never is.
    """
    return progress.is_complete and not is_row(key) and (progress.has_counters or not key[0])


def without_repeats(
    changes: StoredItems[Placed], repeats: GroupedWarnings
) -> tuple[StoredItems[Placed], str]:
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
    if count == len(changes):
        return changes, ""
    return StoredItems(count, lambda: (next(group) for _, group in groupby(changes, key=_identity))), ""


def _identity(placed: Placed) -> tuple[Any, ...]:
    change = placed.change
    return change.fact("event_counter") if change.extra else None, change.position, change.table, change.op


@dataclass(slots=True)
class WaitingTransaction:
    """A transaction that waits for more changes, or for an earlier transaction."""

    key: Key
    progress: TransactionProgress
    since: float  # the moment of its first change
    last_round: int = 0  # in which its last change came

    @property
    def source_names(self) -> str:
        """Return the names of the sources that contain its changes."""
        return ", ".join(sorted(self.progress.sources))

    @property
    def reason(self) -> str:
        """Return why the transaction cannot be delivered as it is."""
        if not self.progress.is_open:
            return self.progress.describe_missing(self.key)
        name = " at ".join(self.key)
        return f"transaction {name} waits for its last change beyond the limits ({self.source_names})"


class DueTransaction(NamedTuple):
    """A transaction to deliver: whether it lacks changes, and whether a later one was delivered before it."""

    transaction: WaitingTransaction
    is_stuck: bool
    is_late: bool


class WaitingTransactions:
    """All undelivered transactions, and which of them are due; their changes are stored elsewhere."""

    def __init__(self, recent: dict[Key, None]) -> None:
        self.open: dict[Key, WaitingTransaction] = {}
        self._recent = recent  # the last delivered transactions, recognised if they are sent again
        self._released = ""  # the last delivered sequence

    def add(
        self, change: Change, seq: str, source: str, number: int, now: float, round_number: int
    ) -> tuple[WaitingTransaction, int] | None:
        """Record a change of a round; return its transaction and counter, or None if it was delivered."""
        key = key_of(change, number)
        if key in self._recent:
            return None
        transaction = self.open.get(key)
        if transaction is None:
            transaction = self.open[key] = WaitingTransaction(key, TransactionProgress(seq, seq), now)
        transaction.last_round = round_number
        return transaction, transaction.progress.add(change, seq, source, number)

    def ready(self, round_number: int) -> set[Key]:
        """Return the transactions that are complete since a round."""
        waiting = self.open.values()
        return {w.key for w in waiting if w.progress.is_complete and w.last_round <= round_number}

    def stuck(self, since: float, round_number: int, is_full: bool) -> set[Key]:
        """Return the incomplete transactions that must not wait any longer.

        They are too old, the memory is full, or a change in their middle did not come in a whole round after
        their last change.
        """
        return {
            waiting.key
            for waiting in self.open.values()
            if not waiting.progress.is_complete
            and (
                is_full
                or waiting.since < since
                or (not waiting.progress.is_open and waiting.last_round <= round_number)
            )
        }

    def first(self, keys: Set[Key]) -> WaitingTransaction:
        """Return the transaction of these keys that begins first."""
        return self.open[min(keys, key=lambda key: self.open[key].progress.first)]

    def release(self, ready: Set[Key], stuck: Set[Key]) -> Iterator[DueTransaction]:
        """Yield these transactions in the order of their ends; they no longer wait.

        A row of a full load waits on as long as an earlier change does.
        """
        due = {key: waiting.progress for key, waiting in self.open.items() if key in ready or key in stuck}
        first = min((w.progress.first for key, w in self.open.items() if key not in due), default=None)
        for key, progress in in_order(due):
            if first is not None and is_row(key) and progress.last >= first:
                continue
            yield DueTransaction(self.open.pop(key), key in stuck, progress.last < self._released)

    def record_delivered(self, transaction: WaitingTransaction) -> None:
        """Record that a transaction was delivered."""
        self._released = max(self._released, transaction.progress.last)
        if is_final(transaction.key, transaction.progress):
            self._recent[transaction.key] = None
            if len(self._recent) > _RECENT:
                del self._recent[next(iter(self._recent))]
