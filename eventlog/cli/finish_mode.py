"""eventlog finish-mode: how the rows of a log are finished."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import click

from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import print_sentence, show
from eventlog.operate.finishing import change_mode
from eventlog.publisher.open_log import opened
from eventlog.sql.log.finishing import FinishMode


@click.command(cls=SettingsCommand, short_help="Show or set how rows are finished")
@click.argument("mode", required=False, type=click.Choice([mode.value for mode in FinishMode]))
@live_options(DATABASE)
def finish_mode(
    mode: str | None, config_file: Path | None, verbose: bool, log_format: str, **flags: Any
) -> None:
    """Show how handled rows of the log are finished, or change it. `update` writes their letter into status,
    and `delete` deletes them. `ranges` leaves the log as it is and keeps ranges of record ids with their
    letters in another table, for logs of our own. Rows with E and F are kept in each. Stop every publisher
    before you change it. Leaving `ranges` writes every letter into status first; if it is stopped, repeat
    the command."""
    with opened(read_live(flags, config_file, verbose, log_format)) as store:
        if mode is None:
            show(store.finish_mode() or FinishMode.UPDATE)
            return
        changed = change_mode(store, FinishMode(mode), f"finish-mode by {getpass.getuser()}")
    print_sentence(f"rows are finished by {mode}" if changed else f"rows are finished by {mode} already")
