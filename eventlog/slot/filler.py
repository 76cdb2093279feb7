"""A replication slot fills the log: no triggers, and no table is read to see what changed.

The slot reports which objects changed. Each transaction becomes rows of the types 4, 5 and 6, in the
transaction that notes the position. Their values are read back later, as with triggers.
"""

from __future__ import annotations

import time
from math import inf
from typing import Final

from eventlog.files.ready import ready
from eventlog.files.signals import Signals
from eventlog.opening.config import Config
from eventlog.opening.filling import Filler, Sleeper, TableCycle
from eventlog.slot.connection import SlotConnection
from eventlog.slot.queue import ROWS, TransactionQueue
from eventlog.slot.slot_tables import FedTables
from eventlog.slot.stream import SlotStream, StreamRefused
from eventlog.sql.log.store import Store

_IDLE_BYTES: Final = 1 << 20  # of the server's log without a change for us, after which it may discard them
_LONGEST_FILL: Final = 10.0  # seconds; then a cycle sends what is logged so far
_LONGEST_GAP: Final = 1.0  # seconds between two pieces of what the server had when the stream began


class SlotFiller(Filler):
    """A reader of the log's slot, as the leader of one epoch."""

    def __init__(self, config: Config, store: Store, epoch: int) -> None:
        super().__init__()
        self._store = store
        self._epoch = epoch
        self._connection = SlotConnection(config, store, epoch)
        self._queue = TransactionQueue(store, epoch)
        self._tables = FedTables(config, store)

    # --- the protocol of a filler

    def prepare(self, cycle: TableCycle) -> int:
        if self._connection.stream is not None and self._tables.is_reading_due:
            self._reread_if_whole()
        count = self._fill(ROWS if not cycle.is_down else inf)
        if self._tables.needs_refresh:
            cycle.refresh()
            self._tables.needs_refresh = False
        return count

    def drain(self) -> None:
        self._fill(inf)

    def sleeper(self, signals: Signals) -> Sleeper | None:
        return SlotSleeper(signals, self)

    def close(self) -> None:
        """End the stream. The server sends queued transactions again, because none of them is confirmed."""
        self._connection.close()
        self._queue.close()

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
                if logged >= limit or time.monotonic() > ends:
                    break
                if not count and not self._wait_for_more():
                    break
        except StreamRefused as fault:
            self._refuse(fault)
        self._unread.report(self._tables.unread(self._connection.slot, self._connection.fault))
        return logged

    def _is_streaming(self) -> bool:
        """Return whether the slot is streamed; begin it if that is due."""
        if self._connection.is_due:
            self.close()
            self._connection.open(self._read_tables)
        return self._connection.stream is not None

    def _read_tables(self) -> None:
        """Read which tables the slot is read for, and how their changes name objects."""
        self._connection.renew(self._tables.read(self._connection.slot))

    def _reread_types(self) -> None:
        """Read the tables again, in which a column may have another type."""
        self._read_tables()
        self._tables.needs_refresh = True

    def _reread_if_whole(self) -> None:
        """Read the tables again. End the stream if changes may be lost by now, so that its beginning names
        why.
        """
        if self._connection.is_whole():
            self._read_tables()
        else:
            self.close()

    def _receive(self) -> None:
        """Read messages until nothing is at hand, or enough transactions are queued."""
        if self._queue.is_full:
            return
        for transaction in self._connection.transactions(self._reread_types):
            self._queue.add(transaction)
            if self._queue.is_full:
                break

    def _log_queue(self) -> int:
        """Log the queued transactions that a new snapshot sees. Return how many rows."""
        if not self._queue:
            self._note_idle()
            return 0
        logged = self._queue.log(self._connection.feeds)
        if logged.transaction_count:
            self._connection.confirm(logged.end)
        if logged.gaps is not None:
            self._tables.gaps = logged.gaps
        return logged.rows

    def _note_idle(self) -> None:
        """Note how far the server's log is, if it grew without a change for us."""
        end = self._connection.idle_position(_IDLE_BYTES)
        if end is not None:
            with self._store.as_leader(self._epoch) as work:
                work.write_last(work.slot().calls(feeds=(), rows=(), lsn=end, time=None))
            self._connection.confirm(end)

    def _wait_for_more(self) -> bool:
        """Wait for what the server had when the stream began. Give it up if nothing arrives for a while.
        Return whether to go on.
        """
        if self._queue or not self._connection.awaits_more:
            return False
        if not self.wait(_LONGEST_GAP):
            self._connection.await_no_more()
        return self._connection.awaits_more

    def _refuse(self, fault: StreamRefused) -> None:
        """Note why nothing is streamed for now."""
        self._queue.close()
        self._connection.refuse(str(fault))

    # --- for the sleeper and the commands

    @property
    def lost(self) -> str | None:
        """Return why changes may be lost, so that nothing is streamed."""
        return self._connection.lost

    @property
    def sockets(self) -> tuple[SlotStream, ...]:
        """Return what can be read when something arrives."""
        stream = self._connection.stream
        return () if stream is None else (stream,)

    def has_read(self, position: int) -> bool:
        """Return whether all changes before a position are in the log."""
        return not self._queue and self._connection.has_read(position)

    def wait(self, seconds: float) -> bool:
        """Wait until something arrives. Return whether it did in time."""
        has_come, _ = ready(self.sockets, seconds=seconds)
        return has_come

    def receive(self) -> bool:
        """Read what has arrived. Return whether something can be logged, or must be looked at."""
        try:
            if self._connection.stream is None:
                return self._connection.is_due
            self._receive()
        except StreamRefused as fault:
            self._refuse(fault)
        return self._queue.is_due

    @property
    def patience(self) -> float:
        """The seconds in which `receive` must be called again."""
        if self._connection.stream is None:
            return self._connection.pause
        return self._queue.pause if self._queue else inf


class SlotSleeper(Sleeper):
    """A sleeper whom the stream of a slot wakes."""

    wakes = True

    def __init__(self, signals: Signals, filler: SlotFiller) -> None:
        super().__init__(signals)
        self._filler = filler

    def sleep(self, seconds: float) -> bool:
        """Sleep until a transaction can be logged, or so long. Return whether one can, or a stop came."""
        until = time.monotonic() + seconds
        while not self._signals.stop and (remaining := until - time.monotonic()) > 0:
            if self._filler.receive():
                return True
            ready((self._signals.pipe, *self._filler.sockets), seconds=min(remaining, self._filler.patience))
            self._signals.drain()
        return self._signals.stop
