"""From settings to the rules for rows, and to the reader that folds them."""

from __future__ import annotations

from dataclasses import replace

from eventlog.fold import Rules
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.open_log import driver_user
from eventlog.opening.publisher_tables import former_tables, read_bases, read_tables, readable_of
from eventlog.opening.sent_documents import document_name
from eventlog.publisher.fold import PickUpFold
from eventlog.sinks.document_kinds import DocumentKind, document_kind
from eventlog.sql.log.object_states import TableState
from eventlog.sql.log.store import Store
from eventlog.xds.xds_settings import XdsSettings

UNCUT_CHANGES = 2**31 - 1  # max_changes of events that are never cut


def read_rules(config: Config, store: Store) -> Rules:
    """Read the rules for rows.

    By default our own rows are loopback, and events are named after the log.
    """
    rules = config.build(Rules)
    if "association" not in config.values:
        rules = replace(rules, association=store.association())
    if rules.driver_user is None:
        rules = replace(rules, driver_user=driver_user(store.engine, store.log))
    if "log_name" not in config.values:
        rules = replace(rules, log_name=store.log.table)
    return rules


def chosen_kind(config: Config) -> DocumentKind | None:
    """Return the kind of documents that the sink sends, None for XDS."""
    return document_kind(document_name(config))


def publishing_rules(config: Config, store: Store) -> Rules:
    """Read the rules for rows that are published, as the kind of documents needs them."""
    return rules_for(read_rules(config, store), chosen_kind(config))


def rules_for(rules: Rules, kind: DocumentKind | None) -> Rules:
    """Return the rules as documents of a kind need them."""
    if kind is None or kind.writer is None:
        return rules
    return replace(rules, whole_rows=True, max_changes=UNCUT_CHANGES)


def make_reader(config: Config, store: Store) -> PickUpFold:
    """Return a reader by the settings, with the tables as the catalogue has them now."""
    bases = read_former(config, store)
    tables = read_tables(store.engine, store.log, config, bases=bases)
    readable = readable_of(config, store.engine, store.log, tables)
    if config.build(ComparingSettings).on_dropped_table == "delete":
        tables = tables.with_tables(former_tables(bases, tables))
    kind, rules = chosen_kind(config), publishing_rules(config, store)
    write = None if kind is None else kind.writer
    make_writer = (
        (lambda tables: write(tables, {**config.values, "tables": config.tables})) if write else None
    )
    return PickUpFold(tables, readable, rules, config.build(XdsSettings), make_writer)


def read_former(config: Config, store: Store) -> dict[str, TableState]:
    """Return what is on record of the states of tables, where the publisher compares them."""
    if config.build(ComparingSettings).publication_mode != "compare":
        return {}
    with store.engine.connect() as connection:
        return read_bases(connection, store.log)
