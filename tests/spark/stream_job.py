"""A stream into Delta tables in a process of its own, to be killed.

    python -m tests.spark.stream_job INBOX FOLDER FORM

FORM: `follow`, `between` (it kills itself between the commits of two tables), or `end` (with what is there).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from deltalake.table import TableMerger
from eventlog_spark import into_tables
from eventlog_spark.cluster.session import start

from tests.spark.messages import TABLES, stream


def die_between_two_commits() -> None:
    """The second commit of `account` is the last; `entry`, which is later, lacks its part."""
    merging: Any = TableMerger
    execute, done = merging.execute, list[str]()

    def counted(merger: Any) -> Any:
        reported = execute(merger)
        done.extend(uri for uri in (merger._table.table_uri(),) if uri.rstrip("/").endswith("account"))
        if len(done) > 1:
            os.killpg(0, signal.SIGKILL)
        return reported

    merging.execute = counted


def main(inbox: str, folder: str, form: str) -> None:
    spark = start("local[2]", {})
    if form == "between":
        die_between_two_commits()
    query = into_tables(
        stream(spark, Path(inbox), 1000 if form == "end" else 1),
        TABLES,
        to_delta=Path(folder) / "lake",
        checkpoint=str(Path(folder) / "checkpoint"),
        interval="1 second",
        available_now=form == "end",
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
