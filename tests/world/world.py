"""A log with a user table, which tests fill, publish and read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from click.testing import CliRunner, Result
from sqlalchemy import event, text
from sqlalchemy.engine import URL, Connection, Engine

from eventlog.cli import cli
from eventlog.core.settings import build
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.publisher_tables import read_readable
from eventlog.operate.redriving import Redriven, redrive
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.delivery import CycleHooks
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.tally import CycleResult
from eventlog.sinks.sink import Sink
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import connect
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.log_admin import FailedRow, FailureFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.readable import ReadableTable
from eventlog.sql.schema import migrate
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.databases import temporary_database
from tests.kit.logs import write_rows
from tests.kit.support import patient
from tests.kit.warm import SESSIONS

ROOT = Path(__file__).parents[2]
# Each relation, column, constraint and type that users made, with the transaction that made or changed it.
_FORM = """select md5(string_agg(concat(relation, ' ', place, ' ', version), ',' order by relation, place))
from (
  select oid, 0, xmin from pg_class union all select attrelid, attnum, xmin from pg_attribute
  union all select oid, 0, xmin from pg_constraint union all select oid, 0, xmin from pg_type
) as rows (relation, place, version)
where relation > 16383"""
_RESTART = "select setval(pg_get_serial_sequence('{0}', '{1}'), 1, false)"


class World:
    """An installed log, the table usr, and how to write rows as triggers would."""

    def __init__(self, engine: Engine, dialect: Dialect) -> None:
        self.engine = engine
        self.log = Log(dialect)
        self.store = Store(engine, self.log)
        self.delete_from_log = False  # of publishers and commands
        self._form: str | None = None  # of the catalogue when these tables were read
        self._tables: dict[tuple[str, ...], tuple[Tables, dict[Table, ReadableTable]]] = {}

    @property
    def url(self) -> str:
        """The address of the database, with its password."""
        return self.engine.url.render_as_string(hide_password=False)

    def make(self) -> None:
        """Install the log, with a second index, and make the table."""
        migrate.install(self.engine, self.log, future_events=True)
        self.change("create table usr (idu integer primary key, fname varchar(64), lname varchar(64))")

    def clear(self) -> None:
        """Empty the tables; record ids begin anew, and handled rows stay."""
        self.delete_from_log = False
        names = self.log.names()
        tables = ("batch", "retry", "held", "failed", "notice", "known", "answer", "try", "sent", "log")
        nothing = ["paused_at", "rested_at", "cycle_facts", "heartbeat_at", "published_as"]
        statements = [f"update {names['state']} set {', '.join(f'{column} = null' for column in nothing)}"]
        statements.append("delete from usr")
        if self.log.dialect.schema.transactional:
            statements += (f"delete from {names[table]}" for table in tables)  # a truncate makes files
            numbered = {"log": "record_id", "notice": "notice_id"}
            statements += (_RESTART.format(names[table], column) for table, column in numbered.items())
            statements = ["; ".join(statements)]
        else:
            statements += (f"truncate {names[table]}" for table in tables)
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def change(self, statement: str, **values: Any) -> None:
        """Run a statement of somebody else."""
        with self.engine.begin() as connection:
            connection.execute(text(statement), values)

    def user(self, idu: int, fname: str | None = "Jack", lname: str | None = "Frost") -> None:
        """A row of usr."""
        self.change("insert into usr values (:i, :f, :l)", i=idu, f=fname, l=lname)

    def write(self, *rows: dict[str, Any]) -> list[int]:
        """Write log rows, of type 6 of usr by default; return the ids of all that are pending."""
        with self.engine.begin() as connection:
            write_rows(connection, self.log, *({"perpetrator": None} | row for row in rows))
        return sorted(number for number, letter in self.letters().items() if letter == "N")

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """The texts of all statements that reach the server within the block."""
        statements: list[str] = []

        def hear(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
            statements.append(statement)

        event.listen(self.engine, "before_cursor_execute", hear)
        yield statements
        event.remove(self.engine, "before_cursor_execute", hear)

    def letters(self) -> dict[int, str]:
        """Return the status of every row."""
        names = self.log.names()
        statement = f"select {names['record_id']}, {names['status']} from {names['log']} order by 1"
        with self.engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(text(statement))}

    def counts(self) -> Counter[str]:
        return Counter(self.letters().values())

    def failures(self) -> list[FailedRow]:
        with self.store.admin() as admin:
            return admin.failures(FailureFilter())

    def remembered(self) -> int:
        return len(self.store.remembered())

    def reader(self, names: Sequence[str], rules: Rules, xds: XdsSettings) -> PickUpFold:
        """Return what reads rows, with the tables as they are now."""
        names = tuple(names)
        with self.engine.connect() as connection:
            form = self._form_of_catalogue(connection)
            if form is None or form != self._form:
                self._form, self._tables = form, {}
            if names not in self._tables:
                tables = Tables([Catalogue(connection).find(name).table for name in names])
                self._tables[names] = tables, read_readable(self.engine, self.log, tables)
        return PickUpFold(*self._tables[names], rules, xds)

    def _form_of_catalogue(self, connection: Connection) -> str | None:
        """Return a digest that DDL changes; None where there is none, or where sessions end: read always."""
        if not self.log.dialect.schema.transactional or not SESSIONS.are_kept():
            return None
        return str(connection.exec_driver_sql(_FORM).scalar())

    def redrive(self, which: FailureFilter | None = None) -> Redriven:
        """Make failed rows of usr new again."""
        reader = self.reader(("usr",), Rules(), XdsSettings())
        return redrive(self.store, which or FailureFilter(), reader, rows_are_deleted=self.delete_from_log)

    def elect(self, patience: float = 10.0) -> Leader:
        """Return the leader, as soon as the server has noticed that the former one is gone."""
        begun = time.monotonic()
        while (leader := self.store.lead("test")) is None:
            assert time.monotonic() - begun < patient(patience), "somebody else leads"
            time.sleep(0.01)
        return leader

    @contextmanager
    def publisher(
        self,
        sink: Sink,
        tables: Sequence[str] = ("usr",),
        control: CycleHooks | None = None,
        **options: Any,
    ) -> Iterator[Publisher]:
        """Return the leader's publisher; by default retries wait longer than any test takes."""
        leader = self.elect()
        rules, xds = build(Rules, options), build(XdsSettings, options)
        settings = build(
            PublisherSettings, {"retry_wait": 3600.0, "delete_from_log": self.delete_from_log} | options
        )
        with leader:
            make = partial(self.reader, tables, rules, xds)
            yield Publisher(self.store, make, sink, leader.epoch, xds.batch_size, settings, control)

    def cycle(self, sink: Sink, **options: Any) -> CycleResult:
        """Return one cycle of a new leader."""
        with self.publisher(sink, **options) as publisher:
            return publisher.cycle()


@contextmanager
def publishing(
    world: World, folder: Path, *words: str, stderr: int | IO[bytes] = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process of a publisher that writes files, or has a sink of its own; let none remain."""
    command = [sys.executable, "-B", "-m", "eventlog", "run", "--sync-tables", "usr"]
    command += () if "--sink" in words else ("--sink", "files", "--files-folder", str(folder))
    command += ["--polling-interval", "1", "--allow-loopback", *words]
    environment = os.environ | {"EVENTLOG_URL": world.url, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stderr=stderr)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def fresh_world(server: tuple[str, URL]) -> Iterator[World]:
    """Make a database with an installed log and the table usr."""
    with temporary_database(*server) as database:
        engine = connect(database.url, keep_open=4)
        world = World(engine, database.dialect)
        world.make()
        yield world
        engine.dispose()


def call(world: World, *words: str, **environment: str) -> Result:
    """Run a command on the world's log."""
    always = {"EVENTLOG_URL": world.url, "EVENTLOG_SYNC_TABLES": "usr"}
    environment = always | {"EVENTLOG_DELETE_FROM_LOG": str(world.delete_from_log)} | environment
    return CliRunner().invoke(cli, words, env=environment)
