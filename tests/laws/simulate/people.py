"""Who else is at work: writers whose triggers fill the log, operators, and DDL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.operate.redriving import redrive
from eventlog.publisher.fold import PickUpFold
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.store import Store
from tests.laws.simulate.server import Server
from tests.laws.simulate.statements import EPOCH, UserTable
from tests.laws.simulate.store import Refused, Transaction, Values

USR = "public.usr"
TABLES = {USR: UserTable("idu", ("name", "phone"))}
OWN_USER = "eventlog"  # as whom the publisher is connected
ADMINISTRATOR = "admin"  # who logs rows by hand
NO_KEY = ""  # of an object that an administrator forgot to name
_THOUGHTS = (0.0,) * 7 + (4.0,)  # seconds until a writer commits


class Triggers(NamedTuple):
    """The types of the rows that inserts and updates log."""

    insert: int  # 1 or 7 for each field, 5 for the row
    update: int  # 2 or 8 for each field, 6 for the row

    def rows(self, before: Values | None, after: Values | None) -> list[tuple[int, str | None, Any, Any]]:
        """Return type, column, old and new value of each row that a change logs."""
        columns = TABLES[USR].columns
        if after is None:
            return [(4, None, None, None)]
        if before is None:
            if self.insert == 5:
                return [(5, None, None, None)]
            return [(self.insert, c, None, after[c] if self.insert == 1 else None) for c in columns]
        if self.update == 6:
            return [(6, None, None, None)]
        changed = [c for c in columns if before[c] != after[c]]
        if self.update == 2:
            return [(2, c, before[c], after[c]) for c in changed]
        return [(8, c, None, None) for c in changed]


CROWD = 12  # objects, so that many documents are under way at once


class Writer:
    """A program that changes the table."""

    def __init__(self, server: Server, triggers: Triggers | None, objects: int, transactions: int) -> None:
        self._server = server
        self._store = server.store
        self._dice = server.world.dice
        self._step = server.world.step
        self._triggers = triggers
        self._objects = objects
        self._changes = (1, 1, 2, 3) if objects < CROWD else (CROWD, 1, 2, 3)
        self._transactions = transactions

    def run(self) -> None:
        """Make some transactions, with pauses between them."""
        for _ in range(self._transactions):
            transaction = self._server.begin()
            try:
                if self._triggers is not None and self._dice.chance(80):
                    self._log_by_hand(transaction)
                else:
                    self._store.keep_form(transaction, USR)
                    for _ in range(self._dice.choose(self._changes)):
                        self._change(transaction)
                        self._step()
                self._server.world.sleep(self._dice.choose(_THOUGHTS))
                self._store.end(transaction, commit=not self._dice.chance(60))
            except Refused:
                self._store.end(transaction, commit=False)
            self._server.world.sleep(self._dice.choose((0.01, 0.0, 0.3, 2.0, 8.0)))

    def _change(self, transaction: Transaction) -> None:
        key = 1 + self._dice.below(self._objects)
        rows = [row for row in self._store.rows(transaction, USR) if row["idu"] == key]
        text = f"t{self._dice.below(5)}"
        if not rows:
            values = {"idu": key, "name": text, "phone": None if self._dice.chance(300) else text}
            self._store.insert(transaction, USR, values)
            self._step()
            self._log(transaction, key, None, values)
        elif self._dice.chance(250):
            if self._store.delete(transaction, USR, lambda row: row["idu"] == key):
                self._log(transaction, key, {}, None)
        else:
            column = self._dice.choose(TABLES[USR].columns)
            former: list[Values] = []

            def change(row: Values) -> Values:
                former.append(row)
                return {column: None if text == "t4" and column == "phone" else text}

            if self._store.update(transaction, USR, lambda row: row["idu"] == key, change):
                self._step()
                self._log(transaction, key, former[0], former[0] | change(former[0]))

    def _log(self, transaction: Transaction, key: int, before: Values | None, after: Values | None) -> None:
        """Log a change as triggers do, where there are some."""
        if self._triggers is None:
            return
        for kind, column, former, value in self._triggers.rows(before, after):
            if kind in (1, 2) and former == value:
                continue
            user = OWN_USER if self._dice.chance(10) else "writer"
            self._insert(transaction, self._draw_id(), kind, key, column, former, value, user)

    def _log_by_hand(self, transaction: Transaction) -> None:
        """Ask for an object to be read back, or log a row that names none; the record_id is drawn before the
        transaction has a number.
        """
        number = self._draw_id()
        key = NO_KEY if self._dice.chance(200) else 1 + self._dice.below(self._objects)
        self._insert(transaction, number, 6, key, None, None, None, ADMINISTRATOR)

    def _draw_id(self) -> int:
        self._store.sequence += 1
        number = self._store.sequence
        self._step()
        return number

    def _insert(
        self,
        transaction: Transaction,
        number: int,
        kind: int,
        key: int | str,
        column: str | None,
        former: Any,
        value: Any,
        user: str,
    ) -> None:
        values = {
            "record_id": number,
            "status": "N",
            "event_type": kind,
            "event_time": EPOCH.isoformat(" "),
            "perpetrator": user,
            "table_name": "usr",
            "table_key": f"idu={key}",
            "column_name": column,
            "old_value": former,
            "new_value": value,
        }
        self._store.insert(transaction, "log", values)


class Operators:
    """The operators: they redrive, skip, pause, kill, cut, set clocks and change tables."""

    def __init__(self, server: Server, store: Store, reader: PickUpFold) -> None:
        self._server = server
        self._store = store
        self._reader = reader
        self._dice = server.world.dice
        self.publishers: Callable[[], list[Any]] = list
        self.signals: Callable[[], list[Any]] = list
        self.sent: Callable[[], int] = int  # events that left

    def run(self, ends: float) -> None:
        """Do one thing after another until that time."""
        work = (
            self._idle, self._kill, self._cut, self._redrive, self._rewrite, self._set_clock, self._pause,
            self._skip, self._stop, self._redrive,
        )  # fmt: skip
        while self._server.world.now < ends:
            self._server.world.sleep(self._dice.choose((1.0, 0.1, 0.3, 3.0)))
            with suppress(EventlogError, Refused):
                self._dice.choose(work)()

    def calm(self) -> None:
        """Undo what would keep rows from leaving."""
        self._until_done(self._resume)

    def redrive_all(self) -> None:
        self._until_done(self._redrive)

    def _until_done(self, work: Callable[[], None]) -> None:
        while True:
            try:
                return work()
            except EventlogError:
                self._server.world.sleep(1.0)

    def _idle(self) -> None: ...

    def _kill(self) -> None:
        processes = self.publishers()
        if processes:
            self._server.world.kill(self._dice.choose(processes))

    def _stop(self) -> None:
        """Ask a publisher to end, as a signal does; its supervisor starts it again."""
        if signals := self.signals():
            self._dice.choose(signals).request_stop()

    def _cut(self) -> None:
        sessions = [session for session in self._server.sessions if session.owner is not None]
        if sessions:
            self._server.close(self._dice.choose(sessions))

    def _redrive(self) -> None:
        redrive(self._store, FailureFilter(), self._reader)

    def _skip(self) -> None:
        """Give up a row that failed, or one that is new, waits or is on its way."""
        log = self._server.store.rows(self._server.begin(), "log")
        letters = self._dice.choose(("EF", "N"))
        if ids := [row["record_id"] for row in log if row["status"] in letters]:
            with self._store.admin() as admin:
                admin.skip([self._dice.choose(ids)], "simulated")

    def _rewrite(self) -> None:
        transaction = self._server.begin()
        try:
            self._server.store.rewrite(transaction, USR)
            self._server.world.sleep(self._dice.choose((0.01, 0.1, 2.0)))
        except BaseException:
            self._server.store.end(transaction, commit=False)
            raise
        self._server.store.end(transaction, commit=True)

    def _set_clock(self) -> None:
        self._server.clock += self._dice.choose((0.0, -3600.0, 3600.0, -86400.0, 30.0))

    def _pause(self) -> None:
        """Pause for a while, in most runs while a document is on its way."""
        sent, ends = self.sent(), self._server.world.now + self._dice.choose((0.0, 2.0, 2.0))
        while self.sent() == sent and self._server.world.now < ends:
            self._server.world.sleep(0.001)
        with self._store.admin() as admin:
            admin.pause("operator", "simulated")
        self._server.world.sleep(self._dice.choose((0.5, 5.0)))
        self._until_done(self._resume)

    def _resume(self) -> None:
        with self._store.admin() as admin:
            admin.resume("operator")
