"""The cost of comparing a table of ten columns: a poll of a log, and two tables.

`database`: an embedded PostgreSQL; the floor is one ordered scan of the table with its digests, read and
dropped. The base is made by `startup-option = "future"`, above a million rows by one statement. `tables`:
two tables of one server, read by segments and, up to a million rows, whole; reladiff compares them in the
same run if EVENTLOG_PEERS names a folder for it. The changed rows are at equal distances. Judge
ratios within one run: machines differ, and so do minutes on one machine.

    eventlog bench compare [ROWS] [database|tables|all] [RUNS]
"""

from __future__ import annotations

import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import URL, Connection, Engine

from bench.peers.installing import Skipped, python
from bench.peers.server import peers_server
from eventlog.compare.digest import digest_of, key_hash_of
from eventlog.compare.lines import differences, in_order
from eventlog.compare.segments import TableSide, differing_rows
from eventlog.compare.table_snapshot import at_hand, snapshot
from eventlog.core.errors import Misuse
from eventlog.core.tables import Tables
from eventlog.embedded import FAST, embedded_postgres
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_readable, read_tables
from eventlog.publisher.comparison import Comparison
from eventlog.sql.connect import connect
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.object_states import TableState
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.queries import unbound
from eventlog.sql.schema import migrate

ROWS = 1_000_000
RUNS = 1
SHARES = (0, 0.001, 0.1)
COLUMNS = """
  idu integer primary key, fname text, lname text, mail text, phone text, street text, city text,
  born date, height numeric(6,2), active boolean, changed timestamp"""
VALUES = """
  n, 'Jack' || n, 'Frost' || n % 1000, 'jack' || n || '@example.org', '+49 228 ' || n,
  'Main Street ' || n % 200, 'Bonn', date '1970-01-01' + n % 20000, 1 + n % 100 / 100.0,
  n % 3 = 0, timestamp '2025-03-23 10:57:19'"""
NAMES = ("fname", "lname", "mail", "phone", "street", "city", "born", "height", "active", "changed")


def main(rows: int, only: str = "all", runs: int = RUNS) -> None:
    """Print what was measured."""
    measures = {"database": database, "tables": tables}
    if only not in (*measures, "all"):
        raise Misuse(f"there is no {only!r} to measure: {', '.join(measures)} or all")
    for name, measure in measures.items():
        if only in ("all", name):
            measure(rows, runs)


def database(rows: int, runs: int) -> None:
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
            _measure(engine, store, config, leader, rows, runs)
        engine.dispose()


def _measure(engine: Engine, store: Store, config: Config, leader: Leader, rows: int, runs: int) -> None:
    first = Comparison(config, store, leader.epoch, ComparingSettings(startup_option="future"))
    base = first.poll if rows <= ROWS else partial(_keep_all, engine, store, config, leader, rows)
    print(f"{rows} rows of ten columns; base: {_timed(base):.1f} s", flush=True)
    _run(engine, "vacuum analyze eventlog_known")
    comparing = Comparison(config, store, leader.epoch, ComparingSettings())
    comparing.poll()
    for share in SHARES:
        floors, polls = [], []
        for run in range(runs if rows <= ROWS else 1):
            changed = int(rows * share)
            _run(engine, f"update usr set city = 'Köln {share} {run}' where idu <= {changed}")
            _run(engine, "vacuum analyze usr")
            floors.append(_timed(lambda: _floor(engine, store, config)))
            polls.append(_timed(lambda: _expect(comparing.poll(), changed)))  # noqa: B023 - called at once
            _run(engine, "update eventlog set status = 'S'")
            _run(engine, "vacuum analyze eventlog_known")
        floor, poll = statistics.median(floors), statistics.median(polls)
        line = f"floor {floor:.2f} s, poll {poll:.2f} s, {poll / floor:.2f} times the floor"
        print(f"{share:6.1%} changed: {line}", flush=True)


