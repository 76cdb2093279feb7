"""The changes of all sources in one sequence, sorted on disk where memory does not allow.

Captures and queues have whole transactions already, in the order of their commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format, Placed, Source
from eventlog.core.tables import Tables
from eventlog.files.stores import SortedItems, SpoolFile
from eventlog.formats.qlik.numbering import Arrival
from eventlog.formats.qlik.sequenced import SequenceGroup, Sequencer
from eventlog.formats.qlik.sequenced_messages import MessageSequencer
from eventlog.formats.qlik.sequenced_rows import RowSequencer
from eventlog.formats.qlik.whole_transactions import assemble
from eventlog.transactions.counted import DueTransaction
from eventlog.transactions.stream_settings import StreamSettings

MEMORY: Final = 256 << 20
# the fact that contains the position of a change's commit, by the format of the stream
COMMITS: Final = {"gbase": "commit", "linter": "commit_syslog_addr"}


SEQUENCERS: Final[dict[str, Callable[[Tables, Any, str], Sequencer]]] = {
    "qlik-table": RowSequencer,
    "qlik-message": MessageSequencer,
}


def ordered(
    sequencer: Sequencer,
    sources: Iterable[Source[Any]],
    memory: int = MEMORY,
    new: Callable[[Iterator[SequenceGroup]], Iterator[SequenceGroup]] = iter,
) -> Iterator[Placed | Refused]:
    """Yield the changes of all sources by their sequence, then reports; what was refused comes at once.

    `new` leaves out groups that are not read.
    """
    with closing(SortedItems[Any](itemgetter(0), sequencer.size, memory)) as sorter:
        parsed = chain.from_iterable(map(sequencer.parse, sources))
        for item in chain(parsed, sequencer.release_waiting()):
            if isinstance(item, Refused):
                yield item
            else:
                sorter.add(item)
        for group in new(sequencer.groups(sorter.in_order())):
            yield from sequencer.changes(group)
        yield from sequencer.reports()


def changes_in_order(
    form: Format,
    tables: Tables,
    reading: Any,
    stream: StreamSettings,
    sources: Iterable[Source[Any]],
) -> Iterator[Change | Refused]:
    """Return the changes of sources: by their sequence if the format has one, else as they come."""
    whole_transactions, sequencer = getattr(reading, "whole_transactions", False), SEQUENCERS.get(form.name)
    if form.name in COMMITS or stream.order == "as-is" or sequencer is None:
        changes = form.read(sources, tables, reading)
        if form.name in COMMITS:
            return after_commit(changes, COMMITS[form.name], stream.since) if stream.since else changes
        if whole_transactions or stream.since:
            raise Misuse(f"{'whole-transactions' if whole_transactions else 'since'} needs --order sequence")
        return changes
    placed = ordered(sequencer(tables, reading, stream.since), sources)
    if not whole_transactions:
        return (item if isinstance(item, Refused) else item.change for item in placed)
    return _changes_of_all(assemble(placed, stream.open_transactions, SpoolFile(), ended=stream.ended))


def arrival_of(form: Format, reading: Any, stream: StreamSettings, *, once: bool) -> Arrival:
    """Return how the changes of a source come to a writer; `once` means files that are read once."""
    if form.folded or form.name in COMMITS:
        return Arrival.BY_TRANSACTION
    if stream.order == "as-is":
        return Arrival.AS_IS
    is_sorted = once and form.name in SEQUENCERS and not getattr(reading, "whole_transactions", False)
    return Arrival.SEQUENCE if is_sorted else Arrival.ANY


def _changes_of_all(transactions: Iterable[DueTransaction | Refused]) -> Iterator[Change | Refused]:
    """Yield the changes of whole transactions, and what was refused."""
    for item in transactions:
        if isinstance(item, Refused):
            yield item
        else:
            yield from (placed.change for placed in item.changes)


def commit_of(change: Change, fact: str) -> int:
    """Return the position of the commit of a change; 0 if its stream does not contain it."""
    position = change.fact(fact)
    return position if type(position) is int else 0


def commit_number(since: str) -> int:
    """Return the number of the commit after which reading starts."""
    if since and not (since.isascii() and since.isdigit()):
        raise Misuse(f"--since {since[:40]}: it is the number of a commit here")
    return int(since or -1)


def after_commit(changes: Iterable[Change | Refused], fact: str, since: str) -> Iterator[Change | Refused]:
    """Yield the changes that were committed after a commit, and what was refused."""
    bound = commit_number(since)
    return (item for item in changes if isinstance(item, Refused) or commit_of(item, fact) > bound)
