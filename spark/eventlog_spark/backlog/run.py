"""A backlog from start to end, as a person sees it: session, stages, summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from eventlog.core.extras import extra
from eventlog.core.plurals import quantity
from eventlog.formats import format_named
from eventlog_spark.backlog.history import BacklogRun, compared, last, note
from eventlog_spark.backlog.job import Backlog, Result, run_job
from eventlog_spark.backlog.live_log import Live, run_live
from eventlog_spark.backlog.report import write as write_report
from eventlog_spark.cluster.progress import Tell, watched
from eventlog_spark.cluster.session import session, translated
from eventlog_spark.io.refused import keep

Say = Callable[[str], None]


class Pages(NamedTuple):
    """The files that a run writes next to its output."""

    report: Path | None = None
    refused: Path | None = None
    history: Path | None = None


class Clock:
    """The durations of stages."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._begun = self._latest = time.monotonic()
        self._name = ""
        self._phases: dict[str, float] = {}

    def stage(self, name: str) -> None:
        """Begin the next stage."""
        self._say(f"{name} ({time.monotonic() - self._begun:.0f} s)")
        self._end()
        self._name = name

    def phases(self) -> dict[str, float]:
        """Return how long each stage took until now."""
        self._end()
        return dict(self._phases)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def _end(self) -> None:
        now = time.monotonic()
        if self._name:
            self._phases[self._name] = self._phases.get(self._name, 0.0) + round(now - self._latest, 3)
        self._latest = now


def run(
    backlog: Backlog,
    live: Live | None,
    master: str | None,
    conf: Mapping[str, str],
    pages: Pages,
    say: Say,
    tell: Tell,
) -> int:
    """Do the job; how many records were left out. `tell` hears how far it is."""
    if backlog.job.given.get("kafka"):
        with extra("kafka", "--kafka"):
            from eventlog_spark.backlog.frozen_topics import run_topics
    job = backlog.job
    before = None if pages.history is None else last(pages.history, job.source_format, job.target_format)
    folded = format_named(job.source_format).folded
    with translated(), session(master, conf) as spark, watched(spark, tell, folded):
        clock = Clock(say)  # Spark's own start is no part of the job
        if live is not None:
            result = run_live(spark, backlog, live, clock.stage)
        elif job.given.get("kafka"):
            result = run_topics(spark, backlog, clock.stage)
        else:
            result = run_job(spark, backlog, clock.stage)
        done = _done(backlog, result, clock)
        if pages.report is not None:
            clock.stage("report")
            write_report(spark, pages.report, backlog, result, done, before)
        if pages.refused is not None:
            keep(result.folder.refused(), pages.refused)
    for sentence in sentences(result, done.seconds):
        say(sentence)
    if not result.before:
        for sentence in compared(done, before) if before is not None else ():
            say(sentence)
        if pages.history is not None:
            note(pages.history, done)
    return done.refused


def _done(backlog: Backlog, result: Result, clock: Clock) -> BacklogRun:
    counts = result.manifest["counts"]
    ended = datetime.now(UTC).isoformat(" ", "seconds")
    formats = backlog.job.source_format, backlog.job.target_format
    return BacklogRun(ended, *formats, counts["rows"], counts["refused"], clock.seconds, clock.phases())


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
