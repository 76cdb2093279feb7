"""A backlog on Spark as it grows, compared with code by hand for the same rows.

    eventlog bench growth [--least 1000000] [--most 10000000] [--by-hand 100000] [--heap 1g]

Three rows an object, as `eventlog bench spark` has them. Each point is measured in a session of its own,
which has done a small job before, so that its peak of memory is its own. Java's heap may grow to its
limit, whether it needs it or not: `--heap` sets it, else it is that of `backlog`. The documents by hand
contain the first old and the last new value of each column. They have no rules of event types, no event-
ids, no order across objects, no refused rows, no query-backs, and only markup from a pattern.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eventlog_spark.backlog.job import Backlog, run_job
from eventlog_spark.cluster.session import start
from pyspark.sql import Window
from pyspark.sql import functions as f

from bench.spark import CHUNK, PARTS, TABLES, Peak, cpu_seconds, make_log
from eventlog.core.extras import show_pandas
from eventlog.jobs.job import Job

OBJECT = ("table_name", "table_key")
STEADY_FROM = 10_000_000  # below this a job's own start weighs
Way = Callable[[Any, list[str], Path], None]


def by_backlog(spark: Any, names: list[str], out: Path) -> None:
    """Run with as many tasks as the size of the log asks for."""
    job = Job("log", "xds", tuple(names), str(out), tables=TABLES)
    run_job(spark, Backlog(job, "2025-01-01 00:00:00"))


def in_pandas(spark: Any, names: list[str], out: Path) -> None:
    """`groupBy().applyInPandas`: a function of an object's rows."""
    import pandas as pd

    def fold(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.sort_values("record_id")
        fields = [
            _field(name, some.old_value.iloc[0], some.new_value.iloc[-1])
            for name, some in rows.groupby("column_name", sort=False)
        ]
        return pd.DataFrame({"value": [_document(rows.table_name.iloc[0], rows.table_key.iloc[0], fields)]})

    spark.read.parquet(*names).groupBy(*OBJECT).applyInPandas(fold, "value string").write.text(str(out))


def in_lists(spark: Any, names: list[str], out: Path) -> None:
    """`collect_list` of an object's rows, and a UDF over the list."""

    @f.udf("string")
    def fold(table: str, key: str, rows: Sequence[Any]) -> str:
        first: dict[str, Any] = {}
        last: dict[str, Any] = {}
        for row in rows:
            first.setdefault(row.column_name, row.old_value)
            last[row.column_name] = row.new_value
        return _document(table, key, [_field(name, old, last[name]) for name, old in first.items()])

    row = f.struct("record_id", "column_name", "old_value", "new_value")
    lists = spark.read.parquet(*names).groupBy(*OBJECT).agg(f.array_sort(f.collect_list(row)).alias("rows"))
    lists.select(fold(*OBJECT, "rows").alias("value")).write.text(str(out))


def in_windows(spark: Any, names: list[str], out: Path) -> None:
    """Run window functions and `concat_ws`: SQL alone."""
    field = Window.partitionBy(*OBJECT, "column_name").orderBy("record_id")
    every = field.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    rows = spark.read.parquet(*names).select(
        *OBJECT,
        "column_name",
        f.row_number().over(field).alias("n"),
        f.first("old_value").over(every).alias("old"),
        f.last("new_value").over(every).alias("new"),
    )
    one = f.format_string(
        '<field name="%s"><old>%s</old><new>%s</new></field>', "column_name", f.col("old"), f.col("new")
    )
    fields = rows.where("n = 1").groupBy(*OBJECT).agg(f.concat_ws("", f.collect_list(one)).alias("fields"))
    whole = f.format_string('<modify table="%s" key="%s">%s</modify>', *OBJECT, f.col("fields"))
    fields.select(whole.alias("value")).write.text(str(out))


def _field(name: str, old: str | None, new: str | None) -> str:
    return f'<field name="{name}"><old>{old}</old><new>{new}</new></field>'


def _document(table: str, key: str, fields: Sequence[str]) -> str:
    return f'<modify table="{table}" key="{key}">{"".join(fields)}</modify>'


WAYS: dict[str, Way] = {
    "eventlog backlog": by_backlog,
    "groupBy().applyInPandas": in_pandas,
    "collect_list and a UDF": in_lists,
    "window functions": in_windows,
}


class Point(NamedTuple):
    """The measurements of a job."""

    seconds: float
    worked: float  # seconds of CPU, of Java and Python
    java: int  # MiB at most
    python: int  # of a worker


def measured(way: Way, events: int, heap: str) -> Point:
    """Return one job, in a session of this process."""
    conf = {"spark.sql.shuffle.partitions": str(PARTS)} | ({"spark.driver.memory": heap} if heap else {})
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spark = start("local[2]", conf)
        names = make_log(folder / "log", events, "even")
        small = make_log(folder / "small", min(CHUNK, events) // 10, "even")
        way(spark, small, folder / "warm")
        peak, over = Peak(), threading.Event()
        watcher = threading.Thread(target=_watch, args=(peak, over))
        watcher.start()
        began, worked = time.monotonic(), cpu_seconds()
        way(spark, names, folder / "out")
        found = Point(time.monotonic() - began, cpu_seconds() - worked, peak.java >> 20, peak.python >> 20)
        over.set()
        watcher.join()
        shutil.rmtree(folder / "out")
        spark.stop()
        return found


def _watch(peak: Peak, over: threading.Event) -> None:
    while not over.wait(0.2):
        peak.look()


def _elsewhere(name: str, events: int, heap: str) -> Point:
    """Return the same in a process of its own."""
    command = [sys.executable, "-m", "eventlog", "bench", "growth", "--point", name, str(events)]
    command += ["--heap", heap] if heap else []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Point(*json.loads(done.stdout.splitlines()[-1]))


def _line(what: str, events: int, point: Point, beside: str) -> str:
    return (
        f"{what:26}{events:>13,} events {point.seconds:>8.1f} s {1e6 * point.seconds / events:>6.2f} us each"
        f" {1e6 * point.worked / events:>6.2f} us of CPU"
        f"   JVM {point.java:>5} MiB   worker {point.python:>4} MiB{beside}"
    )


def growth(least: int, most: int, heap: str) -> None:
    """The same job ten times as large, and again."""
    found: dict[int, Point] = {}
    events = least
    while events <= most:
        found[events] = _elsewhere("eventlog backlog", events, heap)
        print(_line("eventlog backlog", events, found[events], ""), flush=True)
        events *= 10
    steady = {size: point.seconds / size for size, point in found.items() if size >= STEADY_FROM}
    if steady:
        median = statistics.median(steady.values())
        ratios = ", ".join(f"{size:,}: {each / median:.2f}" for size, each in steady.items())
        print(f"seconds an event beside the median from {STEADY_FROM:,} on: {ratios}")


def by_hand(events: int, heap: str) -> None:
    """The nearest things that a user would write."""
    own: Point | None = None
    for name in WAYS:
        point = _elsewhere(name, events, heap)
        own = own or point
        times = f"   {point.seconds / own.seconds:.2f} x, by CPU {point.worked / own.worked:.2f} x"
        print(_line(name, events, point, times), flush=True)


def main() -> None:
    """Print how it grows, then the job by hand."""
    show_pandas()
    parser = argparse.ArgumentParser(
        prog="eventlog bench growth", description="A backlog on Spark as it grows."
    )
    parser.add_argument("--least", type=int, default=1_000_000, help="events of the smallest log (1000000)")
    parser.add_argument("--most", type=int, default=STEADY_FROM, help=f"of the largest ({STEADY_FROM})")
    parser.add_argument(
        "--by-hand", type=int, default=100_000, help="events of the log that ways by hand get"
    )
    parser.add_argument("--heap", default="", help="of Java, as Spark writes it: 1g")
    parser.add_argument("--point", nargs=2, metavar=("WAY", "EVENTS"), help="one point, in this process")
    given = parser.parse_args()
    if given.point is not None:
        print(json.dumps(measured(WAYS[given.point[0]], int(given.point[1]), given.heap)))
        return
    growth(given.least, given.most, given.heap)
    by_hand(given.by_hand, given.heap)


if __name__ == "__main__":
    main()
