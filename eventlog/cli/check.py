"""eventlog check: what is wrong with the log and its triggers, and what to do about it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import click
from sqlalchemy.engine import Connection, Engine

from eventlog.cli import distribution
from eventlog.cli.log_options import publisher_options
from eventlog.cli.options import SettingsCommand
from eventlog.cli.preflight import contradictions, refuse_idle_flags
from eventlog.cli.terminal import Listing, print_line, print_sentence
from eventlog.core import tablesfile
from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.core.remedies import Remedy
from eventlog.core.tables import Tables
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config, statements
from eventlog.opening.open_log import naming_rights, opened, place_of_log
from eventlog.opening.post_poll import naming_log, why_warned
from eventlog.opening.published import NOT_READ, OnAbsent, among
from eventlog.opening.published import logger as publishing
from eventlog.opening.publisher_settings import LookSettings, SessionSettings
from eventlog.opening.publisher_tables import read_tables
from eventlog.opening.sent_documents import has_whole_seconds
from eventlog.operate.comparing_findings import comparing_findings
from eventlog.sinks import check_sink, flaws_of
from eventlog.slot.findings import slot_findings
from eventlog.slot.slot_tables import recorded_slot
from eventlog.sql.capture.check import check as run_check
from eventlog.sql.capture.findings import Finding
from eventlog.sql.capture.readers import check_readers, has_readers
from eventlog.sql.capture.track_record import read_record
from eventlog.sql.catalogue import Catalogue, NoSuchTable
from eventlog.sql.common.dialect import TimeLimits
from eventlog.sql.common.time_fractions import with_fractions
from eventlog.sql.connect import dialect_at, limited
from eventlog.sql.log.binding import bind
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.log_lock import naming_lock
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.schema.migrate import exists
from eventlog.web.monitor import CLOSING, MonitorSettings


@click.command(cls=SettingsCommand)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="how long a row may be pending",
)
@click.option(
    "--ways-round", is_flag=True, help="also list the changes that no trigger of this database sees"
)
@click.option(
    "--write-tables",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help="write the tables file of the published tables there instead of checking",
)
@publisher_options(logs=False)
@naming_rights()
def check(
    patience: float,
    ways_round: bool,
    write_tables: Path | None,
    config: Config,
) -> None:
    """Report what is wrong, each finding with its remedy; the exit code is 1 if there is one."""
    refuse_idle_flags(config)
    if warning := distribution.warning():
        print_sentence(warning)
    place = place_of_log(config)
    unlimited, limits = place.connect(), TimeLimits(config.build(LookSettings).look_limit)
    engine = limited(unlimited, dialect_at(unlimited), limits)
    with engine.connect() as connection:
        if write_tables is not None:
            tables = _published_tables(engine, connection, place.find(engine), config)
            with click.open_file(str(write_tables), "w", encoding="utf-8") as file:
                file.write(tablesfile.write(tables, tables.dialect))
            return
        log = place.find(engine)
        findings = [*check_readers(connection)]
        has_log = exists(connection, log)
        if not has_log and not has_readers(connection):
            bind(connection, log)  # which reports what is missing
        if has_log:
            from eventlog.publisher.preparation import read_rules  # what publishes takes a while to load

            store = Store(unlimited, log, limits.lock).looking()
            rules, longest = read_rules(config, store), timedelta(hours=patience)
            compares = config.build(ComparingSettings).publication_mode == "compare"
            with naming_lock(unlimited, log, limits):
                absent: list[Finding] = []
                with _reported_once():
                    published_tables = read_tables(engine, log, config, _noting(absent) if compares else None)
                findings += absent
                findings += run_check(connection, log, rules, longest, published_tables, compares=compares)
    if has_log:
        findings += _of_publishing(config, published_tables)
        post_poll_statements = statements(config.build(SessionSettings).post_poll_stmt)
        for statement in naming_log(post_poll_statements, log):
            print_sentence(why_warned(statement))
    faults = [finding for finding in findings if finding.fault]
    _show_findings([finding for finding in findings if ways_round or finding.fault or finding.shown])
    if faults:
        sys.exit(1)
    print_line("nothing else is wrong" if any(finding.shown for finding in findings) else "nothing is wrong")


def _noting(absent: list[Finding]) -> OnAbsent:
    """Return a function that makes a finding of a name in the settings that names no table."""

    def note(name: str, fault: NoSuchTable) -> None:
        absent.append(Finding(name, str(fault), "correct it in the settings, or leave it out"))

    return note


@contextmanager
def _reported_once() -> Iterator[None]:
    """Keep the tables that are tracked and not read out of the log: each is a finding."""

    def is_no_finding(record: logging.LogRecord) -> bool:
        return record.msg != NOT_READ

    publishing.addFilter(is_no_finding)
    try:
        yield
    finally:
        publishing.removeFilter(is_no_finding)


def _of_publishing(config: Config, tables: Tables) -> Iterator[Finding]:
    """Yield what is wrong with what is published."""
    yield from (Finding(*contradiction) for contradiction in contradictions(config))
    if readers := config.build(MonitorSettings).readers:
        yield Finding("monitor-host", readers, CLOSING, fault=False, shown=True)
    yield from _of_sink(config, tables)
    with opened(config, to_look=True) as store:
        yield from _lost_fractions(config, tables, store)
        yield from _failed(store)
        if config.build(ComparingSettings).publication_mode == "trigger" and recorded_slot(store) is None:
            yield from _nothing_tracked(store)
        yield from comparing_findings(store, config, tables)
        yield from slot_findings(store, config)


def _of_sink(config: Config, tables: Tables) -> Iterator[Finding]:
    """Yield why the sink that is set could not be opened here, or what to mend about it; nothing is sent."""
    sink = config.values.get("sink")
    try:
        if sink:
            check_sink(sink, config.values)
            for flaw in flaws_of(sink, config.values, tables):
                yield Finding(f"sink {sink}", flaw.what, flaw.remedy, flaw.is_fault, shown=True)
    except EventlogError as fault:
        remedy = "mend it, because a publisher on this machine could not take over"
        yield Finding(f"sink {sink}", f"it cannot be opened here: {fault}", remedy)


def _lost_fractions(config: Config, tables: Tables, store: Store) -> Iterator[Finding]:
    """Yield which columns lose fractions of a second in documents; most receivers need none."""
    if not has_whole_seconds(config):
        return
    columns = [
        f"{table.name}.{name}"
        for table in tables
        for name in with_fractions((c for c in table.columns.values() if c.leaves), store.log.dialect)
    ]
    if columns:
        words = f"documents lose the fractions of a second of {', '.join(columns)}"
        yield Finding("time-syntax", words, "if the receiver needs them: time-syntax = 3", False, shown=True)


def _failed(store: Store) -> Iterator[Finding]:
    """Yield that rows have failed. It is no fault of the log, so the exit code does not change."""
    with store.admin() as admin:
        failed = admin.failed()
    if failed:
        words = f"{quantity(failed, 'row has', 'rows have')} failed and will not be sent again by themselves"
        remedy = "see why, then redrive or skip them"
        yield Finding(store.log.table, words, remedy, fault=False, shown=True, commands=(Remedy.ERRORS,))


def _nothing_tracked(store: Store) -> Iterator[Finding]:
    """Yield that no table is tracked. It may be meant so, where other triggers write the log."""
    with store.engine.connect() as connection:
        if any(read_record(connection, store.log)):
            return
        pending = LogAdmin(connection, Queries(store.log)).backlog().pending
    words = f"no table is tracked; {quantity(pending, 'row', 'rows')} pending"
    remedy = "right where other triggers write the log; else track its tables:"
    yield Finding(store.log.table, words, remedy, fault=False, shown=True, commands=(Remedy.TRACK,))


def _published_tables(engine: Engine, connection: Connection, log: Log, config: Config) -> Tables:
    """Return the tables that are published; where there is no log, those that need no naming."""
    if exists(connection, log):
        return read_tables(engine, log, config)
    catalogue_tables = Catalogue(connection).tables()
    return Tables(among([*catalogue_tables]), catalogue_tables.dialect)


def _show_findings(findings: Sequence[Finding]) -> None:
    styles = {
        finding.where: "red" if finding.fault else "yellow"
        for finding in sorted(findings, key=lambda each: each.fault)
    }
    Listing(("", ""), "{}: {}", styles, indent=2).show(
        (finding.where, (finding.what, finding.remedy, *(f"  {command}" for command in finding.commands)))
        for finding in findings
    )
