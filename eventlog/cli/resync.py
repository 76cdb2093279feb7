"""eventlog resync: an event for each row that exists, so that a receiver learns of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from eventlog.cli.database import database_options, read_place
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.resync import EVENT_TYPES, Resync
from eventlog.sql.resync import resync as run_resync
from eventlog.sql.store import Store


@click.command(short_help="Logs an event for rows that exist: the first load.")
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
def resync(
    tables: tuple[str, ...],
    config: Path | None,
    url: str | None,
    log_table: str | None,
    layout: str | None,
    log_time: str | None,
    where: str | None,
    event_type: str,
    chunk: int,
    rate: int,
) -> None:
    """Log event type 5, or 6, for the rows of TABLES that exist.

    Each chunk is a transaction of its own. A run that was stopped goes on where it was when the same
    command is given again.
    """
    place = read_place(config, url, log_table, layout, log_time)
    engine = place.connect()
    store = Store(engine, place.find(engine))
    with engine.connect() as connection:
        found = [Catalogue(connection).find(name).table for name in tables]
    for table in found:
        steps = run_resync(store, Resync(table, int(event_type), where, chunk), throttle(rate))
        rows = max(progress.rows for progress in steps)
        click.echo(f"{table}: {rows} rows logged", err=True)


def throttle(rate: int) -> Callable[[int], None]:
    """Rests after each chunk, so that no more rows a second are logged."""
    begun = time.monotonic()
    rows = 0

    def rest(logged: int) -> None:
        nonlocal rows
        rows += logged
        if rate:
            time.sleep(max(0.0, begun + rows / rate - time.monotonic()))

    return rest
