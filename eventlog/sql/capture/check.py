"""What is wrong with a log and its triggers: what is looked at, when it is a finding, why, and what to do.

Each row of a table is a finding: a look of `facts`, the fact that is its condition, the sentence, the remedy
and the commands that do it. The holes of texts are other facts, or names of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from sqlalchemy.engine import Connection

from eventlog.core.remedies import Remedy
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.sql.capture import facts
from eventlog.sql.capture.extreme_keys import UNFINDABLE
from eventlog.sql.capture.facts import CheckedLog, CheckedTable
from eventlog.sql.capture.findings import Check, Finding, findings_of
from eventlog.sql.capture.track_record import TrackRecord, read_record
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.log.slot_state import SlotState
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries

_TRACK = Remedy.TRACK.template(TABLE="{table_word}{flags}{log_option}")
_UNTRACK = Remedy.UNTRACK.template(TABLE="{table_word}{log_option}")

LOG_CHECKS: tuple[Check[CheckedLog], ...] = (
    # its rows
    Check(facts.null_times, "count",
        "{count:row has|rows have} no event_time",
        "give the column its default, and the rows a time:",
        ("update {log} set {event_time} = {utc_now} where {event_time} is null;",)),
    Check(facts.reserved_letters, "count",
        "{count:row has|rows have} the status {letter}, which is reserved: none is ever picked up",
        "delete them, or set it to N to have them sent:"),
    Check(facts.event_types, "fault",
        "of {count} pending rows {fault}",
        "mend the trigger that writes them; the publisher gives them status E"),
    Check(facts.unusable_ids, "count",
        "{count} pending rows have no usable record_id, a whole number from 1 to {last_id}: no publisher can"
        " finish them, and none picks them up",
        "give each a record_id, or delete it"),
    # the first of its pending rows
    Check(facts.malformed_keys, "fault",
        "the key {key!r} of {table}: {fault}",
        "write keys as {routine} has them, or track {table} with eventlog"),
    Check(facts.padded_keys, "differ",
        "keys of {table} differ only in blanks: {keys}; they count as different objects",
        "write the keys of one table in one format, from every trigger"),
    Check(facts.two_forms, "count",
        "{count} pending objects have two associations, such as {logged} of {table}, which is {canonical} in"
        " the catalogue's names",
        "write keys with the catalogue's names, in the order of the key, and quotes only where needed; or set"
        ' association = "canonical", on an attached log only after the receiver has its objects under the'
        " catalogue's names"),
    Check(facts.pending_names, "ambiguous",
        "{count:pending row|pending rows}: {ambiguous}",
        "log the name with its schema"),
    Check(facts.pending_names, "unpublished",
        "{count:pending row names|pending rows name} {name}, which is no table or view that is published",
        "track it, name it in sync-tables or sync-schema, or mend the trigger that writes them"),
    Check(facts.unknown_columns, "send",
        "{count:pending row names|pending rows name} column {column!r}, which {table} lacks: values leave as"
        " strings, and types 7 and 8 bring none",
        "add the column, mend what writes the rows, or refuse them with unknown-columns = refuse"),
    Check(facts.unknown_columns, "refuse",
        "{count:pending row names|pending rows name} column {column!r}, which {table} lacks: they will get E",
        "add the column, mend what writes the rows, or publish them with unknown-columns = send"),
    Check(facts.loopback, "own",
        "{count:pending row is|pending rows are} the work of {user}, as whom the publisher connects: such"
        " count as loopback and are not published",
        "let the publisher connect as a user of its own, or set driver-user or allow-loopback"),
    Check(facts.loopback, "named",
        "{count:pending row is|pending rows are} the work of {user}, whom driver-user names: such count as"
        " loopback and are not published",
        "right where the receiver made these changes; else set allow-loopback",
        fault=False, shown=True),
    Check(facts.overdue, "late",
        "the oldest pending row has waited {age}",
        "start a publisher, or see why the one that runs does not send them:",
        (Remedy.STATUS + "{log_option}",)),
    # its lock, its index, its published tables, its sequence, its routines
    Check(facts.lock_holder, "stranger",
        "the lock of its publisher is held by {holder}: nothing is published until it is released",
        "end that session, and take from its role the right to connect"),
    Check(facts.pending_index, "missing",
        "no index finds its pending rows: each pick-up reads the whole log",
        "make it again:"),
    Check(facts.unguarded_tables, "reason",
        "{reason}: DDL there can hide rows from a running publisher, which takes them for gone",
        "pause the publisher while such a table is rewritten or emptied",
        fault=False, shown=True),
    Check(facts.composite_references, "target",
        "{columns} refer together to {target}: they are published as plain values, without an association",
        "let the receiver put them together, or refer by one column",
        fault=False, shown=True),
    Check(facts.keys_without_rows, "key",
        UNFINDABLE,
        "give that row another key, or track it with types that are not read back, if the receiver is to"
        " have it",
        fault=False, shown=True),
    Check(facts.sequences, "sequence",
        "sequence {sequence} hands out numbers from a cache ({cache_size}): the order of record_id is not the"
        " order of the changes",
        "have it hand out one at a time, in order:"),
    Check(facts.position, "again",
        "record ids come again: the next one is {next}, and rows up to {highest} went out before; no"
        " publisher starts",
        "set its sequence past them:"),
    Check(facts.routines_of_log, "missing",
        "routine {routine} is missing",
        "make it again:",
        (Remedy.INSTALL + "{log_option}",)),
    Check(facts.routines_of_log, "differs",
        "routine {routine} differs from the one that install makes",
        "make it again:",
        (Remedy.INSTALL + "{log_option}",)),
    # its record of tracked tables
    Check(facts.recorded_tables, "gone",
        "it is tracked, and there is no such table any more",
        _UNTRACK),
    Check(facts.recorded_tables, "no_table",
        "it is not read: it is a {now.kind} now",
        _UNTRACK),
    Check(facts.recorded_tables, "another",
        "it is not read: it is another table than the one that was tracked, or belongs to {now.owner} now",
        f"{_TRACK}, or {_UNTRACK}"),
    Check(facts.tables_not_on_record, "ours",
        "it is not read: its triggers write to this log, but it is not on record",
        f"{_TRACK}, or drop the triggers"),
    Check(facts.tables_not_on_record, "of_others",
        "it is not read: its triggers write to this log, but it is not on record; another user owns them",
        f"{_TRACK}, or drop the triggers",
        fault=False),
)  # fmt: skip

TABLE_CHECKS: tuple[Check[CheckedTable], ...] = (
    Check(facts.drift, "misfit",
        "its triggers no longer fit: {misfit}",
        f"{_TRACK}, with another choice"),
    Check(facts.drift, "hidden",
        "its triggers cannot be compared: this user may not see those of {hidden}",
        "run check as the log's owner",
        fault=False, shown=True),
    Check(facts.drift, "differences",
        "{differences}",
        _TRACK),
    Check(facts.triggers_before_ours, "early",
        "trigger {trigger} fires before capture: its changes are in the log too early",
        "rename it so that it sorts after {first}:",
        ("alter trigger {trigger_name} on {table_name} rename to {later_name};",)),
    Check(facts.silent_cascades, "target",
        "its foreign key to {target} cascades, which fires no trigger in {title}: such changes are not"
        " logged",
        "let the foreign key restrict, and change the rows in a trigger on {target}"),
    Check(facts.subscriptions, "subscription",
        "subscription {subscription} writes to it as a replica, which fires no trigger of ours",
        _TRACK),
    Check(facts.ways_round, "way",
        "{way}",
        "{remedy}",
        fault=False),
)  # fmt: skip

VIEW_CHECKS: tuple[Check[CheckedLog], ...] = (
    Check(facts.view_truncates, "silent_tables",
        "a truncate of {silent_tables}, which it reads, fires no trigger that could log it",
        "give each a truncate trigger of your own, as docs/log/triggers.md has one, or resync afterwards",
        fault=False),
    Check(facts.view_truncates, "unseen",
        "a truncate of a table that it reads fires no trigger",
        "delete from the table instead, or empty the copies and resync",
        fault=False),
)  # fmt: skip


def check(
    connection: Connection,
    log: Log,
    rules: Rules,
    patience: timedelta = timedelta(days=1),
    published: Tables | None = None,
    *,
    compares: bool = False,
) -> Iterator[Finding]:
    """Yield every finding about the log and the tables that are tracked, by the rules of its publisher.

    `published` are the tables that rows may name, if others than these. A publisher that compares states
    needs no triggers on the tables of views.
    """
    catalogue = Catalogue(connection)
    log_name = "" if log.full_name == Log.table else log.full_name
    log = catalogue.located(log)
    record = read_record(connection, log)
    tables = Tables(_recorded(catalogue, record)) if published is None else published
    checked = CheckedLog(connection, log, catalogue, record, tables, rules, patience, log_name)
    yield from findings_of(LOG_CHECKS, checked, checked.names())
    filled = SlotState(connection, Queries(log)).facts() if log.dialect.sessions.has_slots else None
    if filled is not None:
        return  # a slot needs no triggers
    if not compares:
        yield from findings_of(VIEW_CHECKS, checked, checked.names())
    for table in facts.tracked_tables(checked):
        yield from findings_of(TABLE_CHECKS, table, table.names())


def _recorded(catalogue: Catalogue, record: TrackRecord) -> Iterator[Table]:
    for entry in record:
        if relation := catalogue.at(entry.place):
            yield replace(relation.table, logged_as=entry.logged_as)
