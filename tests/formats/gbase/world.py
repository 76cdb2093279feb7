"""A database server that works while it is captured. Others act between any two statements of the capture,
tables are locked by the manual, and its log is the content of the stream.

It implements the port `sources.capture.Transport`. A commit changes a table at once. A session that needs a
row of an open transaction, or a locked table, waits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from eventlog.formats.gbase.records import BeginTx, CommTx, Number, RbTx, RowHead
from eventlog.formats.gbase.session import ServerError
from eventlog.formats.gbase.writer import write_head, write_row
from tests.formats.gbase.server import FakeCursor, Server

SCHEMA = "k integer, v varchar(20,0)"
Row = tuple[object, ...]
COLUMNS: list[Row] = [(1, "k", 0x102, 4, None), (2, "v", 13, 20, None)]
RECORDS = 40  # of a log


@dataclass
class Open:
    """A transaction of somebody."""

    number: int
    began: int
    changes: list[tuple[str, int, str | None]] = field(default_factory=list)

    def touches(self, table: str) -> set[int]:
        return {key for name, key, _ in self.changes if name == table}


class World:
    """The server and everybody who works with it; `draw` decides what happens next."""

    def __init__(self, names: Sequence[str], seed: int, steps: int = 120, lag: int = 2) -> None:
        self.draw = random.Random(seed)
        self.server = Server(dict.fromkeys(names, SCHEMA))
        self.names = list(names)
        self.steps = steps
        self.lag = lag  # pages of the log that are not on disk yet
        self.tables: dict[str, dict[int, str]] = {name: {} for name in names}
        self.open: list[Open] = []
        self.locked: set[str] = set()
        self.reading: tuple[str, int] | None = None  # a repeatable read, and how far it is
        self.records = 0
        self.statements: list[str] = []
        self.sysmaster = True
        self.catalogue: dict[str, list[Row]] = {name: [*COLUMNS] for name in names}
        self.before_statement: Callable[[str], object] = lambda statement: None

    # --- what others do

    @property
    def log(self) -> int:
        return 7 + self.records // RECORDS

    @property
    def seconds(self) -> int:
        return 1_750_000_000 + self.records // 6

    def sequence(self) -> int:
        self.records += 1
        return self.log << 32 | (self.records % RECORDS) << 12 | 0x18

    def step(self) -> None:
        """Let something happen, perhaps."""
        if self.steps and self.draw.random() < 0.6:
            self.steps -= 1
            choice = self.draw.random()
            if not self.open or (choice < 0.25 and len(self.open) < 4):
                self.begin()
            elif choice < 0.75:
                self.change(self.draw.choice(self.open))
            else:
                self.end(self.draw.choice(self.open), keep=self.draw.random() < 0.8)

    def finish(self) -> None:
        """End everything that anyone began."""
        self.steps = 0
        while self.open:
            self.end(self.open[0], keep=True)

    def begin(self) -> Open:
        taken = {transaction.number for transaction in self.open}
        number = next(n for n in range(1, 9) if n not in taken)  # a slot that is used again
        sequence = self.sequence()
        self.server.happen(sequence, write_head(BeginTx(sequence, number, self.seconds, 1)))
        transaction = Open(number, sequence)
        self.open.append(transaction)
        return transaction

    def change(self, transaction: Open, name: str | None = None, key: int | None = None) -> None:
        """A row is inserted, updated or deleted, unless somebody is in the way."""
        name = name or self.draw.choice(self.names)
        key = key or self.draw.randrange(1, 12)
        if name in self.locked or any(
            key in rival.touches(name) for rival in self.open if rival is not transaction
        ):
            return
        if self.reading is not None and self.reading[0] == name and key <= self.reading[1]:
            return  # a row that was read repeatably stays as it is
        current_value = self._current_value(transaction, name, key)
        value = None if current_value is not None and self.draw.random() < 0.4 else f"v{self.records}"
        transaction.changes.append((name, key, value))
        if name not in self.server.full_rows:  # what is logged then cannot be captured
            self.sequence()
            return
        number = self.names.index(name) + 1
        if current_value is not None and value is not None:
            self._row(Number.UPDBEF, transaction, number, key, current_value)
            self._row(Number.UPDAFT, transaction, number, key, value)
        elif value is not None:
            self._row(Number.INSERT, transaction, number, key, value)
        else:
            self._row(Number.DELETE, transaction, number, key, str(current_value))

    def _current_value(self, transaction: Open, name: str, key: int) -> str | None:
        mine = [value for table, k, value in transaction.changes if (table, k) == (name, key)]
        return mine[-1] if mine else self.tables[name].get(key)

    def _row(self, kind: Number, transaction: Open, number: int, key: int, value: str) -> None:
        sequence = self.sequence()
        image = self.server.schema(self.names[0]).write((key, value))
        self.server.happen(sequence, write_row(kind, RowHead(sequence, transaction.number, number, 0), image))

    def end(self, transaction: Open, *, keep: bool) -> None:
        self.open.remove(transaction)
        sequence = self.sequence()
        if not keep:
            self.server.happen(sequence, write_head(RbTx(sequence, transaction.number)))
            return
        for name, key, value in transaction.changes:
            if value is None:
                del self.tables[name][key]
            else:
                self.tables[name][key] = value
        self.server.happen(sequence, write_head(CommTx(sequence, transaction.number, self.seconds)))

    # --- the port

    def connect(self, database: str, *, transactions: bool) -> Link:
        return Link(self)

    def read(self, connection: object, session: int, size: int) -> bytes:
        self.step()
        return self.server.read(session, size)

    def close(self) -> None:
        self.statements.append("close")

    def query(self, statement: str, arguments: Sequence[object]) -> Iterator[Row]:
        """Yield the rows of a query of the catalogue, of sysmaster or of a table."""
        if "sysmaster" in statement and not self.sysmaster:
            raise ServerError("[-272] No SELECT permission for sysmaster.")
        if "syscolumns" in statement:
            named = [n for n in self.names if n.endswith(f":{arguments[1]}.{arguments[0]}")]
            yield from self.catalogue[named[0]] if named else ()
        elif "sysconstraints" in statement:
            yield (1, *[0] * 15)
        elif "systrans" in statement:
            yield (min((transaction.began >> 32 for transaction in self.open), default=None),)
        elif "min(uniqid)" in statement:
            yield (self.server.oldest >> 32,)
        elif "utc_current" in statement:
            yield (self.seconds,)
        elif "syslogs" in statement:
            used = max(self.records % RECORDS - self.draw.randint(0, self.lag), 0)
            yield (self.log, used) if "used" in statement else (self.log,)
        else:
            yield from self._rows(statement)

    def _rows(self, statement: str) -> Iterator[Row]:
        match = re.search(r'from "(\w+)"\.(\w+)$', statement)
        assert match is not None, statement
        (name,) = (n for n in self.names if n.endswith(f":{match[1]}.{match[2]}"))
        for key in range(1, 12):
            for transaction in [transaction for transaction in self.open if key in transaction.touches(name)]:
                self.end(transaction, keep=self.draw.random() < 0.8)  # we wait for the writer of the row
            if "set isolation to repeatable read" in self.statements:
                self.reading = name, key
            if key in self.tables[name]:
                yield key, self.tables[name][key]
            self.step()

    def lock(self, table: str) -> None:
        owner, name = table.replace('"', "").split(".")
        (full_name,) = (n for n in self.names if n.endswith(f":{owner}.{name}"))
        for transaction in [transaction for transaction in self.open if transaction.touches(full_name)]:
            self.end(transaction, keep=True)
        self.locked.add(full_name)


class Link:
    """A connection to a database of the world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def cursor(self) -> LinkCursor:
        return LinkCursor(self._world)

    def commit(self) -> None:
        self._world.locked.clear()
        self._world.reading = None

    def close(self) -> None:
        self.commit()


class LinkCursor(FakeCursor):
    """A cursor for calls of the capture, and for statements."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server)
        self._world = world
        self._rows: Iterator[Row] | None = None

    def execute(self, operation: str, parameters: Sequence[object], /) -> None:
        self._world.step()
        self._world.before_statement(operation)
        self._world.statements.append(operation)
        if operation.startswith("execute function"):
            super().execute(operation, parameters)
        elif operation.startswith("select"):
            rows = self._world.query(operation, parameters)
            self._rows = rows if '"' in operation else iter(list(rows))
        elif operation.startswith("lock table"):
            self._world.lock(operation.split()[2])

    def fetchone(self) -> Row | None:
        return super().fetchone() if self._rows is None else next(self._rows, None)
