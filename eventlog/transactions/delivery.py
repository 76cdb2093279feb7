"""A delivery of a source: the changes of complete transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused


class NotCopied(EventlogError):
    """{0}"""


class Delivery(NamedTuple):
    """The changes of whole transactions, or changes without a transaction.

    They are in order, and read once: large transactions come from disk. The source has its state after them
    until the next delivery is taken.
    """

    changes: Iterable[Change]
    late: bool = False  # a later change was handed out before
    may_wait: bool = False  # the source may have to wait before the next one
    is_overlapped: bool = False  # the next ones have changes of before its end


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
