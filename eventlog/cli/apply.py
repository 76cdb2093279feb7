"""eventlog apply: changes become rows of tables."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import click

from eventlog.cli.convert import DECLARING as CONVERTING
from eventlog.cli.convert import clock, from_option, used_headings
from eventlog.cli.format_names import guess
from eventlog.cli.job import JobOptions, job_options, reporting, until_signal
from eventlog.cli.options import (
    FILE_NAME,
    SettingsCommand,
    refuse_unused_settings,
    settings_options,
    shared_options,
)
from eventlog.cli.progress import progress
from eventlog.cli.terminal import print_sentence
from eventlog.core import settings
from eventlog.core.errors import Misuse
from eventlog.files.durable import open_to_append
from eventlog.formats.gbase.address import is_live
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.loop import ONE_ROUND
from eventlog.transfer.sources.capture_settings import CaptureSettings
from eventlog.transfer.targets.lake.lake_settings import LakeSettings
from eventlog.transfer.targets.tables.apply_settings import ApplySettings, read_key

_SESSION = "a live capture"
_LAKE = "a lake"
DECLARING = [
    ("the target", ApplySettings),
    (_LAKE, LakeSettings),
    *CONVERTING,
    ("a stream", StreamSettings),
    (_SESSION, CaptureSettings),
]


@click.command(cls=SettingsCommand)
@click.argument("inputs", nargs=-1, type=FILE_NAME)
@from_option
@click.option("--to-url", help="a database that takes them, a SQLAlchemy URL")
@click.option("--to-lake", metavar="LAKE", help="or the lake: delta:PLACE, or iceberg:CATALOGUE/NAMESPACE")
@shared_options("--as", "--tables", "--current")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="TABLE=COLUMN,...",
    help="the key of a table that is made, once for each table; without TABLE= of all",
)
@click.option("--url", help="the source's database: INPUTS are its tables")
@click.option("--follow", is_flag=True, help="go on with later changes until a signal")
@click.option("--state", hidden=True, help="misuse: the target itself keeps the state")
@shared_options("--refused", "--strict")
@settings_options(DECLARING)
@job_options
def apply(
    options: JobOptions, to_url: str | None, to_lake: str | None, keys: tuple[str, ...], follow: bool
) -> None:
    """Apply the changes in INPUTS to tables of a database or a lake: files, - for standard input, or a
    folder of the files sink.

    Inserts and updates are upserts by the key; deletes delete; columns that a change lacks stay as they are.
    Whole transactions are applied together with the note of what was applied: any repeat is harmless.

    With --follow it looks for more every --follow-interval seconds; TERM or INT ends it after a whole
    transaction. With --url informix://USER@HOST:PORT/DB?server=NAME the source is a live capture of
    Informix or GBase 8s, and INPUTS are its tables (DB:OWNER.TABLE).

    A table that no source describes is made with types that follow its values, which is reported; --key names
    its key where no source does. Changes that cannot be applied are reported on standard error and left out;
    the exit code is then 1.
    """
    from eventlog.transfer.apply import apply_to_database, apply_to_lake

    if (to_url is None) is (to_lake is None):
        raise Misuse("which tables take the changes? Give --to-url, or --to-lake")
    if options.state is not None:
        raise Misuse("--state takes no part: the target itself remembers what was applied")
    live = is_live(options.url)
    source = options.source_format or ("gbase" if live else None)
    conversion = guess(source, "changes", options.inputs, "-")
    parts = {"the target", "a stream", *used_headings(conversion.source, "changes", conversion.inputs)}
    parts |= ({_SESSION} if live else set()) | ({_LAKE} if to_lake else set())
    refuse_unused_settings(DECLARING, parts)
    job = options.job(conversion.source, "changes", conversion.inputs)
    apply_settings = settings.build(ApplySettings, {**options.settings, "keys": tuple(map(read_key, keys))})
    refused_file = open_to_append(options.refused) if options.refused else None
    in_lines = conversion.reads_lines
    with reporting(refused_file, options.strict, in_lines=in_lines) as report, ExitStack() as stack:
        advance = stack.enter_context(progress(job.inputs, job.passes))
        run_length = stack.enter_context(until_signal()) if follow else ONE_ROUND
        run = apply_settings, report, clock(), advance, run_length
        if to_lake is not None:
            tally = apply_to_lake(job, to_lake, settings.build(LakeSettings, options.settings), *run)
        else:
            tally = apply_to_database(job, str(to_url), *run)
    print_sentence(str(tally))
    if report.refused:
        sys.exit(2 if report.bad_files else 1)
