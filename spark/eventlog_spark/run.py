"""A backlog from start to end, told to a person: session, stages, summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from eventlog.core.extras import extra
from eventlog_spark.cluster.progress import Tell, watched
from eventlog_spark.cluster.session import session, translated
from eventlog_spark.job import Backlog, Result, run_job
from eventlog_spark.live.delivery import Live, run_live
from eventlog_spark.output.refused import keep
from eventlog_spark.report import write as write_report

Say = Callable[[str], None]


def run(
    backlog: Backlog,
    live: Live | None,
    master: str | None,
    conf: Mapping[str, str],
    report: Path | None,
    refused: Path | None,
    say: Say,
    tell: Tell,
) -> int:
    """Do the job; how many records were left out. `tell` hears how far it is."""
    if backlog.job.given.get("kafka"):
        with extra("kafka", "--kafka"):
            from eventlog_spark.live.topics import run_topics
    started = 0.0

    def stage(name: str) -> None:
        say(f"{name} ({time.monotonic() - started:.0f} s)")

    with translated(), session(master, conf) as spark, watched(spark, tell):
        started = time.monotonic()  # Spark's own start is no part of the job
        if live is not None:
            result = run_live(spark, backlog, live, stage)
        elif backlog.job.given.get("kafka"):
            result = run_topics(spark, backlog, stage)
        else:
            result = run_job(spark, backlog, stage)
        if report is not None:
            stage("report")
            write_report(spark, report, backlog, result, time.monotonic() - started)
    if refused is not None:
        keep(result.folder.refused(), refused)
    for sentence in sentences(result, time.monotonic() - started):
        say(sentence)
    left_out: int = result.manifest["counts"]["refused"]
    return left_out


def sentences(result: Result, seconds: float) -> list[str]:
    """What was done, for people."""
    counts = result.manifest["counts"]
    finished = [] if result.finished is None else [f"{result.finished} rows finished in the log"]
    if result.before:
        return [*finished, f"nothing to do: the folder holds the output of this job ({counts['rows']} rows)"]
    lines = [f"{counts['rows']} rows in {seconds:.0f} s, {counts['rows'] / max(seconds, 0.001):.0f} rows/s"]
    lines += [f"{number} events: {name}" for name, number in result.manifest["events"].items()]
    lines += [f"{number} rows {fate}" for fate, number in counts.items() if fate != "rows" and number]
    lines += [f"left out: {where}: {reason}" for where, reason in result.summary.reasons]
    return lines + finished
