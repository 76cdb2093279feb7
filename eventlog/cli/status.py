"""eventlog status: the state of the log and its publisher."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from eventlog.cli.log_options import LOOKING, live_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Listing, show
from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.plurals import clock_text, duration, quantity, roughly, size
from eventlog.core.remedies import Remedy
from eventlog.opening.config import Config
from eventlog.status.verdict import State, Verdict, largest, verdicts_of, worst_of

if TYPE_CHECKING:
    from eventlog.sql.log.store import Store
    from eventlog.status.log_status import LogStatus, SlotStatus


class LogUnseen(Misuse):
    """{0}"""


@click.command(cls=SettingsCommand)
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@click.option(
    "--exit-code", "with_code", is_flag=True, help="exit with 0: good, 1: a warning, 2: critical or not read"
)
@click.option("--watch", is_flag=True, help="show it again every two seconds, until a signal ends it")
@live_options(LOOKING)
def status(as_json: bool, with_code: bool, watch: bool, config: Config) -> None:
    """Show which log it is, who publishes, and the state in a sentence; then what is pending and what failed.

    With --exit-code the exit code is that of the worst state, as a Nagios plugin has it. It is 0 if all is
    well or goes on by itself, 1 for a warning, and 2 for an error or if the log cannot be read. What to look
    at and what to paste in each state is in docs/run/night.md. On a terminal --watch shows all in place.
    """
    from eventlog.opening.open_log import opened
    from eventlog.status.log_status import read_log_status  # SQLAlchemy takes a while to load

    if watch and with_code:
        raise Misuse("--watch does not end by itself, so --exit-code has no code to give: leave one out")
    screen = _Screen(config, as_json=as_json)
    try:
        with opened(config, to_look=True) as store:
            if watch:
                _watch(store, screen)
                return
            state = read_log_status(store)
    except EventlogError as fault:
        _show_unread(fault, screen)
        if with_code:
            raise LogUnseen(str(fault)) from fault
        raise
    verdicts = verdicts_of(state)
    screen.show(verdicts, state)
    sys.exit(worst_of(verdicts).exit_code if with_code else 0)


_PAUSE = 2.0  # seconds between two looks of --watch


@dataclass(frozen=True)
class _LookingProcess:
    """A process that only looks, for a watch."""

    store: Store
    outage: None = None


def _watch(store: Store, screen: _Screen) -> None:
    """Show the state again and again, in place on a terminal; rows are counted as pages count them."""
    from eventlog.files.signals import Signals
    from eventlog.status.log_watch import PAGE_SHARE, LogWatch

    looks = LogWatch(_LookingProcess(store))
    with Signals().caught() as signals:
        while not signals.stop:
            look = looks.look(0.0, count_share=PAGE_SHARE)
            click.clear()  # of a terminal alone
            screen.show(look.verdicts, look.log)
            signals.sleep(_PAUSE)


def _show_unread(fault: EventlogError, screen: _Screen) -> None:
    """Show the state of a log that cannot be read, where that is a state; the error has the rest."""
    from eventlog.status.log_watch import unreadable

    verdict = unreadable(fault)
    if verdict.state is not State.LOG_UNREAD:
        screen.show([verdict], None)


@dataclass(frozen=True)
class _Screen:
    """The output of `status` about the log that the settings name."""

    config: Config
    _: KW_ONLY
    as_json: bool

    def show(self, verdicts: Sequence[Verdict], state: LogStatus | None) -> None:
        """Print the states of the log, and the facts as far as the log could be read."""
        from eventlog.opening.log_address import address_of_log

        address = address_of_log(self.config)
        if self.as_json:
            first = {
                "log": address._asdict(),
                "publisher": state.leader if state and state.publishes else None,
            }
            states = {"states": [verdict.as_json() for verdict in verdicts]}
            show(json.dumps(first | states | (asdict(state) if state else {}), default=str))
        else:
            publisher = [("publisher", state.publisher)] if state else []
            _show_lines([("log", str(address)), *publisher], verdicts, _facts(state) if state else ())


def _show_lines(
    first: Sequence[tuple[str, str]], verdicts: Sequence[Verdict], facts: Iterable[tuple[str, str]]
) -> None:
    lines = [("also" if at else "state", verdict.sentence) for at, verdict in enumerate(verdicts)]
    styles = _STYLES | {"state": _COLOURS[worst_of(verdicts)], "also": "yellow"}
    Listing(("", ""), "{:<12} {}", styles).show([*first, *lines, *facts])


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
        flow = state.flow
        rates = f"{flow.arriving:.1f} rows/s came, {flow.finishing:.1f} rows/s went {flow.window}"
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
    if state.holder is not None:
        yield "lock", str(state.holder)
    for standby in state.standbys:
        yield "standby", f"{standby.holder}: {standby.words}"
    if state.log_bytes is not None:
        yield "size", f"{size(state.log_bytes)} with its companions and indexes"
    if (slot := state.slot) is not None:
        yield "slot", f"{slot.name}: {_slot(slot)}"
    if state.running:
        yield "running", f"{state.progress}, {_cycle(state.cycle)}"
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
