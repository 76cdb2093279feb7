"""eventlog convert: any format to any format."""

from __future__ import annotations

import datetime as dt
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, BinaryIO

import click

from eventlog.cli.distinct_files import require_distinct_files
from eventlog.cli.format_names import guess, refuse_strangers
from eventlog.cli.options import SettingsCommand, current_option, read_tables, settings_options, tables_option
from eventlog.cli.progress import progress
from eventlog.cli.refusals import RefusalPrinter
from eventlog.cli.tasks import read_tasks, task_option
from eventlog.cli.terminal import print_sentence
from eventlog.convert.conversion import Job, Report
from eventlog.convert.conversion import convert as run_convert
from eventlog.convert.conversion import follow as follow_stream
from eventlog.convert.streaming import is_folder, stream
from eventlog.core.formats import Shape
from eventlog.core.plurals import quantity
from eventlog.files.inputs import files_of
from eventlog.files.limits import Limits
from eventlog.files.writing import added, opened
from eventlog.fold import Rules
from eventlog.formats import FORMATS
from eventlog.places.capture import CaptureSettings
from eventlog.places.capture_feed import is_live
from eventlog.places.topics import KafkaSettings, KafkaStates
from eventlog.streams.commits_feed import COMMITS
from eventlog.streams.ordered import SEQUENCERS
from eventlog.streams.settings import StreamSettings

FORMAT_NAMES = click.Choice(tuple(FORMATS))
DECLARING = [
    ("the input", Limits),
    ("the log", Rules),
    *((name, known.settings) for name, known in FORMATS.items()),
    ("qlik-message in Kafka", KafkaSettings),
]
_ONCE = "qlik-message in transactions of Kafka"
_SESSION = "a live capture"
_DECLARING = [
    *DECLARING,
    ("a stream", StreamSettings),
    (_ONCE, KafkaStates),
    (_SESSION, CaptureSettings),
]


@click.command(cls=SettingsCommand, short_help="Read any format, write any format")
@click.argument("inputs", nargs=-1)
@click.option("--from", "source_format", type=FORMAT_NAMES, help="what the inputs hold  [default: by name]")
@click.option("--to", "target_format", type=FORMAT_NAMES, help="what to write  [default: by name]")
@click.option("-o", "--output", help="a file, or a folder (DIR/) for several tables  [default: -]")
@click.option(
    "--as", "container", help="the inputs' container where names do not tell: csv, jsonl, parquet, …"
)
@click.option("--output-as", "output_container", help="the output's container, likewise")
@tables_option
@current_option
@click.option("--url", help="the database of change tables or of a queue: INPUTS name tables")
@click.option("--follow", is_flag=True, help="read on as the source grows")
@click.option(
    "--state", type=click.Path(dir_okay=False, path_type=Path), help="remember here what was delivered"
)
@click.option("--expand-truncate", is_flag=True, help="write a truncate as deletes of the --current rows")
@click.option("--refused", type=click.Path(path_type=Path), help="keep bad records here, as they came")
@click.option("--strict", is_flag=True, help="stop at the first bad record")
@settings_options(_DECLARING)
@task_option
def convert(
    inputs: tuple[str, ...],
    source_format: str | None,
    target_format: str | None,
    output: str | None,
    container: str | None,
    output_container: str | None,
    tables_file: Path | None,
    current: tuple[tuple[str, str], ...],
    url: str | None,
    follow: bool,
    state: Path | None,
    expand_truncate: bool,
    refused: Path | None,
    strict: bool,
    task: tuple[str, ...],
    **given: Any,
) -> None:
    """Read INPUTS (files, or - for standard input) in one format and write them in another.

    Formats are told by names: .xml is xds, .csv and .parquet a log (NAME__ct a change table), .jsonl changes.
    Without --to and -o the last of several names is the output, if it is not there yet.

    Rows of a log are one pick-up without limit: they are folded to what they mean for each object.
    Bad records are reported on standard error and left out; the exit code is then 1.
    """
    given["task"], tasks = read_tasks(task)
    wanted = guess(
        source_format or ("gbase" if is_live(url) else None),
        target_format,
        inputs,
        output,
        [name for _, names in tasks for name in names],
    )
    live = {_SESSION} if is_live(url) else set()
    refuse_strangers(_DECLARING, taking_part(wanted.source, wanted.target) | live)
    job = Job(
        wanted.source,
        wanted.target,
        files_of(wanted.inputs, FORMATS[wanted.source].companion),
        wanted.output,
        container,
        output_container,
        read_tables(tables_file),
        current,
        given,
        expand_truncate,
        url,
        state,
        tasks,
    )
    read = () if url else (*job.inputs, *(name for _, names in tasks for name in names))
    require_distinct_files(
        {"-o": wanted.output, "--refused": refused, "--state": state},
        (*read, *(name for _, name in current), tables_file),
    )
    with ExitStack() as stack:
        keep: IO[bytes] | None = (
            stack.enter_context(_kept(refused, wanted.source, state)) if refused else None
        )
        complaints = RefusalPrinter()
        stack.callback(complaints.close)
        report = Report(complaints.print, keep, strict, print_sentence)
        in_parts = state is not None and is_folder(wanted.output)
        in_transactions = bool(given.get("kafka_transactional_id"))
        if (
            in_transactions
            or (wanted.source in SEQUENCERS and (follow or state is not None))
            or (wanted.source in COMMITS and in_parts)
        ):
            stream(job, report, clock(), follow)
        elif follow or (state is not None and url is None):
            follow_stream(job, report, clock(), follow)
        else:
            run_convert(job, report, clock(), stack.enter_context(progress(job.inputs)))
    if report.refused:
        print_sentence(f"{quantity(report.refused, 'bad record was', 'bad records were')} left out")
        sys.exit(1)


def _kept(refused: Path, source: str, state: Path | None) -> BinaryIO:
    """The file of bad records, to which a run that goes on adds; those of a capture are no lines."""
    if state is not None and FORMATS[source].shape is not Shape.BYTES:
        return added(refused)
    return opened(refused, "w" if state is None else "a")


def taking_part(source: str, target: str) -> set[str]:
    """The headings of the settings that a conversion has a use for."""
    parts = {"the input", source, target}
    if source == "log":
        parts.add("the log")
    if "qlik-message" in parts:
        parts.add("qlik-message in Kafka")
    if target == "qlik-message":
        parts.add(_ONCE)
    if source in SEQUENCERS or source in COMMITS:
        parts.add("a stream")
    return parts


def clock() -> str:
    """The time now in UTC, as a log holds it."""
    return dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
