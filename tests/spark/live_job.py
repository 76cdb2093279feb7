"""A stream over a live log in a process group of its own, which kills itself.

    python -m tests.spark.live_job URL FOLDER FORM

FORM is `offset` (a pick-up is taken, its offset is not written) or `batch` (half of a batch is written). Or
it is `ended` (a batch is written, its rows are not finished), `finish` (some of its rows are), or `end`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

from eventlog_spark.cluster.session import start
from eventlog_spark.data_sources import LogSource
from eventlog_spark.stream.log_reader import LogStreamReader

from eventlog.publisher import confirmed_pickups as pickups


def die() -> None:
    os.killpg(0, signal.SIGKILL)


def die_after(batches: int) -> None:
    """Kill this process when so many batches of a pick-up are finished, and one is not."""
    pick_ups: Any = pickups.PickUps
    work, left = pick_ups._finish, iter(range(batches))

    def finish(taking: Any, *batch: Any) -> None:
        if next(left, None) is None:
            die()
        work(taking, *batch)

    pick_ups._finish = finish


class DyingReader(LogStreamReader):
    """Kill the process that Spark asks for offsets."""

    form: str

    def latestOffset(self, begin: Any, limit: Any) -> Any:  # noqa: N802
        pickups.MOST_EVENTS = 1
        later = begin["pick-up"] > 0
        if later and self.form == "ended":
            die()
        if later and self.form == "finish":
            die_after(1)
        end = super().latestOffset(begin, limit)
        if end != begin and self.form == "offset":
            die()
        return end


class DyingSource(LogSource):
    """The stream with a reader that dies."""

    def streamReader(self, schema: Any) -> Any:  # noqa: N802
        given = dict(self.options)
        reader = DyingReader(given, {})
        reader.form = os.environ["LIVE_FORM"]
        return reader


def main(url: str, folder: Path, form: str) -> None:
    os.environ["LIVE_FORM"] = form
    spark = start("local[2]", {})
    spark.dataSource.register(DyingSource)
    given = {"url": url, "sync-tables": "usr", "allow-loopback": "true", "query-limit": "3"}
    stream = spark.readStream.format("eventlog").options(**given, frozen=str(folder / "frozen")).load()

    def each(batch: Any, number: int) -> None:
        rows = [row.asDict(recursive=True) for row in batch.orderBy("place").collect()]
        reported = rows[:1] if form == "batch" else rows
        file = folder / "out" / f"{number}-{uuid.uuid4().hex}.json"
        file.write_text(json.dumps(reported))
        if form == "batch":
            die()

    writer = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
