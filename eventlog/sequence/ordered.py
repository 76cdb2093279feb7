"""All sources as one sequence, sorted on disk where memory does not allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, Final, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format, Placed, Source
from eventlog.core.tables import Tables
from eventlog.files.sorted_runs import SortedRuns
from eventlog.qlik.sequenced_messages import MessageSequencer
from eventlog.qlik.sequenced_rows import RowSequencer
from eventlog.sequence.commits import COMMITS, after_commit
from eventlog.sequence.settings import StreamSettings
from eventlog.sequence.transactions import assemble

MEMORY: Final = 256 << 20


class Sequencer(Protocol):
    """Reads sources in two steps; the first item of what `parse` gives is its place in the sequence."""

    def parse(self, source: Any, /) -> Iterator[Any]: ...
    def rest(self) -> Iterator[Any]: ...
    def size(self, item: Any, /) -> int: ...
    def join(self, items: Callable[[], Iterable[Any]], /) -> Iterator[Placed | Refused]: ...


SEQUENCERS: Final[dict[str, Callable[[Tables, Any, str], Sequencer]]] = {
    "qlik-table": RowSequencer,
    "qlik-message": MessageSequencer,
}


def ordered(
    sequencer: Sequencer, sources: Iterable[Source[Any]], memory: int = MEMORY
) -> Iterator[Placed | Refused]:
    """Yield the changes of all sources by their sequence; Refused as it is met."""
    with SortedRuns[Any](itemgetter(0), sequencer.size, memory) as sorter:
        for source in sources:
            yield from _kept(sequencer.parse(source), sorter)
        yield from _kept(sequencer.rest(), sorter)
        yield from sequencer.join(sorter.in_order)


def _kept(items: Iterable[Any], sorter: SortedRuns[Any]) -> Iterator[Refused]:
    for item in items:
        if isinstance(item, Refused):
            yield item
        else:
            sorter.add(item)


def read_changes(
    source: Format,
    tables: Tables,
    reading: Any,
    stream: StreamSettings,
    sources: Iterable[Source[Any]],
    leave: Callable[[Placed], None] | None = None,
) -> Iterator[Change | Refused]:
    """Yield the changes of a format's sources: by their sequence if the format has one, else as they come.

    If only whole transactions are wanted, `leave` receives the changes that a later read may complete.
    """
    if source.name in COMMITS:
        read = source.read(sources, tables, reading)
        yield from after_commit(read, COMMITS[source.name], stream.since) if stream.since else read
        return
    make = SEQUENCERS.get(source.name)
    whole = getattr(reading, "whole_transactions", False)
    if stream.order == "as-is" or make is None:
        if whole or stream.since:
            raise Misuse(f"{'whole-transactions' if whole else 'since'} needs --order sequence")
        yield from source.read(sources, tables, reading)
        return
    placed = ordered(make(tables, reading, stream.since), sources)
    if not whole:
        yield from (item if isinstance(item, Refused) else item.change for item in placed)
        return
    for item in assemble(placed, stream.open_transactions, leave, ended=stream.ended):
        if isinstance(item, Refused):
            yield item
        else:
            yield from (placed.change for placed in item.changes)
