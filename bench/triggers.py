"""The cost of capture on PostgreSQL: bulk inserts, updates and deletes, and single durable updates.

    eventlog bench triggers [ROWS] [URL]

Without a URL the embedded server is measured. PgQ's trigger in C, pgq.logutriga, is measured with
ours if its extension is installed. Slots need wal_level = logical. No one reads them while writers are
measured, which is the same for writers: Debezium is its publication and its slot alone.
In the table of bulk statements each way takes turns with a table without capture, and which of the two is
first changes from round to round. A figure is the median of the nine ratios, and after it are the lowest
and the highest. "no capture, again" is a table without capture instead of a way: its spread is the noise.
Bulk figures are CPU time of the server's process, or time where the server is elsewhere.
The floor is the bare insert and one plain `insert … select` of its log rows, with fewer and fewer indexes.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import Engine

from bench.peers import debezium
from eventlog.core.errors import EventlogError
from eventlog.embedded import embedded_postgres
from eventlog.opening.config import Config
from eventlog.operate.changing import fill_by_slot
from eventlog.sql.capture.track import track, untrack
from eventlog.sql.connect import connect, execute_plain
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log, log_named
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.postgresql.triggers import wake_key
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate

ROWS = 200_000
ROUNDS = 9
TURNS = 2_000  # of single updates
SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "wal_level": "logical",
}
SLOTS = {"slot, default identity": "default", "slot, full identity": "full"}

TABLE, BARE = "bench_usr", "bench_bare"
CREATE_TABLE = f"create table {TABLE} (id bigint primary key, fname text, lname text, age integer, mail text)"
SOURCE = """
create table bench_source as
select i::bigint as id, 'first' || i as fname, 'last' || i as lname, i % 90 as age,
  'm' || i || '@example.org' as mail
from generate_series(1, {rows}) i
"""
INSERT = f"insert into {TABLE} select * from bench_source"
UPDATE = f"update {TABLE} set fname = fname || 'x', age = age + 1"
BULK = {"insert": INSERT, "update of two columns": UPDATE, "delete": f"delete from {TABLE}"}
LOG_ROWS = f"""
insert into {{log}} (event_type, table_name, table_key)
select 5, '{TABLE}', 'id=' || n.id::text from {TABLE} n
"""
LOG_FIELDS = f"""
insert into {{log}} (event_type, table_name, table_key, column_name, new_value)
select 1, '{TABLE}', 'id=' || n.id::text, f.* from {TABLE} n cross join lateral (
  values ('fname', n.fname), ('lname', n.lname), ('age', n.age::text), ('mail', n.mail)) f
"""
UPDATE_ONE = "update {table} set age = age + 1 where id = :id"
CHOICES = {
    "query-back, statement": Choice(granularity="statement"),
    "query-back, row": Choice(granularity="row"),
    "per field, statement": Choice(insert=1, update=2, granularity="statement"),
    "per field, row": Choice(insert=1, update=2, granularity="row"),
}
PGQ = "pgq.logutriga"


def main() -> None:
    """Print the figures."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with _database(sys.argv[2:]) as url:
        engine = connect(url)
        log = log_named(POSTGRESQL, "eventlog_bench")
        with engine.connect() as connection:
            print(connection.execute(text("select version()")).scalar())
        try:
            _floor(engine, log, rows)
            _bulk(engine, log, rows)
            _single(engine, log)
        finally:
            _clean(engine, log)


@contextmanager
def _database(arguments: list[str]) -> Iterator[str]:
    if arguments:
        yield arguments[0]
    else:
        with embedded_postgres(settings=SETTINGS) as server:
            yield server.url


def _prepare(engine: Engine, log: Log, rows: int) -> None:
    _clean(engine, log)
    migrate.install(engine, log)
    _run(engine, SOURCE.format(rows=rows), CREATE_TABLE, "analyze bench_source")


def _clean(engine: Engine, log: Log) -> None:
    with suppress(EventlogError):  # nothing is there yet
        untrack(engine, log, TABLE, discard=True)
    _run(engine, f"drop table if exists {TABLE}, {BARE}, bench_source")
    migrate.uninstall(engine, log, discard=True)


def _floor(engine: Engine, log: Log, rows: int) -> None:
    """Measure what no trigger can do without: the rows of the log and their indexes."""
    steps = {"both indexes": "", "no index of pending rows": "drop index eventlog_bench_pending"}
    steps["no index"] = "alter table eventlog_bench drop constraint eventlog_bench_key"
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        _prepare(engine, log, rows)
        best["", INSERT] = min(best.get(("", INSERT), float("inf")), _timed(engine, INSERT))
        for name, step in steps.items():
            _run(engine, *filter(None, [step]))
            for statement in (LOG_ROWS, LOG_FIELDS):
                _run(engine, f"truncate {log.table}")
                took = _timed(engine, statement.format(log=log.table))
                best[name, statement] = min(best.get((name, statement), float("inf")), took)
    bare = best["", INSERT]
    print(f"\n{rows} rows in one statement    floor: a log row each    four log rows each")
    for name in steps:
        ratios = ((bare + best[name, statement]) / bare for statement in (LOG_ROWS, LOG_FIELDS))
        print(f"{name:28} {'   '.join(f'{ratio:18.2f}x' for ratio in ratios)}")
    _prepare(engine, log, rows)


