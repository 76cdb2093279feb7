"""The publisher on an embedded PostgreSQL: rows to documents on disk, compared with the floor, and latency.

The floor reads the same rows in the same chunks and finishes them by their ids, by update, nothing else.
Judge ratios within one run: machines differ, and so do minutes on one machine.

    eventlog bench publisher [rows] [batch-size] [transactions a second] [COMMIT]
    eventlog bench publisher --timeline
    eventlog bench publisher --defaults
    eventlog bench publisher --document KIND [rows]

Each case runs in both ways of finishing. With a commit, its own bench runs in turn with this one, five
times each, and the medians are printed: of each way, with those of the commit. `--timeline` prints when
one row is where, from its commit to its letter. `--defaults` takes only the last cases: a document for each
event, through each sink and through a loop that others would write. `--document` compares our own CPU for
that kind of documents with that for XDS, case by case and in turn.
"""

from __future__ import annotations

import io
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import Engine

from bench._ways import CASES, Cost, Way, cost_of
from bench.latency import latency, timeline
from eventlog.core.entry import Letter
from eventlog.core.tables import Tables
from eventlog.embedded import FAST, embedded_postgres
from eventlog.fold import Rules
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.publisher_tables import read_readable
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.preparation import rules_for
from eventlog.sinks.document_kinds import document_kind
from eventlog.sinks.files import FilesSink
from eventlog.sinks.sink import Sink
from eventlog.sinks.stdout import StdoutSink
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import connect
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.schema import migrate
from eventlog.xds.xds_settings import XdsSettings

LIMIT = 10_000
ROUNDS = 3  # of the cases at the defaults
DOCUMENTS = max(case.documents for case in CASES)
SINGLE = "query-back, one row (type 6)"
NUMBERS = " from generate_series({0}, {1}) n"
FILL = {
    "three rows an object (type 2)": "select 2, 'usr', 'idu=' || n / 3 + 1,"
    " (array['fname', 'lname', 'mail'])[n % 3 + 1], 'Jack' || n, 'John' || n" + NUMBERS,
    "one row an object (type 3)": "select 3, 'usr', 'idu=' || n, 'fname', null, 'John' || n" + NUMBERS,
    "a hot object in ten (type 3)": "select 3, 'usr', case when n % 10 = 0 then 'idu=1' else 'idu=' || n end,"
    " 'fname', null, 'John' || n" + NUMBERS,
    SINGLE: "select 6, 'usr', 'idu=' || n, null, null, null" + NUMBERS,
}


