"""Transactions of a sequence: complete by their counters, each once, in the order of their ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any, Final, NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Placed
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.plurals import quantity
from eventlog.files.keyed_store import MEMORY, KeyedStore, StoredItems
from eventlog.qlik import sequence
from eventlog.qlik.numbering import transaction_of
from eventlog.qlik.sequenced_messages import same
from eventlog.sequence.ranges import Ranges

Key = tuple[str, ...]
_CHANGE: Final = 500  # bytes that a change takes at least
_ROW: Final = 3  # parts of the key of a row without a sequence
_BEHIND_ALL: Final = "~"
_NAMED: Final = 5  # gaps that a message names


class Incomplete(EventlogError):
    """{0}; --open-transactions refuse or deliver continues without them"""


class Whole(NamedTuple):
    """The changes that are handed out together: a transaction, or a change that belongs to none."""

    changes: Sequence[Placed]
    identity: Key
    incomplete: bool = False


@dataclass(slots=True)
class Facts:
    """The facts about a transaction whose changes are still coming."""

    first: str  # sequences
    last: str
    count: int = 0
    number: int = 0  # of its last change, among all that came
    counters: Ranges = field(default_factory=Ranges)
    ends: int | None = None  # the counter of the change that is marked as the last
    counted: bool = False
    sources: set[str] = field(default_factory=set)

    def take(self, change: Change, seq: str, source: str, number: int) -> int:
        """Note one more change; its place among those of the transaction."""
        self.first, self.last = min(self.first, seq), max(self.last, seq)
        self.count += 1
        self.number = number
        self.sources.add(source)
        counter = change.fact("event_counter") if change.extra else None
        if type(counter) is not int:
            return 0
        self.counted = True
        self.counters.add(counter)
        if change.fact("last_event") is True:
            self.ends = max(self.ends or 0, counter)
        return counter

    @property
    def complete(self) -> bool:
        """Return whether nothing of the transaction is missing, as far as its counters show."""
        return not self.counted or (self.ends is not None and not self.counters.missing(1, self.ends))

    @property
    def open(self) -> bool:
        """Return whether its last change did not come yet."""
        return self.counted and self.ends is None

    def lacks(self, identity: Key) -> str:
        """Return a sentence about what is missing."""
        gaps = self.counters.missing(1, self.ends or 0)
        named = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in gaps[:_NAMED]]
        more = f" and {len(gaps) - _NAMED} more gaps" if len(gaps) > _NAMED else ""
        places = ", ".join(sorted(self.sources))
        name = " at ".join(identity)
        lacking = [f"its changes {', '.join(named)}{more}"] * bool(named)
        lacking += ["its last change"] * (self.ends is None)
        return f"transaction {name} lacks {' and '.join(lacking)} ({places})"


def key_of(change: Change, number: int) -> Key:
    """Return the identity of what is handed out together: a transaction, a change_seq, or one row."""
    identity = transaction_of(change)
    if identity is not None:
        return identity
    return ("", change.position) if change.position else ("", "", str(number))


def order_key(counter: int, seq: str) -> str:
    """Return a text by which changes of a transaction sort: by counter, then by sequence."""
    return f"{counter + (1 << 63):020}{seq}"


def size_of(placed: Placed) -> int:
    """Return roughly how many bytes a change takes."""
    return _CHANGE + 3 * len(placed.raw or b"") + 100 * len(placed.change.fields)


def assemble(
    items: Iterable[Placed | Refused],
    policy: str,
    leave: Callable[[Placed], None] | None = None,
    memory: int = MEMORY,
    *,
    ended: bool = False,
) -> Iterator[Whole | Refused]:
    """Yield the transactions of a sorted sequence.

    All changes of a transaction share the time part of their sequences, so a transaction is complete after
    the last change of its time. If changes in the middle are missing, `policy` decides. If the last change is
    missing, the transaction is handed to `leave` when it may still come, and else refused; `ended` means that
    nothing more comes.
    """
    group = _Group(policy, leave, KeyedStore(memory), ended=ended)
    at = ""
    try:
        for item in items:
            if isinstance(item, Refused):
                if item.spoils is not None:
                    group.spoil(item.spoils)
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
        group.held.close()


class _Group:
    """The changes of one time."""

    def __init__(
        self, policy: str, leave: Callable[[Placed], None] | None, held: KeyedStore[Placed], *, ended: bool
    ) -> None:
        self.held = held
        self._ended = ended
        self._policy = policy
        self._leave = leave
        self._facts: dict[Key, Facts] = {}
        self._spoilt: set[Key] = set()
        self._number = 0

    def spoil(self, identity: Key) -> None:
        """Refuse a transaction as a whole, because one of its records was refused."""
        self._spoilt.add(identity)

    def add(self, placed: Placed, seq: str) -> None:
        """One more change, in the order of the sequence."""
        self._number += 1
        key = key_of(placed.change, self._number)
        facts = self._facts.get(key)
        if facts is None:
            facts = self._facts[key] = Facts(seq, seq)
        counter = facts.take(placed.change, seq, placed.source, self._number)
        self.held.add(key, placed, size_of(placed), order_key(counter, seq))

    def close(self) -> Iterator[Whole | Refused]:
        """Yield the transactions in the order of their last changes."""
        known = in_order(self._facts)
        self._facts = {}
        stop = min((f.first for k, f in known if self._stops(k, f)), default=None)
        for key, facts in known:
            if stop is not None and facts.last >= stop:
                lacking = next(f.lacks(k) for k, f in known if self._stops(k, f))
                raise Incomplete(lacking)
            taken = self.held.take(key)
            yield from self._ended_one(key, facts, taken)
            taken.close()
        self._spoilt.clear()

    def _stops(self, key: Key, facts: Facts) -> bool:
        lacks = not facts.complete and not self._is_open(facts)
        return self._policy == "stop" and lacks and key not in self._spoilt

    def _is_open(self, facts: Facts) -> bool:
        """Return whether the missing changes of a transaction may still come."""
        return facts.open and not self._ended

    def _ended_one(self, key: Key, facts: Facts, taken: StoredItems[Placed]) -> Iterator[Whole | Refused]:
        if key in self._spoilt:
            yield from refused(taken, f"transaction {key[0]}: rows of it contradict each other")
        elif facts.complete:
            yield Whole(taken, key)
        elif self._is_open(facts) and self._leave is not None:
            for placed in taken:
                self._leave(placed)
            changes = quantity(len(taken), "change is", "changes are")
            said = f"transaction {key[0]} is open: its {changes} left to the next run"
            yield Refused(", ".join(sorted(facts.sources)), said, fault=False)
        elif self._is_open(facts):
            reason = f"transaction {key[0]}: its transaction is not complete: its last message is missing"
            yield from refused(taken, reason)
        elif self._policy == "deliver":
            yield Whole(taken, key, incomplete=True)
        else:
            yield from refused(taken, facts.lacks(key))


def refused(changes: Iterable[Placed], reason: str) -> Iterator[Refused]:
    """Yield each of the changes left out."""
    for placed in changes:
        yield Refused(placed.where, reason, placed.raw)


def in_order(known: Mapping[Key, Facts]) -> list[tuple[Key, Facts]]:
    """Sort by the last change; a row without a sequence follows everything that began before it."""
    spans = sorted((f.first, f.last) for key, f in known.items() if not is_row(key))
    latest = list(accumulate((last for _, last in spans), max))

    def end(item: tuple[Key, Facts]) -> tuple[str, bool, int]:
        key, facts = item
        begun = bisect_right(spans, (facts.last, _BEHIND_ALL)) if is_row(key) else 0
        last = max(facts.last, latest[begun - 1]) if begun else facts.last
        return last, is_row(key), facts.number

    return sorted(known.items(), key=end)


def is_row(key: Key) -> bool:
    """Return whether the key is that of a row without a sequence."""
    return len(key) == _ROW


def is_final(key: Key, facts: Facts) -> bool:
    """Return whether nothing more of a transaction can come, except repeats.

    It is final if it is one change, or if all its counters came. Without counters it never is.
    """
    return facts.complete and not is_row(key) and (facts.counted or not key[0])


def once(taken: StoredItems[Placed], repeated: GroupedWarnings) -> tuple[StoredItems[Placed], str]:
    """Return the changes of a transaction without those that were sent again; why all are refused, where they
    contradict each other.
    """
    count = 0
    for _, group in groupby(taken, key=_identity):
        first, *again = group
        count += 1
        for placed in again:
            change = placed.change
            if not same(first.change, change):
                said = f"changeSequence {change.position} of {change.table}"
                return taken, f"{said} has two different values"
            repeated.add(change.table, placed.where, placed.raw)
    if count == len(taken):
        return taken, ""
    return StoredItems(count, lambda: (next(again) for _, again in groupby(taken, key=_identity))), ""


def _identity(placed: Placed) -> tuple[Any, ...]:
    change = placed.change
    return change.fact("event_counter") if change.extra else None, change.position, change.table, change.op
