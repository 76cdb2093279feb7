"""A page about one backlog: what came in over time, what went out, what was refused. No script, no links."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

from eventlog_spark import rows
from eventlog_spark.commit import REFUSED
from eventlog_spark.job import Backlog, Result
from eventlog_spark.storage import File

_BARS = 60  # of the plot over time
_LISTED = 20
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } td { padding: .15rem 1rem .15rem 0 } td.n { text-align: right }
svg { max-width: 100%; height: auto } rect { fill: #3b6ea5 } rect.refused { fill: #b04a3a }
text { font: 12px system-ui, sans-serif; fill: #444 }
"""


def write(spark: Any, path: Path, backlog: Backlog, result: Result, output: Path) -> None:
    """The page of a job that is done."""
    manifest = result.manifest
    sections = [
        _table("Rows", manifest["counts"].items()),
        _times(spark, backlog, manifest["inputs"]),
        _bars("Events by table and operation", manifest["events"]),
        _bars("Refused, by reason", _reasons(output / REFUSED), "refused"),
    ]
    title = f"Backlog {manifest['job']}: {manifest['from']} to {manifest['to']}"
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{''.join(sections)}</html>\n"
    )
    path.write_text(page, "utf-8", errors="replace")


def _times(spark: Any, backlog: Backlog, inputs: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a log over their event_time."""
    if backlog.job.source_format != "log":
        return ""
    files = rows.sort_out([File(**file) for file in inputs])
    frame = rows.read(spark, files, backlog.rules, backlog.clock, None, wide=True)
    hours = frame.where("event_time is not null").groupBy(f.substring("event_time", 1, 13).alias("hour"))
    counted = {row["hour"]: row["count"] for row in hours.count().collect()}
    return _plot("Rows over time", _coarser(counted))


def _coarser(hours: Mapping[str, int]) -> dict[str, int]:
    """By the hour, the day, the month or the year: whatever gives few enough bars."""
    for length in (13, 10, 7, 4):
        counted: Counter[str] = Counter()
        for hour, count in hours.items():
            counted[hour[:length]] += count
        if len(counted) <= _BARS:
            break
    return dict(sorted(counted.items()))


def _reasons(folder: Path) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        with path.open(encoding="utf-8") as lines:
            counted.update(json.loads(line)["reason"] for line in lines)
    return dict(counted.most_common(_LISTED))


def _table(title: str, cells: Iterable[tuple[str, int]]) -> str:
    listed = "".join(f'<tr><td>{escape(name)}<td class="n">{count:,}' for name, count in cells)
    return f"<h2>{escape(title)}</h2><table>{listed}</table>"


def _plot(title: str, counted: Mapping[str, int]) -> str:
    """Upright bars in the order of their names."""
    if not counted:
        return ""
    most, width = max(counted.values()), 900 / len(counted)
    bars = "".join(
        f'<rect x="{n * width:.1f}" y="{160 - 150 * count / most:.1f}" width="{width * 0.9:.1f}" '
        f'height="{150 * count / most:.1f}"><title>{escape(name)}: {count:,}</title></rect>'
        for n, (name, count) in enumerate(counted.items())
    )
    first, last = escape(min(counted)), escape(max(counted))
    axis = f'<text x="0" y="176">{first}</text><text x="900" y="176" text-anchor="end">{last}</text>'
    return f'<h2>{escape(title)}</h2><svg viewBox="0 0 900 180" role="img">{bars}{axis}</svg>'


def _bars(title: str, counted: Mapping[str, int], kind: str = "") -> str:
    """Lying bars with their names and counts."""
    if not counted:
        return ""
    most = max(counted.values())
    bars = "".join(
        f'<rect class="{kind}" x="0" y="{n * 40 + 18}" width="{max(2, 700 * count / most):.1f}" height="14"/>'
        f'<text x="0" y="{n * 40 + 13}">{escape(name[:140])}: {count:,}</text>'
        for n, (name, count) in enumerate(counted.items())
    )
    height = 40 * len(counted)
    return f'<h2>{escape(title)}</h2><svg viewBox="0 0 900 {height}" role="img">{bars}</svg>'
