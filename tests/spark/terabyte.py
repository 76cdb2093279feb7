"""What the tasks and the driver of a backlog of a terabyte take, without its bytes: sizes, CPU and memory.

python terabyte.py FOLDER prints the figures as JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from eventlog_spark.batches import answer, unpack
from eventlog_spark.inputs import FilePiece, InputFile, Opened, find_files
from eventlog_spark.packing import Exchange, FileBytes, by_object
from eventlog_spark.pieces import pieces_of, tasks_of
from eventlog_spark.reports import most_runs
from eventlog_spark.session import start

from eventlog.core import tablesfile
from eventlog.core.formats import Shape
from eventlog.files.limits import LIMITS
from eventlog.fold.by_column.runs import have_repeats
from eventlog.formats.log import SHEET
from eventlog.transfer.log_files.by_column.pieces import Head
from eventlog.transfer.log_files.by_column.record_ends import rough_parts
from tests.spark.helpers import TABLES

TERABYTE, PIECE, TASKS, SMALL_FILES = 1 << 40, 16 << 20, 200, 10_000
KEYS = 2_000_000
COLUMNS = tuple(column.name for column in SHEET.columns)


class Measured(NamedTuple):
    """The costs of the first 200 tasks, where there are so many in all."""

    tasks: int
    bytes_of_task: int  # of its own pieces
    bytes_of_all: int  # of what each task gets besides
    cpu: float  # milliseconds of a task in Python


def measure(number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
    """Answer the bytes of the pieces of this task, and the CPU of its process so far."""
    pieces = [piece for piece, _ in opened]
    yield answer((len(pickle.dumps(pieces)), os.getpid(), time.process_time()))


def measured(spark: Any, pieces: Sequence[FilePiece]) -> Measured:
    """Run the first 200 of the tasks for these pieces."""
    frame, task = tasks_of(spark, pieces, measure)
    rows = frame.mapInArrow(task, "answer binary").rdd
    sizes, times = list[int](), defaultdict[int, list[float]](list)
    for row in spark.sparkContext.runJob(rows, list, range(TASKS)):
        size, process, cpu = unpack(row.answer)
        sizes.append(size)
        times[process].append(cpu)
    cpu = sum(max(of) - min(of) for of in times.values()) / (TASKS - len(times))
    return Measured(len(pieces), max(sizes), len(pickle.dumps(task)), round(1000 * cpu, 2))


def ranges(count: int) -> list[FilePiece]:
    """Return the ranges of a file of a store."""
    file = InputFile("s3a://lake/log.csv", "s3a://lake/log.csv", "csv", count * PIECE, 0, "etag")
    parts = rough_parts(Head(COLUMNS, 0, 0), file.size, PIECE)
    return [FilePiece(file, part._replace(step=0)) for part in parts]


def small_files(spark: Any, folder: Path, count: int) -> list[FilePiece]:
    """Return the pieces of so many files of a log."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.csv").write_text(",".join(COLUMNS))
    files = find_files(spark, [str(folder)], Shape.ROWS, None)
    return pieces_of(spark, files, LIMITS, print)


def largest_share(exchange: Exchange) -> int:
    """Return the bytes of the largest share of a terabyte of rows, by a sample of its objects."""
    keys = pa.array([f"idu={number}" for number in range(KEYS)])
    cells = {"kind": pa.array(np.ones(KEYS, np.int8)), "table_name": pa.array(["usr"] * KEYS)}
    rows = pa.RecordBatch.from_pydict(cells | {"table_key": keys})
    shares = by_object(tablesfile.read(TABLES), (), rows) % exchange.shares[0]
    return int(np.bincount(shares, minlength=exchange.shares[0]).max() * TERABYTE // KEYS)


def runs_of_all(tasks: int) -> bool:
    """Return whether the runs of record_ids that so many tasks may note are repeated."""
    count = most_runs(tasks)
    begins = np.arange(count) * 2
    runs = (np.stack([begins, begins], axis=1) + task * 2 * count for task in range(tasks))
    return have_repeats(runs)


def main(folder: Path) -> None:
    """Print the figures."""
    spark = start("local[2]", {"spark.driver.memory": "1g"})
    measured(spark, ranges(TASKS))  # a first job is slower
    pieces = ranges(TERABYTE // PIECE)
    results = [measured(spark, ranges(TASKS)), measured(spark, pieces)]
    results += [measured(spark, small_files(spark, folder / str(n), n)) for n in (TASKS, SMALL_FILES)]
    feed = tasks_of(spark, pieces, measure)
    exchange = Exchange.of([feed], TASKS, FileBytes(TERABYTE, TERABYTE))
    assert not runs_of_all(len(pieces))
    status = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/status").read_text()
    figures = {
        "tasks": [result._asdict() for result in results],
        "largest_share": largest_share(exchange),
        "driver": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        "java": int(status.partition("VmHWM:")[2].split()[0]) << 10,
    }
    print(json.dumps(figures))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
