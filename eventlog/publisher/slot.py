"""A replication slot fills the log: no triggers, and nothing of a table is read but what changed.

Each transaction becomes rows of the types 4, 5 and 6, in the transaction that notes the position. From there
on everything is as with triggers: values are read back.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from shlex import quote
from typing import Final

from eventlog.core.errors import Misuse
from eventlog.core.portions import portions
from eventlog.files.ready import ready
from eventlog.files.signals import Signals
from eventlog.opening.comparing import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.open_log import driver_user
from eventlog.opening.slots import SlotTables, read_slot_tables, recorded_slot
from eventlog.publisher.filling import Filler, TableCycle
from eventlog.publisher.sleep import Sleeper
from eventlog.publisher.slot_transactions import SlotReader, SlotTransaction
from eventlog.sql.capture.slot import MAKE_AGAIN, why_lost
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.slot_state import LoggedChange, SlotFacts
from eventlog.sql.log.slot_stream import SlotStream, StreamRefused
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import Work
from eventlog.sql.postgresql import pgoutput

logger = logging.getLogger("eventlog.slot")

_ROWS: Final = 10_000  # that are logged together, except those of one transaction
_IDLE: Final = 1 << 20  # bytes of the server's log after which a position is noted although nothing changed
_LONGEST_FILL: Final = 10.0  # seconds without a cycle
_AGE: Final = 60.0  # seconds until the tables are read again
_RETRY: Final = 1.0  # seconds until a slot that is not streamed is tried again
_UNSEEN: Final = 0.001  # seconds until a snapshot is taken again that does not see a transaction yet
_TRIES: Final = 10  # before the sleep in between is doubled each time
_LONGEST_UNSEEN: Final = 0.1  # seconds, because a commit may wait for a standby
_MESSAGES: Final = 14  # the first version whose plugin sends messages of applications


class NoSlotYet(Misuse):
    """no slot fills this log: `eventlog install --mode slot` makes one"""


class SlotFiller(Filler):
    """A reader of the log's slot, as the leader of one epoch."""

    def __init__(self, config: Config, store: Store, epoch: int) -> None:
        super().__init__()
        self._config = config
        self._store = store
        self._epoch = epoch
        self._settings = config.build(ComparingSettings)
        self.stream: SlotStream | None = None
        self.position = 0  # up to which the changes are in the log
        self.lost: str | None = None  # why changes may be lost, so that nothing is streamed
        self._fault: str | None = None  # why nothing is streamed for now
        self._target = 0  # up to where the server's log was when the stream began
        self._queue: deque[SlotTransaction] = deque()
        self._rows = 0  # in the queue
        self._tables: SlotTables | None = None  # as they were last read
        self._reader = SlotReader(0)
        self._read_at = self._tried_at = self._unseen_at = -inf
        self._unseen = 0.0  # seconds until a snapshot is taken again
        self._gaps: dict[str, str] = {}  # tables whose changes may be lost, and why
        self._is_stale = False  # the tables that cycles use
        self._facts = self._read_facts()

    def _read_facts(self) -> SlotFacts:
        """Return what is on record of the slot; NoSlotYet if none fills the log."""
        if (facts := recorded_slot(self._store)) is None:
            raise NoSlotYet
        return facts

    # --- the protocol of a filler

    def prepare(self, cycle: TableCycle) -> int:
        if self.stream is not None and time.monotonic() > self._read_at + _AGE:
            self._look_again()
        count = self._fill(_ROWS if not cycle.is_down else inf)
        if self._is_stale:
            cycle.refresh()
            self._is_stale = False
        return count

    def drain(self) -> None:
        self._fill(inf)

    def sleeper(self, signals: Signals) -> Sleeper | None:
        return SlotSleeper(signals, self)

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        for transaction in self._queue:
            transaction.close()
        self._queue.clear()
        self._rows = 0
        self._reader.close()

    # --- from the stream into the log

    def _fill(self, limit: float) -> int:
        """Log what has arrived, until nothing is at hand, or so many rows are logged, or a while is over.
        Return how many rows.
        """
        logged, ends = 0, time.monotonic() + _LONGEST_FILL
        try:
            while self._is_streaming():
                self._receive()
                count = self._log_queue()
                logged += count
                is_enough = logged >= limit or time.monotonic() > ends
                if is_enough or not (count or self._awaits_more()):
                    break
        except StreamRefused as fault:
            self._refuse(str(fault))
        self._report()
        return logged

    def has_read(self, position: int) -> bool:
        """Return whether all changes before a position are in the log."""
        return self.stream is not None and not self._queue and self.stream.end >= position

    def _awaits_more(self) -> bool:
        """Return whether something came that the server had when the stream began; wait for it."""
        if self.stream is None or self._queue or self.has_read(self._target):
            return False
        if not self.wait(_RETRY):
            self._target = 0
        return self._target > 0

    def wait(self, seconds: float) -> bool:
        """Wait until something arrives. Return whether it did in time."""
        has_come, _ = ready(() if self.stream is None else (self.stream,), seconds=seconds)
        return has_come

    def receive(self) -> bool:
        """Read what has arrived. Return whether something can be logged, or must be looked at."""
        try:
            if self.stream is None:
                return time.monotonic() > self._tried_at + self.patience
            self._receive()
        except StreamRefused as fault:
            self._refuse(str(fault))
        return bool(self._queue) and time.monotonic() >= self._unseen_at + self._unseen

    @property
    def patience(self) -> float:
        """The seconds in which `receive` must be called again."""
        if self.stream is not None:
            return self._unseen if self._queue else inf
        return _RETRY if self.lost is None else 10 * _RETRY  # a look at the tables takes its time

    def _receive(self) -> None:
        """Read messages until nothing is at hand, or enough transactions are queued."""
        assert self.stream is not None
        if self._rows >= _ROWS:
            return
        for data in self.stream.messages():
            message = pgoutput.read(data)
            transaction = self._reader.take(message)
            if self._reader.is_changed:
                self._read_tables()
                self._is_stale = True  # a column may have another type
            if transaction is None:
                continue
            is_logged = self._facts.until is not None and transaction.end > self._facts.until  # by triggers
            if transaction.end <= self.position or is_logged or not (transaction.count or transaction.gaps):
                self.stream.end = max(self.stream.end, transaction.end)
                transaction.close()
            else:
                self._queue.append(transaction)
                self._rows += transaction.count
            if self._rows >= _ROWS:
                break

    def _log_queue(self) -> int:
        """Log the queued transactions that a new snapshot sees. Return how many rows."""
        if not self._queue:
            self._note_idle()
            return 0
        batch, visible_count = list(self._queue), 0
        for _ in range(_TRIES):
            try:
                visible_count = self._log(batch, is_careful=False)
            except DatabaseFailed:
                visible_count = self._log(batch, is_careful=True)
            if visible_count:
                break
            time.sleep(_UNSEEN)
        self._unseen = 0.0 if visible_count else min(max(2 * self._unseen, _UNSEEN), _LONGEST_UNSEEN)
        self._unseen_at = time.monotonic()
        return self._finish(visible_count)

    def _log(self, batch: list[SlotTransaction], *, is_careful: bool) -> int:
        """Log transactions and the position in one transaction. Return how many of them a snapshot sees."""
        with self._store.work(self._epoch) as work:
            state = work.slot()
            visible_count, facts = state.visible([transaction.xid for transaction in batch])
            if not visible_count or facts is None:
                return 0
            visible = batch[:visible_count]
            all_gaps = ((gap, t.end) for t in visible for gap in t.gaps.items())
            gaps = dict.fromkeys(gap for gap, end in all_gaps if end > facts.since.get(gap[0], 0))
            for table, why in gaps:  # also if one is open, because rows were logged since
                state.note_gap(table, why)
            self._write(work, visible, facts.since, is_careful=is_careful)
            if gaps or is_careful:
                self._gaps = {table: gap.why for table, gap in state.gaps().items()}
        return visible_count

    def _write(
        self, work: Work, visible: list[SlotTransaction], since: Mapping[str, int], *, is_careful: bool
    ) -> None:
        """Log the rows of transactions, of some tables since a position; the last ones go to the server with
        the position.
        """
        state, feeds, end = work.slot(), self._reader.feeds, visible[-1]
        begins = [since.get(feed.table, 0) for feed in feeds]
        logged = (row for t in visible for row in t.logged() if t.end > begins[row.feed])
        rows: list[LoggedChange] = []
        for chunk in portions(logged, _ROWS):
            state.log(feeds, rows)
            rows = chunk
            if is_careful:
                state.log_by_table(feeds, chunk)
                rows = []
        work.write_last(state.calls(feeds, rows, end.end, end.time))

    def _finish(self, visible_count: int) -> int:
        """Take the first transactions out of the queue, and report the position. Return how many rows."""
        rows = 0
        for _ in range(visible_count):
            transaction = self._queue.popleft()
            rows += transaction.count
            self.position = transaction.end
            transaction.close()
        self._rows -= rows
        if visible_count and self.stream is not None:
            self.stream.confirm(self.position)
        return rows

    def _note_idle(self) -> None:
        """Note how far the server's log is, if it grew without a change for us."""
        assert self.stream is not None
        end = self.stream.end
        if self._reader.open is None and end >= self.position + _IDLE:
            with self._store.work(self._epoch) as work:
                work.write_last(work.slot().calls((), (), end, None))
            self.position = end
            self.stream.confirm(end)

    # --- the stream and the tables

    def _is_streaming(self) -> bool:
        """Return whether the slot is streamed; begin it if that is due."""
        if self.stream is None and time.monotonic() > self._tried_at + self.patience:
            self._tried_at = time.monotonic()
            self.close()
            self._open()
        return self.stream is not None

    def _open(self) -> None:
        """Begin to stream the slot from the position in the log, unless changes are lost."""
        self._facts = facts = self._read_facts()
        with self._store.work(self._epoch) as work:  # who leads no more ends no stream
            state = work.slot()
            now, position = state.on_server(facts.slot), state.position()
            if now.active_pid is not None:
                state.end_reader(facts.slot)
        own_user = self._config.values.get("driver_user") or driver_user(self._store.engine, self._store.log)
        self._reader = SlotReader(self._settings.compare_memory << 20, None if now.proves_users else own_user)
        self._read_tables()
        self.lost = why_lost(facts, now, position)
        if self.lost is None and facts.altered_by is None:
            with self._store.upkeep() as upkeep:
                upkeep.slot().record(replace(self._read_facts(), altered_by=now.altered_by))
        if self.lost is not None or position is None:
            self._fault = f"{self.lost}: changes may be lost. {MAKE_AGAIN}"
            return
        options = {"publication_names": f'"{facts.slot}"'}
        if now.version >= _MESSAGES:
            options["messages"] = "true"
        if self._settings.slot_origin == "none":
            options["origin"] = "none"
        self.position, self._target = position.lsn, now.end
        self.stream = SlotStream(self._store.engine, facts.slot, position.lsn, options)
        self.stream.confirm(position.lsn)
        self._fault = None

    def _look_again(self) -> None:
        """Read the tables again. End the stream if changes may be lost by now, so that its beginning names
        why.
        """
        with self._store.upkeep() as upkeep:
            state = upkeep.slot()
            now, position = state.on_server(self._facts.slot), state.position()
        if why_lost(self._read_facts(), now, position) is None:
            self._read_tables()
        else:
            self.close()

    def _refuse(self, why: str) -> None:
        """Note why nothing is streamed for now."""
        self.close()
        self._fault = why

    def _read_tables(self) -> None:
        """Read which tables the slot is read for, and how their changes name objects."""
        before = self._tables
        self._tables = tables = read_slot_tables(self._config, self._store, self._facts.slot)
        self._is_stale |= before is not None and list(before.tables) != list(tables.tables)
        self._gaps = dict(tables.gaps)
        self._read_at = time.monotonic()
        self._reader.renew(tables.feeds)

    def _report(self) -> None:
        """Report the tables that are not published."""
        assert self._tables is not None
        unread = {
            table: f"changes of it may be lost: {why}. `eventlog resync {quote(table)} --compare` logs them"
            for table, why in self._gaps.items()
        }
        unread |= self._tables.unread
        if self._fault is not None:
            unread |= dict.fromkeys(self._tables.names or (self._facts.slot,), self._fault)
        self._unread.report(unread)


class SlotSleeper(Sleeper):
    """A sleeper whom the stream of a slot wakes."""

    wakes = True

    def __init__(self, signals: Signals, filler: SlotFiller) -> None:
        super().__init__(signals)
        self._filler = filler

    def sleep(self, seconds: float) -> bool:
        """Sleep until a transaction came that can be logged, or so long."""
        until = time.monotonic() + seconds
        while not self._signals.stop and (remaining := until - time.monotonic()) > 0:
            if self._filler.receive():
                return True
            stream = self._filler.stream
            streams = (self._signals.pipe, *(() if stream is None else (stream,)))
            ready(streams, seconds=min(remaining, self._filler.patience))
            self._signals.drain()
        return self._signals.stop
