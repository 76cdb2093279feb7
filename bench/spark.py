"""A backlog and `documents()` on two cores, compared with the limit: `convert` in one process without Spark.

    eventlog bench spark [EVENTS] [ROUNDS] [CASE…]

A case is the kind of a log, and its container if that is not Parquet: even, even.csv, even.jsonl, differing,
query-back, hot, one, ten. In hot, one object has a third of the rows; in one, it has all; ten has ten times
as many events. The ways take turns, and each is first in every other round. A round before them is not
counted, because Java becomes faster for minutes. Compare CPU: others may work on the machine. Memory is the
peak of this process's children, Python workers and JVM each, as the kernel reports it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
from eventlog_spark import documents
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.session import start

from eventlog.core import tablesfile
from eventlog.core.extras import show_pandas
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report

TABLES = tablesfile.read(
    '[tables.usr]\nschema = "indirect"\nkey = ["idu"]\n'
    'columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", mail = "varchar(64)" }\n'
)
CASES = ("even", "even.csv", "even.jsonl", "differing", "query-back", "hot", "one", "ten")
CHUNK = 300_000  # events of one file
PARTS = 8
FEW = 7  # events of a backlog whose CPU is that of a start
CLOCK = "2025-01-01 00:00:00"


# --- logs


def rows(events: int, kind: str) -> Iterator[pa.Table]:
    """Yield three rows for each object, or as the kind of log requires.

    `differing` are lives of random columns and nulls, hardly two alike.
    """
    import numpy as np

    random = np.random.default_rng(7)
    columns = np.array(["fname", "lname", "mail"])
    for first in range(0, events, CHUNK):
        ids = np.arange(first + 1, min(first + CHUNK, events) + 1)
        objects = np.zeros(len(ids), np.int64) if kind == "one" else (ids - 1) // 3
        if kind == "hot":
            objects = np.where(ids % 3 == 0, 0, 1 + objects)
        kinds = np.full(len(ids), 2)
        if kind == "query-back":
            kinds = np.where(random.random(len(ids)) < 0.3, random.choice([6, 8], len(ids)), 2)
        text = pa.array(objects).cast(pa.string())
        number = pa.array(ids).cast(pa.string())
        per_row = kinds == 6
        chosen = random.integers(0, 3, len(ids)) if kind == "differing" else (ids - 1) % 3
        old_is_null, new_is_null = (
            per_row | (random.random(len(ids)) < (0.3 if kind == "differing" else 0)) for _ in range(2)
        )
        join = pa.compute.binary_join_element_wise
        yield pa.table(
            {
                "record_id": pa.array(ids, pa.int64()),
                "status": pa.array(["N"] * len(ids)),
                "event_type": pa.array(kinds, pa.int32()),
                "event_time": pa.array(ids * 1000 + 1_700_000_000_000_000, pa.timestamp("us")),
                "perpetrator": pa.nulls(len(ids), pa.string()),
                "table_name": pa.array(["usr"] * len(ids)),
                "table_key": join("idu=", text, ""),
                "column_name": pa.array(columns[chosen], mask=per_row),
                "old_value": pa.compute.if_else(pa.array(old_is_null), None, join("John ", number, "")),
                "new_value": pa.compute.if_else(pa.array(new_is_null), None, join("Jack ", number, "")),
            }
        )


def _write_jsonl(table: pa.Table, path: Path) -> None:
    texts = table.set_column(3, "event_time", table.column("event_time").cast(pa.string()))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in texts.to_pylist()))


WRITERS: Mapping[str, Callable[[pa.Table, Path], object]] = {
    "parquet": pq.write_table,
    "csv": partial(pv.write_csv, write_options=pv.WriteOptions(quoting_style="needed")),
    "jsonl": _write_jsonl,
}


def make_log(folder: Path, events: int, kind: str, container: str) -> tuple[str, ...]:
    """Return the files of a log."""
    folder.mkdir(parents=True)
    names = []
    for number, table in enumerate(rows(events, kind)):
        names.append(str(folder / f"log-{number:03d}.{container}"))
        WRITERS[container](table, Path(names[-1]))
    return tuple(names)


def make_current(path: Path, events: int) -> tuple[tuple[str, str], ...]:
    """Return the current rows of all objects."""
    ids = pa.array(range(events // 3 + 1))
    text = ids.cast(pa.string())
    cells = {
        name: pa.compute.binary_join_element_wise(f"{name} ", text, "") for name in ("fname", "lname", "mail")
    }
    pq.write_table(pa.table({"idu": ids, **cells}), path, row_group_size=100_000)
    return (("usr", str(path)),)


# --- ways


@dataclass(frozen=True)
class Case:
    """A log, and the current rows that it needs."""

    name: str
    events: int
    files: tuple[str, ...]
    current: tuple[tuple[str, str], ...] = ()

    def job(self, out: Path) -> Job:
        """Return the conversion to documents."""
        return Job("log", "xds", self.files, str(out), tables=TABLES, current=self.current)


def converted(case: Case, out: Path) -> None:
    """Convert in this process, without Spark."""
    convert(case.job(out), Report(lambda refused: None), CLOCK)


def backlogged(spark: Any, case: Case, out: Path) -> None:
    run(spark, Backlog(case.job(out), CLOCK, partitions=PARTS))


def framed(spark: Any, case: Case, out: Path) -> None:
    """Write what `documents` makes of a DataFrame, as Spark writes text."""
    rows_of = {table: spark.read.parquet(file) for table, file in case.current}
    log = spark.read.parquet(*case.files)
    frame = documents(log, TABLES, current=rows_of, unique=True, partitions=PARTS)
    frame.where("refused is null").select("document").write.text(str(out))


# --- measures


class Work(NamedTuple):
    """The CPU seconds of this process, its Python workers and the JVM so far."""

    driver: float
    python: float
    java: float

    def since(self, before: Work) -> Work:
        """Return what was done after an earlier moment."""
        return Work(*(now - then for now, then in zip(self, before, strict=True)))


_TICKS: dict[tuple[int, str], tuple[str, int]] = {}  # by process: its name, and CPU when last seen


def work_so_far() -> Work:
    """Return the CPU seconds, with those of workers that ended."""
    driver = python = java = 0
    _processes()
    for (pid, _), (name, ticks) in _TICKS.items():
        if pid == os.getpid():
            driver += ticks
        elif name == "java":
            java += ticks
        else:
            python += ticks
    return Work(*(ticks / os.sysconf("SC_CLK_TCK") for ticks in (driver, python, java)))


def _processes() -> dict[int, tuple[str, int]]:
    """Return this process and its descendants: name and bytes of memory. Note their CPU."""
    all_of_them: dict[int, tuple[int, str, int]] = {}
    ticks: dict[int, tuple[str, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = path.read_text().rpartition(")")
        except OSError:
            continue
        facts = tail.split()
        name = head.partition("(")[2]
        memory = int(facts[21]) * os.sysconf("SC_PAGE_SIZE")
        all_of_them[pid := int(path.parent.name)] = (int(facts[1]), name, memory)
        ticks[pid] = (facts[19], int(facts[11]) + int(facts[12]))

    def descends(pid: int) -> bool:
        while pid in all_of_them and pid != os.getpid():
            pid = all_of_them[pid][0]
        return pid == os.getpid()

    descendants = {pid: facts[1:] for pid, facts in all_of_them.items() if descends(pid)}
    _TICKS.update({(pid, ticks[pid][0]): (name, ticks[pid][1]) for pid, (name, _) in descendants.items()})
    return descendants


class Peak:
    """The most memory that Python workers and the JVM have while some work is done."""

    def __init__(self) -> None:
        self.python = self.java = 0
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._watcher.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            for pid, (name, memory) in _processes().items():
                if name == "java":
                    self.java = max(self.java, memory)
                elif pid != os.getpid():
                    self.python = max(self.python, memory)


@dataclass
class Measured:
    """The seconds, work and memory of one way, round by round."""

    seconds: list[float] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    python: int = 0  # bytes at the peak, of one worker
    java: int = 0

    @property
    def cpu(self) -> list[float]:
        return [sum(work) for work in self.work]


def measure(way: Callable[[Path], None], out: Path, measured: Measured) -> None:
    """Add a round."""
    before, began = work_so_far(), time.monotonic()
    with Peak() as peak:
        way(out)
    measured.seconds.append(time.monotonic() - began)
    measured.work.append(work_so_far().since(before))
    measured.python, measured.java = max(measured.python, peak.python), max(measured.java, peak.java)
    shutil.rmtree(out) if out.is_dir() else out.unlink()


def compare(spark: Any, case: Case, rounds: int, out: Path) -> None:
    """Measure the ways in turn, and print each round and the medians."""
    ways: dict[str, Callable[[Path], None]] = {
        "convert": partial(converted, case),
        "backlog": partial(backlogged, spark, case),
    }
    if case.files[0].endswith(".parquet"):
        ways["documents()"] = partial(framed, spark, case)
    figures = {name: Measured() for name in ways}
    for number in range(rounds + 1):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            measure(ways[name], out, figures[name] if number else Measured())
        if number:
            rates = (f"{name} {case.events / 1000 / m.cpu[-1]:.0f}" for name, m in figures.items())
            print(f"{case.name}, warm round {number}: {', '.join(rates)} k/CPU second", flush=True)
    limit = statistics.median(figures["convert"].cpu)
    for name, measured in figures.items():
        seconds, cpu = statistics.median(measured.seconds), statistics.median(measured.cpu)
        line = f"{name + ', ' + case.name:26}{case.events / 1000 / seconds:6.0f} k events/s"
        line += f"{case.events / 1000 / cpu:6.0f} k/CPU second   {limit / cpu:.2f} of convert"
        if name != "convert":
            line += f"   worker {measured.python >> 20:5} MiB   JVM {measured.java >> 20:5} MiB"
        print(line, flush=True)


def print_sharing(spark: Any, case: Case, few: Case, out: Path) -> None:
    """Print what Spark takes of a backlog for sharing out."""
    start_of_job, backlog = Measured(), Measured()
    for _ in range(3):
        measure(partial(backlogged, spark, few), out, start_of_job)
    before = _shuffled(spark)
    measure(partial(backlogged, spark, case), out, backlog)
    written, (work,) = _shuffled(spark) - before, backlog.work
    begun = statistics.median(start_of_job.cpu)
    print(
        f"sharing out {case.name}: start {begun:.2f} s of CPU, shuffle {written / 1e6:.0f} MB,"
        f" Java {work.java / sum(work):.0%}, Python {(work.python + work.driver) / sum(work):.0%} of the CPU",
        flush=True,
    )


def _shuffled(spark: Any) -> int:
    """Return how many bytes all shuffles of the session have written."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(int(executors.apply(at).totalShuffleWrite()) for at in range(executors.size()))


def make_case(folder: Path, events: int, name: str) -> Case:
    """Return a case by its name, with its files."""
    kind, _, container = name.partition(".")
    events = 10 * events if kind == "ten" else events
    files = make_log(folder / name, events, kind, container or "parquet")
    current = make_current(folder / "usr.parquet", events) if kind == "query-back" else ()
    return Case(name, events, files, current)


def main() -> None:
    show_pandas()
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spark = start("local[2]", {})
        print(f"session up after {time.monotonic() - began:.1f} s")
        for number, name in enumerate(sys.argv[3:] or CASES):
            case = make_case(folder, events, name)
            compare(spark, case, 1 if name.startswith("ten") else rounds, folder / "out")
            if not number:
                print_sharing(spark, case, make_case(folder / "few", FEW, name), folder / "out")
            shutil.rmtree(folder / name)
        spark.stop()


if __name__ == "__main__":
    main()
