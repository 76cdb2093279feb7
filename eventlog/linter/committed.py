"""Transactions that have committed and whose changes are not out yet."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

from eventlog.linter.columns import QueueRow
from eventlog.linter.operations import Transaction
from eventlog.linter.progress import JournalPlace, QueueProgress


class CommittedTransaction(NamedTuple):
    """A transaction that committed, and its COMMIT row."""

    transaction: Transaction
    commit: QueueRow


class CommittedTransactions:
    """The committed transactions, in the order in which they came.

    For each database the first of their rows in the journal is known. Rows without an address are read again
    wherever reading begins.
    """

    def __init__(self) -> None:
        self._came = self._left = 0
        self._nodes = Counter[str]()
        self._fresh: list[tuple[int, QueueRow]] = []  # not compared yet: dates may get their order later
        # by database, its first row, then the first of the later ones, and so on
        self._firsts: dict[str, deque[tuple[int, QueueRow]]] = {}

    def add(self, ended: CommittedTransaction) -> None:
        """One more."""
        self._nodes[ended.commit.dbnode] += 1
        if ended.transaction.operations:
            part = ended.transaction.operations[0].parts[0]
            if part.syslog_addr is not None:
                self._fresh.append((self._came, part))
        self._came += 1

    def leave(self, first: CommittedTransaction) -> None:
        """The changes of the first one are out."""
        self._left += 1
        self._nodes[first.commit.dbnode] -= 1
        if not self._nodes[first.commit.dbnode]:
            del self._nodes[first.commit.dbnode]

    def nodes(self) -> Iterable[str]:
        """Return the databases that have some."""
        return self._nodes

    def oldest(self, node: str, order: str) -> QueueRow | None:
        """Return the first row of those of a database, by the journal."""
        for came, part in self._fresh:
            behind = self._firsts.setdefault(part.dbnode, deque())
            while behind and earlier(behind[-1][1], part, order) is part:
                behind.pop()
            behind.append((came, part))
        self._fresh.clear()
        firsts = self._firsts.get(node, deque())
        while firsts and firsts[0][0] < self._left:
            firsts.popleft()
        return firsts[0][1] if firsts else None


def earlier(one: QueueRow, other: QueueRow, order: str) -> QueueRow:
    """Return which of two rows of one database is first in the journal."""
    if one.syslog_addr is None:
        return one
    past = QueueProgress(JournalPlace(one.syslog_addr, one.oper_date)).is_past(
        other.syslog_addr, other.oper_date, order
    )
    return other if past else one
