"""Reads the bytes of a stream and returns the changes of each transaction after its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.gbase.change_builder import ChangeBuilder
from eventlog.gbase.columns import Text
from eventlog.gbase.errorcodes import error_name
from eventlog.gbase.faults import SessionOver
from eventlog.gbase.frames import Frames
from eventlog.gbase.hex_dump import DumpedRead
from eventlog.gbase.records import BeginTx, CommTx, Discard, RbTx, Timeout, Truncate
from eventlog.gbase.settings import MAX_OPEN, MAX_RECORD, MAX_STORED, RecordStore
from eventlog.gbase.stream import Failed, Fault, Item, RowRecord, Stream
from eventlog.gbase.transactions import (
    START,
    Committed,
    Complaint,
    Position,
    Transactions,
    Unseen,
)

Answer = Change | Refused
_SESSION_INVALID = 1


class StreamLimits(NamedTuple):
    """The bytes that a stream may take."""

    record: int = MAX_RECORD
    open: int = MAX_OPEN  # of memory, by all unfinished transactions together
    stored: int = MAX_STORED  # of disk, by these


class StreamReader:
    """A reader of a stream that yields changes; take each call's answers before the next call."""

    def __init__(
        self,
        tables: Tables,
        at: Callable[[object], str] = str,
        form: Text | None = None,
        limits: StreamLimits | None = None,
        since: Position = START,
        store: RecordStore | None = None,
        unseen: Unseen = Unseen.REFUSED,
    ) -> None:
        limits = limits or StreamLimits()
        self._stream = Stream(form or Text(), limits.record)
        self._maker = ChangeBuilder(tables, self._where)
        self._transactions = Transactions(
            since, limits.open, store, unseen, self._maker.key_of, limits.stored
        )
        self._read_frames = Frames(self._stream)
        self._at = at
        self._frames = 0
        self._over: SessionOver | None = None
        self._idle = False
        self._takes: dict[type, Callable[[Any], Complaint | Committed | Refused | None]] = {
            Truncate: self._transactions.add,
            Discard: self._transactions.add,
            BeginTx: self._transactions.begin,
            RbTx: self._transactions.roll_back,
            CommTx: self._transactions.commit,
            Fault: self._refused,
            Failed: self._failed,
            Timeout: self._rest,
        }

    @property
    def position(self) -> Position:
        """The position after all changes that were taken so far."""
        return self._transactions.position

    @property
    def lost(self) -> bool:
        """Return whether the rest of the input cannot be read."""
        return self._stream.lost

    @property
    def idle(self) -> bool:
        """Return whether the server last reported that it has nothing more for now."""
        return self._idle

    @property
    def over(self) -> SessionOver | None:
        """The error with which the server ended the session, once its record was read."""
        return self._over

    def feed(self, data: bytes | memoryview) -> Iterator[Answer]:
        """Yield the changes that these bytes complete."""
        self._idle = False
        return self._take(self._stream.feed(data))

    def frame(self, read: DumpedRead) -> Iterator[Answer]:
        """Yield the changes that the records of a dumped read complete."""
        self._frames += 1
        return self._take(self._read_frames.read(read.data, read.counted))

    def close(self) -> Iterator[Refused]:
        """Yield what the end of the input leaves."""
        for fault in self._stream.close():
            yield self._refused(fault)
        for complaint in self._transactions.close():
            yield Refused(self._where(), complaint.reason, fault=complaint.fault)

    def _take(self, items: Iterable[Item]) -> Iterator[Answer]:
        takes, add_row = self._takes, self._transactions.add_row
        for item in items:
            if type(item) is RowRecord:
                if (complaint := add_row(item)) is not None:
                    yield Refused(self._where(), complaint.reason, fault=complaint.fault)
                continue
            take = takes.get(type(item))
            answer = take(item) if take is not None else None
            if answer is None:
                continue
            if isinstance(answer, Committed):
                yield from self._maker.changes(answer)
            elif isinstance(answer, Complaint):
                yield Refused(self._where(), answer.reason, fault=answer.fault)
            else:
                yield answer

    def _rest(self, timeout: Timeout) -> None:
        self._idle = True

    def _refused(self, fault: Fault) -> Refused:
        return Refused(self._where(), str(fault.corrupt), fault.record, not fault.note)

    def _failed(self, failed: Failed) -> Refused:
        flags, code = failed.head
        over = flags & _SESSION_INVALID
        reported = f"error {error_name(code)}, flags {flags}"
        if failed.text:
            reported += f": {failed.text[:200]}"
        if over:
            self._over = SessionOver(reported)
        state = "the session is over" if over else "the session continues"
        return Refused(self._where(), f"the server reports {reported}; {state}")

    def _where(self) -> str:
        read = f"read {self._frames}:" if self._frames else ""
        return self._at(f"{read}{self._stream.offset}")
