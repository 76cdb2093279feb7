"""eventlog purge: deletes handled rows after a while."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import print_sentence
from eventlog.core.plurals import quantity
from eventlog.operate.upkeep import Purge, read_age, read_letters
from eventlog.operate.upkeep import purge as run_purge
from eventlog.publisher.log_status import read_log_status
from eventlog.publisher.open_log import opened


@click.command(cls=SettingsCommand, short_help="Delete handled rows after a while")
@click.option(
    "--older-than", required=True, metavar="AGE", help="30d, 12h, or a time in UTC: 2025-03-23 10:00:00"
)
@click.option("--letters", default="S,W", help="which; N, E and F only if named  [default: S,W]")
@click.option("--chunk", type=click.IntRange(1, 100_000), default=1000, help="rows of one transaction")
@click.option("--rest", type=click.FloatRange(0, 60), default=0.0, help="seconds between two chunks")
@live_options(DATABASE)
def purge(
    older_than: str,
    letters: str,
    chunk: int,
    rest: float,
    config_file: Path | None,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """Delete rows that are handled and old, a chunk at a time. Their number is kept as a notice."""
    wanted = read_letters(letters)
    with opened(read_live(flags, config_file, verbose, log_format)) as store:
        before = read_age(older_than, read_log_status(store, counted=False).now)
        deleted = run_purge(store, Purge(before, wanted, chunk, rest))
    print_sentence(f"{quantity(deleted, 'row')} from before {before} deleted")
