"""The event log as a store: one door for the publisher, for preview and explain, and for upkeep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import copy
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import TextClause, text
from sqlalchemy.engine import Connection, Engine

from eventlog.sql.common.dialect import Call, TimeLimits
from eventlog.sql.connect import DatabaseFailed, limit_statements, limited
from eventlog.sql.log.leader import Holder, Leader, Standby, StandbyPlace, holder_of, standbys_of
from eventlog.sql.log.leader_transaction import NO_PRECONDITION, LeaderTransaction, Precondition, WaitingEvent
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.log_lock import naming_lock
from eventlog.sql.log.log_record import LogRecord, RecordedBatch
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.position import IdPosition, read_position
from eventlog.sql.log.slot_state import SlotState
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.relation import Place
from eventlog.sql.tables_read import TablesChanged

T = TypeVar("T")
LOOK_LIMIT = 3  # seconds that a look waits for a lock, unless it is set
BRIEF = 10  # times as long may a statement of a brief look take
READINGS = 3  # while DDL changes what is read
_EVER = datetime(9999, 12, 31)


class Store:
    """One log in one database."""

    def __init__(self, engine: Engine, log: Log, look_limit: int = LOOK_LIMIT) -> None:
        self.engine = self._unlimited = engine
        self._engine: Engine = engine.execution_options(
            **log.dialect.sessions.options
        )  # for our own transactions
        self.log = log
        self.queries = Queries(log)
        self.look_limit = look_limit  # seconds
        self._looks: dict[bool, Store] = {}  # by whether they are brief
        self._limits: TimeLimits | None = None  # of a store for looks
        self._limit_calls: list[Call] = []  # what limits a transaction that begins by a statement
        self._limited_work: TextClause | None = None  # begins a transaction with limits
        self._keeps = False
        self._idle: list[Connection] = []  # one between two transactions, while it is kept

    def looking(self, *, briefly: bool = False) -> Store:
        """Return this store for looks, which wait for a lock no longer than the limit.

        Raise LogLocked after that time, with who holds the lock. Each statement of a brief look has a limit
        too; LookEnded is raised after it.
        """
        if briefly not in self._looks:
            seconds = self.look_limit
            limits = TimeLimits(seconds, BRIEF * seconds if briefly else None)
            self._looks[briefly] = self._with_limits(limits)
        return self._looks[briefly]

    def _with_limits(self, limits: TimeLimits) -> Store:
        looking, dialect = copy(self), self.log.dialect
        looking._keeps, looking._idle = False, []
        looking.engine = limited(self._unlimited, dialect, limits)
        if dialect.sessions.limit is not None:
            looking._engine = looking.engine
        statements = limit_statements(dialect, limits)
        looking._limits = limits
        looking._limit_calls = [Call(text(statement), {}) for statement in statements]
        looking._limited_work = text("; ".join((self.queries.clause("work").text, *statements)))
        return looking

    def demand_unlocked(self) -> None:
        """Raise LogLocked if another session keeps us from reading the log for longer than a look waits."""
        with self.looking()._for_reading() as connection:
            self.queries.run(connection, "touch_log")

    @contextmanager
    def _for_reading(self) -> Iterator[Connection]:
        """A connection for a few statements."""
        with naming_lock(self._unlimited, self.log, self._limits), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def keep_connection(self) -> Iterator[None]:
        """Keep a connection from one transaction to the next inside the block."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection for one transaction, which the block ends."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._engine.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._keeps and not self._idle:
            self._idle.append(connection)
        else:
            connection.close()

    @contextmanager
    def snapshot(
        self, locked: Sequence[Place] = (), choice: PickUpFilter | None = None
    ) -> Iterator[Snapshot]:
        """One consistent view, read only, in which tables are read that DDL may not change before; it begins
        with a first look at the rows of a choice.

        Raise TablesChanged at its end if DDL changed a table that was read: nothing of it counts.
        """
        with naming_lock(self._unlimited, self.log, self._limits), self._connected() as connection:
            snapshot = Snapshot.begin(connection, self.queries, locked, choice, self._limit_calls)
            yield snapshot
            snapshot.end()

    def read(self, query: Callable[[Snapshot], T]) -> T:
        """Return what a function takes from one snapshot; see `readings`."""
        for reading in self.readings():
            with reading as snapshot:
                answer = query(snapshot)
        return answer

    def readings(self, choice: PickUpFilter | None = None) -> Iterator[AbstractContextManager[Snapshot]]:
        """Yield a snapshot, and another one as long as DDL changed a table that was read in it.

        The second one keeps DDL away from such tables. Raise TablesChanged after the third one.
        """
        locked: Sequence[Place] = ()
        for number in range(READINGS):
            changed: list[Place] = []
            with ExitStack() as stack:
                try:
                    snapshot = stack.enter_context(self.snapshot(locked, choice))
                except TablesChanged:  # the tables are busy
                    locked = ()
                    continue
                is_last = number == READINGS - 1
                yield self._reading(stack.pop_all(), snapshot, None if is_last else changed)
            if not changed:
                return
            locked = () if locked else changed  # materialized views can never be locked

    @contextmanager
    def _reading(
        self, stack: ExitStack, snapshot: Snapshot, changed: list[Place] | None
    ) -> Iterator[Snapshot]:
        try:
            with stack:
                yield snapshot
        except TablesChanged as fault:
            if changed is None:
                raise
            changed += fault.places

    @contextmanager
    def as_leader(self, epoch: int, demand: Precondition = NO_PRECONDITION) -> Iterator[LeaderTransaction]:
        """One transaction of the leader of that epoch. Raise LeadershipLost if another leads by now, and
        PickUpEnded if the demand is not met; then nothing of it is written.
        """
        with self._connected() as connection:
            work = LeaderTransaction(connection, self.queries, epoch, demand)
            try:
                yield work
                work.count(self.queries.run_calls(connection, work.last_calls(), commit=True))
            except DatabaseFailed as fault:
                work.explain_failure(str(fault))
                raise

    @contextmanager
    def admin(self) -> Iterator[LogAdmin]:
        """One transaction of somebody who looks after the log."""
        with naming_lock(self._unlimited, self.log, self._limits), self._engine.connect() as connection:
            if self._limited_work is None:
                self.queries.run(connection, "work")
            else:
                connection.execute(self._limited_work)
            yield LogAdmin(connection, self.queries)
            connection.commit()

    def slot_state(self, connection: Connection) -> SlotState:
        """Return the state of the log's slot, in the transaction of a connection."""
        return SlotState(connection, self.queries)

    def lead(self, name: str) -> Leader | None:
        """Become the log's one active publisher; None while another one is."""
        return Leader.elect(self._engine, self.queries, name)

    def waits(self) -> StandbyPlace:
        """Return our place among the standbys, which is not shown yet."""
        return StandbyPlace(self._engine, self.queries)

    def standbys(self) -> list[Standby]:
        """Return the publishers that wait for the lead, as far as we may know."""
        with self._for_reading() as connection:
            return standbys_of(connection, self.queries)

    def holder(self) -> Holder | None:
        """Return the holder of the lock of the one active publisher.

        None means that no one holds it, or that we may not know.
        """
        with self._for_reading() as connection:
            return holder_of(connection, self.queries)

    def remembered(self) -> list[RecordedBatch]:
        """Return the batches that were about to leave when a leader stopped, oldest first."""
        with self._for_reading() as connection:
            return LogRecord(connection, self.queries).remembered()

    def latest_batch(self) -> int:
        """Return the highest number of a batch that is on record; 0 without any."""
        with self._for_reading() as connection:
            return int(self.queries.run(connection, "latest_batch").scalar() or 0)

    def tried_pending(self, limit: int) -> set[int]:
        """Return new rows that have tries on record, up to a limit."""
        with self.engine.connect() as connection:
            return {int(row) for (row,) in self.queries.run(connection, "tried_pending", most=limit)}

    def waiting(
        self, until: datetime, limit: int = 1000, latest_retry: datetime = _EVER
    ) -> list[WaitingEvent]:
        """Return the events whose time to be sent again has come, longest waiting first, one of each object.

        Events with a time after the end of any wait are included, because the clock was set back.
        """
        with self._for_reading() as connection:
            rows = self.queries.run(connection, "retries", until=until, beyond=latest_retry, most=limit)
            return [_waiting(*row) for row in rows]

    def association(self) -> str:
        """Return how associations are written, from the record of this log."""
        with self._for_reading() as connection:
            return str(self.queries.run(connection, "association").scalar() or "as-logged")

    def ascends(self, tables: Iterable[str]) -> bool:
        """Return whether record_ids ascend as rows are written: drawn by our own triggers of these tables."""
        with self._for_reading() as connection:
            tracked = {".".join(row) for row in self.queries.run(connection, "tracked_names")}
            return tracked.issuperset(tables) and bool(self.queries.run(connection, "ids_ascend").scalar())

    def position(self) -> IdPosition:
        """Return the position of the record ids."""
        with self._for_reading() as connection:
            return read_position(connection, self.queries)


def _waiting(
    event_id: str,
    table_name: str,
    table_key: str,
    record_ids: str,
    *facts: Any,
) -> WaitingEvent:
    return WaitingEvent(event_id, table_name, table_key, tuple(json.loads(record_ids)), *facts)
