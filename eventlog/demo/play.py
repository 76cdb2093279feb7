"""The demo itself: it starts a database, a receiver and a publisher, and shows them step by step."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from sqlalchemy.engine import Engine

from eventlog.demo import output, story
from eventlog.demo.inbox import Inbox, inbox
from eventlog.demo.output import Narrator
from eventlog.demo.publishing import AUDIT, LOG, Publishing
from eventlog.demo.spark_backlog import show_backlog
from eventlog.embedded import FAST, embedded_postgres, programs
from eventlog.sql.capture import track
from eventlog.sql.connect import connect, execute_plain
from eventlog.sql.dialects import dialect_of
from eventlog.sql.names import Log, log_named
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate

TRACKED = "indirect.usr"
_SHOWN = "record_id, status, event_type, table_name, table_key, column_name, old_value, new_value"
_HEADINGS = ("row", "status", "type", "table", "key", "column", "old", "new")  # eight in eighty characters
_ROWS = f"select {_SHOWN} from {LOG} where record_id > %s order by record_id"  # noqa: S608
_REASON = f"select reason from {LOG}_failed"  # noqa: S608


class Play:
    """The story of the demo, shown while it happens."""

    def __init__(self, narrator: Narrator, engine: Engine, inbox: Inbox, publishing: Publishing) -> None:
        self._narrator = narrator
        self._engine = engine
        self._inbox = inbox
        self._publishing = publishing
        self._log = self._install()
        self._rows = 0  # of the log that were shown
        self._documents = 0  # that were shown

    def open(self) -> None:
        """Show what is there at the beginning."""
        self._narrator.section(
            "A database, an event log, a publisher, a receiver",
            "A PostgreSQL in a folder of its own, which goes away at the end. hr, an application's user, "
            "changes people and has no right on the log: triggers write it.",
        )
        output.code(story.TABLES)
        output.code("eventlog install\neventlog receive")
        output.command(" ".join(self._publishing.command))
        output.paragraph(story.RECEIVERS)
        output.paragraph(f"The receiver's page shows events live: {self._inbox.url}")

    def steps(self) -> None:
        """Show the event types, one after the other."""
        for step in story.STEPS:
            self._narrator.section(step.title, step.text)
            if step.choice is not None:
                self._track(step.choice)
            output.code(step.sql)
            self._run(step.sql, step.user)
            self._publishing.wait_until_published()
            self._show_changes()

    def crash(self) -> None:
        """Kill the publisher in mid-flight, start another, count what came."""
        self._narrator.section(
            "A publisher is killed",
            f"{story.CROWD:,} people are hired. As document {story.DEADLY} comes to the receiver, before "
            "it is answered, the publisher is killed with signal 9.",
        )
        before, pid = self._inbox.total, self._publishing.pid
        self._inbox.when(before + story.DEADLY, self._publishing.kill)
        output.code(story.HIRED)
        self._run(story.HIRED, "hr")
        self._publishing.wait()
        output.code(f"kill -9 {pid}")
        output.note(f"{self._publishing.new():,} rows of the log are still new")
        output.command(" ".join(self._publishing.command))
        self._publishing.start()
        self._publishing.wait_until_published()
        arrived, distinct = self._inbox.arrivals(before)
        output.note(f"{distinct:,} of {story.CROWD:,} events have come: nothing is lost")
        output.note(f"{arrived - distinct:,} were sent again under the same event-ids: {story.REPEATED}")

    def audit(self) -> None:
        """Compare the log with what the receiver has."""
        self._narrator.section(
            "Is everything accounted for?",
            "An audit compares each row of the log with what the receiver has, crash included.",
        )
        output.code(" ".join(AUDIT))
        for line in self._publishing.audit():
            output.note(line)

    def _install(self) -> Log:
        for sql in (story.TABLES, story.USERS):
            self._run(sql)
        with self._engine.connect():
            log = log_named(dialect_of(self._engine), LOG)
        migrate.install(self._engine, log)
        track.install_routines(self._engine, log)
        return log

    def _track(self, choice: Choice) -> None:
        output.command(f"eventlog track {TRACKED}{choice.flags()}")
        track.track(self._engine, self._log, TRACKED, choice)

    def _run(self, sql: str, user: str | None = None) -> None:
        with self._engine.begin() as connection:
            if user is not None:
                execute_plain(connection, f"set local session authorization {user}")
            for statement in sql.split(";\n"):
                execute_plain(connection, statement)

    def _show_changes(self) -> None:
        """Show the rows that were logged since the last call, and the events that came."""
        with self._engine.connect() as connection:
            rows = [tuple(row) for row in connection.exec_driver_sql(_ROWS, (self._rows,))]
            reasons = connection.exec_driver_sql(_REASON).scalars().all()
        output.rows(_HEADINGS, rows)
        for reason in reasons:
            output.note(f"E: {reason}")
        for event in self._inbox.events(self._documents):
            output.event(event)
        self._rows, self._documents = int(rows[-1][0]), self._inbox.total


def play(*, keep: bool, fast: bool, spark: bool) -> None:
    """Show the whole story; with `keep`, leave database and receiver running until a signal."""
    programs(prefer_installed=True)  # a missing program is reported first
    narrator = Narrator(fast=fast)
    with (
        tempfile.TemporaryDirectory(prefix="eventlog-demo-") as folder,
        _scene(Path(folder), narrator) as (play, url),
    ):
        play.open()
        play.steps()
        play.crash()
        play.audit()
        if spark:
            show_backlog(narrator, Path(folder))
        _what_next(narrator)
        if keep:
            _stay_up(url)
        else:
            narrator.pause("The receiver's page stays until you press a key")


@contextmanager
def _scene(folder: Path, narrator: Narrator) -> Iterator[tuple[Play, str]]:
    """Start everything, and yield the URL of the database."""
    with embedded_postgres(settings=FAST, prefer_installed=True) as server, inbox(folder) as receiver:
        engine = connect(server.url, keep_open=2)
        publishing = Publishing(folder, server.url, receiver.url, engine)
        try:
            play = Play(narrator, engine, receiver, publishing)
            publishing.start()
            yield play, server.url
        finally:
            publishing.stop()
            engine.dispose()


def _what_next(narrator: Narrator) -> None:
    narrator.section("What next", "Each command explains more with --help.")
    width = max(len(command) for command, _ in story.NEXT)
    for command, purpose in story.NEXT:
        output.code(f"{command.ljust(width)}  # {purpose}")


def _stay_up(url: str) -> None:
    click.echo("\nThe database and the receiver stay up until Ctrl-C. Another terminal reaches the log so:")
    output.code(f"export EVENTLOG_URL='{url}' EVENTLOG_LOG_TABLE={LOG}\neventlog check")
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    ended.wait()
