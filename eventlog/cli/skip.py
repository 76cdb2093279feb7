"""eventlog skip: rows that will never be published."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import print_sentence
from eventlog.core.plurals import quantity
from eventlog.operate.upkeep import skip as run_skip
from eventlog.publisher.open_log import opened


@click.command(cls=SettingsCommand, short_help="Give rows up, and keep the reason")
@click.argument("ids", nargs=-1, type=int, required=True, metavar="RECORD_ID...")
@click.option("--reason", required=True, help="why; it is kept with who and when")
@live_options(DATABASE)
def skip(
    ids: tuple[int, ...],
    reason: str,
    config_file: Path | None,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """Give rows with N, E or F, with all rows of their events, the letter W without publishing them."""
    with opened(read_live(flags, config_file, verbose, log_format)) as store:
        done = run_skip(store, ids, reason)
    wanted = len({*ids, *done.others})
    some = (
        f"{done.rows} of {wanted} rows are" if done.rows < wanted else quantity(wanted, "row is", "rows are")
    )
    print_sentence(f"{some} skipped")
    if done.others:
        print_sentence(f"of the same events: {', '.join(map(str, done.others))}")
    if done.rows < wanted:
        sys.exit(1)
