"""Faults of a log and its triggers: one small function per finding, each with its remedy.

A fault needs someone to act. A note is a way around the triggers that the database leaves open, so that users
learn of it before they lose a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from sqlalchemy.engine import Connection

from eventlog.core.tables import Table, Tables
from eventlog.sql.capture.checks.finding import Checked, Finding, Watched
from eventlog.sql.capture.checks.log import LOG_CHECKS
from eventlog.sql.capture.checks.rows import ROW_CHECKS
from eventlog.sql.capture.checks.tables import TABLE_CHECKS
from eventlog.sql.capture.record import TrackRecord, read_record
from eventlog.sql.capture.subject import trigger_names
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.names import Log


def check(
    connection: Connection,
    log: Log,
    driver_user: str | None = None,
    patience: timedelta = timedelta(days=1),
    published: Tables | None = None,
) -> Iterator[Finding]:
    """Yield every finding about the log and the tables that are tracked; `published` are those that rows may
    name, if others than these.
    """
    catalogue = Catalogue(connection)
    named = f"{log.schema}.{log.table}" if log.schema else log.table
    log = catalogue.located(log)
    record = read_record(connection, log)
    tables = Tables(_recorded(catalogue, record)) if published is None else published
    checked = Checked(
        connection, log, catalogue, record, tables, driver_user, patience, "" if named == Log.table else named
    )
    for of_log in (*ROW_CHECKS, *LOG_CHECKS):
        yield from of_log(checked)
    for watched in tracked_tables(checked):
        for of_table in TABLE_CHECKS:
            yield from of_table(checked, watched)


def tracked_tables(checked: Checked) -> Iterator[Watched]:
    """Yield the tables that are tracked and still what they were then, with their choices."""
    for entry in checked.record:
        relation = checked.catalogue.at(entry.place)
        if relation is not None and entry.is_still(relation.identity):
            names = trigger_names(checked.log, entry.table, [None])
            ours = tuple(trigger for trigger in relation.triggers if trigger.name in names)
            yield Watched(relation, ours, checked.record.choice(entry))


def _recorded(catalogue: Catalogue, record: TrackRecord) -> Iterator[Table]:
    for entry in record:
        if relation := catalogue.at(entry.place):
            yield replace(relation.table, logged_as=entry.logged_as)
