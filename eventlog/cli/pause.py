"""eventlog pause and resume: let the publisher rest, and go on."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import click

from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import print_sentence
from eventlog.operate.upkeep import resume_tables
from eventlog.publisher.open_log import opened


@click.command(cls=SettingsCommand, short_help="Pause the publisher")
@click.option("--reason", default="no reason given", help="the reason; `status` shows it")
@live_options(DATABASE)
def pause(reason: str, config_file: Path | None, verbose: bool, log_format: str, **flags: Any) -> None:
    """Let the leading publisher rest after its cycle until `eventlog resume`. Rows pile up as new."""
    with opened(read_live(flags, config_file, verbose, log_format)) as store, store.upkeep() as upkeep:
        upkeep.pause(getpass.getuser(), reason)
    print_sentence("paused")


@click.command(cls=SettingsCommand, short_help="Let the publisher continue")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="a table that max-deletes stopped: its next poll passes; once for each table",
)
@live_options(DATABASE)
def resume(
    tables: tuple[str, ...], config_file: Path | None, verbose: bool, log_format: str, **flags: Any
) -> None:
    """Let a paused publisher go on, or only tables that max-deletes stopped."""
    with opened(read_live(flags, config_file, verbose, log_format)) as store:
        if not tables:
            with store.upkeep() as upkeep:
                upkeep.resume()
            print_sentence("going on")
            return
        for table in resume_tables(store, tables, getpass.getuser()):
            print_sentence(f"{table}: the next poll may delete any number of its objects")
