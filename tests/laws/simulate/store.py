"""Tables in memory with the visibility of PostgreSQL.

A row has versions. A transaction sees those that were committed before its snapshot, and its own. Who changes
a row that another open transaction changed waits for its end, and then takes the newest version. Numbers of
transactions and record_ids are given before a commit and in another order than commits come in. A table that
DDL rewrote is empty in older snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

Values = dict[str, Any]
Condition = Callable[[Values], bool]
Strength = Literal["share", "update"]
_EVER = 1 << 60


class Refused(Exception):
    """The database refuses a statement."""


class Transaction:
    """A transaction: open, or committed at a moment, or rolled back."""

    __slots__ = (
        "began",
        "blocker",
        "committed",
        "form_locks",
        "is_open",
        "number",
        "snapshot",
        "touched",
    )

    def __init__(self, began: float, snapshot: int | None) -> None:
        self.began = began  # by the database's clock
        self.snapshot = snapshot  # that all statements share, None if each has its own
        self.number: int | None = None  # given with the first write
        self.committed: int | None = None
        self.is_open = True
        self.blocker: Transaction | None = None
        self.touched: list[tuple[Table, Version]] = []
        self.form_locks: set[Table] = set()


class Version:
    """One version of a row."""

    __slots__ = ("creator", "deleter", "locks", "next_version", "values")

    def __init__(self, values: Values, creator: Transaction) -> None:
        self.values = values
        self.creator = creator
        self.deleter: Transaction | None = None
        self.next_version: Version | None = None
        self.locks: dict[Transaction, Strength] = {}


class Table:
    """A table, with what makes a row unique."""

    def __init__(self, name: str, key: tuple[str, ...] = ()) -> None:
        self.name = name
        self.key = key
        self.versions: list[Version] = []
        self.forms: list[tuple[int, int]] = [(0, 0)]  # since which moment it has which form
        self.rewriting: Transaction | None = None
        self.readers: dict[Transaction, None] = {}  # who keeps DDL away until its end


class Store:
    """All tables, transactions and sequences of one database."""

    def __init__(self, wait: Callable[[Transaction], None], ended: Callable[[Transaction], None]) -> None:
        self._wait = wait  # until that transaction has ended
        self._ended = ended
        self.moment = 0  # how many transactions were committed
        self.tables: dict[str, Table] = {}
        self._next_number = 1
        self.numbered: dict[Transaction, None] = {}  # open ones that write, oldest first
        self._snapshots: dict[Transaction, int] = {}
        self.sequence = 0  # the last record_id that was given
        self.notices = 0  # the last id of a notice
        self.nap: Callable[[], None] = lambda: None  # a tenth of a second
        self.on_commit: Callable[[Transaction], None] = lambda transaction: None

    def table(self, name: str, *key: str) -> Table:
        """Make a table."""
        self.tables[name] = Table(name, key)
        return self.tables[name]

    # --- transactions

    def begin(self, now: float, *, frozen: bool = False) -> Transaction:
        """Begin a transaction; all statements of a frozen one see the moment of the first."""
        transaction = Transaction(now, None)
        if frozen:
            transaction.snapshot = -1
        return transaction

    def view(self, transaction: Transaction) -> int:
        """Return the moment that a statement sees."""
        if transaction.snapshot is None:
            return self.moment
        if transaction.snapshot < 0:
            transaction.snapshot = self._snapshots[transaction] = self.moment
        return transaction.snapshot

    def number(self, transaction: Transaction) -> int:
        """Give the transaction its number, if it has none yet."""
        if transaction.number is None:
            transaction.number = self._next_number
            self._next_number += 1
            self.numbered[transaction] = None
        return transaction.number

    def oldest_writer(self) -> int:
        """Return the number before which every transaction has ended."""
        return next((t.number for t in self.numbered if t.number is not None), self._next_number)

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        """Commit or roll back."""
        if not transaction.is_open:
            return
        transaction.is_open = False
        if commit and (transaction.touched or transaction.form_locks):
            self.on_commit(transaction)
            self.moment += 1
            transaction.committed = self.moment
        for table, version in transaction.touched:
            version.locks.pop(transaction, None)
            if not commit:
                if version.creator is transaction and version in table.versions:
                    table.versions.remove(version)
                if version.deleter is transaction:
                    version.deleter = version.next_version = None
        for table in transaction.form_locks:
            table.readers.pop(transaction, None)
            if table.rewriting is transaction:
                table.rewriting = None
                if commit:
                    table.forms.append((self.moment, table.forms[-1][1] + 1))
        self.numbered.pop(transaction, None)
        self._snapshots.pop(transaction, None)
        if transaction.touched:
            self._vacuum(transaction)
        self._ended(transaction)

    def _vacuum(self, transaction: Transaction) -> None:
        """Remove versions that no one can see any more."""
        oldest = min(self._snapshots.values(), default=_EVER)
        for table in {table: None for table, _ in transaction.touched}:
            table.versions = [
                version
                for version in table.versions
                if version.deleter is None
                or version.deleter.committed is None
                or version.deleter.committed > oldest
            ]

    # --- what statements do

    def rows(self, transaction: Transaction, name: str) -> list[Values]:
        """Return the rows of a table as a statement sees them."""
        return [version.values for version in self._visible(transaction, self.tables[name])]

    def _visible(self, transaction: Transaction, table: Table) -> Iterator[Version]:
        at = self.view(transaction)
        if len(table.forms) > 1 and table.forms[-1][0] > at:
            return  # rewritten since
        for version in table.versions:
            creator, deleter = version.creator, version.deleter
            if creator is not transaction and (creator.committed is None or creator.committed > at):
                continue
            if deleter is None or (
                deleter is not transaction and (deleter.committed is None or deleter.committed > at)
            ):
                yield version

    def insert(self, transaction: Transaction, name: str, values: Values) -> None:
        """Insert a row; who has the same key in an open transaction is waited for."""
        table = self.tables[name]
        self.number(transaction)
        if table.key:
            key = [values[part] for part in table.key]
            while (same := self._of_key(table, key, transaction)) is not None:
                if same.creator.is_open and same.creator is not transaction:
                    self._wait_for(transaction, same.creator)
                elif same.deleter is not None and same.deleter.is_open:
                    self._wait_for(transaction, same.deleter)
                else:
                    raise Refused(f"duplicate key in {name}: {key}")
        version = Version(values, transaction)
        table.versions.append(version)
        transaction.touched.append((table, version))

    def _of_key(self, table: Table, key: list[Any], transaction: Transaction) -> Version | None:
        """Return the row of that key that is there, or may be once another transaction ends."""
        for version in table.versions:
            deleter = version.deleter
            if deleter is transaction or (deleter is not None and deleter.committed is not None):
                continue
            if [version.values[part] for part in table.key] == key:
                return version
        return None

    def update(
        self, transaction: Transaction, name: str, condition: Condition, change: Callable[[Values], Values]
    ) -> int:
        """Change rows; return how many."""
        table, changed = self.tables[name], 0
        for version in list(self._visible(transaction, table)):
            if condition(version.values) and (newest := self._lock(transaction, table, version, condition)):
                new_version = Version(newest.values | change(newest.values), transaction)
                table.versions.append(new_version)
                newest.deleter, newest.next_version = transaction, new_version
                transaction.touched += [(table, newest), (table, new_version)]
                changed += 1
        return changed

    def delete(self, transaction: Transaction, name: str, condition: Condition) -> int:
        """Delete rows; return how many."""
        table, deleted = self.tables[name], 0
        for version in list(self._visible(transaction, table)):
            if condition(version.values) and (newest := self._lock(transaction, table, version, condition)):
                newest.deleter = transaction
                transaction.touched.append((table, newest))
                deleted += 1
        return deleted

    def lock(self, transaction: Transaction, name: str, strength: Strength) -> list[Values]:
        """Return the rows of a table, locked."""
        table, rows = self.tables[name], []
        for version in list(self._visible(transaction, table)):
            if newest := self._lock(transaction, table, version, lambda values: True, strength):
                newest.locks[transaction] = "update" if "update" in newest.locks.values() else strength
                transaction.touched.append((table, newest))
                rows.append(newest.values)
        return rows

    def _lock(
        self,
        transaction: Transaction,
        table: Table,
        version: Version,
        condition: Condition,
        strength: Strength = "update",
    ) -> Version | None:
        """Return the newest version of a row, once no one else may change it; None if none is meant."""
        self.number(transaction)
        first = version
        while True:
            blocker = self._blocker(transaction, version, strength)
            if blocker is not None:
                self._wait_for(transaction, blocker)
            elif version.deleter is not None and version.deleter.committed is not None:
                if version.next_version is None:
                    return None
                version = version.next_version
            elif version.deleter is transaction:
                return None
            else:
                return version if version is first or condition(version.values) else None

    def _blocker(self, transaction: Transaction, version: Version, strength: Strength) -> Transaction | None:
        deleter = version.deleter
        if deleter is not None and deleter.is_open and deleter is not transaction:
            return deleter
        for keeper, lock in version.locks.items():
            if keeper is not transaction and keeper.is_open and "update" in (lock, strength):
                return keeper
        return None

    def _wait_for(self, transaction: Transaction, blocker: Transaction) -> None:
        """Wait until a transaction has ended; a circle of such waits is refused."""
        link: Transaction | None = blocker
        while link is not None:
            if link is transaction:
                raise Refused("deadlock detected")
            link = link.blocker
        transaction.blocker = blocker
        try:
            while blocker.is_open:
                self._wait(blocker)
        finally:
            transaction.blocker = None
        if not transaction.is_open:
            raise Refused("the session was ended")

    # --- the forms of tables

    def keep_form(self, transaction: Transaction, name: str, naps: int | None = None) -> None:
        """Wait for DDL on a table, for so many naps at most, and keep DDL away until the transaction ends."""
        table = self.tables[name]
        while naps is not None and table.rewriting not in (None, transaction):
            if not naps:
                raise Refused("lock timeout")
            naps -= 1
            self.nap()
        while (blocker := table.rewriting) is not None and blocker is not transaction:
            self._wait_for(transaction, blocker)
        table.readers[transaction] = None
        transaction.form_locks.add(table)

    def rewrite(self, transaction: Transaction, name: str) -> None:
        """Write a table anew, once no one reads it."""
        table = self.tables[name]
        self.number(transaction)
        transaction.form_locks.add(table)
        while (blocker := self._keeper(transaction, table)) is not None:
            self._wait_for(transaction, blocker)
        table.rewriting = transaction

    def _keeper(self, transaction: Transaction, table: Table) -> Transaction | None:
        if table.rewriting not in (None, transaction):
            return table.rewriting
        return next((reader for reader in table.readers if reader is not transaction), None)

    def form_seen(self, transaction: Transaction, name: str) -> int:
        """Return the form that a table has in the catalogue that the transaction sees."""
        at = self.view(transaction)
        return next(form for since, form in reversed(self.tables[name].forms) if since <= at)

    def form_now(self, name: str) -> int:
        return self.tables[name].forms[-1][1]
