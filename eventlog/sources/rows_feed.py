"""Change tables as a source: each round hands out what became safe after the earlier rounds."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from eventlog.core.change import Op
from eventlog.core.errors import InvalidValue, Refused
from eventlog.core.formats import Placed, Source
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.qlik import sequence
from eventlog.qlik.sequenced_rows import RowSequencer
from eventlog.qlik.tables import TableSettings
from eventlog.sequence.delivery import ChangesOf, Delivery, Stale
from eventlog.sequence.late import CHANGE_TABLES, LaggingTables, LateRows
from eventlog.sequence.ordered import ordered
from eventlog.sequence.progress import Loaded, Progress, load_progress
from eventlog.sequence.reread import Changed, Reread, Visibility
from eventlog.sequence.settings import StreamSettings
from eventlog.sequence.transactions import Whole, assemble

_LAST = "9" * sequence.LENGTH


class Inputs(Protocol):
    """The change tables that are read."""

    def clock(self) -> str:
        """Return the time part of now, by the clock of the source."""

    def open(self, low: Callable[[str], str]) -> Iterable[Source[Any] | Refused]:
        """Return the sources; a database may leave out rows at or before the minute of `low`."""


class RowsFeed:
    """The change tables of one task."""

    ended, waits, tables = False, False, None  # there may always come more

    def __init__(
        self,
        inputs: Inputs,
        tables: Tables,
        reading: TableSettings,
        stream: StreamSettings,
        state: str | None,
    ) -> None:
        self._inputs = inputs
        self._tables = tables
        self._reading = reading
        self._stream = stream
        self._progress = _load(state)
        self._turns = 0

    @property
    def state(self) -> str | None:
        """Return the state after everything that was handed out."""
        return json.dumps(self._progress.dump())

    def delivery(self, whole: Whole, overtaken: str | None = None) -> Delivery:
        """Return what is handed out, with the state as it is then, and where late changes were overtaken."""
        self._turns += 1
        turn = self._turns
        changes = ChangesOf(whole.changes)
        reload = changes[0].op is Op.SNAPSHOT
        state = partial(self._state_at, turn)
        return Delivery(changes, state, overtaken is not None, whole.incomplete, reload, overtaken or "")

    def _state_at(self, turn: int) -> str | None:
        if turn != self._turns:
            raise Stale
        return self.state

    def close(self) -> None:
        """Do nothing, because nothing is open between rounds."""

    def kept(self) -> None:
        """Do nothing, because no one else keeps a copy of the state."""

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Yield whole transactions up to the safe point."""
        yield from _Round(self).run()


