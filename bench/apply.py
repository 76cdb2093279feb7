"""Changes become rows.

Inserts are compared with a bare `copy` of the same rows into an empty table; mixed changes follow.

Judge ratios within one run: machines differ, and so do minutes on one machine.

    eventlog bench apply [changes]
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy.engine import Engine

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.embedded import embedded_postgres
from eventlog.sql.connect import connect
from eventlog.transactions.delivery import Delivery, by_transaction
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import Database
from eventlog.transfer.targets.tables.stage import copy_columns
from eventlog.transfer.targets.tables.writer import TableWriter

CHANGES = 200_000
OF_ONE = 10  # changes of a transaction
TABLES = tablesfile.read(
    '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)",'
    ' mail = "varchar(64)", born = "date", paid = "numeric(12,2)" }\n'
)
NAMES = tuple(TABLES.get("usr").columns)
Row = tuple[Any, ...]


def row(number: int) -> Row:
    """Return the values of a row."""
    mail = f"j{number}@example.com"
    return number, f"Jack{number}", f"Frost {number % 1000}", mail, "1970-01-01", f"{number % 10_000}.50"


def change(op: Op, number: int, values: Sequence[Any], place: int) -> Change:
    """Return a change of the row of that number."""
    fields = tuple(Field(name, ABSENT, value) for name, value in zip(NAMES, values, strict=True))
    return Change(op, None, "usr", (("idu", number),), fields, f"{place:035}", str(place // OF_ONE))


def inserts(count: int) -> list[Change]:
    return [change(Op.INSERT, number, row(number), number) for number in range(count)]


def mixed(count: int, rows: int) -> Iterator[Change]:
    """Yield inserts, complete and sparse updates, and deletes, mostly of some hot rows."""
    dice = random.Random(7)
    there = set(range(rows))
    for place in range(count):
        number = int(dice.random() ** 2 * rows * 1.2)
        if number not in there:
            there.add(number)
            yield change(Op.INSERT, number, row(number), place)
            continue
        kind = dice.random()
        if kind < 0.1:
            there.discard(number)
            yield change(Op.DELETE, number, (number, *[ABSENT] * (len(NAMES) - 1)), place)
        elif kind < 0.4:
            yield change(Op.UPDATE, number, (number, f"John{place}", *[ABSENT] * (len(NAMES) - 2)), place)
        else:
            yield change(Op.UPDATE, number, (*row(number)[:-1], f"{place}.25"), place)


def apply(engine: Engine, count: int, source: str, deliveries: Iterable[Delivery]) -> tuple[float, str]:
    """Return the seconds that it takes to apply so many changes, and what of that our own process works
    at each.
    """
    settings = ApplySettings()
    begun, worked = time.perf_counter(), time.process_time()
    with closing(Database(engine, source, TABLES, settings, print)) as target:
        rows = TableWriter(target, source, "changes", settings, print)
        rows.write(deliveries, lambda: None)
        tally = rows.tally
    seconds, own_seconds = time.perf_counter() - begun, time.process_time() - worked
    assert tally.refused == tally.missing == 0, tally
    return seconds, f"{own_seconds / count * 1e6:.1f} us of our own CPU each"


def one_by_one(changes: Sequence[Change]) -> Iterator[Delivery]:
    """Yield the transactions of single changes."""
    return Report(print).accepted(by_transaction(changes))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES
    with embedded_postgres() as server:
        engine = connect(server.url)
        gc.set_threshold(200_000, 20, 100)  # as the command line has it
        changes, rows = inserts(count), list(zip(*map(row, range(count)), strict=True))
        mixed_changes = list(mixed(count, count))
        gc.freeze()
        apply(engine, 1, "warm", one_by_one(changes[:1]))
        for _ in range(3):
            with engine.begin() as connection:
                connection.exec_driver_sql("drop table if exists bare")
                connection.exec_driver_sql("create table bare (like usr including all)")
            begun = time.perf_counter()
            with engine.begin() as connection:
                copy_columns(connection, "copy bare from stdin", rows)
            bare = time.perf_counter() - begun
            with engine.begin() as connection:
                connection.exec_driver_sql("truncate usr")
            ours, own_cpu = apply(engine, count, f"inserts {begun}", one_by_one(changes))
            line = f"inserts {count / ours:>10,.0f} a second   bare copy {count / bare:>9,.0f}"
            print(f"{line}   {bare / ours:.0%}, {own_cpu}")
        seconds, own_cpu = apply(engine, len(mixed_changes), "mixed", one_by_one(mixed_changes))
        print(f"mixed {count / seconds:>12,.0f} a second, in a table of {count:,} rows, {own_cpu}")


if __name__ == "__main__":
    main()
