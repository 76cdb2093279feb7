"""eventlog history: what operators did to a log, with who, when and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import print_sentence, show
from eventlog.publisher.open_log import opened


@click.command(cls=SettingsCommand, short_help="List what operators did to the log")
@click.option("--limit", type=click.IntRange(1), default=100, help="how many, the latest  [default: 100]")
@click.option("--json", "as_json", is_flag=True, help="one JSON object a line")
@live_options(DATABASE)
def history(
    limit: int, as_json: bool, config_file: Path | None, verbose: bool, log_format: str, **flags: Any
) -> None:
    """List skips, redrives, pauses, resyncs and purges, the latest first: when (UTC), which database user, of
    which rows, and the reason. What else must not be lost is among them, as a capture that was switched off.
    """
    with (
        opened(read_live(flags, config_file, verbose, log_format)) as store,
        store.upkeep() as upkeep,
    ):
        notices = upkeep.notices(limit)
    for notice in notices:
        if as_json:
            show(json.dumps(notice._asdict(), default=str))
            continue
        table = "" if notice.table_name is None else f"{notice.table_name}: "
        show(
            f"{notice.at:%Y-%m-%d %H:%M:%S}  {notice.username}  {notice.kind:<7}  {table}{notice.words or ''}"
        )
    if not notices:
        print_sentence("no operator has done anything to this log")
