"""What a source of changes hands out: whole transactions, each with the state to go on from behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import Refused


class Delivery(NamedTuple):
    """One whole transaction, or one change that belongs to none, and the source's state behind it.

    The state is a text that only the source reads: given back to it, reading goes on behind this
    delivery. It is None where the source has no positions. States of earlier deliveries of the same
    run are covered by later ones.
    """

    changes: Sequence[Change]  # in their order; one that is large is read from disk as it is gone through
    state: str | None = None
    late: bool = False  # it came after one that stands behind it in the sequence was handed out
    incomplete: bool = False  # some of its changes never came (--open-transactions deliver)
    reload: bool = False  # it holds the first row of a full load of a table that had changes before


def by_transaction(changes: Iterable[Change | Refused]) -> Iterator[Delivery | Refused]:
    """The changes of a source without positions: those of one transaction that follow each other together."""
    group: list[Change] = []
    for item in changes:
        if isinstance(item, Refused):
            yield item
            continue
        if group and (item.transaction is None or item.transaction != group[0].transaction):
            yield Delivery(tuple(group))
            group = []
        group.append(item)
    if group:
        yield Delivery(tuple(group))
