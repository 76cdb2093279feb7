"""How long one row takes from its commit to its document, with its timeline, next to a floor.

The floor is a loop with the same reads, query-back and durable steps (pick up, remember, out, finish) on
one connection of psycopg in pipeline mode. It leaves out holds, loopback, redrives, whole inserts and every
check. The server writes to its disk before it answers (fsync is on).

    eventlog bench latency [--mode slot] [transactions a second] [FOLDER]

With a folder, the publisher of that checkout is measured alone, by its own `.venv` and its commands. With
--mode slot a replication slot fills the log, in place of triggers.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import event, text
from sqlalchemy.engine import Connection, Engine

from eventlog.core.errors import Misuse
from eventlog.core.tables import Tables
from eventlog.embedded import embedded_postgres
from eventlog.files.signals import Signals
from eventlog.fold import Rules
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.publisher_tables import read_readable
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.sleep import make_sleeper
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common.dialect import Call
from eventlog.sql.connect import connect
from eventlog.sql.log.leader_transaction import NO_PRECONDITION, LeaderTransaction, Precondition
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL, pipeline
from eventlog.sql.relation import Place
from eventlog.xds.xds_settings import XdsSettings

SECONDS = 10
ROWS = 500  # of the timeline
WARM = 100  # rows before these
INSERT = "insert into usr values (%s, 'a', 'b', 'c')"
ASSOCIATION = re.compile(rb"<association>idu=(-?\d+)")  # also of a line that a kill cut off
BY_SLOT = ("--mode", "slot", "--sync-tables", "usr")
START = 3.0  # seconds until the publisher has begun

PICK_UP = (
    "select record_id, event_type, table_name, table_key, column_name, old_value, new_value from eventlog"
    " where status = 'N' order by record_id limit 10000"
)
READ_BACK = "select idu, fname, lname, mail from usr where idu = any(%s)"


class Version(NamedTuple):
    """A version of eventlog that is installed in a checkout, by default this one."""

    folder: Path | None = None

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """Return the process of a command."""
        python = sys.executable if self.folder is None else str(self.folder / ".venv" / "bin" / "python")
        variables = {
            key: value for key, value in os.environ.items() if not self.folder or key != "PYTHONPATH"
        }
        return subprocess.Popen([python, "-m", "eventlog", *words], cwd=self.folder, env=variables, **options)

    def run(self, engine: Engine, *words: str) -> None:
        """Run a command for a database."""
        url = engine.url.render_as_string(hide_password=False)
        process = self.start(*words, "--url", url, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        fault = process.communicate()[1].decode()
        if process.returncode:
            raise Misuse(f"eventlog {words[0]} of {self.folder or 'this checkout'}: {fault}")


HERE = Version()


def latency_of(version: Version, rate: int) -> None:
    """Print the waits of a version's publisher."""
    with _server() as engine:
        prepare(engine, version)
        _print(f"latency at {rate} transactions/s", _measure(engine, rate, lambda: _publish(engine, version)))


def latency_of_slot(rate: int) -> None:
    """Print the waits of a publisher whose log a slot fills."""
    with _server({"wal_level": "logical"}) as engine:
        prepare(engine, HERE, by_slot=True)
        waits = _measure(engine, rate, lambda: _publish(engine, HERE, *BY_SLOT))
        _print(f"latency of a slot at {rate} transactions/s", waits)


def latency(rate: int) -> None:
    """Print the waits of the publisher and of the floor, on the same server and one after the other."""
    with _server() as engine:
        log = prepare(engine, HERE)
        _print(f"latency at {rate} transactions/s", _measure(engine, rate, lambda: _publish(engine, HERE)))
        _empty(engine, log)
        _print(
            f"latency of the floor at {rate} transactions/s", _measure(engine, rate, lambda: _floor(engine))
        )


def timeline() -> None:
    """Print when a row is where, as the medians of many rows that come one by one."""
    with _server() as engine:
        log = prepare(engine, HERE)
        with _counting(engine) as sent:
            moments = _moments(engine, log)
    cycles = WARM + len(moments)
    trips, statements = (sent[name] / cycles for name in ("round trips", "statements"))
    print(f"one row: a cycle of {trips:.1f} round trips with {statements:.1f} statements and commits")
    print(f"one row, medians of {len(moments)} in ms since its commit:")
    before = 0.0
    for name, *times in zip(moments[0], *(run.values() for run in moments), strict=True):
        at = 1000 * statistics.median(times)
        print(f"  {name:<34} {at:6.2f}   +{at - before:5.2f}")
        before = at


@contextmanager
def _server(settings: Mapping[str, str] | None = None) -> Iterator[Engine]:
    with embedded_postgres(settings=settings) as server:
        engine = connect(server.url, keep_open=4)
        try:
            yield engine
        finally:
            engine.dispose()


