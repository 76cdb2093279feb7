"""Captures of one random workload agree in every object's sequence: our triggers, PostgreSQL's own log of
writes, Debezium's engine, which reads that log, and PgQ's triggers.

The last two are fetched into the folder that EVENTLOG_PEERS names; EVENTLOG_TEST_LOGICAL_URL names a server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_plus

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL, Connection, Engine, make_url

from bench.peers import debezium, installing
from bench.peers.server import peers_server
from eventlog.sql.connect import connect, execute_plain
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.kit import judges
from tests.kit.databases import temporary_database
from tests.sql.acting import CREATE_TABLES, TABLES, Sessions
from tests.sql.pgoutput import Act, acts, begin
from tests.sql.test_replicated import LOGICAL
from tests.sql.tracked import Logged, Tracked
from tests.world.rig import SEED

pytestmark = pytest.mark.long

TRANSACTIONS = int(os.environ.get("EVENTLOG_PROOF_TRANSACTIONS", "60"))
LEAVES = ("usr", "phone", "part1", "part2")
PUBLISHED = {"part1": "part", "part2": "part"}
COLUMNS = ("a", "b")
Sequences = dict[tuple[str, str], list[Logged]]


@pytest.fixture(scope="module")
def logical() -> Iterator[URL]:
    """A server whose wal_level is logical, on TCP; with PgQ where it can be had."""
    if named := os.environ.get("EVENTLOG_TEST_LOGICAL_URL"):
        yield make_url(named)
        return
    with peers_server(LOGICAL) as url:
        yield url


@pytest.fixture
def pg(logical: URL) -> Iterator[Tracked]:
    with temporary_database("logical", logical) as database:
        engine = connect(database.url, keep_open=6)
        log = Log(database.dialect)
        migrate.install(engine, log)
        yield Tracked(engine, log)
        engine.dispose()


@pytest.mark.parametrize("sessions", [1, 4])
@pytest.mark.parametrize("granularity", ["statement", "row"])
def test_captures_agree(pg: Tracked, tmp_path: Path, sessions: int, granularity: str) -> None:
    pg.run(*CREATE_TABLES)
    for table in TABLES:
        rowwise = granularity == "row" and table != "part"  # a partitioned table knows no other
        pg.track(table, insert=1, update=2, granularity="row" if rowwise else "statement")
    # after ours: of a partitioned table `track` refuses values with such triggers
    queued = _queue(pg.engine)
    jars = _jars()
    begin(pg.engine, LEAVES)
    if jars:
        debezium.begin(pg.engine, LEAVES)
    workload = Sessions(pg.engine, SEED + sessions, sessions, TRANSACTIONS)
    workload.run()
    with pg.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        done = acts(connection)
        ours = _of_log(connection)
        assert len(done) > TRANSACTIONS * sessions / 2
        others = {"the log of writes": _of_acts(done)}
        if queued:
            others["PgQ"] = _of_acts(_queued(connection))
    if jars:
        others["Debezium"] = _of_acts(_read_by_debezium(pg.engine, jars, tmp_path, _expected(done)))
    for name, theirs in others.items():
        assert {place: rows for place, rows in ours.items() if rows != theirs.get(place)} == {}, name
        assert ours.keys() == theirs.keys(), name
    print(
        f"{workload.statements} statements, {len(done)} acts, {len(ours)} sequences of ours:"
        f" the same by {', '.join(others)}"
    )
    for name in ("PgQ", "Debezium"):
        if name not in others and os.environ.get("CI_FULL"):
            judges.absent(name, "it took no part")


def _jars() -> list[str]:
    """Return the jars of Debezium, if it is at hand."""
    try:
        return installing.jars("debezium")
    except installing.Skipped:
        return []


def _expected(done: list[Act]) -> int:
    """Return how many changes Debezium makes of these acts; a changed key makes two."""
    return sum(2 if act.before and act.after and act.before["k"] != act.after["k"] else 1 for act in done)


def _read_by_debezium(engine: Engine, jars: list[str], folder: Path, count: int) -> list[Act]:
    """Return what Debezium's engine reads from the write-ahead log."""
    reader = debezium.Debezium(engine.url, jars, LEAVES, folder / "changes.jsonl")
    try:
        reader.wait(count)
    finally:
        reader.stop()
        debezium.end(engine)
    read_acts = []
    for change in reader.changes():
        if change["op"] == "m":  # a message of `acts` in the write-ahead log
            continue
        before, after = (_texts(change.get(side)) for side in ("before", "after"))
        read_acts.append(Act(change["source"]["table"], before, after, change["op"] == "t"))
    return read_acts


