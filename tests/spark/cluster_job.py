"""A backlog on two executors, with a store, while one executor dies and one attempt is late.

python cluster_job.py MARKS LOG CURRENT OUT
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eventlog_spark import backlog
from eventlog_spark.session import start
from pyspark import TaskContext

from tests.kit import frugal, storage
from tests.kit.support import patient
from tests.spark.helpers import CLOCK, job

SPECULATION = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": frugal.JAVA,
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
}


class Troubled:
    """A task that passes documents on; one executor dies, and one attempt waits for another."""

    def __init__(self, marks: Path) -> None:
        self._marks = marks

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        attempts = f"attempt-{context.stageId()}-{context.partitionId()}"
        (self._marks / f"{attempts}-{context.taskAttemptId()}").touch()
        for batch in batches:
            yield batch
            if batch.num_rows and self._first("killed"):
                status = Path(f"/proc/{os.getppid()}/status").read_text()
                executor = int(status.partition("PPid:")[2].split()[0])
                assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
                os.kill(executor, signal.SIGKILL)
        before = len(list(self._marks.glob(f"{attempts}-*")))
        deadline = time.monotonic() + patient(120)
        if self._first("slow"):
            while len(list(self._marks.glob(f"{attempts}-*"))) == before and time.monotonic() < deadline:
                time.sleep(0.05)

    def _first(self, name: str) -> bool:
        """Return whether this is the first caller."""
        try:
            (self._marks / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def main(marks: str, log: str, current: str, out: str) -> None:
    """Run the job."""

    spark = start("local-cluster[2,1,1024]", SPECULATION | storage.conf())
    read = backlog.LogFiles.rows
    work = Troubled(Path(marks))
    vars(backlog)["LogFiles"].rows = lambda *arguments: (frame := read(*arguments)).mapInArrow(
        work, frame.schema
    )
    conversion = replace(job([], Path(), [("usr", current)]), inputs=(log,), output=out)
    backlog.run(spark, backlog.Backlog(conversion, CLOCK, partitions=3))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
