"""Programs that capture the changes of a table: their cost for writers, and how fast the changes are out.

Each reads a whole backlog: from its first change to its last in a file. The table of results has what each
leaves out.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from bench.peers import debezium
from bench.peers.installing import DEBEZIUM_VERSION, jars, pgq
from bench.peers.workload import TABLE
from eventlog.core.tables import Tables
from eventlog.fold import Rules
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.publisher_tables import read_readable
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.fold import PickUpFold
from eventlog.sinks.files import FilesSink
from eventlog.sql.capture.track import track
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import dialect_at, execute_plain
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log, log_named
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from eventlog.xds.xds_settings import XdsSettings

LIMIT = 10_000  # rows of a pick-up, and events of a document
TICK = 0.2  # seconds between two looks of PgQ's ticker
QUEUE, READER = "peers", "bench"


class Capture(Protocol):
    """One way to capture."""

    name: str
    limits: str  # what it does not do

    def capturing(self, engine: Engine) -> AbstractContextManager[None]:
        """Return a context in which the table's changes are captured."""

    def rate(self, engine: Engine, changes: int) -> float | None:
        """Return changes a second, of those that were captured; None if nothing is read."""


class Nothing:
    """The floor: the writers alone."""

    name = "no capture"
    limits = ""

    @contextmanager
    def capturing(self, engine: Engine) -> Iterator[None]:
        yield

    def rate(self, engine: Engine, changes: int) -> float | None:
        return None


class Eventlog:
    """The way of eventlog: triggers, and the publisher into a folder of documents."""

    def __init__(self, name: str, choice: Choice, limits: str) -> None:
        self.name, self.limits = f"eventlog, {name}", limits
        self._choice = choice

    @contextmanager
    def capturing(self, engine: Engine) -> Iterator[None]:
        log = _log(engine)
        migrate.install(engine, log)
        track(engine, log, TABLE, self._choice)
        yield

    def rate(self, engine: Engine, changes: int) -> float | None:
        store = Store(engine, _log(engine))
        leader = store.lead("bench")
        assert leader is not None
        with leader, tempfile.TemporaryDirectory() as folder:
            return changes / published(store, leader.epoch, Path(folder))


def _log(engine: Engine) -> Log:
    return log_named(dialect_at(engine), "peer_log")


def published(store: Store, epoch: int, folder: Path) -> float:
    """Return the seconds in which all that is pending becomes documents in a folder."""
    engine = store.engine
    with engine.connect() as connection:
        tables = Tables([Catalogue(connection).find(TABLE).table])
    readable = read_readable(engine, store.log, tables)
    reader = PickUpFold(tables, readable, Rules(), XdsSettings(LIMIT))
    sink = FilesSink(folder)
    publisher = Publisher(store, lambda: reader, sink, epoch, LIMIT, PublisherSettings(query_limit=LIMIT))
    begun = time.perf_counter()
    while publisher.cycle().rows:
        pass
    sink.close()
    return time.perf_counter() - begun


class PgQ:
    """The way of PgQ: a trigger in C, its ticker and a reader of batches."""

    name = "PgQ 3, pgq.logutriga"
    limits = "the row's values as URL-encoded text, without types; consumers retry events by themselves"

    def __init__(self) -> None:
        pgq()

    @contextmanager
    def capturing(self, engine: Engine) -> Iterator[None]:
        _run(
            engine,
            "create extension pgq",
            f"select pgq.create_queue('{QUEUE}')",
            f"select pgq.register_consumer('{QUEUE}', '{READER}')",
            f"create trigger peer after insert or update or delete on {TABLE}"
            f" for each row execute function pgq.logutriga('{QUEUE}', 'backup')",
        )
        with _ticking(engine):
            yield

    def rate(self, engine: Engine, changes: int) -> float | None:
        _tick(engine)
        begun, read = time.perf_counter(), 0
        with engine.connect() as connection, tempfile.TemporaryFile("w") as file:
            for event in _batches(connection):
                file.write(json.dumps(event) + "\n")
                read += 1
        took = time.perf_counter() - begun
        assert read == changes, f"PgQ's reader has {read} of {changes} changes"
        return changes / took


def _batches(connection: Connection) -> Iterator[list[str | None]]:
    """Yield the events of all batches; each batch is finished after its last event."""
    following = text(f"select pgq.next_batch('{QUEUE}', '{READER}')")
    events = text("select ev_type, ev_data, ev_extra1, ev_extra2 from pgq.get_batch_events(:batch)")
    while (batch := connection.execute(following).scalar()) is not None:
        yield from map(list, connection.execute(events, {"batch": batch}))
        connection.execute(text("select pgq.finish_batch(:batch)"), {"batch": batch})
        connection.commit()
    connection.commit()


@contextmanager
def _ticking(engine: Engine) -> Iterator[None]:
    """Close batches now and then if there is something new, as pgqd does."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(TICK):
            _run(engine, f"select pgq.ticker('{QUEUE}')")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _tick(engine: Engine) -> None:
    """Close the batch of everything so far."""
    _run(engine, f"select pgq.force_tick('{QUEUE}')")
    _run(engine, f"select pgq.ticker('{QUEUE}')")


class Debezium:
    """The way of Debezium: its engine reads the server's write-ahead log."""

    name = f"Debezium {DEBEZIUM_VERSION}"
    limits = (
        "needs wal_level = logical, a slot for which the log is kept, `replica identity full` for whole old"
        " rows, and a JVM, whose start is not counted here"
    )

    def __init__(self) -> None:
        self._jars = jars("debezium")

    @contextmanager
    def capturing(self, engine: Engine) -> Iterator[None]:
        debezium.begin(engine, [TABLE])
        try:
            yield
        finally:
            debezium.end(engine)

    def rate(self, engine: Engine, changes: int) -> float | None:
        """Return the rate from the end of its first batch on, because the engine starts before."""
        with tempfile.TemporaryDirectory() as folder:
            engine_of_theirs = debezium.Debezium(engine.url, self._jars, [TABLE], Path(folder) / "changes")
            try:
                batches = engine_of_theirs.wait(changes)
            finally:
                engine_of_theirs.stop()
        (first, begun), (last, ended) = batches[0], batches[-1]
        return (last - first) / (ended - begun) * 1e9


def _run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            execute_plain(connection, statement)


QUERY_BACK_LACKS = (
    "an event has the row as it is when it leaves: changes of one object that wait together are one"
)
EVENTLOGS = (
    Eventlog("query-back (5, 6)", Choice(), QUERY_BACK_LACKS),
    Eventlog("per field (1, 2)", Choice(insert=1, update=2), "a delete has the key alone"),
)
