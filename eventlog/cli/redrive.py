"""eventlog redrive: failed rows once more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from eventlog.cli.choosing import which_options
from eventlog.cli.live import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import say
from eventlog.errors import Misuse
from eventlog.publishing.opening import opened
from eventlog.publishing.upkeep import redrive as run_redrive
from eventlog.sql.upkeep import Which


@click.command(cls=SettingsCommand, short_help="Failed rows once more.")
@which_options
@click.option("--all", "everything", is_flag=True, help="every row with E or F")
@click.option("--as-query-back", is_flag=True, help="per-field rows as types 7 and 8: the row as it is now")
@live_options(DATABASE)
def redrive(
    ids: tuple[int, ...],
    table: str | None,
    reason: str | None,
    everything: bool,
    as_query_back: bool,
    config_file: Path | None,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """Make rows with E or F new again: RECORD_IDs, those of a table, with a reason, or all.

    A per-field row whose column was published from a later row is refused: it would set an old value.
    """
    if not (ids or table or reason or everything):
        raise Misuse("which rows? name record_ids, --table, --reason or --all")
    with opened(read_live(flags, config_file, verbose, log_format)) as store:
        done = run_redrive(store, Which(ids, table, reason), as_query_back=as_query_back)
    say(f"{done.rows} rows are new again")
    if done.refused:
        listed = ", ".join(map(str, done.refused[:20])) + (", …" if len(done.refused) > 20 else "")
        say(
            f"{len(done.refused)} rows stay: a later event of their column was published ({listed}); "
            "--as-query-back sends them as they are now"
        )
        sys.exit(1)
