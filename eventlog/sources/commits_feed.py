"""Captures and queues as a feed: their transactions come whole already, and are merged by their commits."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, InvalidValue, Refused
from eventlog.core.formats import Placed
from eventlog.files.keyed_store import KeyedStore, StoredItems
from eventlog.sequence.commits import Commits, number_of, once, place_of, repeats_left_out, sequence_of
from eventlog.sequence.delivery import ChangesOf, Delivery, Stale
from eventlog.sequence.transactions import size_of

_JOINED: Final = object()  # the key of the changes of a transaction in several streams


class BehindOthers(EventlogError):
    """{0}: it is not in the state, and its commit {1} is not after {2}, up to which others were delivered. \
Give --since {2} to skip everything up to there, or --since 0 to take all of it"""


Last = tuple[int, str]  # the position of a commit, and its transaction
Order = tuple[int, str, int]  # the position of a commit, its transaction, and the number of its stream

_NONE: Final[Last] = -1, ""


class CommitReading(Protocol):
    """One stream or queue that is being read."""

    @property
    def position(self) -> Callable[[], Any]:
        """Return a function for the position, as JSON, after everything that was taken.

        It is asked for at each change and rarely called.
        """

    @property
    def ended(self) -> bool:
        """Return whether nothing can come any more."""

    @property
    def over(self) -> EventlogError | None:
        """Return why the reading ended, if an error ended it."""

    def answers(self, growing: bool, /) -> Iterator[Change | Refused | None]:
        """Yield its changes; a growing stream may end in the middle of a transaction.

        None means that the transactions of all changes before it are whole.
        """

    def close(self) -> None: ...


class _Whole(NamedTuple):
    """A transaction of one stream."""

    order: Order
    stream: str
    changes: StoredItems[Placed]
    position: Callable[[], Any]


class CommitsFeed:
    """A source of several streams by name; each is opened again in every round, after its position."""

    waits, tables = False, None

    def __init__(
        self,
        names: Sequence[str],
        opened: Callable[[str, Any], CommitReading],
        commits: Commits,
        since: str,
        state: str | None,
    ) -> None:
        self._names = names
        self._opened = opened
        self._commits = commits
        self._since = number_of(since)
        self._positions, self._last = _load(state)
        known = self._positions.keys()
        self._new = {name for name in names if name not in known} if known and not since else set()
        self._new_behind = self._last
        self._held: KeyedStore[Placed] = KeyedStore()
        self._turns = 0
        self._moved: dict[str, Callable[[], Any]] = {}  # the positions that were not evaluated yet
        self._readings: dict[str, CommitReading] = {}

    @property
    def ended(self) -> bool:
        """Return whether nothing can come any more."""
        return bool(self._readings) and all(reading.ended for reading in self._readings.values())

    @property
    def state(self) -> str | None:
        """Return the state after everything that was handed out."""
        return json.dumps({"streams": self._current_positions(), "last": self._last})

    def _current_positions(self) -> dict[str, Any]:
        self._positions |= {name: position() for name, position in self._moved.items()}
        self._moved.clear()
        return self._positions

    def kept(self) -> None:
        """Do nothing, because no one else keeps a copy of the state."""

    def close(self) -> None:
        for reading in self._readings.values():
            reading.close()
        self._held.close()

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Yield the transactions of the streams after their positions, in the order of their commits."""
        refused: list[Refused] = []
        positions = self._current_positions()
        readings = self._readings = {name: self._opened(name, positions.get(name)) for name in self._names}
        streams = [
            self._wholes(i, name, readings[name].answers(follow), readings[name], refused)
            for i, name in enumerate(readings)
        ]
        repeated: Counter[str] = Counter()
        merged = heapq.merge(*streams, key=lambda whole: whole.order)
        for wholes in self._by_transaction(merged):
            yield from refused
            refused.clear()
            self._check(wholes)
            self._moved |= {whole.stream: whole.position for whole in wholes}
            self._last = max(self._last, wholes[0].order[:2])
            if wholes[0].order[0] > self._since:
                changes = self._joined(wholes, repeated) if len(wholes) > 1 else wholes[0].changes
                yield self._delivery(ChangesOf(changes))
                changes.close()
            for whole in wholes:
                whole.changes.close()
        yield from refused
        yield from repeats_left_out(repeated)
        self._moved |= {name: reading.position for name, reading in readings.items()}
        self._new = set()
        for reading in readings.values():
            if reading.over is not None:
                raise reading.over

    def _check(self, wholes: Sequence[_Whole]) -> None:
        """Raise BehindOthers if a stream missing from the state contains commits that may already be
        delivered.

        Examples are a renamed file and a session that was started again.
        """
        for whole in wholes:
            if whole.stream in self._new and whole.order[:2] <= self._new_behind:
                raise BehindOthers(whole.stream, whole.order[0], self._new_behind[0])

    def _by_transaction(self, wholes: Iterable[_Whole]) -> Iterable[list[_Whole]]:
        """Group what several streams contain of one transaction.

        A group ends with the next transaction; a single stream need not wait for it.
        """
        if not self._commits.shared or len(self._names) == 1:
            return ([whole] for whole in wholes)
        return (list(group) for _, group in groupby(wholes, key=lambda whole: whole.order[:2]))

    def _joined(self, wholes: Sequence[_Whole], repeated: Counter[str]) -> StoredItems[Placed]:
        """Return the changes of one transaction from several streams, by their sequence, each once."""
        ordered = heapq.merge(*(ChangesOf(whole.changes) for whole in wholes), key=sequence_of)
        for change in once(ordered, repeated):
            placed = Placed(change, wholes[0].stream)
            self._held.add(_JOINED, placed, size_of(placed))
        return self._held.take(_JOINED)

    def _delivery(self, changes: Iterable[Change]) -> Delivery:
        self._turns += 1
        turn = self._turns
        return Delivery(changes, lambda: self._state_at(turn))

    def _state_at(self, turn: int) -> str | None:
        if turn != self._turns:
            raise Stale
        return self.state

    def _wholes(
        self,
        number: int,
        name: str,
        answers: Iterable[Change | Refused | None],
        reading: CommitReading,
        refused: list[Refused],
    ) -> Iterator[_Whole]:
        """Yield the transactions of one stream, each with the position as it was when its last change was
        taken.
        """
        open_: tuple[str | None, Order, Callable[[], Any]] | None = None
        for item in answers:
            if isinstance(item, Refused):
                refused.append(item)
                continue
            if open_ is not None and (item is None or item.transaction != open_[0]):
                yield _Whole(open_[1], name, self._held.take(name), open_[2])
                open_ = None
            if item is None:
                continue
            order = open_[1] if open_ else (*place_of(item, self._commits)[:2], number)
            placed = Placed(item, name)
            self._held.add(name, placed, size_of(placed))
            open_ = item.transaction, order, reading.position
        if open_ is not None:
            yield _Whole(open_[1], name, self._held.take(name), open_[2])


def _load(state: str | None) -> tuple[dict[str, Any], Last]:
    """Return the position of each stream, and the last transaction that was delivered of any."""
    if state is None:
        return {}, _NONE
    try:
        loaded = json.loads(state)
        found = loaded["streams"]
        commit, transaction = loaded.get("last", _NONE)  # states of older versions do not contain it
        last = int(commit), str(transaction)
    except (ValueError, KeyError, TypeError, AttributeError):
        found, last = None, _NONE
    if not isinstance(found, Mapping):
        raise InvalidValue(state[:40], "the state of streams")
    return dict(found), last
