"""Transactions that are not delivered yet: which are complete, which never will be, and their order.

The module reads and stores nothing. Its caller keeps the changes, and decides which transactions are ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from eventlog.core.change import Change
from eventlog.sequence.transactions import Facts, Key, in_order, is_final, is_row, key_of

_RECENT: Final = 1000  # delivered transactions that are recognised if they are sent again


@dataclass(slots=True)
class Waiting:
    """A transaction that waits for more changes, or for an earlier transaction."""

    key: Key
    facts: Facts
    since: float  # the moment of its first change
    round: int = 0  # in which its last change came

    @property
    def places(self) -> str:
        """Return the names of the sources that contain its changes."""
        return ", ".join(sorted(self.facts.sources))

    @property
    def why(self) -> str:
        """Return why the transaction cannot leave as it is."""
        if not self.facts.open:
            return self.facts.lacks(self.key)
        name = " at ".join(self.key)
        return f"transaction {name} waits for its last change beyond the limits ({self.places})"


W = TypeVar("W", bound=Waiting)


class Leaving(NamedTuple, Generic[W]):
    """A transaction to deliver: whether it lacks changes, and whether a later one was delivered before it."""

    waiting: W
    stuck: bool
    late: bool


class WaitingTransactions(Generic[W]):
    """All undelivered transactions; `make` creates one from a key, its first facts and its moment."""

    def __init__(
        self, make: Callable[[Key, Facts, float], W], recent: dict[Key, None], released: str = ""
    ) -> None:
        self.open: dict[Key, W] = {}
        self.recent = recent  # the last delivered transactions, recognised if they are sent again
        self.released = released  # the last delivered sequence
        self._make = make

    def add(
        self, change: Change, seq: str, source: str, number: int, now: float, turn: int
    ) -> tuple[W, int] | None:
        """Record a change of a round; return its transaction and place, or None if it was delivered."""
        key = key_of(change, number)
        if key in self.recent:
            return None
        one = self.open.get(key)
        if one is None:
            one = self.open[key] = self._make(key, Facts(seq, seq), now)
        one.round = turn
        return one, one.facts.take(change, seq, source, number)

    def stuck(
        self, ready: Set[Key], since: float, *, full: bool, read: Callable[[W], bool] = lambda one: False
    ) -> set[Key]:
        """Return the transactions that must not be held any longer.

        They are too old, the memory is `full`, or their sources were `read` to the end after all changes.
        """
        waits = (one for key, one in self.open.items() if key not in ready and not one.facts.complete)
        return {one.key for one in waits if full or one.since < since or (not one.facts.open and read(one))}

    def first(self, keys: Set[Key]) -> W:
        """Return the transaction of these keys that begins first."""
        return self.open[min(keys, key=lambda key: self.open[key].facts.first)]

    def leave(self, ready: Set[Key], stuck: Set[Key]) -> Iterator[Leaving[W]]:
        """Yield these transactions in the order of their ends.

        A row of a full load is held if an earlier change is held.
        """
        going = {key: one.facts for key, one in self.open.items() if key in ready or key in stuck}
        waits = (one.facts.first for key, one in self.open.items() if key not in going)
        first = min(waits, default=None)
        for key, facts in in_order(going):
            if first is not None and is_row(key) and facts.last >= first:
                continue
            yield Leaving(self.open.pop(key), key in stuck, facts.last < self.released)

    def left(self, one: W) -> None:
        """Record that a transaction was delivered."""
        self.released = max(self.released, one.facts.last)
        if is_final(one.key, one.facts):
            self.recent[one.key] = None
            if len(self.recent) > _RECENT:
                del self.recent[next(iter(self.recent))]
