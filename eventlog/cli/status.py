"""eventlog status: the state of the log and its publisher."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Shade, show
from eventlog.core.plurals import quantity
from eventlog.publisher.log_status import LogStatus, read_log_status
from eventlog.publisher.open_log import opened


@click.command(cls=SettingsCommand, short_help="Show the state of the log")
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@live_options(DATABASE)
def status(as_json: bool, config_file: Path | None, verbose: bool, log_format: str, **flags: Any) -> None:
    """Show what is pending and since when, what failed, who publishes, and what the last cycle did."""
    with opened(read_live(flags, config_file, verbose, log_format)) as store:
        standing = read_log_status(store)
    if as_json:
        show(json.dumps(asdict(standing), default=str))
        return
    for name, fact in _lines(standing):
        show(Shade(f"{name:<12}", _COLOURS.get(name, "bright_black")), f" {fact}")


# What somebody should see to; the other names are there to be found.
_COLOURS = {
    "publisher": "yellow",
    "not published": "red",
    "waiting": "yellow",
    "status E": "red",
    "status F": "red",
    "paused": "yellow",
    "status S": "green",
}


def _lines(standing: LogStatus) -> Iterator[tuple[str, str]]:
    age = "" if standing.oldest_age is None else f", the oldest for {_span(standing.oldest_age)}"
    yield "pending", f"{standing.pending}{age}"
    if standing.waiting:
        yield (
            "waiting",
            f"{quantity(standing.waiting, 'event')} for a retry, the next at {standing.next_retry}",
        )
    for letter, tables in standing.counts.items():
        listed = ", ".join(f"{table} {rows}" for table, rows in tables.items())
        yield f"status {letter}", f"{sum(tables.values())}  ({listed})"
    if standing.paused is not None:
        yield "paused", standing.paused
    for table, why in standing.cycle.get("unread", {}).items():
        yield "not published", f"{table}: {why}"
    yield "leader", f"{standing.leader or 'none yet'}, since {standing.leader_since}, epoch {standing.epoch}"
    if standing.holder is None:
        yield "publisher", "no publisher is running, as far as the database shows"
    else:
        yield "lock", str(standing.holder)
    if standing.cycle_at is not None:
        yield "last cycle", f"{standing.cycle_at}: {_cycle(standing.cycle)}"
    if standing.heartbeat_at is not None:
        yield "heartbeat", str(standing.heartbeat_at)


def _cycle(cycle: Any) -> str:
    seconds = cycle.get("seconds") or 0.0
    rate = f", {cycle['events'] / seconds:.0f} events/s" if cycle.get("events") and seconds else ""
    down = f"; the sink takes nothing: {cycle['down']}" if cycle.get("down") else ""
    counts = ", ".join(f"{cycle.get(name, 0)} {name}" for name in ("rows", "documents", "events", "refused"))
    return f"{counts}, in {seconds:.3f} s{rate}{down}"


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