def prepare(engine: Engine, version: Version, *, by_slot: bool = False) -> Log:
    """Install a version's log and a table whose changes triggers or a slot log, and return the log."""
    version.run(engine, "install")
    with engine.begin() as connection:
        connection.execute(
            text("create table usr (idu integer primary key, fname text, lname text, mail text)")
        )
    version.run(engine, *(("install", *BY_SLOT) if by_slot else ("track", "usr")))
    return Log(POSTGRESQL)


def _empty(engine: Engine, log: Log) -> None:
    with engine.begin() as connection:
        connection.execute(text(f"truncate {log.table}, usr"))


def _measure(engine: Engine, rate: int, start: Callable[[], Running]) -> list[float]:
    """Insert rows one by one at that rate, and return their waits in milliseconds, ascending."""
    running = start()
    time.sleep(START)
    committed: dict[int, float] = {}
    begun = time.monotonic()
    with engine.connect() as connection:
        for number in range(rate * SECONDS):
            time.sleep(max(0.0, begun + number / rate - time.monotonic()))
            connection.execute(text("insert into usr values (:n, 'a', 'b', 'c')"), {"n": number})
            connection.commit()
            committed[number] = time.monotonic()
    time.sleep(2)
    running.stop()
    arrived = running.arrived
    assert arrived.keys() == committed.keys(), f"{len(arrived)} of {len(committed)} arrived"
    return sorted(1000 * (arrived[number] - committed[number]) for number in committed)


def _print(name: str, waits: Sequence[float]) -> None:
    cuts = statistics.quantiles(waits, n=100)
    print(f"{name}: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, worst {waits[-1]:.1f} ms", flush=True)


class Running:
    """A publisher at work, and when it got each row out."""

    def __init__(self, arrived: dict[int, float], stop: Callable[[], None]) -> None:
        self.arrived = arrived
        self.stop = stop


def _publish(engine: Engine, version: Version, *words: str) -> Running:
    """Start our publisher as a process of its own, woken by the triggers or by the stream."""
    arrived: dict[int, float] = {}
    process, reading = start_publisher(engine, arrived, version, *words)

    def stop() -> None:
        process.terminate()
        reading.join()
        process.wait()

    return Running(arrived, stop)


