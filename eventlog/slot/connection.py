"""The connection to a slot: its stream, which is begun again after a failure, and the transactions in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from eventlog.core.errors import Misuse
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.open_log import driver_user
from eventlog.slot.decode import read
from eventlog.slot.publication import MAKE_AGAIN, why_lost
from eventlog.slot.slot_tables import recorded_slot
from eventlog.slot.stream import SlotStream
from eventlog.slot.transactions import SlotReader, SlotTransaction
from eventlog.sql.log.slot_state import Feed, ServerSlot, SlotFacts, SlotPosition
from eventlog.sql.log.store import Store

_RETRY: Final = 1.0  # seconds until a slot that is not streamed is tried again
_MESSAGES: Final = 14  # the first version whose plugin sends messages of applications


class NoSlotYet(Misuse):
    """no slot fills this log: `eventlog install --mode slot` makes one"""


class SlotConnection:
    """A slot that is streamed, or tried again."""

    def __init__(self, config: Config, store: Store, epoch: int) -> None:
        self._config = config
        self._store = store
        self._epoch = epoch
        self.stream: SlotStream | None = None
        self.position = 0  # up to which the changes are in the log
        self.lost: str | None = None  # why changes may be lost, so that nothing is streamed
        self.fault: str | None = None  # why nothing is streamed for now
        self._target = 0  # up to where the server's log was when the stream began
        self._tried_at = -inf
        self._reader = SlotReader(0)
        self._facts = self._read_facts()

    def _read_facts(self) -> SlotFacts:
        """Return what is on record of the slot; NoSlotYet if none fills the log."""
        if (facts := recorded_slot(self._store)) is None:
            raise NoSlotYet
        return facts

    @property
    def slot(self) -> str:
        """Return the name of the slot."""
        return self._facts.slot

    @property
    def feeds(self) -> Sequence[Feed]:
        """Return how the changes of each table name objects; rows have the places of these."""
        return self._reader.feeds

    @property
    def pause(self) -> float:
        """Return the seconds between two tries; a look at the tables takes its time."""
        return _RETRY if self.lost is None else 10 * _RETRY

    @property
    def is_due(self) -> bool:
        """Return whether a stream is to be begun."""
        return self.stream is None and time.monotonic() > self._tried_at + self.pause

    def open(self, read_tables: Callable[[], None]) -> None:
        """Begin to stream the slot from the position in the log, unless changes are lost."""
        self._tried_at = time.monotonic()
        self._facts = self._read_facts()
        with self._store.as_leader(self._epoch) as work:  # who leads no more ends no stream
            state = work.slot()
            now, position = state.on_server(self.slot), state.position()
            if now.active_pid is not None:
                state.end_reader(self.slot)
        settings = self._config.build(ComparingSettings)
        own_user = self._config.values.get("driver_user") or driver_user(self._store.engine, self._store.log)
        self._reader = SlotReader(settings.compare_memory << 20, None if now.proves_users else own_user)
        read_tables()
        self.lost = why_lost(self._facts, now, position)
        if self.lost is None and self._facts.altered_by is None:
            with self._store.admin() as admin:
                admin.slot().record(replace(self._read_facts(), altered_by=now.altered_by))
        if self.lost is not None or position is None:
            self.fault = f"{self.lost}: changes may be lost. {MAKE_AGAIN}"
            return
        self._begin(now, position, settings.slot_origin)

    def _begin(self, now: ServerSlot, position: SlotPosition, origin: str) -> None:
        options = {"publication_names": f'"{self.slot}"'}
        if now.version >= _MESSAGES:
            options["messages"] = "true"
        if origin == "none":
            options["origin"] = "none"
        self.position, self._target = position.lsn, now.end
        self.stream = SlotStream(self._store.engine, self.slot, position.lsn, options)
        self.stream.confirm(position.lsn)
        self.fault = None

    def is_whole(self) -> bool:
        """Return whether the slot still has all changes after the position."""
        with self._store.admin() as admin:
            state = admin.slot()
            now, position = state.on_server(self.slot), state.position()
        return why_lost(self._read_facts(), now, position) is None

    def renew(self, feeds: Mapping[int, Sequence[Feed]]) -> None:
        """Take how the changes of each table name objects, from the next change on."""
        self._reader.renew(feeds)

    def transactions(self, reread_tables: Callable[[], None]) -> Iterator[SlotTransaction]:
        """Yield the new transactions that are at hand; read the tables again if a message shows a change."""
        assert self.stream is not None
        for data in self.stream.messages():
            transaction = self._reader.take(read(data))
            if self._reader.is_changed:
                reread_tables()
            if transaction is None:
                continue
            if self._is_new(transaction):
                yield transaction
            else:
                self.stream.end = max(self.stream.end, transaction.end)
                transaction.close()

    def _is_new(self, transaction: SlotTransaction) -> bool:
        until = self._facts.until
        by_triggers = until is not None and transaction.end > until
        has_content = bool(transaction.count or transaction.losses)
        return transaction.end > self.position and not by_triggers and has_content

    def idle_position(self, least: int) -> int | None:
        """Return how far the server's log is, if it grew by so many bytes without a change for us."""
        if self.stream is None or self._reader.open is not None:
            return None
        end = self.stream.end
        return end if end >= self.position + least else None

    def has_read(self, position: int) -> bool:
        """Return whether all changes before a position have arrived."""
        return self.stream is not None and self.stream.end >= position

    @property
    def awaits_more(self) -> bool:
        """Return whether the server has, or had when the stream began, more than has arrived."""
        return self._target > 0 and self.stream is not None and not self.has_read(self._target)

    def await_no_more(self) -> None:
        """Note that what the server had when the stream began does not arrive."""
        self._target = 0

    def confirm(self, position: int) -> None:
        """Note that all changes before a position are in the log, and report it to the server."""
        self.position = position
        if self.stream is not None:
            self.stream.confirm(position)

    def refuse(self, why: str) -> None:
        """Note why nothing is streamed for now."""
        self.close()
        self.fault = why

    def close(self) -> None:
        """End the stream, and drop what is not whole."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        self._reader.close()
