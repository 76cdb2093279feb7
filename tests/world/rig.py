"""Writers, a receiver and publishers as processes of their own, for worlds in which they are killed."""

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
from tests.kit.support import patient

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("EVENTLOG_PROOF_SEED", "4"))
SECONDS = float(os.environ.get("EVENTLOG_PROOF_SECONDS", "6"))
KILLS = int(os.environ.get("EVENTLOG_PROOF_KILLS", "6"))
WRITERS = 8
PATIENCE = 60.0
BY_COLUMN = "tests.world.by_column"
COLUMNS = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
Row = dict[str, str]  # values by column; what is null is not in it


def events_of(document: str) -> list[Any]:
    """Return the events of a document."""
    return list(etree.fromstring(document.encode()).iterfind("input/*"))


class Rig:
    """A database with a table, and what runs against it: publishers, and writers that insert, change, rename,
    delete and insert again the rows of a few hot keys.
    """

    keys = 12
    choice: Choice | None = Choice(insert=1, update=2)  # None: a table without triggers

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
        columns = ", ".join(f"{column} varchar(40)" for column in COLUMNS)
        with self.engine.begin() as connection:
            connection.execute(text(f"create table usr (idu integer primary key, {columns})"))
        if self.choice is not None:
            track(self.engine, self.log, "usr", self.choice)

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
        for _ in range(dice.randint(1, 4)):
            self._step(connection, dice)
            if dice.random() < 0.2:
                undone = connection.begin_nested()
                self._step(connection, dice)
                undone.rollback()
            time.sleep(dice.random() * 0.03)
        connection.rollback() if dice.random() < 0.15 else connection.commit()
        time.sleep(dice.random() * 0.2)

    def _step(self, connection: Any, dice: random.Random) -> None:
        """One statement; a key that is there already costs the transaction."""
        columns = value_by_column(dice)
        columns_to_change = dice.sample(COLUMNS, dice.randint(1, 3))
        changed = ", ".join(f"{column} = :{column}" for column in columns_to_change)
        marks = ", ".join(f":{column}" for column in COLUMNS)
        statement = dice.choices(
            (
                f"insert into usr values (:idu, {marks})",
                f"update usr set {changed} where idu = :idu",
                "update usr set idu = :other where idu = :idu",
                "delete from usr where idu = :idu",
                f"update usr set {changed} where idu between :idu and {self.keys}",
            ),
            (5, 6, 1, 3, 0.3),
        )[0]
        keys = {"idu": int(dice.random() ** 2 * self.keys), "other": dice.randrange(self.keys)}
        parameters = {name: value for name, value in (columns | keys).items() if f":{name}" in statement}
        connection.execute(text(statement), parameters)

    def drain(self, patience: float = PATIENCE, *, but: Sequence[str] = ()) -> None:
        """Wait until every row is published, or has one of those letters; of patience is how long none is."""
        names = self.log.names()
        ended = ", ".join(f"'{letter}'" for letter in ("S", *but))
        pending = text(f"select count(*) from {names['log']} where {names['status']} not in ({ended})")
        fewest, since = sys.maxsize, 0.0
        while True:
            with self.engine.connect() as connection:
                pending_rows = int(connection.execute(pending).scalar() or 0)
            if not pending_rows:
                return
            if pending_rows < fewest:
                fewest, since = pending_rows, time.monotonic()
            if time.monotonic() - since > patient(patience):
                break
            time.sleep(0.1)
        raise AssertionError(
            f"{pending_rows} rows are left; {(self.folder / 'publisher.log').read_text()[-2000:]}"
        )

    def rows(self) -> dict[str, Row]:
        """Return the rows of the table."""
        with self.engine.connect() as connection:
            rows = connection.execute(text("select * from usr")).all()
        return {str(idu): _without_nulls(zip(COLUMNS, values, strict=True)) for idu, *values in rows}

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


def value_by_column(dice: random.Random) -> dict[str, str | None]:
    """Return a value for each column."""
    return {column: _value(dice) for column in COLUMNS}


def _value(dice: random.Random) -> str | None:
    return None if dice.random() < 0.15 else f"{dice.choice(('a', 'b'))}{dice.randrange(10_000)}"


def _without_nulls(pairs: Any) -> Row:
    return {name: value for name, value in pairs if value is not None}
