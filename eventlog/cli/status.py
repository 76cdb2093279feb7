"""eventlog status: the state of the log and its publisher."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from eventlog.cli.log_options import DATABASE, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Listing, show
from eventlog.core.entry import Letter
from eventlog.core.plurals import duration, quantity, roughly
from eventlog.core.remedies import Remedy
from eventlog.opening.config import Config

if TYPE_CHECKING:
    from eventlog.opening.log_status import LogStatus, SlotStatus


@click.command(cls=SettingsCommand)
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@live_options(DATABASE)
def status(as_json: bool, config: Config) -> None:
    """Show what is pending and since when, what failed, who publishes, and what the last cycle did."""
    from eventlog.opening.log_status import read_log_status  # SQLAlchemy takes a while to load
    from eventlog.opening.open_log import opened

    with opened(config) as store:
        state = read_log_status(store)
    if as_json:
        show(json.dumps(asdict(state), default=str))
        return
    Listing(("", ""), "{:<12} {}", _STYLES).show(_facts(state))


_WORDS = {letter.value: f"{letter} {letter.name.lower()}" for letter in Letter}

# What somebody should see to, and what is well.
_STYLES = {
    "publisher": "yellow",
    "not published": "red",
    "waiting": "yellow",
    "E error": "red",
    "F fatal": "red",
    "pausing": "yellow",
    "paused": "yellow",
    "S success": "green",
}


def _facts(state: LogStatus) -> Iterator[tuple[str, str]]:
    yield "pending", f"{state.pending}{_age(state.moving_age)}"
    if state.flow is not None:
        rates = f"{state.flow.arriving:.1f} rows/s come, {state.flow.finishing:.1f} rows/s go"
        yield "rate", f"{rates}: {state.outlook}" if state.outlook else rates
    if state.waiting:
        held_rows = f"{quantity(state.held_rows, 'row')} of their objects{_age(state.held_age)}"
        yield (
            "waiting",
            f"{quantity(state.waiting, 'event')} for a retry, the next at {state.next_retry}; {held_rows}",
        )
    for letter, tables in state.counts.items():
        listed = ", ".join(f"{table} {rows}" for table, rows in tables.items())
        skips = f", those that `{Remedy.HISTORY}` names were skipped" if letter == Letter.WARNING else ""
        yield _WORDS.get(letter, letter), f"{sum(tables.values())}  ({listed}){skips}"
    if state.paused is not None:
        since = f"{state.paused}, since {state.paused_at}; `{Remedy.RESUME}` ends it"
        yield ("pausing", f"this batch; {since}") if state.pausing else ("paused", since)
    for table, why in state.cycle.get("unread", {}).items():
        yield "not published", f"{table}: {why}"
    since = f", since {state.leader_since}, epoch {state.epoch}"
    yield "leader", "none yet" if state.leader is None else f"{state.leader}{since}"
    if state.holder is None:
        yield "publisher", "no publisher is running, as far as the database shows"
    else:
        yield "lock", str(state.holder)
    if (slot := state.slot) is not None:
        yield "slot", f"{slot.name}: {_slot(slot)}"
    if state.running:
        cycle = state.cycle
        progress = f"{cycle.get('finished', 0)} of {cycle.get('rows', 0)} rows finished"
        yield "running", f"{progress}, {_cycle(cycle)}"
    if state.cycle.get("down"):
        yield "receiver", f"takes nothing: {state.cycle['down']}"
    if state.worked is not None:
        yield "last cycle", f"{state.worked['at']}: {_cycle(state.worked)}"
    elif state.cycle_at is not None and not state.running:
        yield "last cycle", f"{state.cycle_at}: nothing to do"
    if (audit := state.audit) is not None:
        facts = f"{quantity(audit.rows, 'row')}, {quantity(audit.breaches, 'breach', 'breaches')}"
        yield "last audit", f"{duration(audit.age)} ago: {facts}, digest {audit.digest[:12]}"
    if state.heartbeat_at is not None:
        yield "heartbeat", str(state.heartbeat_at)


def _cycle(cycle: Any) -> str:
    seconds = cycle.get("seconds") or 0.0
    rate = f", {cycle['events'] / seconds:.0f} events/s" if cycle.get("events") and seconds else ""
    counts = ", ".join(quantity(cycle.get(f"{name}s", 0), name) for name in ("row", "document", "event"))
    return f"{counts}, {cycle.get('refused', 0)} refused, in {seconds:.3f} s{rate}"


def _slot(slot: SlotStatus) -> str:
    if slot.wal_status in (None, "lost"):
        return f"it is lost; `{Remedy.CHECK}` has the remedy"
    delay = (
        "" if slot.delay is None else f"; the last change was logged {roughly(slot.delay)} after its commit"
    )
    reading = "" if slot.is_read else ", read by no publisher"
    return (
        f"{slot.bytes_behind} bytes to read, {slot.held_bytes} bytes of the server's log held{reading}{delay}"
    )


def _age(seconds: float | None) -> str:
    return "" if seconds is None else f", the oldest for {roughly(seconds)}"
