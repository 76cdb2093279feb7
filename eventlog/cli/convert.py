"""eventlog convert: any format to any format."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from eventlog.cli.format_names import guess
from eventlog.cli.job import JobOptions, exit_if_refused, job_options, reporting
from eventlog.cli.options import (
    FILE_NAME,
    SettingsCommand,
    refuse_unused_settings,
    settings_options,
    shared_options,
)
from eventlog.cli.progress import progress
from eventlog.cli.terminal import print_sentence
from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.core.plurals import quantity
from eventlog.files.durable import open_to_append, open_to_write
from eventlog.files.limits import Limits
from eventlog.fold import Rules
from eventlog.formats.gbase.address import is_live
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.format_registry import FORMATS
from eventlog.transfer.loop import RunLength
from eventlog.transfer.ordered import COMMITS, SEQUENCERS
from eventlog.transfer.sources.capture_settings import CaptureSettings

FORMAT_NAMES = click.Choice(tuple(FORMATS))
from_option = click.option(
    "--from", "source_format", type=FORMAT_NAMES, help="what the inputs hold  [default: by name]"
)
_TOPICS = "topics of Kafka"
DECLARING = [
    ("the input", Limits),
    ("the log", Rules),
    *((name, change_format.settings) for name, change_format in FORMATS.items()),
    (_TOPICS, KafkaSettings),
]
_SESSION = "a live capture"
_DECLARING = [*DECLARING, ("a stream", StreamSettings), (_SESSION, CaptureSettings)]


@click.command(cls=SettingsCommand)
@click.argument("inputs", nargs=-1, type=FILE_NAME)
@from_option
@click.option("--to", "target_format", type=FORMAT_NAMES, help="what to write  [default: by name]")
@click.option(
    "-o", "--output", type=FILE_NAME, help="a file, or a folder (DIR/) for several tables  [default: -]"
)
@shared_options("--as", "--output-as", "--tables", "--current", "--expand-truncate")
@click.option("--url", help="the database of change tables or of a queue: INPUTS name tables")
@click.option("--follow", is_flag=True, help="read on as the source grows")
@click.option(
    "--cases",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="with --to xds: a folder for each event, with input.xds and directory.xds for a policy simulator",
)
@shared_options("--state", "--refused", "--strict")
@settings_options(_DECLARING)
@job_options
def convert(options: JobOptions, follow: bool) -> None:
    """Read INPUTS (files, or - for standard input) in one format and write them in another.

    Formats follow from names: .xml is xds, .csv and .parquet a log (NAME__ct a change table), .jsonl changes.
    Without --to and -o the last of several names is the output, if it is not there yet.

    Rows of a log are one pick-up without limit: they are folded to what they mean for each object.
    Bad records are reported on standard error and left out; the exit code is then 1.
    """
    from eventlog.transfer.convert import convert as run_convert  # explain, which has our options, needs none

    live = is_live(options.url)
    source = options.source_format or ("gbase" if live else None)
    conversion = guess(source, options.target_format, options.inputs, options.output)
    parts = used_headings(conversion.source, conversion.target, conversion.inputs)
    parts |= {_SESSION} if live else set()
    refuse_unused_settings(_DECLARING, parts)
    job = options.job(conversion.source, conversion.target, conversion.inputs, conversion.output)
    in_lines = conversion.reads_lines
    with reporting(_refused_file(options, in_lines=in_lines), options.strict, in_lines=in_lines) as report:
        if follow:
            run_convert(job, report, clock(), run_length=RunLength(follow=True))
        else:
            with progress(job.inputs, job.passes, job.output) as advance:
                run_convert(job, report, clock(), advance)
    if report.changes or not report.bad_files:
        print_sentence(f"{quantity(report.changes, 'change was', 'changes were')} converted")
    exit_if_refused(report)


def _refused_file(options: JobOptions, *, in_lines: bool) -> BinaryIO | None:
    """Return the file of bad records, to which a run with a state adds; those of a capture are no lines."""
    if options.refused is None:
        return None
    if options.state is not None and in_lines:
        return open_to_append(options.refused)
    return open_to_write(options.refused, "w" if options.state is None else "a")


def used_headings(source: str, target: str, inputs: Sequence[str]) -> set[str]:
    """Return the headings of the settings that a conversion uses."""
    parts = {"the input", source, target}
    reads_topics = source == "debezium" and tuple(inputs) == ("-",)
    if source == "log":
        parts.add("the log")
    if reads_topics or "qlik-message" in parts:
        parts.add(_TOPICS)
    if reads_topics or source in SEQUENCERS or source in COMMITS:
        parts.add("a stream")
    return parts


def clock() -> str:
    """Return the time now in UTC, as a log holds it."""
    return dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
