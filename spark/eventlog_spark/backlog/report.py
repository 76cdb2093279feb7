"""A page about one backlog: what came in over time, what went out, what was refused. No script, no links."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from pyspark.sql import functions as f

from eventlog.web.chart import bars
from eventlog.web.layout import PageColumn, clipped, facts, paper, table
from eventlog.web.markup import Markup, Node, tag
from eventlog.web.server import packaged
from eventlog.web.words import count, duration
from eventlog_spark.backlog.history import BacklogRun, compared
from eventlog_spark.backlog.job import Backlog, Result
from eventlog_spark.cluster.stores import Stores
from eventlog_spark.io import log_rows
from eventlog_spark.io.storage import File

_BARS = 120  # of the plot over time
_LISTED = 20
_LARGEST = 10  # objects
_REASONS = 200  # that are listed separately
_SAMPLES = 3  # of each reason
_SHOWN = 200  # letters of a record or a key
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|[0-9]+")
_NUMBER = PageColumn("Number", "number")

# Beginnings of an event_time: their length, how they are read, the seconds between two where that is fixed.
_MINUTE, _HOUR, _DAY = (16, "%Y-%m-%d %H:%M", 60), (13, "%Y-%m-%d %H", 3_600), (10, "%Y-%m-%d", 86_400)
_MONTH, _YEAR = (7, "%Y-%m", 0), (4, "%Y", 0)


def write(
    spark: Any,
    path: Path,
    backlog: Backlog,
    result: Result,
    done: BacklogRun,
    before: BacklogRun | None = None,
) -> None:
    """The page of a job that is done; `before` is what the last one came to."""
    manifest = result.manifest
    frame = _frame(spark, backlog, manifest["inputs"])
    content = [
        facts(_facts(backlog, result, done, before)),
        _phases(result, done, before),
        None if frame is None else _times(frame),
        _counts("Rows", "What became of them", manifest["counts"]),
        _counts("Events", "Table and operation", manifest["events"]),
        None if frame is None else _largest(frame, done.rows),
        _parts(manifest["parts"]),
        _refusals(reasons(result.folder.refused())),
        _inputs(manifest["inputs"]),
    ]
    title = f"{manifest['from']} to {manifest['to']}"
    page = paper(title, *content, product=f"eventlog backlog {manifest['job']}", style=packaged("page.css"))
    path.write_text(page, "utf-8", errors="replace")


def _facts(
    backlog: Backlog, result: Result, done: BacklogRun, before: BacklogRun | None
) -> Iterator[tuple[str, Node]]:
    yield "Rows", count(done.rows)
    yield "Duration", "none: the folder held the output" if result.before else duration(done.seconds)
    if not result.before:
        yield "Speed", f"{count(round(done.speed))} rows a second"
        for number, sentence in enumerate(compared(done, before) if before is not None else ()):
            yield "" if number else "Last run", sentence
    yield "Output", backlog.job.output
    yield "Order", result.manifest["order"]


def _phases(result: Result, done: BacklogRun, before: BacklogRun | None) -> Node:
    if result.before:
        return None
    earlier = {} if before is None else before.phases
    rows = [
        (name, duration(seconds), duration(earlier[name]) if name in earlier else "")
        for name, seconds in done.phases.items()
    ]
    columns = ("Phase", PageColumn("Time", "number"), PageColumn("Last run", "number"))
    return [tag("h2", "Time"), table("", columns, rows)]


def _largest(frame: Any, rows: int) -> Node:
    """Return the objects of most rows: each is the work of one task."""
    named = f.col("table_name").isNotNull()
    found = frame.where(named).groupBy("table_name", "table_key").count()
    largest = found.orderBy(f.desc("count"), "table_name", "table_key").limit(_LARGEST).collect()
    rows_of_table = [
        (name, clipped(key or "", _SHOWN), count(number), f"{number / max(rows, 1):.1%}")
        for name, key, number in largest
    ]
    columns = ("Table", "Key", PageColumn("Rows", "number"), PageColumn("Share", "number"))
    return [
        tag("h2", "Largest objects"),
        table("One object is the work of one task.", columns, rows_of_table),
    ]


def _parts(parts: Sequence[Mapping[str, Any]]) -> Node:
    """Show how evenly the parts are filled."""
    if not parts:
        return None
    rows = [
        (name, *(count(round(of(part[key] for part in parts))) for of in (min, median, max)))
        for name, key in (("Records", "records"), ("Bytes", "bytes"))
    ]
    numbers = [PageColumn(name, "number") for name in ("Smallest", "Median", "Largest")]
    columns = [PageColumn(""), *numbers]
    return [tag("h2", "Parts"), table(f"{count(len(parts))} files", columns, rows)]


def _inputs(inputs: Sequence[Mapping[str, Any]]) -> Markup:
    shown = [(file["name"], file["container"], count(file["size"])) for file in inputs[:_LISTED]]
    more = f"Inputs, the first {_LISTED} of {count(len(inputs))}" if len(inputs) > _LISTED else "Inputs"
    return table(
        more, ("File", PageColumn("Container", "short"), PageColumn("Bytes", "number")), shown, "No files."
    )


def _counts(title: str, name: str, counted: Mapping[str, int]) -> Node:
    if not counted:
        return None
    caption = f"{count(sum(counted.values()))} in all" if title != "Rows" else ""
    return [tag("h2", title), table(caption, (name, _NUMBER), [(n, count(c)) for n, c in counted.items()])]


def _frame(spark: Any, backlog: Backlog, inputs: Sequence[Mapping[str, Any]]) -> Any:
    """Return the rows of a log once more; None for any other source."""
    if backlog.job.source_format != "log":
        return None
    named = [File(**file) for file in inputs]
    files = log_rows.sort_out(named, stores=Stores.reached(spark, (file.name for file in named)))
    return log_rows.read(spark, files, backlog.rules, backlog.clock, None, True, backlog.job.tables, False)


def _times(frame: Any) -> Node:
    """Return the rows of a log over their event_time."""
    counted = _counted(frame, _HOUR[0])
    if len(counted) * 60 <= _BARS:
        counted = _counted(frame, _MINUTE[0])
    return bars("Rows over time", over_time(counted))


def _counted(frame: Any, length: int) -> dict[str, int]:
    """Return the rows by the beginning of their event_time."""
    when = f.translate(f.substring("event_time", 1, length), "T", " ").alias("moment")
    found = frame.where("event_time is not null").groupBy(when).count().collect()
    return {row["moment"]: row["count"] for row in found}


def over_time(counted: Mapping[str, int]) -> dict[str, int]:
    """Return counts by minute, hour, day, month or year: the finest unit with few enough bars.

    A time without events has an empty bar.
    """
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
    """Return the seconds from the first to the last."""
    first, last = (datetime.strptime(moment, form) for moment in (min(counted), max(counted)))
    return (last - first).total_seconds()


def _filled(counted: Mapping[str, int], form: str, step: int) -> dict[str, int]:
    first = datetime.strptime(min(counted), form)
    moments = range(int(_span(counted, form)) // step + 1)
    names = (f"{first + timedelta(seconds=n * step):{form}}" for n in moments)
    return {name: counted.get(name, 0) for name in names}


class Reason(NamedTuple):
    """The reason for which records were refused, with some of them: their places, messages and beginnings."""

    number: int
    samples: list[tuple[str, str, str]]


def reasons(lines: Iterable[str]) -> dict[str, Reason]:
    """Return the refused records by their reason without its values, the most frequent first."""
    found: dict[str, Reason] = {}
    for line in map(json.loads, lines):
        reason = _VALUE.sub("…", line["reason"])
        if reason not in found and len(found) >= _REASONS:
            reason = "other reasons"
        number, samples = found.get(reason, Reason(0, []))
        if len(samples) < _SAMPLES:
            record = line.get("record") or line.get("base64", "")
            samples.append((line["where"], line["reason"], record[:_SHOWN]))
        found[reason] = Reason(number + 1, samples)
    return dict(sorted(found.items(), key=lambda one: -one[1].number))


def _refusals(found: Mapping[str, Reason]) -> Node:
    if not found:
        return None
    summed = [(reason, count(counted.number)) for reason, counted in found.items()]
    samples = [sample for counted in found.values() for sample in counted.samples]
    caption = f"{count(sum(counted.number for counted in found.values()))} in all"
    shown = table("Some of them", ("Where", "Reason", "Record"), samples)
    return [tag("h2", "Refused"), table(caption, ("Reason", _NUMBER), summed), shown]
