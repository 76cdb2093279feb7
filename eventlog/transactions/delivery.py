"""A delivery of a source: the changes of complete transactions, and the state after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused


class Stale(EventlogError):
    """the state of a delivery was asked for after the next one was taken"""


class DeliveryStates:
    """The states of a source's deliveries; each can be asked for until the next delivery is made."""

    def __init__(self, state: Callable[[], str | None]) -> None:
        self._state = state
        self._count = 0

    def next(self) -> Callable[[], str | None]:
        """Return the function for the state of the next delivery."""
        self._count += 1
        number = self._count

        def state() -> str | None:
            if number != self._count:
                raise Stale
            return self._state()

        return state


class NotCopied(EventlogError):
    """{0}"""


class Delivery:
    """The changes of whole transactions, or changes without a transaction, and the source's state after them.

    The state is a text for the source, which continues with it after this delivery. It is None for a source
    without positions. Read it after the changes and before the next delivery, later it raises Stale. A
    delivery without changes has only a new state.
    """

    __slots__ = ("_state", "changes", "late", "may_wait")

    def __init__(
        self,
        changes: Iterable[Change],
        state: str | Callable[[], str | None] | None = None,
        late: bool = False,
        may_wait: bool = False,
    ) -> None:
        self.changes = changes  # in order, to be read once; large transactions come from disk
        self.late = late  # a later change was handed out before
        self.may_wait = may_wait  # the source may have to wait before the next one
        self._state = state

    @property
    def state(self) -> str | None:
        """The state after this delivery."""
        return self._state() if callable(self._state) else self._state


def by_transaction(changes: Iterable[Change | Refused]) -> Iterator[Delivery | Refused]:
    """Yield the changes of a source without positions, consecutive ones of a transaction together.

    A change without a transaction is yielded at once, a transaction when the next change is there.
    """
    group: list[Change] = []
    for item in changes:
        if isinstance(item, Refused):
            yield item
            continue
        if group and item.transaction != group[-1].transaction:
            yield Delivery(tuple(group))
            group = []
        if item.transaction is None:
            yield Delivery((item,))
        else:
            group.append(item)
    if group:
        yield Delivery(tuple(group))
