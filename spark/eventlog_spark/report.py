"""A page about one backlog: what came in over time, what went out, what was refused. No script, no links."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

from eventlog.web.chart import bars
from eventlog.web.layout import Column, facts, paper, table
from eventlog.web.markup import Markup, Node, tag
from eventlog.web.server import packaged
from eventlog.web.words import count, duration
from eventlog_spark.cluster.stores import Stores
from eventlog_spark.input import rows
from eventlog_spark.input.storage import File
from eventlog_spark.job import Backlog, Result

_BARS = 120  # of the plot over time
_LISTED = 20
_NUMBER = Column("Number", "number")

# Beginnings of an event_time: their length, how they are read, the seconds between two where that is fixed.
_MINUTE, _HOUR, _DAY = (16, "%Y-%m-%d %H:%M", 60), (13, "%Y-%m-%d %H", 3_600), (10, "%Y-%m-%d", 86_400)
_MONTH, _YEAR = (7, "%Y-%m", 0), (4, "%Y", 0)


def write(spark: Any, path: Path, backlog: Backlog, result: Result, seconds: float) -> None:
    """The page of a job that is done, and took so long until here."""
    manifest = result.manifest
    content = [
        facts(_facts(backlog, result, seconds)),
        _times(spark, backlog, manifest["inputs"]),
        _counts("Rows", "What became of them", manifest["counts"]),
        _counts("Events", "Table and operation", manifest["events"]),
        _counts("Refused", "Reason", _reasons(result.folder.refused())),
        _inputs(manifest["inputs"]),
    ]
    title = f"{manifest['from']} to {manifest['to']}"
    page = paper(title, *content, product=f"eventlog backlog {manifest['job']}", style=packaged("page.css"))
    path.write_text(page, "utf-8", errors="replace")


def _facts(backlog: Backlog, result: Result, seconds: float) -> Iterator[tuple[str, Node]]:
    handled = result.manifest["counts"]["rows"]
    yield "Rows", count(handled)
    yield "Duration", "none: the folder held the output" if result.before else duration(seconds)
    if not result.before:
        yield "Speed", f"{count(round(handled / max(seconds, 0.001)))} rows a second"
    yield "Output", backlog.job.output
    yield "Order", result.manifest["order"]


def _inputs(inputs: Sequence[Mapping[str, Any]]) -> Markup:
    shown = [(file["name"], file["container"], count(file["size"])) for file in inputs[:_LISTED]]
    more = f"Inputs, the first {_LISTED} of {count(len(inputs))}" if len(inputs) > _LISTED else "Inputs"
    return table(more, ("File", Column("Container", "short"), Column("Bytes", "number")), shown, "No files.")


def _counts(title: str, name: str, counted: Mapping[str, int]) -> Node:
    if not counted:
        return None
    caption = f"{count(sum(counted.values()))} in all" if title != "Rows" else ""
    return [tag("h2", title), table(caption, (name, _NUMBER), [(n, count(c)) for n, c in counted.items()])]


def _times(spark: Any, backlog: Backlog, inputs: Sequence[Mapping[str, Any]]) -> Node:
    """The rows of a log over their event_time."""
    if backlog.job.source_format != "log":
        return None
    named = [File(**file) for file in inputs]
    files = rows.sort_out(named, stores=Stores.reached(spark, (file.name for file in named)))
    frame = rows.read(spark, files, backlog.rules, backlog.clock, None, True, backlog.job.tables, False)
    counted = _counted(frame, _HOUR[0])
    if len(counted) * 60 <= _BARS:
        counted = _counted(frame, _MINUTE[0])
    return bars("Rows over time", over_time(counted))


def _counted(frame: Any, length: int) -> dict[str, int]:
    """The rows by the beginning of their event_time."""
    when = f.translate(f.substring("event_time", 1, length), "T", " ").alias("moment")
    found = frame.where("event_time is not null").groupBy(when).count().collect()
    return {row["moment"]: row["count"] for row in found}


def over_time(counted: Mapping[str, int]) -> dict[str, int]:
    """By the minute, hour, day, month or year, whatever is the finest that gives few enough bars; a time in
    which nothing happened has a bar of none."""
    if not counted:
        return {}
    for length, form, step in (_MINUTE, _HOUR, _DAY, _MONTH, _YEAR):
        if any(len(moment) < length for moment in counted):
            continue
        coarser: Counter[str] = Counter()
        for moment, number in counted.items():
            coarser[moment[:length]] += number
        if len(coarser) <= _BARS and (not step or _span(coarser, form) < _BARS * step):
            return _filled(coarser, form, step) if step else dict(sorted(coarser.items()))
    return dict(sorted(coarser.items())[-_BARS:])


def _span(counted: Mapping[str, int], form: str) -> float:
    """The seconds from the first to the last."""
    first, last = (datetime.strptime(moment, form) for moment in (min(counted), max(counted)))
    return (last - first).total_seconds()


def _filled(counted: Mapping[str, int], form: str, step: int) -> dict[str, int]:
    first = datetime.strptime(min(counted), form)
    moments = range(int(_span(counted, form)) // step + 1)
    names = (f"{first + timedelta(seconds=n * step):{form}}" for n in moments)
    return {name: counted.get(name, 0) for name in names}


def _reasons(lines: Iterable[str]) -> dict[str, int]:
    counted = Counter(json.loads(line)["reason"] for line in lines)
    return dict(counted.most_common(_LISTED))
