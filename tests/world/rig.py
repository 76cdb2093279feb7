"""Writers, a receiver and publishers as processes of their own, for proofs that nothing is lost.

A writer's update logs the old and the new value of a counter. So the events of one object must form an
unbroken chain; a missing or inverted event breaks it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lxml import etree
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.core.errors import EventlogError
from eventlog.sql.capture.track import track
from eventlog.sql.connect import connect
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.kit.databases import Database
from tests.kit.receivers import serving

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("EVENTLOG_PROOF_SEED", "4"))
SECONDS = float(os.environ.get("EVENTLOG_PROOF_SECONDS", "6"))
KILLS = int(os.environ.get("EVENTLOG_PROOF_KILLS", "6"))
OBJECTS = 5
WRITERS = 8
PATIENCE = 60.0
BY_COLUMN = "tests.world.by_column"


class Chain:
    """The chain of what has arrived: each object's counter values in order, each event once."""

    def __init__(self) -> None:
        self.repeats = 0
        self._event_texts: dict[str, str] = {}
        self._at: dict[str, int] = dict.fromkeys(map(str, range(OBJECTS)), 0)

    def take(self, document: str) -> None:
        """The events of a document; AssertionError where an object's chain breaks."""
        for event in events_of(document):
            self.take_event(event)

    def take_event(self, event: Any) -> None:
        """One event; one that came before under the same event-id must be the same."""
        event_id = str(event.get("event-id"))
        body = etree.tostring(event, encoding="unicode")
        if event_id in self._event_texts:
            assert body == self._event_texts[event_id], f"{event_id} came again with another content"
            self.repeats += 1
            return
        self._event_texts[event_id] = body
        self._follow(event, event_id)

    def _follow(self, event: Any, event_id: str) -> None:
        key = event.findtext("association").partition(",")[0].partition("=")[2]
        for change in event.iterfind("modify-attr[@attr-name='n']"):
            before, after = (
                int(change.findtext("remove-value/value")),
                int(change.findtext("add-value/value")),
            )
            assert before == self._at[key], f"object {key} was at {self._at[key]}, {event_id} says {before}"
            self._at[key] = after

    def ends(self) -> dict[str, int]:
        """Return the last counter value of each object that arrived."""
        return self._at


def events_of(document: str) -> list[Any]:
    """Return the events of a document."""
    return list(etree.fromstring(document.encode()).iterfind("input/*"))


def first_row(event: Any) -> int:
    """Return the first record_id of an event."""
    return int(event.get("event-id").split(":")[1].partition("-")[0])


class Rig:
    """A database whose table is tracked, and what runs against it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.url = database.url.render_as_string(hide_password=False)
        self.engine: Engine = connect(database.url, keep_open=WRITERS + 2)
        self.log = Log(database.dialect)
        self.folder = folder
        self.random = random.Random(SEED)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.programs = ["eventlog", BY_COLUMN]
        self.delete_from_log = False
        migrate.install(self.engine, self.log)
        self.prepare()

    def prepare(self) -> None:
        """Make the table that writers change, and track it."""
        with self.engine.begin() as connection:
            connection.execute(text("create table usr (idu integer primary key, n integer not null)"))
            rows = [{"i": number} for number in range(OBJECTS)]
            connection.execute(text("insert into usr values (:i, 0)"), rows)
        track(self.engine, self.log, "usr", Choice(insert=5, update=2))

    def start(self, *words: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a publisher that reads by row, or by column, with these additions to its environment."""
        command = [
            sys.executable,
            "-m",
            self.random.choice(self.programs),
            "run",
            "--allow-loopback",
            "--polling-interval",
            "1",
            *words,
        ]
        variables = os.environ | {"EVENTLOG_URL": self.url, "PYTHONPATH": str(ROOT)} | (environment or {})
        variables["EVENTLOG_DELETE_FROM_LOG"] = str(self.delete_from_log)
        with (self.folder / "publisher.log").open("ab") as log:
            process = subprocess.Popen(command, env=variables, cwd=self.folder, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def kill_one(self) -> None:
        """Kill it with signal 9, as leader or on standby."""
        victim = self.random.choice(self.processes)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.processes.remove(victim)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Let writers work while the block runs."""
        stop = threading.Event()
        seeds = [self.random.random() for _ in range(WRITERS)]
        threads = [threading.Thread(target=self._write, args=(seed, stop)) for seed in seeds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _write(self, seed: float, stop: threading.Event) -> None:
        dice = random.Random(seed)
        while not stop.is_set():
            try:
                with self.engine.connect() as connection:
                    self.transaction(connection, dice)
            except EventlogError:
                time.sleep(0.05)  # a deadlock, or the server is down: the transaction is gone

    def transaction(self, connection: Any, dice: random.Random) -> None:
        """Run a writer's transaction to its end."""
        for _ in range(dice.randint(1, 3)):
            self._update(connection, dice)
            if dice.random() < 0.2:
                undone = connection.begin_nested()
                self._update(connection, dice)
                undone.rollback()
            time.sleep(dice.random() * 0.01)
        connection.rollback() if dice.random() < 0.15 else connection.commit()

    def _update(self, connection: Any, dice: random.Random) -> None:
        statement = text("update usr set n = n + 1 where idu = :i")
        connection.execute(statement, {"i": int(dice.random() ** 2 * OBJECTS)})

    def drain(self, patience: float = PATIENCE, *, but: Sequence[str] = ()) -> None:
        """Wait until every row is published, or has one of those letters; of patience is how long none is."""
        names = self.log.names()
        ended = ", ".join(f"'{letter}'" for letter in ("S", *but))
        pending = text(f"select count(*) from {names['log']} where {names['status']} not in ({ended})")
        fewest, deadline = sys.maxsize, 0.0
        while True:
            with self.engine.connect() as connection:
                pending_rows = int(connection.execute(pending).scalar() or 0)
            if not pending_rows:
                return
            if pending_rows < fewest:
                fewest, deadline = pending_rows, time.monotonic() + patience
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        raise AssertionError(
            f"{pending_rows} rows are left; {(self.folder / 'publisher.log').read_text()[-2000:]}"
        )

    def truth(self) -> dict[str, int]:
        """Return the counter of each object."""
        with self.engine.connect() as connection:
            return {str(idu): n for idu, n in connection.execute(text("select idu, n from usr"))}

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.engine.dispose()


class Arrivals:
    """An HTTP receiver that keeps documents in the order in which they arrive."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self.behave: Callable[[Any], None] = self.accept
        self._open = ExitStack()
        self.url = self._open.enter_context(serving(lambda handler: self.behave(handler))) + "/"

    def accept(self, handler: Any) -> None:
        self.documents.append(handler.document)
        handler.reply(b"<nds><output/></nds>")

    def close(self) -> None:
        self._open.close()