def _keep_all(engine: Engine, store: Store, config: Config, leader: Leader, rows: int) -> None:
    """Take the rows for what the receiver has, by one statement: as a start does, in less time."""
    tables = read_tables(engine, store.log, config)
    ((table, readable),) = read_readable(engine, store.log, tables).items()
    key = f"'idu=' || {readable.key_texts[0]}"
    digest = digest_of(POSTGRESQL, zip(table.data, readable.expressions, strict=True))
    pairs = (
        f"'{data_column.name}', {text}"
        for data_column, text in zip(table.data, readable.expressions, strict=True)
    )
    with store.as_leader(leader.epoch) as work:
        work.receiver_state().begin_table(str(table), TableState())
    _run(
        engine,
        f"""insert into eventlog_known (object_table, key_hash, object_key, digest, row_values)
        select '{table}', {key_hash_of(POSTGRESQL, key)}, {key}, {digest},
          cast(json_strip_nulls(json_build_object({", ".join(pairs)})) as text)
        from {readable.source} t""",
    )
    with store.as_leader(leader.epoch) as work:
        names = tuple(column.name for column in table.data)
        work.receiver_state().put_table(str(table), TableState(rows, names=names, key=table.key))


def tables(rows: int, runs: int) -> None:
    """Print what two tables cost by segments, with all rows, and with reladiff."""
    with peers_server() as url:
        engine = connect(url, keep_open=4)
        for name in ("usr", "later"):
            _run(engine, f"create table {name} ({COLUMNS})")
            _run(engine, f"insert into {name} select {VALUES} from generate_series(1, {rows}) n")
            _run(engine, f"vacuum analyze {name}")
        full_read = _difference(engine, reads_all=True) if rows <= ROWS else None
        if full_read is not None:
            print(
                f"{rows} rows, all of them read: {full_read[0]:.1f} s, {full_read[1] >> 20} MiB", flush=True
            )
        for share in SHARES[:2]:
            if share:
                _run(engine, f"update later set city = 'Köln' where mod(idu, {round(1 / share)}) = 0")
                _run(engine, "vacuum analyze later")
            seconds, peers = [], []
            for _ in range(runs):
                took, read, change_count = _difference(engine)
                seconds.append(took)
                peers += _reladiff(url)
            reladiff_time = f"{statistics.median(peers):.1f} s" if peers else "skipped"
            line = f"{statistics.median(seconds):.1f} s, {read / 2**20:.1f} MiB, {change_count} changes"
            print(f"{share:6.1%} changed, two tables: {line}; reladiff {reladiff_time}", flush=True)
        engine.dispose()


def _difference(engine: Engine, *, reads_all: bool = False) -> tuple[float, int, int]:
    """Return the seconds, the bytes received and the number of changes of one comparison."""
    with snapshot(engine) as before_all, snapshot(engine) as after_all:
        connection_before, connection_after = before_all.connection, after_all.connection
        sides = [_table_state(connection_before, "usr"), _table_state(connection_after, "later")]
        table = sides[0].table
        before, begun = sum(map(_received, (connection_before, connection_after))), time.perf_counter()
        rows_before, rows_after = (side.rows() for side in sides) if reads_all else differing_rows(*sides)
        model = Tables([table])
        lines = in_order(
            model, ((table, line) for line in differences(model, table, rows_before, rows_after))
        )
        change_count = sum(1 for _ in lines)
        return (
            time.perf_counter() - begun,
            sum(map(_received, (connection_before, connection_after))) - before,
            change_count,
        )


def _table_state(connection: Connection, name: str) -> TableSide:
    readable = at_hand(connection, name)
    return TableSide(connection, readable.table, readable, readable.table)


def _received(connection: Connection) -> int:
    """Return how many bytes a connection received, as Linux counts them (tcpi_bytes_received)."""
    with socket.socket(fileno=connection.connection.driver_connection.fileno()) as tcp_socket:  # type: ignore[union-attr]
        counted = tcp_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        tcp_socket.detach()
    return int(struct.unpack_from("Q", counted, 128)[0])


def _reladiff(url: URL) -> list[float]:
    """Return the seconds of reladiff's whole command, none if it is not there."""
    try:
        program = python("reladiff").with_name("reladiff")
    except Skipped as why:
        print(f"reladiff: skipped, {why}", flush=True)
        return []
    columns = [word for name in NAMES for word in ("-c", name)]
    place = url.set(drivername="postgresql").render_as_string(hide_password=False)
    words = [str(program), place, "usr", place, "later", "-k", "idu", "-j", "4", *columns]
    return [_timed(lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL))]


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


def _expect(actual: int, expected: int) -> None:
    assert actual == expected, (actual, expected)


def _run(engine: Engine, statement: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(unbound(statement)))


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    rows, only, runs = [*sys.argv[1:], *(f"{ROWS}", "all", f"{RUNS}")[len(sys.argv) - 1 :]]
    main(int(rows), only, int(runs))
