"""eventlog capture: a live capture session of Informix or GBase 8s as a source."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any, Final

import click

from eventlog.cli.distinct_files import require_distinct_files
from eventlog.cli.format_names import refuse_strangers
from eventlog.cli.options import SettingsCommand, read_tables, settings_options, tables_option
from eventlog.cli.refusals import RefusalPrinter
from eventlog.cli.terminal import print_sentence
from eventlog.convert.conversion import Report, allowed
from eventlog.core.plurals import quantity
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
@click.option("--to", "target_name", type=click.Choice(_TARGETS), default="changes", help="what to write")
@click.option("-o", "--output", default="-", help="a file, to which is added  [default: -]")
@tables_option
@click.option(
    "--state", type=click.Path(dir_okay=False, path_type=Path), help="remember here what was delivered"
)
@click.option("--once", is_flag=True, help="end when the server has nothing more to tell")
@click.option("--refused", type=click.Path(path_type=Path), help="keep bad records here, as they came")
@click.option("--strict", is_flag=True, help="stop at the first bad record")
@settings_options(DECLARING, without=_NOT_HERE)
def capture(
    address: str,
    names: tuple[str, ...],
    target_name: str,
    output: str,
    tables_file: Path | None,
    state: Path | None,
    once: bool,
    refused: Path | None,
    strict: bool,
    **given: Any,
) -> None:
    """Read the rows of tables, then their changes as the server logs them, until SIGTERM or SIGINT.

    Nothing is lost between the two, nor between two runs with one --state file: a run goes on where the
    last one delivered. The password is read from --password-file or EVENTLOG_PASSWORD.
    """
    refuse_strangers(DECLARING, {"the session", "gbase", target_name})
    given = {name: value for name, value in given.items() if value is not None} | places.connected({})
    target = FORMATS[target_name]
    settings, reading = build(CaptureSettings, given), build(GbaseSettings, given)
    place = read_address(address, tuple(TRANSPORTS))
    signals = Signals()
    require_distinct_files(
        {"-o": output, "--state": state, "--refused": refused}, (tables_file, settings.password_file)
    )
    with ExitStack() as stack:
        keep: IO[bytes] | None = (
            stack.enter_context(opened(refused, "a" if state else "w")) if refused else None
        )
        complaints = RefusalPrinter()
        stack.callback(complaints.close)
        report = Report(complaints.print, keep, strict)
        transport = stack.enter_context(closing(TRANSPORTS[place.scheme](place, settings)))
        session = stack.enter_context(
            closing(
                Capture(
                    transport,
                    place,
                    names,
                    read_tables(tables_file),
                    reading,
                    settings,
                    state=state,
                    events=target_name in _EVENTS,
                    stopping=lambda: signals.stop,
                )
            )
        )
        for table, column in session.left:
            print_sentence(f"{table}: no stream carries its column {column}")
        stack.enter_context(signals.caught())
        written = stack.enter_context(Output(output, target.shape, None, grows=True))
        for answers in stack.enter_context(closing(session.answers(once=once))):
            changes = report.good(allowed(report.good(answers), session.tables))
            for record in report.good(target.write(changes, session.tables, build(target.settings, given))):
                written.write(record)
            written.flush()
            report.flush()
    if report.refused:
        print_sentence(f"{quantity(report.refused, 'bad record was', 'bad records were')} left out")
        sys.exit(1)
