"""Change tables as a source: each round hands out what became safe after the earlier rounds."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import InvalidValue, Refused
from eventlog.core.formats import Placed, Shape, Source
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.files.inputs import Advance, check_inputs, open_sources, readable, stem_of
from eventlog.files.limits import Limits
from eventlog.qlik import sequence
from eventlog.qlik.change_tables import TableSettings
from eventlog.qlik.sequenced_rows import RowSequencer
from eventlog.sequence.delivery import Delivery, DeliveryStates
from eventlog.sequence.ordered import ordered
from eventlog.sequence.progress import (
    Changed,
    LoadedRows,
    Row,
    TableProgress,
    VisibleLate,
    load_table_progress,
)
from eventlog.sequence.stream_settings import StreamSettings
from eventlog.sequence.transactions import assemble

_LAST: Final = "9" * sequence.LENGTH
_NAME: Final = "change tables"  # what reports name


class Inputs(Protocol):
    """The change tables that are read."""

    def clock(self) -> str:
        """Return the time part of now, by the clock of the source."""

    def open(self, low: Callable[[str], str]) -> Iterable[Source[Any] | Refused]:
        """Return the sources; a database may leave out rows up to the time that is low for their table."""


class RowsFeed:
    """The change tables of one task."""

    ended, blocks, tables = False, False, None  # more may always come; a round does not wait for it

    def __init__(
        self,
        inputs: Inputs,
        tables: Tables,
        reading: TableSettings,
        stream: StreamSettings,
        state: str | None,
        once: bool = False,
    ) -> None:
        """Set up the feed. If it is read `once`, rows of any age are delivered."""
        self._once = once
        self._inputs = inputs
        self._tables = tables
        self._reading = reading
        self._stream = stream
        self._progress = _load(state)
        self._states = DeliveryStates(lambda: self.state)

    @property
    def state(self) -> str | None:
        """Return the state after everything that was handed out."""
        return json.dumps(self._progress.dump())

    def close(self) -> None:
        """Do nothing, because nothing is open between rounds."""

    def commit(self) -> None:
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
        progress.start(stream.since)
        # up to here all rows are visible
        safe = _LAST[: sequence.TIME] if feed._once else sequence.before(feed._inputs.clock(), stream.settle)
        self._until = feed._reading.until or _LAST
        self._limit = min(self._until, safe + _LAST[sequence.TIME :])
        self._new_rows: dict[Row, str] = {}  # not delivered yet, with the letters of their operations (B, U)
        self._late: set[Row] = set()
        self._images: list[Row] = []  # B rows that came after their U row was delivered
        self._lagging: dict[str, list[str]] = {}  # change_seqs before the newest of another table
        self._last = {table: window.last for table, window in progress.tables.items()}
        self._newest = max(self._last.values(), default="")
        self._time = ""  # of the transactions that are delivered
        self._grown: set[str] = set()  # the tables that had some
        # rows of full loads by source: of those that earlier rounds delivered, what this round has met
        self._met: dict[str, LoadedRows] = {}
        self._loaded_before = {source: loaded.count for source, loaded in progress.loaded.items()}
        self._sequencer = RowSequencer(feed._tables, feed._reading, progress.since, self._limit, self._skip)

    def run(self) -> Iterator[Delivery | Refused]:
        refused: list[Refused] = []
        sources = readable(self._feed._inputs.open(self._low), refused)
        items = ordered(self._sequencer, sources)
        for item in assemble(self._undelivered(items), self._stream.open_transactions):
            yield from refused
            refused.clear()
            yield item if isinstance(item, Refused) else self._delivery(item)
        yield from refused
        self._need_loaded()
        self._close()
        yield from self._notices()

    def _low(self, table: str) -> str:
        """Return the time up to which a table is not read."""
        return self._progress.window(table).low

    def _skip(self, table: str, seq_and_letters: str) -> bool:
        """Return whether rows of a table under one change_seq are left out: earlier rounds delivered them."""
        seq, letters = seq_and_letters[: sequence.LENGTH], seq_and_letters[sequence.LENGTH :]
        row = table, seq
        new = self._progress.window(table).new_letters(seq, letters)
        if not new:
            return True
        self._new_rows[row] = letters
        if new == "B" and letters != "B":
            self._images.append(row)
            return True
        last = self._last.get(table, "")
        if seq <= last:
            if not self._stream.accept_late:
                raise VisibleLate(table, seq, last)
            self._late.add(row)
        elif seq < self._newest:
            self._lagging.setdefault(table, []).append(seq)
        return False

    def _deliver(self, row: Row) -> None:
        """Note the rows of a table under one change_seq as delivered."""
        table, seq = row
        self._grown.add(table)
        self._progress.window(table).deliver(seq, self._new_rows.pop(row))

    def _delivery(self, transaction: Sequence[Placed]) -> Delivery:
        """Return a transaction, noted as delivered with all rows of times before its own."""
        time = (transaction[0].change.position or "")[: sequence.TIME]
        if time > self._time:
            self._time = time
            for row in list(takewhile(lambda row: row[1][: sequence.TIME] < time, self._new_rows)):
                self._deliver(row)
            for table in self._grown:
                self._progress.window(table).shorten(_time_before(time))
            self._grown.clear()
        for placed in transaction:
            row = _row_of(placed.change)
            if not time:
                self._progress.loaded.setdefault(placed.source, LoadedRows()).add(repr(placed.change))
            elif row in self._new_rows:
                self._deliver(row)
        return Delivery((placed.change for placed in transaction), self._feed._states.next())

    def _close(self) -> None:
        """Note that everything up to the limit was delivered, and leave what is old out of the windows."""
        for row in list(self._new_rows):
            self._deliver(row)
        for window in self._progress.tables.values():
            if window.last:
                window.close(_time_before(sequence.before(window.last[: sequence.TIME], self._stream.settle)))

    def _undelivered(self, items: Iterable[Placed | Refused]) -> Iterator[Placed | Refused]:
        """Yield the changes without the rows of full loads that were delivered, and mark late ones."""
        for item in items:
            if isinstance(item, Refused):
                yield item
            elif item.change.position:
                late = self._late and _row_of(item.change) in self._late
                extra = (*item.change.extra, ("late", True))
                yield item._replace(change=item.change._replace(extra=extra)) if late else item
            elif not self._was_loaded(item):
                yield item

    def _was_loaded(self, placed: Placed) -> bool:
        """Return whether an earlier round delivered a row of a full load: the first of its source."""
        delivered = self._progress.loaded.get(placed.source)
        met = self._met.setdefault(placed.source, LoadedRows())
        if delivered is None or met.count >= delivered.count:
            return False
        met.add(repr(placed.change))
        if met.count == delivered.count and met != delivered:
            raise Changed(f"{placed.source}: its first {met.count} rows without a change_seq were others")
        return True

    def _need_loaded(self) -> None:
        """Raise Changed if a source has fewer rows of a full load than were delivered, because it was loaded
        anew.
        """
        for source, met in self._met.items():
            delivered_count = self._loaded_before.get(source, 0)
            if met.count < delivered_count:
                rows = quantity(met.count, "row")
                raise Changed(
                    f"{source} has {rows} without a change_seq, where {delivered_count} were delivered"
                )

    def _notices(self) -> Iterator[Refused]:
        """Report what was left to the next run, and what became visible late."""
        if self._sequencer.later_rows and self._limit < self._until:
            rows = quantity(self._sequencer.later_rows, "row is", "rows are")
            yield _notice(f"{rows} younger than --settle and left to the next run")
        for table, seqs in self._lagging.items():
            seconds = sequence.seconds_between(seqs[0], self._newest)
            yield _notice(
                f"{table} lags: {quantity(len(seqs), 'change')} of it became visible after changes of other"
                f" tables that are up to {seconds:g} s newer were delivered (a greater --settle keeps them in"
                " one order)"
            )
        if self._late:
            changes = quantity(len(self._late), "change")
            message = "became visible late, delivered now and marked late: in tables they may set rows back"
            yield _notice(f"{changes} {message}")
        for table, seq in self._images:
            message = "its B row became visible after its U row was delivered, and is left out"
            yield Refused(f"{table}:{seq}", message, fault=False)


def _notice(message: str) -> Refused:
    return Refused(_NAME, message, fault=False)


def _row_of(change: Change) -> Row:
    table = f"{change.schema}.{change.table}" if change.schema else change.table
    return table, change.position or ""


def _time_before(time: str) -> str:
    """Return a time part that is less by one, because more rows of this time may come."""
    return f"{int(time) - 1:016}"


def _load(state: str | None) -> TableProgress:
    if state is None:
        return TableProgress()
    try:
        saved_progress = json.loads(state)
    except ValueError:
        raise InvalidValue(state[:40], "the state of change tables") from None
    return load_table_progress(saved_progress)


class FileTables:
    """The change tables in files."""

    def __init__(
        self, names: Sequence[str], shape: Shape, container: str | None, limits: Limits, advance: Advance
    ) -> None:
        check_inputs(names)
        self._names = names
        self._open = partial(open_sources, names, shape, container, advance, limits)

    def clock(self) -> str:
        """Return when the files were written, as the time part of a change_seq.

        The time of a table is that of its last file; the first of these times counts.
        """
        written: dict[str, float] = {}
        for name in self._names:
            stem = stem_of(name)
            at = dt.datetime.now().timestamp() if name == "-" else Path(name).stat().st_mtime
            written[stem] = max(at, written.get(stem, 0))
        moment = dt.datetime.fromtimestamp(min(written.values(), default=0), dt.UTC)
        return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 10_000:02}"

    def open(self, low: Callable[[str], str]) -> Iterator[Source[Any] | Refused]:
        """Return the files; each is read as a whole."""
        return self._open()