def start_publisher(
    engine: Engine, arrived: dict[int, float], version: Version, *words: str
) -> tuple[subprocess.Popen[bytes], threading.Thread]:
    """Return the process of a publisher, and the thread that notes when each row came out first."""
    url = engine.url.render_as_string(hide_password=False)
    always = "run", "--url", url, "--allow-loopback", "--batch-size", "1000"
    process = version.start(*always, *words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    reading = threading.Thread(target=_read, args=(process.stdout, arrived))
    reading.start()
    return process, reading


def _read(lines: Iterable[bytes], arrived: dict[int, float]) -> None:
    for line in lines:
        now = time.monotonic()
        for number in ASSOCIATION.findall(line):
            arrived.setdefault(int(number), now)


def _floor(engine: Engine) -> Running:
    """Start the loop that does the durable steps alone, in a thread."""
    arrived: dict[int, float] = {}
    ended = threading.Event()
    address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    loop = threading.Thread(target=_loop, args=(address, arrived, ended))
    loop.start()

    def stop() -> None:
        ended.set()
        loop.join()

    return Running(arrived, stop)


def _loop(address: str, arrived: dict[int, float], ended: threading.Event) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        latest = "select coalesce(max(batch), 0) from eventlog_batch"  # the publisher before left some
        ((batch,),) = connection.execute(latest).fetchall()
        while not ended.is_set():
            with connection.pipeline():
                connection.execute("begin isolation level repeatable read")
                picked = connection.execute(PICK_UP, prepare=True)
                connection.execute("select count(*) from eventlog_retry", prepare=True)
                connection.execute("select epoch from eventlog_state", prepare=True)
            rows = picked.fetchall()
            if not rows:
                connection.execute("commit")
                time.sleep(0.001)
                continue
            batch += 1
            _send(connection, batch, rows, arrived)


def _send(
    connection: psycopg.Connection[tuple[object, ...]],
    batch: int,
    rows: Sequence[tuple[object, ...]],
    arrived: dict[int, float],
) -> None:
    """Read back, remember, send and finish the rows of a batch."""
    with connection.pipeline():
        keys = [int(str(row[3]).partition("=")[2]) for row in rows]
        current = connection.execute(READ_BACK, (keys,), prepare=True)
        connection.execute("commit")
    with connection.pipeline():
        connection.execute("begin")
        columns = "batch, epoch, first_id, last_id, content"
        remember = f"insert into eventlog_batch ({columns}) values (%s, 1, 1, 1, %s)"
        connection.execute(remember, (batch, "x" * 200 * len(rows)), prepare=True)
        connection.execute("commit")
    now = time.monotonic()
    for key, *_ in current.fetchall():
        arrived[int(str(key))] = now
    with connection.pipeline():
        connection.execute("begin")
        finish = "update eventlog set status = 'S' where record_id = any(%s)"
        connection.execute(finish, ([row[0] for row in rows],), prepare=True)
        settle = "update eventlog_batch set settled_at = now() where batch = %s"
        connection.execute(settle, (batch,), prepare=True)
        connection.execute("commit")


class Timeline:
    """The moments of one row, by name, as they come."""

    def __init__(self) -> None:
        self.moments: dict[str, float] = {}
        self._begun = 0.0

    def begin(self) -> None:
        """Start anew: the row is committed."""
        self.moments, self._begun = {}, time.perf_counter()

    def mark(self, name: str) -> None:
        """Note the time of a moment, the first time that it comes."""
        self.moments.setdefault(name, time.perf_counter() - self._begun)


class TimedStore(Store):
    """A store that notes when its transactions begin and end."""

    def __init__(self, engine: Engine, log: Log, timeline: Timeline) -> None:
        super().__init__(engine, log)
        self._timeline = timeline

    @contextmanager
    def snapshot(
        self, locked: Sequence[Place] = (), choice: PickUpFilter | None = None
    ) -> Iterator[Snapshot]:
        """Open a snapshot; note that it is open, and what was done in it."""
        with super().snapshot(locked, choice) as snapshot:
            self._timeline.mark("snapshot is open")
            yield snapshot
            self._timeline.mark("picked up, read back, folded")

    @contextmanager
    def as_leader(self, epoch: int, demand: Precondition = NO_PRECONDITION) -> Iterator[LeaderTransaction]:
        """Open a working transaction, and note that it is committed."""
        with super().as_leader(epoch, demand) as work:
            yield work
        self._timeline.mark("finished" if "out" in self._timeline.moments else "remembered")


class TimedSink:
    """A sink that notes when a document is out."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        """Take each document."""
        for document in documents:
            assert document.data
            self._timeline.mark("out")
            yield ACCEPTED

    def knows(self, name: str) -> bool:
        """Return that no record is kept."""
        return False

    def close(self) -> None: ...


@contextmanager
def _counting(engine: Engine) -> Iterator[Counter[str]]:
    """Count what goes to the server inside the block, except what the writer of rows sends."""
    sent = Counter[str]()
    original = pipeline.run_in_pipeline

    def run_in_pipeline(connection: Connection, calls: Sequence[Call], *, commit: bool = False) -> list[Any]:
        sent.update({"round trips": 1, "statements": len(calls) + commit})
        return original(connection, calls, commit=commit)

    def alone(connection: object, cursor: object, statement: str, *unused: object) -> None:
        if statement != INSERT:
            sent.update({"round trips": 1, "statements": 1})

    pipeline.run_in_pipeline = run_in_pipeline
    event.listen(engine, "before_cursor_execute", alone)
    yield sent
    event.remove(engine, "before_cursor_execute", alone)
    pipeline.run_in_pipeline = original


def _moments(engine: Engine, log: Log) -> list[dict[str, float]]:
    """Return the moments of many rows; the first ones only warm up."""
    timeline, signals = Timeline(), Signals()
    store = TimedStore(engine, log, timeline)
    leader = store.lead("bench")
    assert leader is not None
    with engine.connect() as connection:
        tables = Tables([Catalogue(connection).find("usr").table])
    reader = PickUpFold(tables, read_readable(engine, log, tables), Rules(), XdsSettings(1000))
    publisher = Publisher(
        store, lambda: reader, TimedSink(timeline), leader.epoch, 1000, PublisherSettings(query_limit=10_000)
    )
    sleeper = make_sleeper(signals, engine, log, wake_up=True)
    runs = []
    with engine.connect() as writer, store.keep_connection():
        for number in range(WARM + ROWS):
            sleeper.announce()
            writer.exec_driver_sql(INSERT, (number,))
            writer.commit()
            timeline.begin()
            sleeper.sleep(1.0)
            timeline.mark("awake")
            leader.paused_since()
            publisher.cycle()
            runs.append(timeline.moments)
    sleeper.close()
    leader.close()
    return runs[WARM:]


if __name__ == "__main__":
    by_slot = sys.argv[1:3] == ["--mode", "slot"]
    del sys.argv[1 : 3 if by_slot else 1]
    row_count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    if by_slot:
        latency_of_slot(row_count)
    elif len(sys.argv) > 2:
        latency_of(Version(Path(sys.argv[2]).resolve()), row_count)
    else:
        latency(row_count)
        timeline()