class Bench:
    """A log with a user table, filled anew for each measurement."""

    def __init__(self, engine: Engine, rows: int, batch_size: int) -> None:
        self.engine, self.rows, self.batch_size = engine, rows, batch_size
        self.log = Log(POSTGRESQL)
        migrate.install(engine, self.log)
        self.store = Store(engine, self.log)
        self.run("create table usr (idu integer primary key, fname text, lname text, mail text)")
        self.run(
            "insert into usr select n, 'John' || n, 'Doe & Sons', 'john' || n || '@example.com' "
            f"from generate_series(1, {rows}) n"
        )
        self.run("analyze usr")

    def run(self, statement: str) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(statement))

    def fill(self, kind: str, rows: int | None = None) -> int:
        """Insert pending rows, object after object, by default as many as users. Return how many they are."""
        last = self.rows if rows is None else rows
        self.run("truncate eventlog")
        columns = "event_type, table_name, table_key, column_name, old_value, new_value"
        step = 100_000
        for start in range(1, last + 1, step):
            chosen = FILL[kind].format(start, min(start + step - 1, last))
            self.run(f"insert into eventlog ({columns}) {chosen}")
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("vacuum analyze eventlog"))
            return int(connection.execute(text("select count(*) from eventlog")).scalar() or 0)

    def floor(self, epoch: int) -> None:
        """Read and finish, nothing else."""
        while True:
            with self.store.snapshot() as snapshot:
                picked = snapshot.pending("pick_up", PickUpFilter(LIMIT))
            if not picked:
                return
            with self.store.as_leader(epoch) as work:
                work.finish({Letter.SUCCESS: [int(str(cells[0])) for cells in picked]})

    def publish(
        self, epoch: int, sink: Sink, rows: int, *, delete: bool = False, document: str = "xds"
    ) -> str:
        """Publish all rows, and close the sink. Return whether that slows down."""
        with self.engine.connect() as connection:
            tables = Tables([Catalogue(connection).find("usr").table])
        readable = read_readable(self.engine, self.log, tables)
        kind = document_kind(document)
        write = None if kind is None else kind.writer
        rules = rules_for(Rules(), kind)
        make_writer = (lambda tables: write(tables, {})) if write else None
        reader = PickUpFold(tables, readable, rules, XdsSettings(self.batch_size), make_writer)
        settings = PublisherSettings(delete_from_log=delete, query_limit=LIMIT)
        publisher = Publisher(self.store, lambda: reader, sink, epoch, self.batch_size, settings)
        rates: list[float] = []
        sent = 0
        while (cycle := publisher.cycle()).rows:
            sent += cycle.rows
            rates.append(cycle.rows / cycle.seconds)
        sink.close()
        assert sent == rows, f"{sent} of {rows}"
        tenth = max(1, len(rates) // 10)
        return (
            f"last tenth / first tenth {statistics.mean(rates[-tenth:]) / statistics.mean(rates[:tenth]):.2f}"
        )

    def compare_document(self, document: str, epoch: int) -> None:
        """Print the CPU of each case for XDS and for another kind, the medians of five times in turn."""
        for case in FILL:
            seconds: dict[str, list[float]] = {"xds": [], document: []}
            for _ in range(5):
                for kind, times in seconds.items():
                    rows = self.fill(case)
                    with tempfile.TemporaryDirectory() as folder:
                        begun = time.process_time()
                        self.publish(epoch, FilesSink(Path(folder)), rows, document=kind)
                        times.append(time.process_time() - begun)
            of_xds, of_document = (statistics.median(times) / rows * 1e6 for times in seconds.values())
            figures = f"xds {of_xds:>6.2f} µs of CPU a row   {document} {of_document:>6.2f} µs"
            print(f"{case:<30} {figures}   {of_xds / of_document:>4.0%}", flush=True)

    def warm_up(self, epoch: int) -> None:
        """Publish once, unmeasured: a daemon loads its libraries once in its life."""
        with tempfile.TemporaryDirectory() as folder:
            self.publish(epoch, FilesSink(Path(folder)), self.fill(next(iter(FILL))))

    def measure(self, kind: str, epoch: int) -> None:
        """The floor, then the whole way, with letters and with deletes."""
        self.fill(kind)
        floor = self.rows / _timed(lambda: self.floor(epoch))
        for delete in (False, True):
            self.whole_way(kind, epoch, floor, delete=delete)

    def whole_way(self, kind: str, epoch: int, floor: float, *, delete: bool) -> None:
        rows = self.fill(kind)
        before = _peak()
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            steadiness = self.publish(epoch, FilesSink(Path(folder)), rows, delete=delete)
            rate = rows / (time.monotonic() - begun)
        name = "delete" if delete else "update"
        print(
            f"{kind:<30} {name:<24} {rate:>9,.0f} rows/s   floor {floor:>9,.0f} rows/s   "
            f"{rate / floor:>4.0%} of the floor   peak memory {before} -> {_peak()} MiB   "
            f"{steadiness}",
            flush=True,
        )

    def measure_defaults(self, epoch: int) -> None:
        """Print the rate and the CPU of each sink at the defaults, and of the loop of others."""
        self.batch_size = 1
        rows = self.fill(SINGLE, DOCUMENTS)
        lines = io.BytesIO()
        self.publish(epoch, StdoutSink(lines), rows)
        documents = lines.getvalue().splitlines(keepends=True)
        for case in CASES:
            with case.open() as way:
                rounds = [self._round(epoch, way, documents[: case.documents]) for _ in range(ROUNDS)]
            ours, floor = (_rate_and_cpu(costs, case.documents) for costs in zip(*rounds, strict=True))
            print(f"a document an event, {case.name:<26} {ours}   floor {floor}", flush=True)

    def _round(self, epoch: int, way: Way, documents: Sequence[bytes]) -> tuple[Cost, Cost]:
        """Return what our way and the loop of others take for documents."""
        rows = self.fill(SINGLE, len(documents))
        return (
            cost_of(lambda: self.publish(epoch, way.sink(), rows)),
            cost_of(lambda: way.floor(documents)),
        )


def _rate_and_cpu(costs: Sequence[Cost], documents: int) -> str:
    """Return the medians for rounds of so many documents."""
    elapsed, cpu = (statistics.median(seconds) for seconds in zip(*costs, strict=True))
    return f"{documents / elapsed:>7,.0f} documents/s, {cpu / documents * 1e6:>5,.0f} µs of CPU each"


def _timed(work: Callable[[], None]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def compare_commits(commit: str, arguments: list[str]) -> None:
    """The bench of another commit and this one in turn, and the median rate of each case in both."""
    here = Path(__file__).parents[1]
    rates: dict[str, dict[tuple[str, str], list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--detach", there, commit], cwd=here, check=True)
        try:
            for _ in range(5):
                for name, root in ((commit, there), ("now", here)):
                    for case, mode, rate in _rates(root, arguments):
                        rates.setdefault(case, {}).setdefault((name, mode), []).append(rate)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", there], cwd=here, check=True)
    for case, rates_of_case in rates.items():
        if (commit, "update") not in rates_of_case:
            print(f"{case:<30} {commit} does not measure it")
            continue
        before = statistics.median(rates_of_case[commit, "update"])
        for (name, mode), values in rates_of_case.items():
            if name == "now":
                now = statistics.median(values)
                unit, digits = ("ms", 1) if case.startswith("latency") else ("rows/s", 0)
                figures = f"{before:>9,.{digits}f} -> {now:>9,.{digits}f} {unit}"
                print(f"{case:<30} {mode:<24} {figures}   {now / before:.2f} x")


def _rates(root: Path, arguments: list[str]) -> Iterator[tuple[str, str, float]]:
    """Yield the cases of a tree's own bench, how their rows were finished, and their rates."""
    paths = os.pathsep.join([str(root), str(root / "spark")])
    command = [sys.executable, str(root / "bench" / "publisher.py"), *arguments]
    done = subprocess.run(
        command, cwd=root, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    line = r"^(.*\(type \d\)) *([a-z].*?)? +([0-9,]+) rows/s"
    for case, mode, rate in re.findall(line, done.stdout, re.MULTILINE):
        yield case, mode or "update", float(rate.replace(",", ""))
    for case, milliseconds in re.findall(r"^(latency at \d+).*p50 ([0-9.]+) ms", done.stdout, re.MULTILINE):
        yield f"{case} a second, p50 in ms", "update", float(milliseconds)


def main() -> None:
    if sys.argv[1:] == ["--timeline"]:
        timeline()
        return
    if len(sys.argv) > 4:
        compare_commits(sys.argv[4], sys.argv[1:4])
        return
    only_defaults = sys.argv[1:] == ["--defaults"]
    if only_defaults:
        del sys.argv[1]
    document = sys.argv[2] if sys.argv[1:2] == ["--document"] else None
    if document is not None:
        del sys.argv[1:3]
    rows, batch_size, rate = [*map(int, sys.argv[1:]), *(300_000, 10_000, 200)[len(sys.argv) - 1 :]]
    with embedded_postgres(settings=FAST | {"shared_buffers": "512MB"}) as server:
        engine = connect(server.url, keep_open=4)
        bench = Bench(engine, DOCUMENTS if only_defaults else rows, batch_size)
        leader = bench.store.lead("bench")
        assert leader is not None
        with leader:
            bench.warm_up(leader.epoch)
            if document is not None:
                bench.compare_document(document, leader.epoch)
                return
            for kind in () if only_defaults else FILL:
                bench.measure(kind, leader.epoch)
            bench.measure_defaults(leader.epoch)
        engine.dispose()
    if not only_defaults:
        latency(rate)


if __name__ == "__main__":
    main()
