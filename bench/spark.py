"""A backlog and `documents()` on two cores, compared with a floor: read, shuffle, sort, joined texts, write.

    eventlog bench spark [EVENTS] [ROUNDS] [CASE…]

Judge ratios within one run: machines differ, and so do minutes on one machine. If others work on the
machine too, the ratio of CPU time is more reliable than that of time. Memory is the peak of this process's
children, Python workers and JVM each, as the kernel reports it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from eventlog_spark import documents
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.session import start
from pyspark.sql import functions as f

from eventlog.core import tablesfile
from eventlog.core.extras import show_pandas
from eventlog.transfer.job import Job

TABLES = tablesfile.read(
    '[tables.usr]\nschema = "indirect"\nkey = ["idu"]\n'
    'columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", mail = "varchar(64)" }\n'
)
CHUNK = 300_000
PARTS = 8


def rows(events: int, case: str) -> Iterator[pa.Table]:
    """Yield three rows for each object, two million objects apart, or as the case requires.

    `differing` are lives of random columns and nulls, hardly two alike.
    """
    import numpy as np

    random = np.random.default_rng(7)
    columns = np.array(["fname", "lname", "mail"])
    for first in range(0, events, CHUNK):
        ids = np.arange(first + 1, min(first + CHUNK, events) + 1)
        objects = (ids - 1) // 3
        if case == "hot":
            objects = np.where(ids % 3 == 0, 0, 1 + objects)
        kinds = np.full(len(ids), 2)
        if case == "query-back":
            kinds = np.where(random.random(len(ids)) < 0.3, random.choice([6, 8], len(ids)), 2)
        if case == "mixed":
            mixed = objects % 5 == 0
            kinds = np.where(mixed, random.integers(1, 5, len(ids)), 2)
        text = pa.array(objects).cast(pa.string())
        number = pa.array(ids).cast(pa.string())
        per_row = np.isin(kinds, (4, 5, 6))
        chosen = random.integers(0, 3, len(ids)) if case == "differing" else (ids - 1) % 3
        column = pa.array(columns[chosen], mask=per_row)
        old_is_null, new_is_null = (
            per_row | (random.random(len(ids)) < (0.3 if case == "differing" else 0)) for _ in range(2)
        )
        yield pa.table(
            {
                "record_id": pa.array(ids, pa.int64()),
                "status": pa.array(["N"] * len(ids)),
                "event_type": pa.array(kinds, pa.int32()),
                "event_time": pa.array(ids * 1000 + 1_700_000_000_000_000, pa.timestamp("us")),
                "perpetrator": pa.array([None] * len(ids), pa.string()),
                "table_name": pa.array(["usr"] * len(ids)),
                "table_key": pa.compute.binary_join_element_wise("idu=", text, ""),
                "column_name": column,
                "old_value": pa.compute.if_else(
                    pa.array(old_is_null), None, pa.compute.binary_join_element_wise("John ", number, "")
                ),
                "new_value": pa.compute.if_else(
                    pa.array(new_is_null), None, pa.compute.binary_join_element_wise("Jack ", number, "")
                ),
            }
        )


def make_log(folder: Path, events: int, case: str) -> list[str]:
    """Return the log as Parquet files."""
    folder.mkdir(parents=True)
    names = []
    for n, table in enumerate(rows(events, case)):
        names.append(str(folder / f"log-{n:03d}.parquet"))
        pq.write_table(table, names[-1])
    return names


def make_current(path: Path, events: int) -> tuple[tuple[str, str], ...]:
    """Return the current rows of all objects."""
    ids = pa.array(range(events // 3 + 1))
    text = ids.cast(pa.string())
    cells = {
        name: pa.compute.binary_join_element_wise(f"{name} ", text, "") for name in ("fname", "lname", "mail")
    }
    pq.write_table(pa.table({"idu": ids, **cells}), path, row_group_size=100_000)
    return (("usr", str(path)),)


def floor(spark: Any, names: list[str], out: Path, hashed: bool) -> None:
    """Do what any such job must do."""
    frame = spark.read.parquet(*names)
    keys = ["table_name", "table_key", "record_id"]
    if hashed:
        frame = frame.withColumn("h", f.xxhash64("table_name", "table_key")).repartition(PARTS, "h")
        frame = frame.sortWithinPartitions("h", *keys)
    else:
        frame = frame.repartition(PARTS, "table_name", "table_key").sortWithinPartitions(*keys)
    text = [
        f.coalesce(f.col(name).cast("string"), f.lit(""))
        for name in (
            "record_id",
            "event_type",
            "table_name",
            "table_key",
            "column_name",
            "old_value",
            "new_value",
        )
    ]
    frame.select(f.concat_ws(",", *text).alias("value")).write.text(str(out))


def ours(spark: Any, names: list[str], out: Path, current: tuple[tuple[str, str], ...] = ()) -> None:
    job = Job("log", "xds", tuple(names), str(out), tables=TABLES, current=current)
    run(spark, Backlog(job, "2025-01-01 00:00:00", partitions=PARTS))


def frames(spark: Any, names: list[str], out: Path, current: tuple[tuple[str, str], ...] = ()) -> None:
    """Write what `documents` makes of a DataFrame, as Spark writes text."""
    rows_of = {table: spark.read.parquet(file) for table, file in current}
    frame = documents(spark.read.parquet(*names), TABLES, current=rows_of, unique=True, partitions=PARTS)
    frame.where("refused is null").select("document").write.text(str(out))


class Peak:
    """The most memory that Python workers and the JVM held."""

    def __init__(self) -> None:
        self.python = self.java = 0

    def look(self) -> None:
        """Read parent, name and memory of each process from Linux."""
        processes = {}
        for path in Path("/proc").glob("[0-9]*/status"):
            try:
                lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
            except OSError:
                continue
            processes[int(lines["Pid"])] = lines
        own_processes = [lines for pid, lines in processes.items() if _descends(pid, processes)]
        sizes = [
            (lines["Name"].strip(), int(lines.get("VmRSS", "0").split()[0]) << 10) for lines in own_processes
        ]
        self.java = max([self.java, *(size for name, size in sizes if name == "java")])
        self.python = max([self.python, *(size for name, size in sizes if name != "java")])


def cpu_seconds() -> float:
    """Return how long this process's children have worked so far, including those that ended."""
    processes: dict[int, dict[str, Any]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            facts = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        processes[int(path.parent.name)] = {"PPid": facts[1], "ticks": sum(map(int, facts[11:15]))}
    ticks: int = sum(facts["ticks"] for pid, facts in processes.items() if _descends(pid, processes))
    return ticks / os.sysconf("SC_CLK_TCK")


def _descends(pid: int, processes: dict[int, dict[str, Any]]) -> bool:
    """Return whether a process descends from this one."""
    while pid in processes:
        pid = int(processes[pid]["PPid"])
        if pid == os.getpid():
            return True
    return False


class Measured(NamedTuple):
    """The medians of some rounds, in thousands of events."""

    rate: float  # a second
    work: float  # a second of CPU time

    def of(self, floor: Measured) -> str:
        """Return the share of the floor."""
        return f"{self.rate / floor.rate:.2f} (by CPU time {self.work / floor.work:.2f})"


def measure(name: str, events: int, rounds: int, work: Callable[[Path], None], folder: Path) -> Measured:
    """Measure the speed of some work."""
    import threading

    seconds, busy = [], []
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            peak.look()

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(rounds):
        out = folder / f"out-{number}"
        began, worked = time.monotonic(), cpu_seconds()
        work(out)
        seconds.append(time.monotonic() - began)
        busy.append(cpu_seconds() - worked)
        shutil.rmtree(out)
    over.set()
    watcher.join()
    measured = Measured(*(events / 1000 / statistics.median(each) for each in (seconds, busy)))
    memory = f"worker {peak.python >> 20:5} MiB   JVM {peak.java >> 20:5} MiB"
    rates = f"{measured.rate:6.0f} k events/s {measured.work:6.0f} k/CPU second"
    print(f"{name:24}{rates}   {memory}", flush=True)
    return measured


def main() -> None:
    show_pandas()
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 6_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    cases = sys.argv[3:] or ["even", "differing", "query-back", "mixed", "hot"]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spark = start("local[2]", {})
        print(f"session up after {time.monotonic() - began:.1f} s")
        even = make_log(folder / "even", events, "even")
        current = make_current(folder / "usr.parquet", events)
        floor(spark, even[:1], folder / "warm", True)
        ours(spark, even[:1], folder / "warmer")
        text = measure("floor, text keys", events, rounds, lambda out: floor(spark, even, out, False), folder)
        hashed = measure(
            "floor, hashed key", events, rounds, lambda out: floor(spark, even, out, True), folder
        )
        for case in cases:
            names = even if case == "even" else make_log(folder / case, events, case)
            rows_of = current if case == "query-back" else ()
            work = partial(ours, spark, names, current=rows_of)
            measured = measure(f"ours, {case}", events, rounds, work, folder)
            ratios = (
                f"{measured.of(text)} of the floor with text keys, {measured.of(hashed)} of the hashed one"
            )
            print(f"{'':24}{ratios}", flush=True)
            work = partial(frames, spark, names, current=rows_of)
            by_frames = measure(f"documents(), {case}", events, rounds, work, folder)
            print(f"{'':24}{by_frames.of(measured)} of the backlog", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
