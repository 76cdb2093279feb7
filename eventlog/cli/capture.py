"""eventlog capture: a live capture session of Informix or GBase 8s as a source."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import click

from eventlog.cli.distinct_files import require_distinct_files
from eventlog.cli.format_names import refuse_strangers
from eventlog.cli.job import JobOptions, exit_if_refused, job_options, reporting
from eventlog.cli.options import SettingsCommand, read_tables, settings_options, tables_option
from eventlog.cli.terminal import print_sentence
from eventlog.convert.conversion import allowed
from eventlog.core.settings import build
from eventlog.files.outputs import Output
from eventlog.files.writing import opened
from eventlog.formats import FORMATS
from eventlog.gbase.address import read_address
from eventlog.gbase.format import GbaseSettings
from eventlog.places import places
from eventlog.places.capture import Capture, CaptureSettings
from eventlog.places.capture_feed import TRANSPORTS
from eventlog.publisher.sleep import Signals

_TARGETS: Final = ("changes", "xds")
_EVENTS: Final = ("xds",)  # targets that tell events: a row that is told twice is there twice
DECLARING = [
    ("the session", CaptureSettings),
    ("gbase", GbaseSettings),
    *((name, FORMATS[name].settings) for name in _TARGETS),
]
# what is of a file, or of writing a stream
_NOT_HERE: Final = frozenset(("framed", "size_order", "varchar_prefix"))


@click.command(cls=SettingsCommand, short_help="Read a live capture session of Informix or GBase 8s")
@click.argument("address", metavar="informix://USER@HOST:PORT/DB?server=NAME")
@click.option("--table", "names", multiple=True, required=True, help="DB:OWNER.TABLE, once for each table")
@click.option("--to", "target_format", type=click.Choice(_TARGETS), default="changes", help="what to write")
@click.option("-o", "--output", default="-", help="a file, to which is added  [default: -]")
@tables_option
@click.option(
    "--state", type=click.Path(dir_okay=False, path_type=Path), help="remember here what was delivered"
)
@click.option("--once", is_flag=True, help="end when the server has nothing more to tell")
@click.option("--refused", type=click.Path(path_type=Path), help="keep bad records here, as they came")
@click.option("--strict", is_flag=True, help="stop at the first bad record")
@settings_options(DECLARING, without=_NOT_HERE)
@job_options
def capture(options: JobOptions, address: str, names: tuple[str, ...], once: bool) -> None:
    """Read the rows of tables, then their changes as the server logs them, until SIGTERM or SIGINT.

    Nothing is lost between the two, nor between two runs with one --state file: a run goes on where the
    last one delivered. The password is read from --password-file or EVENTLOG_PASSWORD.
    """
    target = FORMATS[str(options.target_format)]
    refuse_strangers(DECLARING, {"the session", "gbase", target.name})
    given = {name: value for name, value in options.given.items() if value is not None}
    given |= places.connected({})
    password_file = build(CaptureSettings, given).password_file
    written = {"-o": options.output, "--state": options.state, "--refused": options.refused}
    require_distinct_files(written, (options.tables_file, password_file))
    keep = opened(options.refused, "a" if options.state else "w") if options.refused else None
    signals = Signals()
    with reporting(keep, options.strict) as report, ExitStack() as stack:
        session = _open(options, address, names, given, signals, stack)
        for table, column in session.left:
            print_sentence(f"{table}: no stream carries its column {column}")
        stack.enter_context(signals.caught())
        output = stack.enter_context(Output(str(options.output), target.shape, None, grows=True))
        for answers in stack.enter_context(closing(session.answers(once=once))):
            changes = report.good(allowed(report.good(answers), session.tables))
            for record in report.good(target.write(changes, session.tables, build(target.settings, given))):
                output.write(record)
            output.flush()
            report.flush()
    exit_if_refused(report)


def _open(
    options: JobOptions,
    address: str,
    names: tuple[str, ...],
    given: Mapping[str, Any],
    signals: Signals,
    stack: ExitStack,
) -> Capture:
    """Return the session, which is closed with the stack."""
    settings, place = build(CaptureSettings, given), read_address(address, tuple(TRANSPORTS))
    transport = stack.enter_context(closing(TRANSPORTS[place.scheme](place, settings)))
    session = Capture(
        transport,
        place,
        names,
        read_tables(options.tables_file),
        build(GbaseSettings, given),
        settings,
        state=options.state,
        events=options.target_format in _EVENTS,
        stopping=lambda: signals.stop,
    )
    return stack.enter_context(closing(session))