def _bulk(engine: Engine, log: Log, rows: int) -> None:
    """Measure statements of many rows, each way in turns with no capture."""
    ways: dict[str, Callable[[], AbstractContextManager[object]]] = {"no capture, again": nullcontext}
    for name, choice in CHOICES.items():
        ways[name] = partial(_tracking, engine, log, choice)
    for name, identity in SLOTS.items():
        ways[name] = partial(_filling_by_slot, engine, log, identity)
    ways["Debezium, its slot"] = partial(_read_by_debezium, engine)
    if _pgq(engine):
        ways[PGQ] = partial(_logging_by_pgq, engine)
    bare: list[dict[str, float]] = []
    ratios: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for number in range(ROUNDS):
        for name, way in ways.items():
            pair = {}
            for is_captured in (False, True) if number % 2 else (True, False):
                _run(engine, f"drop table {TABLE}", CREATE_TABLE, f"truncate {log.table}")
                with way() if is_captured else nullcontext():
                    pair[is_captured] = {words: _timed(engine, sql) for words, sql in BULK.items()}
            bare.append(pair[False])
            ratios[name].append({words: pair[True][words] / pair[False][words] for words in BULK})
    print(f"\n{rows} rows in one statement{''.join(f'{words:>26}' for words in BULK)}")
    medians = (statistics.median(took[words] for took in bare) for words in BULK)
    print(f"{'no capture':28}{''.join(f'{took * 1e3:23.0f} ms' for took in medians)}")
    for name, figures in ratios.items():
        print(f"{name:28}{''.join(_spread([ratio[words] for ratio in figures]) for words in BULK)}")
    if PGQ not in ways:
        print(f"{PGQ:28} not measured: the extension pgq is not installed on this server")


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):9.2f}x ({min(ratios):5.2f}-{max(ratios):5.2f})"


def _single(engine: Engine, log: Log) -> None:
    """Measure updates; the two tables take turns, so that other work on the machine affects both alike."""
    untrack(engine, log, TABLE, discard=True)
    _run(engine, f"drop table if exists {BARE}", f"create table {BARE} (like {TABLE} including all)")
    _run(engine, f"insert into {BARE} select * from {TABLE}")
    track(engine, log, TABLE, CHOICES["query-back, statement"])
    awake = _turns(engine)
    with engine.connect() as publisher:
        publisher.execute(
            text("select pg_advisory_lock(:a, :b)"), dict(zip("ab", wake_key(log), strict=True))
        )
        publisher.execute(text("listen eventlog"))
        publisher.commit()
        asleep = _turns(engine)
    print("\nsingle updates, each its own durable transaction, one session, in turns (medians)")
    for name, (bare, tracked) in {"publisher awake": awake, "publisher asleep": asleep}.items():
        print(
            f"{name:18} no trigger {bare * 1e6:6.0f} us   query-back {tracked * 1e6:6.0f} us"
            f"   rate {bare / tracked * 100:5.1f} %"
        )


def _turns(engine: Engine) -> tuple[float, float]:
    """Return the medians of an update without and with our trigger."""
    took: dict[str, list[float]] = {BARE: [], TABLE: []}
    statements = {table: text(UPDATE_ONE.format(table=table)) for table in took}
    with engine.connect() as connection:
        for turn in range(TURNS):
            for table, statement in statements.items():
                begun = time.perf_counter()
                connection.execute(statement, {"id": turn % ROWS + 1})
                connection.commit()
                took[table].append(time.perf_counter() - begun)
    return statistics.median(took[BARE]), statistics.median(took[TABLE])


def _timed(engine: Engine, statement: str) -> float:
    """Return the seconds of CPU that a statement takes, or the seconds where the server is elsewhere."""
    with engine.connect() as connection:
        process = connection.execute(text("select pg_backend_pid()")).scalar()
        clock = Path(f"/proc/{process}/schedstat")  # its first number is nanoseconds on a CPU
        local = engine.url.host is None and clock.exists()
        begun = _seconds(clock, local)
        execute_plain(connection, statement)
        connection.commit()
        return _seconds(clock, local) - begun


def _seconds(clock: Path, local: bool) -> float:
    return int(clock.read_text().split()[0]) / 1e9 if local else time.perf_counter()


def _pgq(engine: Engine) -> bool:
    with engine.connect() as connection:
        return bool(
            connection.execute(text("select 1 from pg_available_extensions where name = 'pgq'")).scalar()
        )


@contextmanager
def _tracking(engine: Engine, log: Log, choice: Choice) -> Iterator[None]:
    track(engine, log, TABLE, choice)
    yield
    untrack(engine, log, TABLE, discard=True)


@contextmanager
def _filling_by_slot(engine: Engine, log: Log, identity: str) -> Iterator[None]:
    """Let a slot fill the log, which no publisher reads."""
    _run(engine, f"alter table {TABLE} replica identity {identity}")
    values = {"sync_tables": TABLE, "log_table": log.table, "publication_mode": "slot"}
    store = Store(engine, log)
    list(fill_by_slot(Config(values), store, "bench"))
    yield
    with store.admin() as admin:
        admin.slot().drop()
        admin.slot().record(None)


@contextmanager
def _read_by_debezium(engine: Engine) -> Iterator[None]:
    debezium.begin(engine, [TABLE])
    yield
    debezium.end(engine)


@contextmanager
def _logging_by_pgq(engine: Engine) -> Iterator[None]:
    _run(
        engine,
        "create extension if not exists pgq",
        "select pgq.create_queue('bench')",
        f"create trigger bench after insert or update or delete on {TABLE}"
        " for each row execute function pgq.logutriga('bench')",
    )
    yield
    _run(engine, "select pgq.drop_queue('bench', true)")


def _run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            execute_plain(connection, statement)


if __name__ == "__main__":
    main()
