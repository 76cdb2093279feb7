"""What a poll costs where the log is filled by comparing: an embedded PostgreSQL, a table of ten columns.

The floor is one ordered scan of the table with its digests, read and dropped. The base is made by
`startup-option = "future"`. Judge ratios within one run: machines differ, and so do minutes on one machine.

    eventlog bench compare [rows]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.compare.sqldigest import digest_of
from eventlog.demo.embedded import FAST, embedded_postgres
from eventlog.publisher.comparing import Comparing, ComparingSettings
from eventlog.publisher.config import Config
from eventlog.publisher.opening import read_readable, read_tables
from eventlog.sql.connect import connect
from eventlog.sql.dialect.dialects import POSTGRESQL
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.queries import unbound
from eventlog.sql.schema import migrate

ROWS = 1_000_000
RUNS = 3
COLUMNS = """
  idu integer primary key, fname text, lname text, mail text, phone text, street text, city text,
  born date, height numeric(6,2), active boolean, changed timestamp"""
VALUES = """
  n, 'Jack' || n, 'Frost' || n % 1000, 'jack' || n || '@example.org', '+49 228 ' || n,
  'Main Street ' || n % 200, 'Bonn', date '1970-01-01' + n % 20000, 1 + n % 100 / 100.0,
  n % 3 = 0, timestamp '2025-03-23 10:57:19'"""


def main(rows: int) -> None:
    """Print the floor, and what polls cost."""
    with embedded_postgres(settings=FAST) as server:
        engine = connect(server.url, keep_open=4)
        store = Store(engine, Log(POSTGRESQL))
        migrate.install(engine, store.log)
        _run(engine, f"create table usr ({COLUMNS})")
        _run(engine, f"insert into usr select {VALUES} from generate_series(1, {rows}) n")
        _run(engine, "vacuum analyze usr")
        config = Config({"url": server.url, "sync_tables": "usr", "polling_interval": 0})
        leader = store.lead("bench")
        assert leader is not None
        with leader:
            _measure(engine, store, config, leader, rows)
        engine.dispose()


def _measure(engine: Engine, store: Store, config: Config, leader: Leader, rows: int) -> None:
    first = Comparing(config, store, leader.epoch, ComparingSettings(startup_option="future"))
    print(f"{rows} rows of ten columns; base: {_timed(first.poll):.1f} s")
    _run(engine, "vacuum analyze eventlog_known")
    comparing = Comparing(config, store, leader.epoch, ComparingSettings())
    comparing.poll()
    for share in (0, 0.001, 0.1):
        floors, polls = [], []
        for run in range(RUNS):
            changed = int(rows * share)
            _run(engine, f"update usr set city = 'Köln {share} {run}' where idu <= {changed}")
            _run(engine, "vacuum analyze usr")
            floors.append(_timed(lambda: _floor(engine, store, config)))
            polls.append(_timed(lambda: _expect(comparing.poll(), changed)))  # noqa: B023 - called at once
            _run(engine, "update eventlog set status = 'S'")
            _run(engine, "vacuum analyze eventlog_known")
        floor, poll = statistics.median(floors), statistics.median(polls)
        told = f"floor {floor:.2f} s, poll {poll:.2f} s, {poll / floor:.2f} times the floor"
        print(f"{share:6.1%} changed: {told}")


def _floor(engine: Engine, store: Store, config: Config) -> None:
    """One ordered scan with digests, read and dropped."""
    tables = read_tables(engine, store.log, config)
    ((table, readable),) = read_readable(engine, store.log, tables).items()
    digest = digest_of(POSTGRESQL, zip(table.data, readable.expressions, strict=True))
    statement = text(
        unbound(f"select {readable.key_texts[0]}, {digest} from {readable.source} t order by t.idu")
    )
    with engine.connect() as connection:
        for _ in connection.execute(statement.execution_options(stream_results=True, yield_per=10_000)):
            pass


def _expect(found: int, expected: int) -> None:
    assert found == expected, (found, expected)


def _run(engine: Engine, statement: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(unbound(statement)))


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
