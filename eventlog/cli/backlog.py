"""eventlog backlog: what convert does, on Spark, for what one machine cannot hold."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventlog.cli.convert import DECLARING, FORMAT_NAMES, clock, used_headings
from eventlog.cli.job import JobOptions, job_options
from eventlog.cli.log_options import ALL, read_all
from eventlog.cli.options import (
    FILE_NAME,
    NameAndValue,
    SettingsCommand,
    refuse_flags,
    refuse_unused_settings,
    settings_options,
    shared_options,
)
from eventlog.cli.terminal import print_sentence
from eventlog.core.errors import Misuse
from eventlog.core.extras import extra
from eventlog.core.settings import declared
from eventlog.opening.publisher_settings import DatabaseSettings, TablePublishing

if TYPE_CHECKING:
    from eventlog_spark.live_log import Live

OF_A_LIVE_LOG = (("a live log", DatabaseSettings), ("its tables", TablePublishing))
_CONF = NameAndValue("NAME=VALUE", "spark.executor.memory=4g")


@click.command(cls=SettingsCommand)
@click.argument("inputs", nargs=-1, type=FILE_NAME)
@shared_options("--config")
@click.option("--url", help="the database whose log is read, where no INPUTS are given")
@click.option("--from", "source_format", type=FORMAT_NAMES, required=True, help="what the inputs hold")
@click.option(
    "--to", "target_format", type=click.Choice(["xds", "changes"]), required=True, help="what to write"
)
@click.option(
    "-o", "--output", type=FILE_NAME, required=True, help="the folder to write, also in a store: s3a://…"
)
@click.option(
    "--output-as", "output_container", help="parquet, with the facts of each document  [default: lines]"
)
@shared_options("--as", "--tables", "--current")
@click.option(
    "--order",
    type=click.Choice(["object", "log", "sequence", "as-is"]),
    help=(
        "a log: in order for each object, or over all objects. Change tables and messages: by their "
        "sequence. All but a log: as in the inputs  [default: object, sequence, or as-is]"
    ),
)
@click.option("--documents", type=click.IntRange(1), help="documents in one file  [default: all of a part]")
@click.option("--partitions", type=click.IntRange(1), help="tasks of the shuffle  [default: by size]")
@click.option("--master", help="Spark's master  [default: local[*], or that of spark-submit]")
@click.option(
    "--conf",
    multiple=True,
    type=_CONF,
    help="a setting of Spark",
)
@click.option("--finish", is_flag=True, help="give the rows of a live log their letters when they are out")
@click.option("--delete-from-log", is_flag=True, help="with --finish: delete the rows that did not fail")
@shared_options("--expand-truncate", "--strict")
@settings_options([*DECLARING, *OF_A_LIVE_LOG], without=("url", "connection_init"))
@job_options
def backlog(
    options: JobOptions,
    config_file: Path | None,
    order: str | None,
    documents: int | None,
    partitions: int | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    finish: bool,
    delete_from_log: bool,
) -> None:
    """Read INPUTS and write them in another format, as `convert` would, on Spark.

    INPUTS are files, folders or globs, also of a store (s3a://…); without any, the log of --url is read.
    The folder that is written holds `documents`, and refused records in `refused`; it is complete
    when it holds `done`. A run that died is run again.
    """
    with extra("spark", "a backlog"):
        from eventlog_spark.backlog import Backlog, run
        from eventlog_spark.live_log import run_live
        from eventlog_spark.session import session, spark_errors_as_ours
    _check(options)
    with ExitStack() as stack:
        live, job_settings = _live_log(options, config_file, delete_from_log or None, finish, stack)
        job = replace(options, url=None, settings=job_settings).job(
            str(options.source_format), str(options.target_format), options.inputs, str(options.output)
        )
        backlog_job = Backlog(job, clock(), order or "", documents or 0, partitions, options.strict)
        backlog_job.check()
        stack.enter_context(spark_errors_as_ours())
        spark = stack.enter_context(session(master, dict(conf)))
        summary = (
            run(spark, backlog_job, print_sentence)
            if live is None
            else run_live(spark, backlog_job, live, print_sentence)
        )
    if summary.refused:
        sys.exit(1)


def _check(options: JobOptions) -> None:
    """Raise Misuse for a setting that the source does not have."""
    source = str(options.source_format)
    refuse_flags({"kafka"}, "is for apply and convert; Spark's Kafka source feeds eventlog_spark.changes")
    refuse_unused_settings(DECLARING, used_headings(source, str(options.target_format), options.inputs))


def _live_log(
    options: JobOptions, config_file: Path | None, delete: bool | None, finish: bool, stack: ExitStack
) -> tuple[Live | None, dict[str, Any]]:
    """Return the log of a database, if no files are read, and the settings with those of the log."""
    job_settings = dict(options.settings)
    if options.inputs:
        if finish:
            raise Misuse("--finish is for a live log: name --url and no files")
        return None, job_settings
    if options.source_format != "log":
        raise Misuse("name the files, folders or globs to read; only a log is read from a database")
    from eventlog_spark.live_log import Live

    from eventlog.opening.open_log import opened
    from eventlog.publisher.preparation import read_rules

    names = {field.name for _, declaring in ALL for field in declared(declaring)}
    flags = {name: value for name, value in job_settings.items() if name in names}
    config = read_all(flags | {"url": options.url, "delete_from_log": delete}, config_file)
    live = Live(stack.enter_context(opened(config)), config, finish)
    of_publisher = {name: value for name, value in config.values.items() if name in job_settings}
    of_publisher.pop("batch_size", None)  # a document has one event here, whatever a publisher puts into it
    job_settings |= of_publisher
    return live, job_settings | asdict(read_rules(config, live.store))
