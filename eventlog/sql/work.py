"""What the leader writes: each transaction first makes sure that nobody else leads by now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.engine import Connection

from eventlog.entry import Status
from eventlog.errors import EventlogError
from eventlog.sql.queries import Queries


class LeadershipLost(EventlogError):
    """another publisher leads this log by now (epoch {0}, ours was {1}): nothing was changed"""


class Batch(NamedTuple):
    """What was about to go out: its content is the publisher's own."""

    number: int
    epoch: int
    content: str


class Waiting(NamedTuple):
    """An event that is sent again later; the later rows of its object are held until then."""

    event_id: str
    table_name: str
    table_key: str
    record_ids: tuple[int, ...]
    tries: int
    next_at: datetime  # in UTC, as the database counts it
    reason: str


class Failure(NamedTuple):
    """Why a row has E or F."""

    record_id: int
    event_id: str | None
    reason: str
    document: str | None = None
    tries: int = 1


class Work:
    """One transaction of the leader; nothing of it stands before the block ends."""

    def __init__(self, connection: Connection, queries: Queries, epoch: int) -> None:
        self._connection = connection
        self._queries = queries
        self.epoch = epoch
        current = queries.run(connection, "epoch").scalar()
        if current != epoch:
            raise LeadershipLost(current, epoch)

    def finish(self, letters: Mapping[Status, Iterable[int]], *, delete: bool = False) -> int:
        """Give rows their letters, or delete those that did not fail; how many were still new."""
        kept = (Status.ERROR, Status.FATAL)
        return sum(
            self._queries.run_by_ids(self._connection, "remove", ids)
            if delete and letter not in kept
            else self._queries.run_by_ids(self._connection, "finish", ids, letter=str(letter))
            for letter, ids in letters.items()
        )

    def fail(self, failures: Iterable[Failure]) -> None:
        """Keep why rows failed, in place of what was kept before."""
        found = list(failures)
        self._queries.run_by_ids(self._connection, "forget_failure", (f.record_id for f in found))
        self._queries.run_all(self._connection, "fail", [failure._asdict() for failure in found])

    def remember(self, number: int, content: str) -> None:
        """Keep what is about to go out."""
        self._queries.run(self._connection, "remember", batch=number, epoch=self.epoch, content=content)

    def adopt(self) -> None:
        """Make what a former leader remembered our own."""
        self._queries.run(self._connection, "adopt", epoch=self.epoch)

    def settle(self, number: int) -> None:
        """Forget a batch: its rows are finished or wait."""
        self._queries.run(self._connection, "settle", batch=number)

    def hold(self, waiting: Waiting) -> None:
        """Keep an event for later, in place of what its object waited for before."""
        self.hold_all([waiting])

    def hold_all(self, waiting: Sequence[Waiting]) -> None:
        """Keep events for later, at most one of each object."""
        self.release_all([one[1:3] for one in waiting])
        rows = [
            one._asdict() | {"record_ids": json.dumps(one.record_ids), "object_hash": object_hash(*one[1:3])}
            for one in waiting
        ]
        self._queries.run_all(self._connection, "hold", rows)

    def release(self, table_name: str, table_key: str) -> None:
        """Let the object go on."""
        self.release_all([(table_name, table_key)])

    def release_all(self, objects: Iterable[tuple[str, str]]) -> None:
        """Let the objects go on."""
        rows = [{"object_hash": object_hash(*name)} for name in objects]
        self._queries.run_all(self._connection, "forget_waiting", rows)

    def record_cycle(self, facts: str) -> None:
        """Keep what `status` tells of the last cycle."""
        self._queries.run(self._connection, "record_cycle", facts=facts)

    def record_heartbeat(self) -> None:
        self._queries.run(self._connection, "record_heartbeat")


def object_hash(table_name: str, table_key: str) -> str:
    """The name of an object that an index can hold, however long its key."""
    return hashlib.sha256(f"{table_name}\0{table_key}".encode()).hexdigest()
