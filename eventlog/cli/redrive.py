"""eventlog redrive: failed rows once more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eventlog.cli.failed_rows import which_options
from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import print_sentence
from eventlog.core.errors import Misuse
from eventlog.core.plurals import quantity
from eventlog.operate.redriving import how_to_redrive
from eventlog.operate.redriving import redrive as run_redrive
from eventlog.publisher.open_log import opened
from eventlog.sql.log.upkeep import Which


@click.command(cls=SettingsCommand, short_help="Send failed rows again")
@which_options
@click.option("--all", "everything", is_flag=True, help="every row with E or F")
@click.option("--as-query-back", is_flag=True, help="per-field rows as types 7 and 8: the current row")
@click.option(
    "--as-logged", is_flag=True, help="a row of an insert that failed alone as type 3, not read back"
)
@live_options(DATABASE)
def redrive(
    ids: tuple[int, ...],
    table: str | None,
    reason: str | None,
    everything: bool,
    as_query_back: bool,
    as_logged: bool,
    config_file: Path | None,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """Make events with E or F new again: those of RECORD_IDs, of a table, with a reason, or all.

    An event goes whole, with all its rows. One whose column was published from a later row stays: it would
    set an old value. A row of an insert that failed alone, while others were sent, goes read back.
    """
    if not (ids or table or reason or everything):
        raise Misuse("which rows? name record_ids, --table, --reason or --all")
    config = read_live(flags, config_file, verbose, log_format)
    with opened(config) as store:
        how = how_to_redrive(config, store, as_query_back=as_query_back, as_logged=as_logged)
        done = run_redrive(store, Which(ids, table, reason), how)
    print_sentence(f"{quantity(done.rows, 'row is', 'rows are')} new again")
    for report in done.reports:
        print_sentence(str(report))
    if done.refused:
        sys.exit(1)
