"""eventlog errors: what failed, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from eventlog.cli.failed_rows import which_options
from eventlog.cli.log_options import DATABASE, live_options, read_live
from eventlog.cli.options import SettingsCommand
from eventlog.cli.terminal import Shade, show
from eventlog.core.entry import cell_as_text
from eventlog.operate.redriving import has_several_rows
from eventlog.operate.upkeep import failures, whole_events
from eventlog.publisher.open_log import opened
from eventlog.sql.log.upkeep import FailedRow, Which


@click.command(cls=SettingsCommand, short_help="List what failed, and why")
@which_options
@click.option("--document", is_flag=True, help="also the document that failed")
@click.option("--json", "as_json", is_flag=True, help="one JSON object a row, with everything that is kept")
@live_options(DATABASE)
def errors(
    ids: tuple[int, ...],
    table: str | None,
    reason: str | None,
    document: bool,
    as_json: bool,
    config_file: Path | None,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """List the rows with E and F, each with its reason; RECORD_IDs name events by their rows."""
    with opened(read_live(flags, config_file, verbose, log_format)) as store:
        for failed in failures(store, Which(whole_events(store, ids), table, reason)):
            show(*([json.dumps(failed._asdict(), default=str)] if as_json else _line(failed)))
            if document and not as_json and failed.document is not None:
                show(f"          {failed.document}")


def _line(failed: FailedRow) -> tuple[str, Shade, str]:
    tries = f", after {failed.tries} tries" if (failed.tries or 1) > 1 else ""
    row = f" {cell_as_text(failed.event_type)}  {_short(_where(failed))}"
    of = f", of {failed.event_id}" if has_several_rows(failed.event_id) else ""
    line = f"{row:<29}  {failed.reason or 'no reason is kept'}{tries}{of}"
    return f"{failed.record_id:>8}  ", Shade(failed.status, "red"), line


def _where(row: FailedRow) -> str:
    column = "" if row.column_name is None else f" {row.column_name}"
    return f"{cell_as_text(row.table_name)} {cell_as_text(row.table_key)}{column}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:119]}…"
