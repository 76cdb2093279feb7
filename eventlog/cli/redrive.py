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
from eventlog.operate.redriving import redrive_by
from eventlog.publisher.open_log import opened
from eventlog.sql.log.upkeep import Which


@click.command(cls=SettingsCommand, short_help="Send failed rows again")
@which_options
@click.option("--all", "everything", is_flag=True, help="every row with E or F")
@live_options(DATABASE)
def redrive(
    ids: tuple[int, ...],
    table: str | None,
    reason: str | None,
    everything: bool,
    config_file: Path | None,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """Make events with E or F new again: those of RECORD_IDs, of a table, with a reason, or all.

    An event goes whole, with all its rows, and its values are read back as they are now. A delete stays if
    its object exists. Rows of a table that may not be queried back stay; skip them.
    """
    if not (ids or table or reason or everything):
        raise Misuse("which rows? name record_ids, --table, --reason or --all")
    config = read_live(flags, config_file, verbose, log_format)
    with opened(config) as store:
        done = redrive_by(config, store, Which(ids, table, reason))
    print_sentence(f"{quantity(done.rows, 'row is', 'rows are')} new again")
    for report in done.reports:
        print_sentence(str(report))
    if done.refused:
        sys.exit(1)
