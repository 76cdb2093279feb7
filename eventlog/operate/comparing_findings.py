"""The checks of a publisher that compares states: its state, its tables, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.core.plurals import quantity
from eventlog.core.remedies import Remedy
from eventlog.core.tables import Table, Tables
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import gone_tables, read_bases
from eventlog.sql.capture.findings import Finding
from eventlog.sql.log.object_states import StateGone, StateLost
from eventlog.sql.log.store import Store
from eventlog.sql.schema.migrate import has_companion
from eventlog.status.log_status import read_log_status


def comparing_findings(store: Store, config: Config, tables: Tables) -> Iterator[Finding]:
    """Return the findings; where triggers fill the log, only the tables that are halted."""
    for name, reason in tables.halted().items():
        yield Finding(name, reason, "mend it; the other tables are published")
    if config.build(ComparingSettings).publication_mode != "compare":
        return
    from eventlog.compare.polling import why_here  # Arrow takes a while to load
    from eventlog.publisher.comparison import tracked_tables

    for name in tracked_tables(config, store):
        words = "triggers log its changes, and a publisher that compares it would send each of them again"
        remedy = "publish with publication-mode trigger, or drop the triggers once all rows are published:"
        yield Finding(name, words, remedy, commands=(Remedy.UNTRACK.command(TABLE=name),))
    yield from _state_findings(store)
    reported = {str(table) for table in tables if table.halted or not table.key}
    for finding in _dropped_tables(store, config, tables):
        reported.add(finding.where)
        yield finding
    for name, reason in read_log_status(store, counted=False).cycle.get("unread", {}).items():
        if name in reported:
            continue
        yield Finding(name, f"it is not published: {reason}", "the others are published; mend it")
    for table in tables:
        if not table.key:
            yield Finding(str(table), "it has no key that identifies its rows", "give it one")
        elif table.halted:
            continue  # reported in every mode
        elif (why := why_here(store.log.dialect, table)) is not None:
            cost = "each poll fetches all its rows, and the publisher digests them"
            remedy = "poll less often where it is large"
            yield Finding(str(table), f"{why}: {cost}", remedy, fault=False, shown=True)


def _dropped_tables(store: Store, config: Config, tables: Iterable[Table]) -> Iterator[Finding]:
    """Return a finding for each table that is gone and whose objects the receiver keeps."""
    if config.build(ComparingSettings).on_dropped_table == "delete":
        return
    with store.engine.connect() as connection:
        bases = read_bases(connection, store.log)
    for table in gone_tables(config, store.engine, bases, tables):
        objects = quantity(bases[str(table)].objects, "object")
        words = f"there is no such table any more, and the receiver has {objects}"
        remedy = 'on-dropped-table = "delete" deletes them, a start with --startup-option future forgets them'
        yield Finding(str(table), words, remedy)


def _state_findings(store: Store) -> Iterator[Finding]:
    """Yield what is wrong with the state of the receiver."""
    with store.engine.connect() as connection:
        there = has_companion(connection, store.log, "known")
    if not there:
        name = store.log.companion_name("known")
        yield Finding(name, str(StateGone(name)), "make it anew", commands=(Remedy.INSTALL,))
        return
    try:
        with store.admin() as admin:
            admin.receiver_state().checked_states()
    except StateLost as fault:
        yield Finding(
            store.log.companion_name("known"), str(fault), "give it at the next start of the publisher"
        )
