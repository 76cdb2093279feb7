"""eventlog resync: an event for each row that exists, so that a receiver learns of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from eventlog.cli.log_options import by_option, database_options
from eventlog.cli.options import refuse_flags
from eventlog.cli.progress import counter
from eventlog.cli.terminal import draws, print_line, print_sentence
from eventlog.core.each_table import do_each
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.plurals import quantity
from eventlog.core.remedies import Remedy
from eventlog.core.tables import Table, Tables
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_tables
from eventlog.opening.recorded_settings import opened_as_published
from eventlog.sql.capture.resync import EVENT_TYPES, Resync
from eventlog.sql.capture.resync import resync as run_resync
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.log.store import Store

_SILENCE = 5.0  # seconds between two lines about how far it is


class NotPublished(EventlogError):
    """{0} is not published, so its rows cannot be read: track it, or name it in sync-tables"""


@click.command()
@click.argument("tables", nargs=-1, required=True)
@database_options
@click.option("--where", help="SQL that chooses the rows; the table is called t")
@click.option(
    "--event-type", type=click.Choice([str(n) for n in EVENT_TYPES]), default="5", show_default=True
)
@click.option(
    "--chunk",
    type=click.IntRange(1, 1_000_000),
    default=1000,
    show_default=True,
    help="rows of one transaction",
)
@click.option(
    "--rate",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="rows a second at most; 0 is no limit",
)
@click.option(
    "--compare",
    is_flag=True,
    help="log only what differs from the state that this kept the last time, and no row of the log explains",
)
@by_option
def resync(
    tables: tuple[str, ...],
    compare: bool,
    config: Config,
    where: str | None,
    event_type: str,
    chunk: int,
    rate: int,
    who: str,
) -> None:
    """Log event type 5, or 6, for the rows of TABLES that exist.

    Each of the TABLES is tried; those that were refused are named at the end, and the exit code is 1. Each
    chunk is a transaction of its own. A run that was stopped goes on where it was when the same
    command is given again.

    With --compare triggers are audited: what they missed since the last --compare (restores, replicas,
    truncates) is logged, to be read back. The first run of a table only keeps its state, and logs nothing.
    """
    if compare:
        refuse_flags(("where", "event_type", "chunk", "rate"), "takes no part with --compare")
    if config.values.get("source_url") is not None:
        raise Misuse(f"source-url: a publisher compares such tables; `{Remedy.RUN_RESYNC}` sends all")
    with opened_as_published(config) as (config, store):
        published = read_tables(store.engine, store.log, config)

        def act(name: str) -> None:
            table = _published(published, name)
            if compare:
                _compare(store, config, Tables([table]), who)
            else:
                _resync(store, Resync(table, int(event_type), where, chunk, who), rate)

        done = "compared" if compare else "logged"
        do_each(tables, act, done, print_sentence, (Misuse, ConnectionLost))


def _compare(store: Store, config: Config, tables: Tables, who: str) -> None:
    from eventlog.operate.unexplained import log_unexplained  # Arrow takes a while to load

    for sentence in log_unexplained(store, config, tables, who):
        print_line(sentence)


def _published(tables: Tables, name: str) -> Table:
    table = tables.find(name)
    if table is None:
        raise NotPublished(name)
    return table


def _resync(store: Store, load: Resync, rate: int) -> None:
    due = time.monotonic() + _SILENCE
    with counter() as count:
        for progress in run_resync(store, load, throttle(rate)):
            logged = f"{load.table}: {quantity(progress.rows, 'row')} logged"
            count(logged, 0)
            if progress.done:
                before = f", {progress.earlier_rows} by the run before" if progress.earlier_rows else ""
                print_line(logged + before)
            elif time.monotonic() >= due and not draws(sys.stderr):
                print_line(f"{logged} so far")
                due = time.monotonic() + _SILENCE


def throttle(rate: int) -> Callable[[int], None]:
    """Return a function that sleeps after each chunk, to limit the rows logged a second."""
    start = time.monotonic()
    rows = 0

    def sleep_after_chunk(logged: int) -> None:
        nonlocal rows
        rows += logged
        if rate:
            time.sleep(max(0.0, start + rows / rate - time.monotonic()))

    return sleep_after_chunk
