"""The brake on deletes: a poll that would delete too many objects of a table stops that table.

`eventlog resume --table` leaves a notice that lets one poll pass. The poll leaves another one in the
transaction that logs the last delete of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from shlex import quote

from eventlog.core.delete_limit import DeleteLimit
from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.sql.log.leader_transaction import LeaderTransaction
from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.sql.log.object_states import StateStep, TableState


class TableStopped(EventlogError):
    """{0} of {1} would be deleted at the receiver, which max-deletes = {2} stops: bring the rows back, or \
let one poll pass with `eventlog resume --table {3}`"""


class DeleteBrake:
    """The deletes of a poll, table by table, and the tables that stopped."""

    def __init__(self, limit: DeleteLimit) -> None:
        self._limit = limit
        self._stopped: set[str] = set()
        self.reasons: dict[str, str] = {}  # of the tables that the last poll stopped
        self.passing: set[str] = set()  # tables that this poll may pass with any number of deletes
        self._objects: dict[str, int] = {}  # how many the state of each table has
        self._deletes = Counter[str]()
        self._pending = Counter[str]()  # deletes that are not logged yet

    def begin(self, bases: Mapping[str, TableState], passing: Iterable[str]) -> None:
        """Begin a poll."""
        self._objects = {table: base.objects for table, base in bases.items()}
        self.passing = set(passing)
        self._deletes.clear()
        self._pending.clear()

    def add(self, step: StateStep) -> None:
        """Count a step if it deletes an object at the receiver."""
        self._deletes[step.object_table] += step.is_delete

    def stop(self, read: Collection[str]) -> dict[str, str]:
        """Return those that stop among the tables that were read to their end, each with its reason.

        A table that an earlier poll stopped goes on if nothing of it would be deleted.
        """
        self._pending = self._deletes.copy()
        stopped = {table for table in read if self._deletes[table] > self._max_deletes(table)}
        self._stopped = (self._stopped - {*read}) | stopped
        self.reasons = {table: str(self._fault(table)) for table in sorted(stopped)}
        return self.reasons

    def _max_deletes(self, table: str) -> int:
        objects = self._objects.get(table, 0)
        if self._limit.is_unlimited or table in self.passing:
            return objects
        return 0 if table in self._stopped else self._limit.max_deletes(objects)

    def _fault(self, table: str) -> TableStopped:
        return TableStopped(self._deletes[table], self._size(table), self._limit, quote(table))

    def _size(self, table: str) -> str:
        return quantity(self._objects.get(table, 0), "object")

    def record(self, work: LeaderTransaction, steps: Iterable[StateStep], read: Collection[str]) -> None:
        """Record which tables, among those that were read to their end, passed with these last deletes."""
        self._pending.subtract(step.object_table for step in steps if step.is_delete)
        for table in sorted(self.passing.intersection(read)):
            if not self._pending[table]:
                deletes, words = self._deletes[table], f"of {self._size(table)} deleted"
                work.note(Notice(NoticeKind.PASSED, table, row_count=deletes, words=words))
                self.passing.discard(table)
