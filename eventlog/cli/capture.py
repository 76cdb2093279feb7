"""eventlog capture: a live capture session of Informix or GBase 8s as a source."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import click

from eventlog.cli.convert import clock
from eventlog.cli.job import JobOptions, exit_if_refused, job_options, reporting, until_signal
from eventlog.cli.options import (
    FILE_NAME,
    SettingsCommand,
    refuse_unused_settings,
    settings_options,
    shared_options,
)
from eventlog.files.durable import open_to_write
from eventlog.formats.gbase.address import read_address
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.transfer.convert import convert
from eventlog.transfer.format_registry import FORMATS
from eventlog.transfer.sources.capture_feed import TRANSPORTS
from eventlog.transfer.sources.capture_settings import CaptureSettings

_TARGETS: Final = tuple(name for name in FORMATS if name != "gbase")
DECLARING = [
    ("the session", CaptureSettings),
    ("gbase", GbaseSettings),
    *((name, FORMATS[name].settings) for name in _TARGETS),
]
_NOT_HERE: Final = frozenset(("framed", "table"))  # what is of a file


@click.command(cls=SettingsCommand)
@click.argument("address", metavar="informix://USER@HOST:PORT/DB?server=NAME")
@click.option("--table", "names", multiple=True, required=True, help="DB:OWNER.TABLE, once for each table")
@click.option("--to", "target_format", type=click.Choice(_TARGETS), default="changes", help="what to write")
@click.option(
    "-o",
    "--output",
    type=FILE_NAME,
    default="-",
    help="a file, to which is added, or a folder (DIR/) of parts",
)
@shared_options("--output-as", "--tables", "--state")
@click.option("--once", is_flag=True, help="end when the server has no more records")
@shared_options("--refused", "--strict")
@settings_options(DECLARING, without=_NOT_HERE)
@job_options
def capture(options: JobOptions, address: str, names: tuple[str, ...], once: bool) -> None:
    """Read the rows of tables, then their changes as the server logs them, until SIGTERM or SIGINT.

    Nothing is lost between the two, nor between two runs with one --state file: a run goes on where the
    last one delivered. The password is read from --password-file or EVENTLOG_PASSWORD.
    """
    target = str(options.target_format)
    refuse_unused_settings(DECLARING, {"the session", "gbase", target})
    read_address(address, tuple(TRANSPORTS))
    job = replace(options, url=address).job("gbase", target, names, str(options.output))
    refused_file = open_to_write(options.refused, "a" if options.state else "w") if options.refused else None
    reported = reporting(refused_file, options.strict, in_lines=False)
    with reported as report, until_signal() as run_length:
        convert(job, report, clock(), run_length=run_length._replace(follow=not once))
    exit_if_refused(report)
