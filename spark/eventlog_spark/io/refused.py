"""Refused records: where each was, why, and as it came; and record_ids that are there more than once."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core.errors import Refused
from eventlog_spark.io import log_rows
from eventlog_spark.io.batches import answer, answers_of
from eventlog_spark.io.folder_files import Files, LocalFiles, spark_names
from eventlog_spark.io.part_files import PartFile
from eventlog_spark.io.task import Attempt, Ids, Summary, Task

_WINDOW = 4_000_000  # ids compared at a time


def explain(
    spark: Any, task: Task, clock: str, files: log_rows.LogFiles, summaries: Sequence[Summary], again: Any
) -> list[PartFile]:
    """Return the files of the rows that the tasks left out without knowing their places."""
    if not any(part.refused or part.unreadable for part in summaries) and again is None:
        return []
    reasons = _reasons(spark, task.layout.work, summaries, again)
    rows = log_rows.located(spark, files, clock, reasons).sortWithinPartitions("position")
    explained: list[Summary] = answers_of(rows, _Keep(task))
    return [file for part in explained for file in part.explained]


def _reasons(spark: Any, work: Files, summaries: Sequence[Summary], again: Any) -> Any:
    files = spark_names(work, [part.refused for part in summaries if part.refused])
    none = spark.createDataFrame([], "record_id long, reason string")
    reasons = spark.read.parquet(*files) if files else none
    if again is None:
        return reasons
    text = f.format_string("%d rows have record_id %d", "times", "record_id").alias("reason")
    return reasons.unionByName(again.select("record_id", text))


class _Keep:
    """Writes the explained records of a partition."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self._task) as attempt:
            for batch in batches:
                for row in batch.to_pylist():
                    ids = () if row["record_id"] is None else (row["record_id"],)
                    attempt.refuse(Refused(row["position"], row["reason"], row["raw"]), ids)
        yield answer(attempt.summary)


def keep(lines: Iterable[str], file: Path) -> None:
    """The refused records of an output folder in one file, as they came."""
    with file.open("wb") as kept:
        kept.writelines(_record(json.loads(line)) for line in lines)


def _record(line: dict[str, Any]) -> bytes:
    return base64.b64decode(line["base64"]) if "base64" in line else line.get("record", "").encode()


# --- record_ids that are in the input more than once: none of their rows can be believed


def repeated_in(folder: Files, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield each id that the files of a folder hold more than once, and how often; those of a store are
    fetched.
    """
    if isinstance(folder, LocalFiles):
        yield from repeated(Path(folder.name(name)) for name in names)
        return
    with tempfile.TemporaryDirectory(prefix="eventlog-") as here:
        for name in names:
            with folder.open(name) as there, (Path(here) / name).open("wb") as file:
                shutil.copyfileobj(there, file)
        yield from repeated(Path(here) / name for name in names)


def repeated(files: Iterable[Path], window: int = _WINDOW) -> Iterator[tuple[int, int]]:
    """Yield each id that the sorted files hold more than once, and how often."""
    held = [ids for ids in (np.load(file, mmap_mode="r") for file in files) if len(ids)]
    at = [0] * len(held)
    while live := [n for n, ids in enumerate(held) if at[n] < len(ids)]:
        share = max(1, window // len(live))
        bound = min(held[n][min(at[n] + share, len(held[n])) - 1] for n in live)
        ends = {n: int(np.searchsorted(held[n], bound, "right")) for n in live}
        yield from _counted(np.concatenate([held[n][at[n] : ends[n]] for n in live]))
        for n in live:
            at[n] = ends[n]


def _counted(ids: Ids) -> Iterator[tuple[int, int]]:
    ids = np.sort(ids)
    again = np.unique(ids[1:][ids[1:] == ids[:-1]])
    first, end = np.searchsorted(ids, again, "left"), np.searchsorted(ids, again, "right")
    yield from zip(again.tolist(), (end - first).tolist(), strict=True)
