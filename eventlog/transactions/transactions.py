"""Transactions of a sequence: complete by their counters, each once, in the order of their ends.

`WaitingTransactions` decides, also for a stream without an order. `assemble` asks it after each time of a
sorted sequence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Placed
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.files.stores import MEMORY, KeyedItems, PartItems
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.numbering import transaction_of
from eventlog.formats.qlik.sequenced_messages import same_values
from eventlog.transactions.ranges import Ranges

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

    key: Key
    first: str  # sequences
    last: str
    since: float = 0  # the moment of its first change
    last_round: int = 0  # in which its last change came
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

    @property
    def source_names(self) -> str:
        """Return the names of the sources that contain its changes."""
        return ", ".join(sorted(self.sources))

    @property
    def missing(self) -> str:
        """Return a sentence about what is missing; empty if nothing is."""
        if self.is_complete:
            return ""
        gaps = self.counters.missing(1, self.last_counter or 0)
        gap_names = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in gaps[:_MAX_NAMED_GAPS]]
        unnamed = f" and {len(gaps) - _MAX_NAMED_GAPS} more gaps" if len(gaps) > _MAX_NAMED_GAPS else ""
        missing_parts = [f"its changes {', '.join(gap_names)}{unnamed}"] * bool(gap_names)
        missing_parts += ["its last change"] * (self.last_counter is None)
        name = " at ".join(self.key)
        return f"transaction {name} lacks {' and '.join(missing_parts)} ({self.source_names})"


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


class DueTransaction(NamedTuple):
    """A transaction that is handed out."""

    progress: TransactionProgress
    changes: PartItems[Placed]  # in order, each once
    stored: PartItems[Placed]  # repeats, too
    fault: str = ""  # why its changes are refused
    is_late: bool = False  # a later one was handed out before

    def refusals(self) -> Iterator[Refused]:
        """Yield each change of a transaction that is refused."""
        for placed in self.stored:
            yield Refused(placed.where, self.fault, placed.raw)


class WaitingTransactions:
    """The transactions that are not handed out yet, with their changes."""

    def __init__(self, policy: str, memory: int = MEMORY, recent: dict[Key, None] | None = None) -> None:
        """Take what to do with transactions that lack changes: stop, refuse or deliver.

        `recent` are the last transactions that were delivered, which are not taken again.
        """
        self.open: dict[Key, TransactionProgress] = {}
        self.faults: dict[Key, str] = {}  # of transactions that are refused whatever the policy
        self.store: KeyedItems[Placed] = KeyedItems(memory)
        self._stops, self._delivers = policy == "stop", policy == "deliver"
        self._recent = recent
        self._released = ""  # the last delivered sequence
        self._number = 0

    def add(self, placed: Placed, seq: str, since: float = 0, round_number: int = 0) -> bool:
        """Add a change that came in a round; return False if its transaction was delivered before."""
        self._number += 1
        key = key_of(placed.change, self._number)
        if self._recent is not None and key in self._recent:
            return False
        progress = self.open.get(key)
        if progress is None:
            progress = self.open[key] = TransactionProgress(key, seq, seq, since)
        progress.last_round = round_number
        counter = progress.add(placed.change, seq, placed.source, self._number)
        self.store.add(key, placed, size_of(placed), order_key(counter, seq))
        return True

    def release(
        self, due: Mapping[Key, str], repeats: GroupedWarnings | None = None
    ) -> Iterator[DueTransaction]:
        """Yield these transactions in the order of their ends; each has its changes until the next.

        With them is what they lack. A row of a full load is left as long as an earlier change is.
        """
        first_left = min((p.first for key, p in self.open.items() if key not in due), default=None)
        incomplete = (self.open[key] for key, missing in due.items() if missing and key not in self.faults)
        blocking = min(incomplete, key=attrgetter("first"), default=None) if self._stops else None
        for key, progress in in_order({key: self.open[key] for key in due}):
            if first_left is not None and is_row(key) and progress.last >= first_left:
                continue
            if blocking is not None and progress.last >= blocking.first:
                raise Incomplete(due[blocking.key])
            del self.open[key]
            stored = self.store.pop(key)
            changes, fault = (stored, "") if repeats is None else without_repeats(stored, repeats)
            fault = self.faults.pop(key, fault) or ("" if self._delivers else due[key])
            is_late = self._recent is not None and progress.last < self._released
            transaction = DueTransaction(progress, changes, stored, fault, is_late)
            if not fault:
                self._record_delivered(progress)
            yield transaction
            stored.close()

    def _record_delivered(self, progress: TransactionProgress) -> None:
        self._released = max(self._released, progress.last)
        if self._recent is not None and is_final(progress):
            remember(self._recent, progress.key)


def remember(recent: dict[Key, None], key: Key) -> None:
    """Add a transaction to the last that were delivered."""
    recent[key] = None
    if len(recent) > _RECENT:
        del recent[next(iter(recent))]


def assemble(
    items: Iterable[Placed | Refused],
    policy: str,
    memory: int = MEMORY,
    *,
    ended: bool = False,
) -> Iterator[DueTransaction | Refused]:
    """Yield the transactions of a sorted sequence; a change that belongs to none is alone.

    All changes of a transaction share the time part of their sequences, so a transaction is complete after
    the last change of its time. If changes in the middle are missing, `policy` decides, also of the last
    change if `ended`, which means that nothing more comes; else a transaction without its last is refused.
    """
    transactions = WaitingTransactions(policy, memory)
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
        transactions.store.close()


def _release_all(transactions: WaitingTransactions, *, ended: bool) -> Iterator[DueTransaction | Refused]:
    for key, progress in transactions.open.items():
        if progress.is_open and not ended:
            reason = f"transaction {key[0]}: its transaction is not complete: its last message is missing"
            transactions.faults.setdefault(key, reason)
    due = {key: progress.missing for key, progress in transactions.open.items()}
    for transaction in transactions.release(due):
        if transaction.fault:
            yield from transaction.refusals()
        else:
            yield transaction
    transactions.faults.clear()


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


def is_final(progress: TransactionProgress) -> bool:
    """Return whether only repeats of a transaction can still come.

    It is final if it is one change, or if all its counters are there. Without counters it never is.
    """
    key = progress.key
    return progress.is_complete and not is_row(key) and (progress.has_counters or not key[0])


def without_repeats(changes: PartItems[Placed], repeats: GroupedWarnings) -> tuple[PartItems[Placed], str]:
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