def _texts(row: dict[str, object] | None) -> dict[str, str | None] | None:
    if row is None:
        return None
    return {name: None if value is None else str(value) for name, value in row.items()}


def _of_log(connection: Connection) -> Sequences:
    """Return the rows of each object, as our triggers logged them."""
    columns = "table_name, event_type, table_key, column_name, old_value, new_value"
    rows_by_object: Sequences = {}
    for table, *row in connection.execute(text(f"select {columns} from eventlog order by record_id")):
        logged = Logged(*row)
        rows_by_object.setdefault((table, logged.key), []).append(logged)
    return rows_by_object


def _of_acts(done: list[Act]) -> Sequences:
    """Return the rows that should be logged of each object, by what another capture saw."""
    rows_by_object: Sequences = {}
    there: dict[str, set[str]] = {table: set() for table in LEAVES}
    for table, before, after, truncated in done:
        published = PUBLISHED.get(table, table)
        deleted_keys = there[table] if truncated else set()
        for number in sorted(deleted_keys):
            rows_by_object[published, f"k={number}"].append(Logged(4, f"k={number}"))
        deleted_keys.clear()
        for row in _rows(before, after):
            rows_by_object.setdefault((published, row.key), []).append(row)
        there[table] -= {str(before["k"])} if before else set()
        there[table] |= {str(after["k"])} if after else set()
    return rows_by_object


def _rows(before: dict[str, str | None] | None, after: dict[str, str | None] | None) -> Iterator[Logged]:
    """Return what a change of one row is logged as, with types 1, 2 and 4."""
    if before and after and before["k"] == after["k"]:
        for column in COLUMNS:
            if before[column] != after[column]:
                yield Logged(2, f"k={after['k']}", column, before[column], after[column])
        return
    if before:
        yield Logged(4, f"k={before['k']}")
    if after:
        set_columns = [column for column in COLUMNS if after[column] is not None]
        for column in set_columns or COLUMNS[:1]:
            yield Logged(1, f"k={after['k']}", column, None, after[column])


def _queue(engine: Engine) -> bool:
    """Put PgQ's triggers on every table, if the server has them."""
    with engine.begin() as connection:
        if not connection.execute(text("select 1 from pg_available_extensions where name = 'pgq'")).scalar():
            return False
        execute_plain(connection, "create extension pgq")
        execute_plain(connection, "select pgq.create_queue('proof')")
        for table in LEAVES:
            for events in ("insert or update or delete", "truncate"):
                each = "statement" if events == "truncate" else "row"
                execute_plain(
                    connection,
                    f"create trigger queued_{each} after {events} on {table} for each {each}"
                    " execute function pgq.logutriga('proof', 'backup')",
                )
    return True


def _queued(connection: Connection) -> list[Act]:
    """Return what PgQ's triggers saw."""
    prefix = connection.execute(text("select queue_data_pfx from pgq.queue")).scalar_one()
    events = text(f"select ev_type, ev_data, ev_extra1, ev_extra2 from {prefix} order by ev_id")
    return [_act(*row) for row in connection.execute(events)]


def _act(kind: str, data: str | None, table: str, backup: str | None) -> Act:
    name, letter = table.partition(".")[2], kind.partition(":")[0]
    row = _fields(data or "")
    return {
        "I": Act(name, None, row),
        "U": Act(name, _fields(backup or ""), row),
        "D": Act(name, row, None),
        "R": Act(name, None, None, truncated=True),
    }[letter]


def _fields(encoded: str) -> dict[str, str | None]:
    pairs = (part.partition("=") for part in encoded.split("&") if part)
    return {unquote_plus(name): unquote_plus(value) if equals else None for name, equals, value in pairs}
