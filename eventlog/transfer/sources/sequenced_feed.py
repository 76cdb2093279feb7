"""The feed of change tables and of topics: whole transactions, each once, and the state after each."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol

from eventlog.core.errors import EventlogError, InvalidValue, Refused
from eventlog.core.formats import Placed, Shape, Source
from eventlog.core.grouped_warnings import GroupedWarnings, repeats
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.files.inputs import Advance, check_inputs, open_sources, readable, stem_of
from eventlog.files.limits import Limits
from eventlog.files.stores import SpoolFile
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.metadata import dump as dump_metadata
from eventlog.formats.qlik.sequenced import SequenceGroup
from eventlog.formats.qlik.sequenced_messages import MessageSequencer, SequencedMessage
from eventlog.formats.qlik.sequenced_rows import RowSequencer
from eventlog.formats.qlik.table_progress import (
    SKIPPED,
    Row,
    RowFate,
    TableProgress,
    VisibleLate,
    load_table_progress,
)
from eventlog.formats.qlik.whole_transactions import WaitingTransactions, assemble
from eventlog.transactions.counted import DueTransaction
from eventlog.transactions.delivery import Delivery
from eventlog.transactions.ranges import Ranges
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transactions.topic_progress import (
    Partition,
    PartitionOffsets,
    PartitionRead,
    TopicNote,
    TopicProgress,
)
from eventlog.transfer.ordered import ordered
from eventlog.transfer.sources.partitions import PartitionReading, TopicReader

_LAST: Final = "9" * sequence.LENGTH
_NAME: Final = "change tables"  # what reports name


# --- change tables


class Inputs(Protocol):
    """The change tables that are read."""

    def clock(self) -> str:
        """Return the time part of now, by the clock of the source."""

    def open(self, low: Callable[[str], str]) -> Iterable[Source[Any] | Refused]:
        """Return the sources; a database may leave out rows up to the time that is low for their table."""


class ChangeTableReading:
    """The change tables of one task; each round reads their windows again."""

    def __init__(
        self,
        inputs: Inputs,
        tables: Tables,
        reading: TableSettings,
        stream: StreamSettings,
        state: str | None,
        once: bool = False,
    ) -> None:
        """Set up the reading. If it is done `once`, rows of any age are delivered."""
        self._once = once
        self._inputs = inputs
        self._tables = tables
        self._reading = reading
        self._stream = stream
        self.progress = TableProgress() if state is None else load_table_progress(state)

    def commit(self) -> None:
        """Do nothing, because no one else keeps a copy of the state."""

    def close(self) -> None:
        """Do nothing, because nothing is open between rounds."""

    def transactions(self, follow: bool) -> Iterator[DueTransaction | Refused]:
        """Yield whole transactions up to the safe point, in their order."""
        progress, stream = self.progress, self._stream
        progress.start(stream.since)
        until = self._reading.until or _LAST
        limit = min(until, self._safe() + _LAST[sequence.TIME :])
        sequencer = RowSequencer(self._tables, self._reading, progress.since, limit)
        noticed: dict[RowFate, list[Row]] = {fate: [] for fate in RowFate}
        refused: list[Refused] = []
        sources = readable(self._inputs.open(lambda table: progress.window(table).low), refused)
        items = ordered(sequencer, sources, new=partial(self._new, noticed))
        for item in assemble(self._not_loaded(items), stream.open_transactions, SpoolFile()):
            yield from refused
            refused.clear()
            yield item
        yield from refused
        newest = progress.newest
        progress.end(stream.settle)
        if sequencer.later_rows and limit < until:
            rows = quantity(sequencer.later_rows, "row is", "rows are")
            yield _notice(f"{rows} younger than --settle and left to the next run")
        yield from _notices(noticed, newest)

    def _safe(self) -> str:
        """Return the time up to which all rows are visible."""
        if self._once:
            return _LAST[: sequence.TIME]
        return sequence.before(self._inputs.clock(), self._stream.settle)

    def _new(
        self, noticed: dict[RowFate, list[Row]], groups: Iterator[SequenceGroup]
    ) -> Iterator[SequenceGroup]:
        """Yield the groups that were not delivered before, and note those to be reported."""
        for group in groups:
            if not group.seq:
                yield group
                continue
            table, seq = group.table, group.seq
            fate = self.progress.add(table, seq, group.letters)
            if fate is RowFate.LATE and not self._stream.accept_late:
                raise VisibleLate(table, seq, self.progress.window(table).last)
            if fate not in (RowFate.SKIP, RowFate.DELIVER):
                noticed[fate].append((table, seq))
            if fate not in SKIPPED:
                yield group._replace(late=fate is RowFate.LATE)

    def _not_loaded(self, items: Iterable[Placed | Refused]) -> Iterator[Placed | Refused]:
        """Yield the changes without the rows of full loads that were delivered."""
        for item in items:
            without_seq = not isinstance(item, Refused) and not item.change.position and item
            if not without_seq or not self.progress.is_loaded(without_seq.source, repr(without_seq.change)):
                yield item

    def note(self, transaction: DueTransaction) -> None:
        """Note a transaction as delivered, with all rows of times before its own."""
        rows: list[Row] = []
        for placed in transaction.changes:
            change = placed.change
            if change.position:
                table = f"{change.schema}.{change.table}" if change.schema else change.table
                rows.append((table, change.position))
            else:
                self.progress.deliver_loaded(placed.source, repr(change))
        if rows:
            self.progress.deliver(rows, rows[0][1][: sequence.TIME])


def _notice(message: str) -> Refused:
    return Refused(_NAME, message, fault=False)


def _notices(noticed: Mapping[RowFate, Sequence[Row]], newest: str) -> Iterator[Refused]:
    """Report what became visible late."""
    for table, rows in groupby(sorted(noticed[RowFate.LAGGING]), key=lambda row: row[0]):
        seqs = [seq for _, seq in rows]
        seconds = sequence.seconds_between(seqs[0], newest)
        yield _notice(
            f"{table} lags: {quantity(len(seqs), 'change')} of it became visible after changes of other"
            f" tables that are up to {seconds:g} s newer were delivered (a greater --settle keeps them in"
            " one order)"
        )
    if late := noticed[RowFate.LATE]:
        changes = quantity(len(late), "change")
        message = "became visible late, delivered now and marked late: in tables they may set rows back"
        yield _notice(f"{changes} {message}")
    for table, seq in noticed[RowFate.LATE_IMAGE]:
        message = "its B row became visible after its U row was delivered, and is left out"
        yield Refused(f"{table}:{seq}", message, fault=False)


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


# --- topics


class TopicReading(PartitionReading):
    """The messages of Qlik Replicate in all partitions of topics."""

    def __init__(
        self,
        reader: TopicReader,
        tables: Tables,
        reading: MessageSettings,
        stream: StreamSettings,
        state: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(reader, stream, state, clock)
        self._sequencer = MessageSequencer(tables, reading, stream.since, self._note_metadata)
        try:
            for text in self.progress.notes:
                self._sequencer.reader.read(json.loads(text))
        except (ValueError, EventlogError):
            raise InvalidValue(str(state)[:40], "the state of topics") from None
        recent = self.progress.recent
        self._transactions = WaitingTransactions(stream.open_transactions, SpoolFile(), recent=recent)

    def close(self) -> None:
        self._transactions.close()
        super().close()

    def transactions(self, follow: bool) -> Iterator[DueTransaction | Refused]:
        """Read the new messages, and yield the transactions that are complete or can never be.

        With `follow` a transaction that became complete in this round waits for the next one, because then
        every partition was read past its last message.
        """
        repeated = repeats()
        for at, spot in self._begin_round().items():
            messages, partition_read = self._read(at, spot)
            yield from self._add(
                (m for m in messages if isinstance(m, Refused) or partition_read.is_new(m.number)), repeated
            )
        yield from self._add(self._sequencer.release_waiting(), repeated)
        yield from self._transactions.release(self._due(self._round - 1 if follow else self._round), repeated)
        yield from repeated.warnings()
        for transaction in () if follow else self._transactions.open.values():
            changes = quantity(transaction.count, "change is", "changes are")
            reason = f"transaction {transaction.key[0]} is open: its {changes} left to the next run"
            yield Refused(transaction.source_names, reason, fault=False)

    def _read(
        self, at: Partition, spot: PartitionOffsets
    ) -> tuple[Iterator[SequencedMessage | Refused], PartitionRead]:
        """Return the messages of a partition up to its end, and what was read of it before."""
        source, partition_read = self._unread(at, spot)
        grown_read = PartitionRead(spot.high, Ranges() if self._round == 1 else partition_read.open)
        self.progress.partitions[at] = grown_read
        return self._sequencer.parse(source), partition_read

    def _note_metadata(self, source: str, offset: int, metadata: Metadata) -> None:
        note = TopicNote(self._named[source], offset, dump_metadata(metadata))
        self.progress.newer_notes.append(note)

    def _add(
        self, messages: Iterable[SequencedMessage | Refused], repeated: GroupedWarnings
    ) -> Iterator[Refused]:
        for message in messages:
            if isinstance(message, Refused):
                yield message
                continue
            placed = message.placed()
            if self._transactions.add(placed, message.place.seq, self._clock(), self._round):
                self.progress.partitions[self._named[placed.source]].open.add(placed.number)
            else:
                yield repeated.add(placed.change.table, placed.where, placed.raw)

    def _due(self, until: int) -> dict[tuple[str, ...], str]:
        """Return the transactions that are complete since a round, and those that must not wait any longer.

        Those are too old, the memory is full, or a change in their middle did not come in a whole round after
        their last change.
        """
        is_full = self._transactions.size > self._stream.open_bytes
        oldest = self._clock() - self._stream.open_time
        due: dict[tuple[str, ...], str] = {}
        for key, waiting in self._transactions.open.items():
            is_settled = waiting.last_round <= until and not waiting.is_open
            lack = waiting.lack
            if not lack and is_settled:
                due[key] = ""
            elif lack and (is_full or waiting.since < oldest or is_settled):
                name = " at ".join(key)
                limits = f"waits for its last change beyond the limits ({waiting.source_names})"
                due[key] = f"transaction {name} {limits}" if waiting.is_open else lack
        return due


# --- both


class Reading(Protocol):
    """The reading of a feed, round after round."""

    @property
    def progress(self) -> TableProgress | TopicProgress:
        """Return what was delivered."""

    def transactions(self, follow: bool, /) -> Iterator[DueTransaction | Refused]:
        """Yield what is new and complete, in order."""

    def note(self, transaction: DueTransaction, /) -> None:
        """Note a transaction as delivered."""

    def commit(self) -> None:
        """Copy the progress to those who also keep it."""

    def close(self) -> None: ...


class SequencedFeed:
    """A source of change tables or topics."""

    ended, blocks, tables = False, False, None  # more may always come; a round does not wait for it

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    @property
    def state(self) -> str | None:
        """Return the state after everything that was handed out."""
        return self._reading.progress.dump()

    def commit(self) -> None:
        """Copy the state to those who also keep it, now that it is kept."""
        self._reading.commit()

    def close(self) -> None:
        self._reading.close()

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Read what is new, and hand out what is complete."""
        for item in self._reading.transactions(follow):
            if isinstance(item, Refused):
                yield item
                continue
            self._reading.note(item)
            if item.fault:
                yield from item.refusals()
                continue
            if item.is_late:
                reason = f"transaction {item.progress.key[0]} came late: later ones were delivered before"
                yield Refused(item.progress.source_names, reason, fault=False)
            changes = (placed.change for placed in item.changes)
            yield Delivery(changes, item.is_late, is_overlapped=item.is_overlapped)
