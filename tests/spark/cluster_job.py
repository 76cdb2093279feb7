"""A job on two executors with inputs and output in a store; it prints the files there at each step.

    python cluster_job.py MARKS LOG CURRENT OUT

One executor dies in the midst of a task. One attempt has written its part and does not report it until
another attempt at it has begun. Then two runs of one job meet at the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eventlog_spark.backlog import pipeline
from eventlog_spark.backlog.job import Backlog, run_job
from eventlog_spark.cluster.session import start
from eventlog_spark.io.batches import answers_of
from eventlog_spark.io.output_folder import Delivered
from pyarrow import fs
from pyspark import TaskContext

from tests import frugal, storage
from tests.spark.helpers import CLOCK, job

MARKS = Path(sys.argv[1])
SPECULATION = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": frugal.JAVA,
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
}


def first(name: str) -> bool:
    """Return whether this is the first caller."""
    try:
        (MARKS / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def killed(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches; the first executor that sees one dies."""
    for batch in batches:
        if first("killed"):
            status = Path(f"/proc/{os.getppid()}/status").read_text()
            executor = int(status.partition("PPid:")[2].split()[0])
            assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
            os.kill(executor, signal.SIGKILL)
        yield batch


class Slow:
    """Do the work of a task; the first attempt waits for another attempt at the same part."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        attempts = f"attempt-{context.stageId()}-{context.partitionId()}-*"
        (MARKS / attempts.replace("*", uuid.uuid4().hex)).touch()
        reported = list(self._work(killed(batches)))
        before = len(list(MARKS.glob(attempts)))
        deadline = time.monotonic() + 120
        if first("slow"):
            while len(list(MARKS.glob(attempts))) == before and time.monotonic() < deadline:
                time.sleep(0.05)
        yield from reported


def main(log: str, current: str, out: str) -> None:
    """Run the jobs."""
    spark = start("local-cluster[2,1,1024]", SPECULATION | storage.conf())
    vars(pipeline)["answers_of"] = lambda frame, work: answers_of(frame, Slow(work))

    def listed(stage: str) -> None:
        place = out.partition("://")[2]
        chosen = fs.FileSelector(place, allow_not_found=True, recursive=True)
        files = storage.filesystem().get_file_info(chosen)
        names = sorted(file.path[len(place) + 1 :] for file in files if file.type == fs.FileType.File)
        print(json.dumps([stage, names]), flush=True)

    done = replace(job([], Path(), [("usr", current)]), inputs=(log,), output=out)
    wanted = Backlog(done, CLOCK, partitions=3)
    run_job(spark, wanted, listed, "troubled")
    listed("done")
    vars(pipeline)["answers_of"] = answers_of
    print(json.dumps(["again", run_job(spark, wanted, name="troubled").before]), flush=True)
    print(json.dumps(["second", meeting(spark, replace(wanted, job=replace(done, output=f"{out}2")))]))
    spark.stop()


def meeting(spark: Any, wanted: Backlog) -> str:
    """Return the error of a run that another run of its job overtook."""

    def overtaken(stage: str) -> None:
        if stage == "commit":
            run_job(spark, wanted)

    try:
        run_job(spark, wanted, overtaken)
    except Delivered as fault:
        return str(fault)
    return "nothing"


if __name__ == "__main__":
    main(*sys.argv[2:])
