"""A backlog from start to end, as a person sees it: session, stages, summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from eventlog.core.plurals import quantity
from eventlog_spark.backlog.job import Backlog, Result, run_job
from eventlog_spark.backlog.live_log import Live, run_live
from eventlog_spark.cluster.session import session, translated
from eventlog_spark.io.refused import keep

Say = Callable[[str], None]


def run(
    backlog: Backlog,
    live: Live | None,
    master: str | None,
    conf: Mapping[str, str],
    refused: Path | None,
    say: Say,
) -> int:
    """Do the job; return how many records were left out. Their bytes are also kept in the file `refused`."""
    with translated(), session(master, conf) as spark:
        begun = time.monotonic()  # Spark's own start is no part of the job

        def stage(name: str) -> None:
            say(f"{name} ({time.monotonic() - begun:.0f} s)")

        result = run_job(spark, backlog, stage) if live is None else run_live(spark, backlog, live, stage)
        if refused is not None:
            keep(result.folder.refused(), refused)
        seconds = time.monotonic() - begun
    for sentence in sentences(result, seconds):
        say(sentence)
    left_out: int = result.manifest["counts"]["refused"]
    return left_out


def sentences(result: Result, seconds: float) -> list[str]:
    """Yield sentences about what was done."""
    counts = result.manifest["counts"]
    rows = quantity(counts["rows"], "row")
    finished = [] if result.finished is None else [f"{quantity(result.finished, 'row')} finished in the log"]
    if result.before:
        return [*finished, f"nothing to do: the folder holds the output of this job ({rows})"]
    lines = [f"{rows} in {seconds:.0f} s, {counts['rows'] / max(seconds, 0.001):.0f} rows/s"]
    lines += [f"{quantity(number, 'event')}: {name}" for name, number in result.manifest["events"].items()]
    fates = [(fate, number) for fate, number in counts.items() if fate != "rows" and number]
    lines += [f"{quantity(number, 'row')} {fate}" for fate, number in fates]
    lines += [f"left out: {where}: {reason}" for where, reason in result.summary.reasons]
    return lines + finished