class _Round:
    """One reading."""

    def __init__(self, feed: RowsFeed) -> None:
        self._feed = feed
        self._stream = stream = feed._stream
        self._progress = progress = feed._progress
        if stream.since and not progress.starts_after(stream.since):
            progress.restart(stream.since)
        progress.since = stream.since or progress.since
        self._again = Reread(progress)
        self._late = LateRows(progress) if stream.accept_late else None
        self._lag = LaggingTables(progress)
        self._loading: dict[str, Loaded] = {}
        self._loaded = {source: known.count for source, known in progress.loaded.items()}
        # older rows are taken as all there
        limit = before(feed._inputs.clock(), stream.settle) + _LAST[sequence.TIME :]
        self._until = min(feed._reading.until or _LAST, limit)
        self._left_by_age = self._until == limit
        look = None if self._late is None else self._late.look
        since = progress.since or ""
        self._sequencer = RowSequencer(feed._tables, feed._reading, since, self._until, self._skip, look)

    def run(self) -> Iterator[Delivery | Refused]:
        sources = self._feed._inputs.open(self._progress.low)
        refused: list[Refused] = []
        items = ordered(self._sequencer, _opened(sources, refused))
        for item in assemble(self._fresh(items), self._stream.open_transactions):
            yield from refused
            refused.clear()
            if isinstance(item, Refused):
                yield item
            elif (count := self._progress.handed_out(item.identity)) is None:
                yield self._delivery(item)
            elif count not in (0, len(item.changes)):
                raise Changed(_other_count(item, count))
        yield from refused
        self._again.close()
        self._need_loaded()
        self._progress.close_all()
        yield from self._notices()

    def _notices(self) -> Iterator[Refused]:
        """Report what was left to the next run, and what became visible late."""
        if self._sequencer.beyond and self._left_by_age:
            rows = quantity(self._sequencer.beyond, "row is", "rows are")
            yield Refused(
                CHANGE_TABLES, f"{rows} younger than --settle and left to the next run", fault=False
            )
        yield from self._lag.warnings()
        if self._late is not None:
            yield from self._late.warnings()

    def _skip(self, table: str, met: str) -> bool:
        """Return whether the rows of a table under one change_seq were handed out by an earlier round."""
        if met[: sequence.TIME] > self._progress.done:
            self._again.close()
            self._progress.meet(table, met)
            return False
        visibility = self._again.meet(table, met) if self._late is None else self._late.visibility(table, met)
        if visibility is Visibility.DELIVERED:
            return True
        if self._late is None:
            self._again.need(table, met, visibility)
        if visibility is Visibility.NEW:
            self._lag.note(table, met)
        self._progress.meet(table, met)
        return visibility is Visibility.IMAGE

    def _fresh(self, items: Iterable[Placed | Refused]) -> Iterator[Placed | Refused]:
        """Yield the changes without the rows of full loads that were handed out."""
        for item in items:
            if isinstance(item, Refused):
                yield item
            elif item.change.position:
                yield item if self._late is None else self._late.marked(item)
            elif not self._was_loaded(item):
                yield item

    def _was_loaded(self, placed: Placed) -> bool:
        known = self._progress.loaded.get(placed.source)
        now = self._loading.setdefault(placed.source, Loaded())
        if known is None or now.count >= known.count:
            return False
        now.add(repr(placed.change))
        if now.count == known.count and now != known:
            raise Changed(f"{placed.source}: its first {now.count} rows without a change_seq were others")
        return True

    def _need_loaded(self) -> None:
        """Raise Changed if a source has fewer rows of a full load than were delivered, because it was loaded
        anew.
        """
        for source, now in self._loading.items():
            known = self._loaded.get(source, 0)
            if now.count < known:
                rows = quantity(now.count, "row")
                raise Changed(f"{source} has {rows} without a change_seq, where {known} were delivered")

    def _delivery(self, whole: Whole) -> Delivery:
        """Return a transaction, noted as handed out; all of the times before its own was."""
        time = (whole.changes[0].change.position or "")[: sequence.TIME]
        if time:
            self._progress.close(f"{int(time) - 1:016}")
            self._progress.hand_out(whole.identity, len(whole.changes))
        for placed in whole.changes if not time else ():
            self._progress.loaded.setdefault(placed.source, Loaded()).add(repr(placed.change))
        overtaken = None if self._late is None else self._late.overtaken(whole.changes, time)
        return self._feed.delivery(whole, overtaken)


def _other_count(whole: Whole, count: int) -> str:
    """Return that a transaction has another number of changes than when it was handed out."""
    changes = quantity(len(whole.changes), "change")
    return (
        f"transaction {whole.identity[0]} at {whole.identity[1]} has {changes}, where {count} were delivered"
    )


def before(time: str, seconds: float) -> str:
    """Return the time part that lies so many seconds before another."""
    at = dt.datetime.strptime(time[:14], "%Y%m%d%H%M%S") - dt.timedelta(seconds=seconds)
    return f"{at:%Y%m%d%H%M%S}".zfill(14) + time[14:16]


def _opened(sources: Iterable[Source[Any] | Refused], refused: list[Refused]) -> Iterator[Source[Any]]:
    for source in sources:
        if isinstance(source, Refused):
            refused.append(source)
        else:
            yield source


def _load(state: str | None) -> Progress:
    if state is None:
        return Progress()
    try:
        found = json.loads(state)
    except ValueError:
        raise InvalidValue(state[:40], "the state of change tables") from None
    return load_progress(found)
