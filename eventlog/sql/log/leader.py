"""The one active publisher of a log: a lock that the database drops with the session, and an epoch.

The epoch shows a leader that was away that another one leads now. Anyone who may connect can take the lock. A
publisher notes its session in a table that a stranger may not write, so that a stranger's lock is recognised.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.engine import Connection, Engine

from eventlog.core.errors import EventlogError
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.leader_transaction import LeadershipLost
from eventlog.sql.queries import Queries

_KINDS = {True: "1702257261", False: "1702257262"}  # of the lock of a standby: whether it could lead
_PLACES = 9  # of standbys that are shown, where one session alone can have a lock


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of the leader's lock, as far as we may know."""

    role: str | None
    process: str
    seen_as: str | None  # its application, or where it comes from
    publisher: bool  # of this log
    ending: str = ""  # the statement that ends its session; empty if the database has none

    def __str__(self) -> str:
        role = self.role and f"role {self.role}"
        words = ", ".join(filter(None, (role, f"process {self.process}", self.seen_as)))
        return words if self.publisher else f"{words}: no publisher of this log"


class Standby(NamedTuple):
    """A publisher that waits for the lead, by the lock that its session holds."""

    holder: Holder
    could_lead: bool  # by its last check

    @property
    def words(self) -> str:
        """Return whether it could lead, for people."""
        return "it could lead" if self.could_lead else "it could not take over"


class StandbyPlace:
    """The place of a standby: a lock that shows it, and whether it could lead, for as long as it waits.

    The lock writes nothing, and the database drops it with the session.
    """

    def __init__(self, engine: Engine, queries: Queries) -> None:
        self._engine = engine
        self._queries = queries
        self._connection: Connection | None = None
        self._could_lead: bool | None = None  # as it is shown

    def show(self, *, could_lead: bool) -> None:
        """Show whether this standby could lead. Raise ConnectionLost if its session has ended."""
        if self._connection is None:
            self._connection = self._engine.connect()
            self._connection.detach()  # the locks must end when it closes
        connection = self._connection
        if could_lead == self._could_lead:
            self._queries.run(connection, "session_id")  # a server may end sessions without statements
        else:
            self._queries.run(connection, "end_stand_by")
            locks = [{"lock_kind": _KINDS[could_lead], "lock_place": str(place)} for place in range(_PLACES)]
            any(self._queries.run(connection, "stand_by", lock).scalar() for lock in locks)  # the first free
        connection.rollback()  # it leaves the locks of the session
        self._could_lead = could_lead

    def close(self) -> None:
        """Give the place up."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def __enter__(self) -> StandbyPlace:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


class Leader:
    """The right to publish, for as long as the session of its lock lives."""

    def __init__(
        self, connection: Connection, queries: Queries, epoch: int, *, in_transaction: bool = False
    ) -> None:
        self._connection = connection
        self._queries = queries
        self._in_transaction = in_transaction  # the lock ends with a transaction, not with the session
        self.epoch = epoch

    @classmethod
    def elect(cls, engine: Engine, queries: Queries, name: str) -> Leader | None:
        """Return the leader, None while another session holds the lock."""
        holder = engine.connect()
        holder.detach()  # the lock must end when it closes, so no pool may keep it
        try:
            if (
                queries.run(holder, "lead").scalar()
                and (session_has_lock := _session_has_lock(holder, queries)) is not False
            ):
                session = str(queries.run(holder, "session_id").scalar())
                epoch = _begin_epoch(engine, queries, name, session)
                leader = cls(holder, queries, epoch, in_transaction=session_has_lock is None)
                leader._end_transaction()
                return leader
        except BaseException:
            holder.close()
            raise
        holder.close()
        return None

    def paused_since(self) -> datetime | None:
        """Return since when the publisher is paused; ConnectionLost if the session of the lock is gone."""
        (((since,),),) = self._queries.run_calls(self._connection, [self._queries.call("paused")])
        self._end_transaction()
        return since  # type: ignore[no-any-return]

    def asked_after(self, notice: int, *, only_all: bool) -> bool:
        """Return whether a person asked after a notice that events that wait are sent, or only if all are."""
        call = self._queries.call("tried_after", after=notice, only_all=int(only_all))
        (((newest,),),) = self._queries.run_calls(self._connection, [call])
        self._end_transaction()
        return newest is not None

    def _end_transaction(self) -> None:
        """Leave no transaction open; where the lock needs one, let it be a new one, that it keep no undo."""
        self._connection.rollback()
        if self._in_transaction and not self._queries.run(self._connection, "lead").scalar():
            raise LeadershipLost(self._queries.run(self._connection, "epoch").scalar(), self.epoch)

    def close(self) -> None:
        """Let another publisher take over at once: a server takes its time to end a session."""
        if not self._connection.invalidated:  # else its session, and so the lock, is gone
            with suppress(EventlogError):
                self._queries.run(self._connection, "resign")
        self._connection.close()

    def __enter__(self) -> Leader:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


def holder_of(connection: Connection, queries: Queries) -> Holder | None:
    """Return the holder of the lock: a stranger before a publisher.

    None means that no one holds it, or that we may not know.
    """
    with suppress(EventlogError), connection.begin_nested():
        rows = queries.run(connection, "lock_holders").all()
        noted = queries.run(connection, "leader_session").scalar()
        ending = queries.log.dialect.sessions.end_session
        holders = [
            Holder(role, process, seen_as, process == noted, ending.format(process=process))
            for role, process, seen_as in rows
        ]
        return min(holders, key=lambda holder: holder.publisher, default=None)
    return None


def standbys_of(connection: Connection, queries: Queries) -> list[Standby]:
    """Return the publishers that wait for the lead, as far as we may know."""
    with suppress(EventlogError), connection.begin_nested():
        rows = queries.run(connection, "standbys").all()
        return [
            Standby(Holder(role, process, seen_as, publisher=True), str(kind) == _KINDS[True])
            for kind, role, process, seen_as in rows
        ]
    return []


def _session_has_lock(holder: Connection, queries: Queries) -> bool | None:
    """Return whether the session itself has the lock by now; None if only its transaction can have it."""
    if not queries.log.dialect.sessions.lock_is_transactional:
        return True
    with suppress(DatabaseFailed), holder.begin_nested():
        queries.run(holder, "hold_lock")
        has_lock = queries.run(holder, "held_by_session").scalar()
        return None if has_lock is None else bool(has_lock)
    return None


def _begin_epoch(engine: Engine, queries: Queries, name: str, session: str) -> int:
    with engine.begin() as connection:
        queries.run(connection, "begin_epoch", leader=name, session_id=session)
        return int(queries.run(connection, "epoch").scalar())
