"""eventlog status: the state of the log and its publisher."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from eventlog.cli.log_options import DATABASE, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Listing, show
from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.plurals import duration, quantity, roughly, size
from eventlog.core.remedies import Remedy
from eventlog.opening.config import Config
from eventlog.status.verdict import clock_text, largest, needs_person, verdicts_of

if TYPE_CHECKING:
    from eventlog.status.log_status import LogStatus, SlotStatus


class LogUnseen(Misuse):
    """{0}"""


@click.command(cls=SettingsCommand)
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@click.option(
    "--exit-code", "with_code", is_flag=True, help="exit with 0: good, 1: a person is needed, 2: not seen"
)
@live_options(DATABASE)
def status(as_json: bool, with_code: bool, config: Config) -> None:
    """Show the state of the log in a sentence, then what is pending, what failed, and who publishes.

    With --exit-code the exit code is 1 if rows failed, or a row has been pending for five minutes. It is 1 if
    nothing is published, too, and 2 if the log cannot be read.
    """
    from eventlog.opening.open_log import opened
    from eventlog.status.log_status import read_log_status  # SQLAlchemy takes a while to load

    try:
        with opened(config) as store:
            state = read_log_status(store)
    except EventlogError as fault:
        if with_code:
            raise LogUnseen(str(fault)) from fault
        raise
    verdicts = verdicts_of(state)
    code = int(with_code and needs_person(verdicts))
    if as_json:
        states = [verdict._asdict() | {"sentence": verdict.sentence} for verdict in verdicts]
        show(json.dumps({"states": states} | asdict(state), default=str))
        sys.exit(code)
    lines = [("also" if at else "state", verdict.sentence) for at, verdict in enumerate(verdicts)]
    styles = _STYLES | {"state": _COLOURS[verdicts[0].severity], "also": "yellow"}
    Listing(("", ""), "{:<12} {}", styles).show([*lines, *_facts(state)])
    sys.exit(code)


_TABLES = 8  # of a letter, that are named
_WORDS = {letter.value: f"{letter} {letter.name.lower()}" for letter in Letter}

_COLOURS = {"error": "red", "warning": "yellow", "retry": "yellow", "success": "green"}
_STYLES = {  # what somebody should see to, and what is well
    "not published": "red",
    "E error": "red",
    "F fatal": "red",
    "S success": "green",
}


def _facts(state: LogStatus) -> Iterator[tuple[str, str]]:
    yield "pending", f"{state.pending}{_age(state.moving_age)}"
    if state.flow is not None:
        rates = f"{state.flow.arriving:.1f} rows/s come, {state.flow.finishing:.1f} rows/s go"
        yield "rate", f"{rates}: {state.outlook}" if state.outlook else rates
    if state.arrivals:
        total = f"{sum(state.arrivals.values())} in the last minute"
        yield "arrivals", f"{total}  ({largest(state.arrivals.items(), _TABLES)})"
    for letter, tables in state.counts.items():
        listed = largest(tables.items(), _TABLES)
        skips = f", those that `{Remedy.HISTORY}` names were skipped" if letter == Letter.WARNING else ""
        yield _WORDS.get(letter, letter), f"{sum(tables.values())}  ({listed}){skips}"
    for table, why in state.cycle.get("unread", {}).items():
        yield "not published", f"{table}: {why}"
    since = f", since {clock_text(state.leader_since, state.now)}, epoch {state.epoch}"
    yield "leader", "none yet" if state.leader is None else f"{state.leader}{since}"
    if state.holder is not None:
        yield "lock", str(state.holder)
    for standby in state.standbys:
        yield "standby", f"{standby.holder}: {standby.words}"
    if state.log_bytes is not None:
        yield "size", f"{size(state.log_bytes)} with its companions and indexes"
    if (slot := state.slot) is not None:
        yield "slot", f"{slot.name}: {_slot(slot)}"
    if state.running:
        cycle = state.cycle
        progress = f"{cycle.get('finished', 0)} of {cycle.get('rows', 0)} rows finished"
        yield "running", f"{progress}, {_cycle(cycle)}"
    if state.worked is not None:
        at = clock_text(datetime.fromisoformat(state.worked["at"]), state.now)
        yield "last cycle", f"{at}: {_cycle(state.worked)}"
    elif state.cycle_at is not None and not state.running:
        yield "last cycle", f"{clock_text(state.cycle_at, state.now)}: nothing to do"
    if (audit := state.audit) is not None:
        facts = f"{quantity(audit.rows, 'row')}, {quantity(audit.breaches, 'breach', 'breaches')}"
        yield "last audit", f"{duration(audit.age)} ago: {facts}, digest {audit.digest[:12]}"
    if state.heartbeat_at is not None:
        yield "heartbeat", clock_text(state.heartbeat_at, state.now)


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
        f"{size(slot.bytes_behind)} to read, {size(slot.held_bytes)} of the server's log held{reading}{delay}"
    )


def _age(seconds: float | None) -> str:
    return "" if seconds is None else f", the oldest for {roughly(seconds)}"
