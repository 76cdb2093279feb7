"""The demo itself: an embedded PostgreSQL, the story, and a publisher whose sink is the terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from sqlalchemy.engine import Engine

from eventlog.config import Config
from eventlog.demo import story, telling
from eventlog.embedded import FAST, Server, embedded_postgres, programs
from eventlog.publisher import Publisher, PublisherSettings
from eventlog.publishing.opening import open_store
from eventlog.publishing.session import make_reader
from eventlog.sinks.sink import ACCEPTED, Document, Reply
from eventlog.sql import migrate, track
from eventlog.sql.connect import connect, execute_plain
from eventlog.sql.dialects import dialect_of
from eventlog.sql.log import Log, log_named
from eventlog.sql.store import Store
from eventlog.sql.upkeep import Which

LOG = "indirect.eventlog"
_SHOWN = ("record_id", "event_type", "table_name", "table_key", "column_name", "old_value", "new_value")
_NEW = f"select {', '.join(_SHOWN)} from {LOG} where record_id > %s order by record_id"  # noqa: S608
_LETTERS = f"select record_id, event_type, table_name, table_key, status from {LOG} order by record_id"  # noqa: S608


class Terminal:
    """A sink that shows what it gets, and says yes."""

    def deliver(self, documents: Sequence[Document]) -> Iterator[Reply]:
        for document in documents:
            for item in document.items:
                telling.event(item.text)
            yield ACCEPTED

    def knows(self, name: str) -> bool:
        return False

    def close(self) -> None:
        """It is ours to the end."""


def play(*, keep: bool, last: Callable[[], None]) -> None:
    """Tell the story and what comes last; with `keep`, leave the database up until somebody ends it."""
    programs()  # missing, it is said before anything else
    telling.heading("A PostgreSQL of its own", "In a folder of its own, which goes away at the end.")
    with embedded_postgres(settings=FAST) as server, ExitStack() as stack:
        engine = connect(server.url, keep_open=2)
        stack.callback(engine.dispose)
        log = _prepare(engine)
        _tell(engine, log, server.url, stack)
        last()
        if keep:
            _keep(server)


def _prepare(engine: Engine) -> Log:
    telling.heading("The sample of the original text", "A table of people, their phone numbers, and a view.")
    _run(engine, story.SCHEMA)
    telling.heading("An application's user", "It may change people, and has no right on the log.")
    _run(engine, story.PEOPLE)
    telling.heading("The event log", "eventlog install")
    with engine.connect():
        log = log_named(dialect_of(engine), LOG)
    migrate.install(engine, log)
    track.install_routines(engine, log)
    telling.note(f"{LOG} and the tables beside it are there")
    return log


def _tell(engine: Engine, log: Log, url: str, stack: ExitStack) -> None:
    config = Config(
        {"url": url, "log_table": LOG, "sync_tables": ",".join(story.TABLES), "allow_loopback": True}
    )
    store = open_store(config)
    stack.callback(store.engine.dispose)
    publisher: Publisher | None = None
    seen = 0
    for step in story.STEPS:
        telling.heading(step.title, step.told)
        if step.choice is not None:
            telling.note(f"eventlog track indirect.usr{step.choice.flags()}")
            track.track(engine, log, "indirect.usr", step.choice)
        _run(engine, step.sql, step.user)
        seen = _show_rows(engine, seen)
        publisher = publisher or _publisher(config, store, stack)
        publisher.cycle()
    telling.heading("What became of every row", "S is done, E is refused and kept with its reason.")
    _show_letters(engine, store)


def _publisher(config: Config, store: Store, stack: ExitStack) -> Publisher:
    leader = store.lead("demo")
    assert leader is not None
    stack.callback(leader.close)
    return Publisher(
        store, lambda: make_reader(config, store), Terminal(), leader.epoch, 1, PublisherSettings()
    )


def _run(engine: Engine, sql: str, user: str | None = None) -> None:
    telling.sql(sql)
    with engine.begin() as connection:
        if user is not None:
            execute_plain(connection, f"set local session authorization {user}")
        for statement in sql.split(";\n"):
            execute_plain(connection, statement)


def _show_rows(engine: Engine, seen: int) -> int:
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.exec_driver_sql(_NEW, (seen,))]
    telling.rows(_SHOWN, found)
    return max((int(row[0]) for row in found), default=seen)


def _show_letters(engine: Engine, store: Store) -> None:
    with store.upkeep() as upkeep:
        reasons = {failed.record_id: failed.reason for failed in upkeep.failures(Which())}
    with engine.connect() as connection:
        for record_id, event_type, table, key, letter in connection.exec_driver_sql(_LETTERS):
            telling.outcome(record_id, f"{event_type} {table} {key}", letter, reasons.get(record_id))


def _keep(server: Server) -> None:
    telling.heading("The database stays up", "until Ctrl-C. Another terminal reaches it so:")
    telling.sql(f"export EVENTLOG_URL='{server.url}' EVENTLOG_LOG_TABLE={LOG}\neventlog check")
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    ended.wait()
