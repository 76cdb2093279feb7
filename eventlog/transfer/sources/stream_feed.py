"""A capture or a queue as a feed: its transactions come whole already, in the order of their commits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, InvalidValue, Refused
from eventlog.core.formats import Placed
from eventlog.files.stores import SpoolFile
from eventlog.transactions.counted import size_of
from eventlog.transactions.delivery import Delivery
from eventlog.transactions.open_transactions import Bounds, OpenTransactions
from eventlog.transfer.ordered import commit_number, commit_of

Last = tuple[int, str]  # the position of a commit, and its transaction


class BehindOthers(EventlogError):
    """{0}: it is not in the state, and its commit {1} is not after {2}, up to which another stream was \
delivered. Give --since {2} to skip everything up to there, or --since 0 to take all of it"""


class StreamReading(Protocol):
    """The stream or queue as it is read in one round."""

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


class StreamFeed:
    """A source of one stream by its name, which is opened again in every round, after its position."""

    blocks, tables = False, None

    def __init__(
        self, name: str, opened: Callable[[Any], StreamReading], fact: str, since: str, state: str | None
    ) -> None:
        self._name = name
        self._opened = opened
        self._fact = fact
        self._since = commit_number(since)
        stream, position, self._last = _load(state)
        self._new_after = None if since or stream in (None, name) else self._last
        self._position: Callable[[], Any] = lambda: position if stream == name else None
        self._reading: StreamReading | None = None
        self._transactions = OpenTransactions[str, None, Change](SpoolFile(), Bounds())  # the last one

    @property
    def ended(self) -> bool:
        """Return whether nothing can come any more."""
        return self._reading is not None and self._reading.ended

    @property
    def state(self) -> str | None:
        """Return the state after everything that was handed out."""
        return json.dumps({"stream": self._name, "position": self._position(), "last": self._last})

    def commit(self) -> None:
        """Do nothing, because no one else keeps a copy of the state."""

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()
        self._transactions.close()

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Yield the transactions after the position, each with the state after its last change."""
        reading = self._reading = self._opened(self._position())
        last: Change | None = None
        position = self._position
        for item in reading.answers(follow):
            if isinstance(item, Refused):
                yield item
                continue
            if last is not None and (item is None or item.transaction != last.transaction):
                yield from self._deliveries(last, position)
                last = None
            if item is not None:
                name = item.transaction or ""
                transaction = self._transactions.open.get(name) or self._transactions.begin(name, None)
                self._transactions.add(transaction, item, size_of(Placed(item, self._name)))
                last, position = item, reading.position
        if last is not None:
            yield from self._deliveries(last, position)
        self._position, self._new_after = reading.position, None
        if reading.over is not None:
            raise reading.over

    def _deliveries(self, change: Change, position: Callable[[], Any]) -> Iterator[Delivery]:
        """Yield the transaction of a change, unless it is not wanted."""
        commit_place = commit_of(change, self._fact), change.transaction or ""
        if self._new_after is not None and commit_place <= self._new_after:
            raise BehindOthers(self._name, commit_place[0], self._new_after[0])
        changes = self._transactions.end(change.transaction or "")
        assert changes is not None
        self._position, self._last = position, max(self._last, commit_place)
        if commit_place[0] > self._since:
            yield Delivery(changes)
        changes.close()


def _load(state: str | None) -> tuple[str | None, Any, Last]:
    """Return the stream of a state, its position, and the last transaction that was delivered."""
    if state is None:
        return None, None, (-1, "")
    try:
        fields = json.loads(state)
        commit, transaction = fields["last"]
        return str(fields["stream"]), fields["position"], (int(commit), str(transaction))
    except (ValueError, KeyError, TypeError):
        raise InvalidValue(state[:40], "the state of a stream") from None
