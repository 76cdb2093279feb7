"""A run in which everything goes wrong at once, and what must hold at its end.

Writers change a tracked table with savepoints and changes of keys; the seed draws the types of its events.
Two publishers send what they do to a receiver that misbehaves; what it takes is applied to a second database.
Meanwhile processes are killed, the server is stopped hard, connections are cut and clocks are wrong. DDL
rewrites the table. Operators redrive, skip, purge and pause, and Spark publishes the backlog. The disk of
Spark is full from time to time. At the end `eventlog audit` judges the log, what was taken and the table,
and so does a second reading of the specification. The second database has the rows of the table. Only an
object that has a refused or a skipped row in the log may differ.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

from eventlog.audit.delivered import ReceiverFile
from eventlog.core.errors import EventlogError
from eventlog.core.identity import ObjectName
from eventlog.operate.redriving import redrive
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.store import Store
from tests.kit.databases import Database, temporary_database
from tests.kit.support import patient
from tests.laws.judge.whole_log import breaches_of_log
from tests.world.commands import Commands
from tests.world.killable import KILLABLE, Killable
from tests.world.receiver import Moody, Taken
from tests.world.rig import COLUMNS, Arrivals, events_of
from tests.world.smalldisk import NoSmallDisk, SmallDisk, small_disk
from tests.world.targets import make_table, rows_of
from tests.world.tracked import (
    CALM,
    COMPARE,
    SLOT,
    LogRow,
    TrackedTable,
    Writers,
    current_reader,
    cut_connections,
    log_rows,
    restore,
    rewrite,
)

CONNECTIONS = ("1", "4", "16")
CLOCKS = ("-3d", "+2h", "+400d")
FAKED = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
HTTP = ("--sink", "http", "--http-timeout", "1", "--retry-wait", "0.1", "--retry-longest", "1")
TYPES = ", ".join(f'{column} = "varchar(40)"' for column in COLUMNS)
TABLES = f'[tables.usr]\nkey = ["idu"]\ncolumns = {{ idu = "integer", {TYPES} }}\n'
DISK = 1 << 14  # pages
TALLY = re.compile(r"^eventlog: \d+ inserted, .*$", re.MULTILINE)  # the last line of apply
SPARK = ("--order", "log", "--finish", "--allow-loopback", "--conf", "spark.ui.enabled=false")
PATIENCE = 900.0  # seconds that Spark gets on a busy machine
TRIES = 5  # of a backlog whose table is rewritten while it is read
SPARK_TAKES = 40.0  # seconds; a shorter run is without it
STARTS = 10.0  # seconds that publishers get to begin
POLLS = 180.0  # seconds in which what the table has at the end must come
MODES = {  # with triggers in two ways of finishing rows, or without
    "PostgreSQL": ("update", "delete", COMPARE, SLOT),
    "MariaDB": ("update", "delete", COMPARE),
}


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    reported: str  # in a line
    faults: tuple[str, ...]  # what should not be


class Chaos:
    """One run on one database."""

    def __init__(
        self,
        server: Killable,
        database: Database,
        second: Database,
        disk: SmallDisk | None,
        folder: Path,
        mode: str,
        seed: int,
    ) -> None:
        self._disk = disk
        self._table = TrackedTable(mode, seed)
        self._server, self._second, self._folder = server, second, folder
        self._dice = random.Random(seed)
        self._rig = Writers(database, folder, self._table)
        self._rig.delete_from_log = mode == "delete"
        self._store = Store(self._rig.engine, self._rig.log)
        self._taken = Taken(folder)
        self._moody = Moody(self._taken, random.Random(seed + 1), self._table.errors)
        self._arrivals = Arrivals()
        self._arrivals.behave = self._moody
        settings = {"EVENTLOG_DELETE_FROM_LOG": str(mode == "delete"), **self._table.settings}
        self._commands = Commands(self._rig.url, folder, settings)
        self._counts: Counter[str] = Counter()
        self._faults: list[str] = []
        self._applying: list[subprocess.Popen[bytes]] = []
        self._backlogs = 0
        self._operators = random.Random(seed + 2)
        (folder / "tables.toml").write_text(TABLES)
        make_table(second)

    def run(self, seconds: float) -> Outcome:
        """Run everything at once for so long, then end in peace."""
        ends = time.monotonic() + seconds
        reads_table = self._table.is_compared or self._table.has_query_back
        spark_at = None if seconds < SPARK_TAKES or reads_table else time.monotonic() + seconds / 2
        work = [*[self._redrive, self._skip] * 2, self._pause, self._look]
        if not self._table.is_compared and self._operators.random() < 0.5:  # else the laws see every row
            work.append(self._purge)
        jobs = [partial(self._operate, work), partial(self._repeat, self._rewrite)]
        if self._table.is_compared:
            jobs.append(partial(self._repeat, self._redrive_here))  # between two polls
        threads = [threading.Thread(target=job, args=(ends,)) for job in jobs]
        with self._rig.writing():
            for thread in threads:
                thread.start()
            while time.monotonic() < ends:
                self._keep_two()
                self._once(self._dice.choice(self._troubles))
                if spark_at is not None and time.monotonic() > spark_at:
                    spark_at = None
                    self._backlog()
                self._await_document()
                time.sleep(self._dice.uniform(0, 2))
            for thread in threads:
                thread.join()
        self._settle()
        return self._judge()

    def _await_document(self) -> None:
        """Wait until a publisher has begun to send, because one that starts loses nothing."""
        before, ends = self._moody.answers.total(), time.monotonic() + patient(STARTS)
        while self._moody.answers.total() == before and time.monotonic() < ends:
            time.sleep(0.05)

    def _operate(self, work: Sequence[Callable[[], None]], ends: float) -> None:
        """Run the commands of operators, each to its end."""
        while time.monotonic() < ends:
            self._once(self._operators.choice(work))

    def _repeat(self, trouble: Callable[[], None], ends: float) -> None:
        """Make one trouble every second or so."""
        while time.monotonic() < ends:
            self._once(trouble)
            time.sleep(self._operators.uniform(0.2, 1.2))

    def close(self) -> None:
        """End what still runs."""
        self._stop_applying()
        self._rig.close()
        self._arrivals.close()
        self._taken.archive.close()

    @property
    def _troubles(self) -> list[Callable[[], None]]:
        return [*[self._kill_publisher, self._apply] * 2, self._cut_connections, self._kill_server]

    def _once(self, trouble: Callable[[], None]) -> None:
        self._counts[trouble.__name__.strip("_").replace("_", " ")] += 1
        with suppress(EventlogError):  # our own session may be among those that are cut
            trouble()

    # --- what goes wrong

    def _keep_two(self) -> None:
        """Keep two publishers running, some with a clock of their own."""
        processes = self._rig.processes
        processes[:] = [process for process in processes if process.poll() is None]
        while len(processes) < 2:
            limit, size = self._dice.choice(("2", "30", "300")), self._dice.choice(self._table.batches)
            clock = self._dice.choice(CLOCKS) if FAKED.exists() and self._dice.random() < 0.2 else None
            self._counts["wrong clocks"] += clock is not None
            faked = {} if clock is None else {"LD_PRELOAD": str(FAKED), "FAKETIME": clock}
            connections = self._dice.choice(CONNECTIONS)
            sizes = ("--query-limit", limit, "--batch-size", size, "--http-connections", connections)
            self._start_publisher(*sizes, "--polling-interval", self._table.interval, environment=faked)

    def _start_publisher(self, *words: str, environment: dict[str, str]) -> None:
        environment = self._table.settings | environment
        self._rig.start(*HTTP, "--http-url", self._arrivals.url, *words, environment=environment)

    def _kill_publisher(self) -> None:
        self._rig.kill_one()

    def _kill_server(self) -> None:
        self._server.kill()
        time.sleep(self._dice.random())
        while True:
            try:
                return self._server.start()
            except EventlogError:  # sessions of the killed server are still ending on a busy machine
                time.sleep(1)

    def _cut_connections(self) -> None:
        cut_connections(self._rig.engine)

    def _pause(self) -> None:
        self._commands.run("pause", "--because", "chaos")
        time.sleep(self._operators.random())
        while self._commands.run("resume"):
            time.sleep(0.5)  # the server is down

    def _rewrite(self) -> None:
        rewrite(self._rig.engine, self._operators, 2 if self._table.has_slot else 3)  # unlogged is refused

    def _redrive(self) -> None:
        self._commands.run("redrive", "--all")

    def _redrive_here(self) -> None:
        redrive(self._store, FailureFilter(), current_reader(self._store))
        time.sleep(self._operators.uniform(0, 3))

    def _skip(self) -> None:
        """Skip an event that failed, or one that waits to go out."""
        letters = "EF" if self._operators.random() < 0.5 else "N"
        if rows := self._rows(letters)[:20]:
            row = str(self._operators.choice(rows).record_id)
            self._commands.run("skip", row, "--because", "chaos")

    def _purge(self) -> None:
        """Purge what succeeded; what was skipped shows which objects may differ."""
        self._commands.run("purge", "--older-than", "1s", "--letters", "S")

    def _look(self) -> None:
        for command in (("status",), ("errors",), ("check",)):
            self._commands.run(*command)

    def _apply(self) -> None:
        """Kill who applies what the receiver took, and begin another."""
        self._stop_applying()
        self._applying = [self._start_applying(self._dice.choice((1, 3, 1000)))]

    def _backlog(self) -> None:
        """Stop all publishers; Spark is killed on its way, then publishes the backlog."""
        for process in self._rig.processes:
            process.kill()
            process.wait()
        self._rig.processes.clear()
        self._counts["backlogs"] += 1
        self._backlogs += 1
        place = self._folder if self._disk is None else self._disk.path
        visible_folder = self._folder if self._disk is None else self._disk.outside
        name = f"backlog-{self._backlogs}"
        out = place / name
        words = ("backlog", "--from", "log", "--to", "xds", "-o", str(out), *SPARK)
        within = () if self._disk is None else self._disk.within
        wait = {row.table_key for row in self._rows("N")}
        first = self._commands.start(*words, within=within)
        with suppress(subprocess.TimeoutExpired):
            first.wait(self._dice.uniform(5, 15))
        first.kill()
        first.wait()
        if self._disk is not None:
            self._disk.fill(self._dice.randrange(8))
            self._commands.run(*words, patience=PATIENCE, within=within)
            self._counts["backlogs on a full disk"] += not (visible_folder / name / "done").exists()
            self._disk.make_room()
        for _ in range(TRIES):
            printed = len(self._commands.output())
            self._commands.run(*words, patience=PATIENCE, within=within)
            if "try again when the DDL is over" not in self._commands.output()[printed:]:
                break
        if not (visible_folder / name / "done").exists():
            self._faults.append(f"the backlog did not come to its end: {self._commands.output(500)}")
            return
        in_backlog = set()
        for part in sorted((visible_folder / name / "documents").glob("part-*")):
            for document in part.read_text().splitlines():
                events = events_of(document)
                self._taken.take(document, events, "success")
                self._counts["events by Spark"] += len(events)
                in_backlog |= {event.findtext("association").partition(",")[0] for event in events}
        if len(wait - in_backlog) > len(wait) / 2:  # some may wait for a retry
            self._faults.append(
                f"of {len(wait)} objects that waited Spark published {len(wait & in_backlog)}"
            )

    # --- the end

    def _settle(self) -> None:
        """All goes well now, until nothing is pending."""
        self._moody.well = True
        for process in self._rig.processes:
            process.kill()
            process.wait()
        self._rig.processes.clear()
        restore(self._rig.engine)
        if self._table.is_compared:
            self._redrive()
        self._start_publisher("--query-limit", "300", "--batch-size", "50", environment={})
        self._rig.drain(120, but=("E", "F", "W"))
        self._finish_applying()
        ends = time.monotonic() + patient(POLLS)
        while self._table.choice is None and self._waits() and time.monotonic() < ends:
            self._finish_applying()

    def _waits(self) -> bool:
        """Return whether changes still wait for a poll, for an answer, or to be applied."""
        return bool(self._rows("N") or self._differing())

    def _judge(self) -> Outcome:
        rows = self._rows("NSWEF")
        holes, objects = self._holes(), self._rig.rows().keys()
        self._faults += self._commands.late
        self._faults += self._audited()
        self._faults += self._judged_again()
        if differing := self._differing():
            self._faults += [*differing, self._publisher_output()[-3000:], self._commands.output(3000)]
        self._faults += (
            f"no writer deletes {row.key}, and row {row.record_id} does"
            for row in rows
            if row.event_type == 4 and int(row.key) >= CALM
        )
        if "Traceback" in (output := self._commands.output() + self._publisher_output()):
            self._faults.append(output[output.index("Traceback") :][:2000])
        if len(objects & holes) > len(objects) / 2:
            self._faults.append(f"{len(objects & holes)} of {len(objects)} objects have a hole")
        if not (self._taken.counts and self._moody.answers["well"]):
            self._faults.append("the run is empty: no events, or no answers")
        answers = ", ".join(f"{count} {mood}" for mood, count in sorted(self._moody.answers.items()))
        self._counts["small disks"] = self._disk is not None
        troubles = ", ".join(f"{count} {name}" for name, count in sorted(self._counts.items()))
        letters = Counter(row.letter for row in rows)
        return Outcome(
            f"{self._table}, rows {dict(sorted(letters.items()))},"
            f" events {dict(sorted(self._taken.counts.items()))}; answers: {answers}; {troubles};"
            f" {len(objects - holes)} of {len(objects)} objects without a hole",
            tuple(self._faults),
        )

    def _holes(self) -> set[str]:
        """Return the objects with rows that are given up: the laws compare no states of them."""
        return {row.key for row in self._rows("EFW")}  # no answer of this receiver is a warning

    def _differing(self) -> list[str]:
        """Return where the second database differs from the table, in objects without a hole."""
        truth, rows, holes = self._rig.rows(), rows_of(self._second), self._holes()
        return [
            f"{key}: the second database has {rows.get(key)}, the table {truth.get(key)}"
            for key in sorted((truth.keys() | rows.keys()) - holes, key=int)
            if rows.get(key) != truth.get(key)
        ]

    def _audited(self) -> list[str]:
        """Return what the laws find in the log, what was taken of it, and the table."""
        words = ("audit", "--delivered", "received", "--state", "--json", "--allow-loopback")
        if self._commands.run(*words) == 0:
            return []
        last = self._commands.output().splitlines()[-1]
        if not last.startswith("{"):
            return [f"the audit did not come to its end: {last}"]
        report = json.loads(last)
        broken = [law for law in report["laws"] if law["breaches"]]
        reported = [f"{law['promise']}: not {law['breaches']} times, first {law['first']}" for law in broken]
        return reported or [str(report)]

    def _judged_again(self) -> list[str]:
        """Return what a second reading of the specification finds, the first few."""
        documents = ReceiverFile(self._folder / "received").documents()
        deletes = self._rig.delete_from_log
        breaches = breaches_of_log(self._store, self._rig.engine, documents, self._present(), deletes=deletes)
        return [
            f"second reading: {breach.law.name}, row {breach.record_id} of {breach.object}: {breach.words}"
            for breach in breaches
        ][:5]

    def _present(self) -> dict[ObjectName, bytes]:
        """Return the rows of the table, each as a document adds it."""
        return {("usr", f"idu={key}"): _added(key, row) for key, row in self._rig.rows().items()}

    # --- tools

    def _rows(self, letters: str) -> list[LogRow]:
        return log_rows(self._rig.engine, self._rig.log, letters)

    def _stop_applying(self) -> None:
        for process in self._applying:
            process.kill()
            process.wait()

    def _start_applying(self, group: int) -> subprocess.Popen[bytes]:
        """Begin to apply what the receiver took."""
        target = self._second.url.render_as_string(hide_password=False)
        words = ("--from", "xds", "--tables", f"{self._folder}/tables.toml", "--missing-rows", "insert")
        files = map(str, self._taken.files())
        return self._commands.start("apply", "--to-url", target, "--group", str(group), *words, *files)

    def _finish_applying(self) -> None:
        """Apply all that the receiver took; refused changes are judged by what the rows became."""
        for process in self._applying:
            process.wait()
        printed = len(self._commands.output())
        self._start_applying(1000).wait()
        output = self._commands.output()[printed:]
        if not TALLY.search(output):
            self._faults.append(f"apply did not come to its end: {output[-1000:]}")

    def _publisher_output(self) -> str:
        return (self._folder / "publisher.log").read_text(errors="replace")


def _added(key: str, row: Mapping[str, str]) -> bytes:
    """Return a row as a document adds it."""
    values = "".join(
        f'<add-attr attr-name="{name}"><value type="string">{escape(text)}</value></add-attr>'
        for name, text in row.items()
    )
    association = f"<association>idu={key},table=usr</association>"
    return f'<add class-name="usr" event-id="present:0">{association}{values}</add>'.encode()


def run(product: str, mode: str, seconds: float, seed: int, folder: Path) -> Outcome:
    """Return a run on a server of its own."""
    with (
        KILLABLE[product]() as (server, database),
        temporary_database(product, database.url) as second,
        ExitStack() as stack,
    ):
        try:
            disk = stack.enter_context(small_disk(folder / "disk", DISK))
        except NoSmallDisk:
            disk = None
        chaos = Chaos(server, database, second, disk, folder, mode, seed)
        stack.callback(chaos.close)
        return chaos.run(seconds)
