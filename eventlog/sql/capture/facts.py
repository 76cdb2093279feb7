"""What `check` looks at: each look returns facts about a log or a tracked table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from shlex import quote
from typing import Any

from sqlalchemy.engine import Connection

from eventlog.core import tablekey
from eventlog.core.entry import EVENT_TYPES, MAX_RECORD_ID, Letter, read_event_type, read_integer
from eventlog.core.errors import AmbiguousName, EventlogError, MalformedKey, WrongRow
from eventlog.core.identity import object_of
from eventlog.core.tables import Tables
from eventlog.fold import Rules
from eventlog.sql.capture import track
from eventlog.sql.capture.extreme_keys import unfindable_keys
from eventlog.sql.capture.findings import Facts
from eventlog.sql.capture.refusals import raise_refusals
from eventlog.sql.capture.subject import installed_of, read_subject, trigger_names
from eventlog.sql.capture.track_record import TrackRecord
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.log.leader import holder_of
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.position import advancing, read_position
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.relation import MARK, Choice, Identity, Installed, Place, Relation, place_of, qualified
from eventlog.sql.trigger_rows import Subject, routine_names, routines, triggers_of

_PER_FIELD = frozenset(number for number, kind in EVENT_TYPES.items() if kind.per_field)
SAMPLE = 10_000  # pending rows that are looked at one by one
_PLAIN = re.compile("[A-Za-z0-9]+")
_LETTERS = frozenset(status.value for status in Letter)


@dataclass(frozen=True)
class CheckedLog:
    """The log that is checked, with its catalogue and its record."""

    connection: Connection
    log: Log
    catalogue: Catalogue
    record: TrackRecord
    tables: Tables
    rules: Rules
    patience: timedelta
    log_name: str  # the log, as commands must name it; empty where they find it

    def names(self) -> Facts:
        """Return the facts for any text about the log."""
        option = f" --log-table {quote(self.log_name)}" if self.log_name else ""
        return {**self.log.names(), "where": self.log.table, "log_option": option}

    @cached_property
    def queries(self) -> Queries:
        """Return the statements on the log."""
        return Queries(self.log)

    def ask(self, name: str, **values: Any) -> list[Any]:
        """Return the rows of a named statement."""
        names = {"status_text": literal(self.log.column("status"))}
        return [*self.queries.run(self.connection, name, names, **values)]

    @cached_property
    def pending(self) -> list[Any]:
        """Return the first pending rows."""
        return self.ask("check_pending", most=SAMPLE)

    @cached_property
    def pending_keys(self) -> list[tuple[str, str]]:
        """Return the objects of these rows: table and key."""
        objects = {(row.table_name, row.table_key) for row in self.pending}
        return sorted(name for name in objects if None not in name)


@dataclass(frozen=True)
class CheckedTable:
    """A tracked table that is checked, with the choice that its triggers remember."""

    of: CheckedLog
    relation: Relation
    choice: Choice

    def names(self) -> Facts:
        """Return the facts for any text about the table."""
        return {**self.of.names(), **_tracking(self.relation.table, self.choice)}


def _tracking(table: object, choice: Choice) -> Facts:
    """Return what a command to track a table consists of."""
    return {"where": str(table), "table_word": quote(str(table)), "flags": choice.flags()}


def tracked_tables(log: CheckedLog) -> Iterator[CheckedTable]:
    """Yield the tables that are tracked and still what they were then, with their choices."""
    for entry in log.record:
        relation = log.catalogue.at(entry.place)
        if relation is not None and entry.is_still(relation.identity):
            yield CheckedTable(log, relation, log.record.choice(entry))


def null_times(log: CheckedLog) -> Iterator[Facts]:
    for (count,) in log.ask("check_null_times"):
        yield {"count": count}


def reserved_letters(log: CheckedLog) -> Iterator[Facts]:
    for letter, count in log.ask("check_letters"):
        if letter not in _LETTERS:
            named = "null" if letter is None else repr(letter)
            yield {"letter": named, "count": count, "commands": _renewing(log, letter)}


def _renewing(log: CheckedLog, letter: str | None) -> Iterator[str]:
    """Yield the statement that makes such rows new, where it cannot mean others: not by case, nor
    by a quote.
    """
    if letter and _PLAIN.fullmatch(letter) and log.log.stored["status"].exact:
        names = log.log.names()
        condition = f"where {names['status']} = '{letter}'"
        yield f"update {names['log']} set {names['status']} = 'N' {condition};"  # noqa: S608 - our names and a plain letter


def event_types(log: CheckedLog) -> Iterator[Facts]:
    for cell, count in log.ask("check_types"):
        try:
            read_event_type(cell)
        except WrongRow as fault:
            yield {"count": count, "fault": fault}


def unusable_ids(log: CheckedLog) -> Iterator[Facts]:
    for (count,) in log.ask("check_ids"):
        yield {"count": count, "last_id": MAX_RECORD_ID}


def malformed_keys(log: CheckedLog) -> Iterator[Facts]:
    for table, key in log.pending_keys:
        try:
            tablekey.read(key)
        except MalformedKey as fault:
            routine = log.log.companion_name("key_value")
            yield {"table": table, "key": key, "fault": fault, "routine": routine}


def padded_keys(log: CheckedLog) -> Iterator[Facts]:
    spellings: dict[tuple[str, str], list[str]] = {}
    for table, key in log.pending_keys:
        spellings.setdefault((table, key.replace(" ", "")), []).append(key)
    for (table, _), keys in sorted(spellings.items()):
        yield {"table": table, "keys": ", ".join(map(repr, keys)), "differ": len(keys) > 1}


def two_forms(log: CheckedLog) -> Iterator[Facts]:
    """Yield the objects of published tables whose key as logged is not that in the catalogue's names."""
    if log.rules.association == "canonical":
        return
    forms = ((key, object_of(log.tables, table, key)) for table, key in log.pending_keys)
    odd = {name: key for key, name in forms if name[1] != key}
    if odd:
        (table, canonical), logged = min(odd.items())
        yield {"count": len(odd), "logged": logged, "table": table, "canonical": canonical}


def pending_names(log: CheckedLog) -> Iterator[Facts]:
    leave_as_strings = (1, 2, 3, 4) if log.rules.unknown_tables == "string" else ()
    names = Counter(
        row.table_name
        for row in log.pending
        if row.table_name is not None and read_integer(row.event_type) not in leave_as_strings
    )
    for name, count in sorted(names.items()):
        facts = {"name": name, "count": count}
        try:
            unpublished = log.tables.find(name) is None and not log.tables.parents(name)
            yield {**facts, "unpublished": unpublished}
        except AmbiguousName as fault:
            yield {**facts, "ambiguous": fault}


def unknown_columns(log: CheckedLog) -> Iterator[Facts]:
    """Yield columns that rows name and their tables lack."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, column in _named_columns(log):
        with suppress(EventlogError):
            table = log.tables.find(name)
            if table is not None and table.key and table.column(column) is None:
                counts[str(table), column] += 1
    for (name, column), count in sorted(counts.items()):
        yield {"table": name, "column": column, "count": count, log.rules.unknown_columns: count}


def _named_columns(log: CheckedLog) -> Iterator[tuple[str, str]]:
    for row in log.pending:
        facts = row.table_name, row.table_key, row.event_type, row.column_name
        if None not in facts and read_integer(row.event_type) in _PER_FIELD:
            yield row.table_name, row.column_name


def loopback(log: CheckedLog) -> Iterator[Facts]:
    user = log.rules.loopback_user
    if count := sum(row.perpetrator == user for row in log.pending if user is not None):
        ((connected_user,),) = log.ask("user")
        yield {"user": user, "count": count, "own": user == connected_user, "named": user != connected_user}


def overdue(log: CheckedLog) -> Iterator[Facts]:
    oldest = LogAdmin(log.connection, log.queries).backlog().oldest
    ((now,),) = log.ask("now")
    waited = now - oldest if oldest is not None else timedelta()
    yield {"age": timedelta(seconds=int(waited.total_seconds())), "late": waited > log.patience}


def lock_holder(log: CheckedLog) -> Iterator[Facts]:
    holder = holder_of(log.connection, log.queries)
    yield {"holder": holder, "stranger": holder is not None and not holder.publisher}


def pending_index(log: CheckedLog) -> Iterator[Facts]:
    for (count,) in log.ask("check_index"):
        creating = templates.statements(log.log.dialect, "create_pending", log.log.names())
        yield {"missing": not count, "commands": _one_line(creating)}


def _one_line(statements: Iterable[str]) -> Iterator[str]:
    """Return statements in printable form, without their comments."""
    for statement in statements:
        lines = (line.partition(" -- ")[0].strip() for line in statement.splitlines())
        yield " ".join(lines).removesuffix(";") + ";"


def unguarded_tables(log: CheckedLog) -> Iterator[Facts]:
    """Yield the tables in which an object that is not found need not be gone."""
    tables = {table.name: table for table in log.tables}
    places = [place_of(table) for table in log.tables]
    rows = [{"schema_name": schema, "table_name": name} for schema, name in places]
    for name, reason in log.ask("check_unguarded", places=json.dumps(rows, ensure_ascii=False)):
        yield {"where": str(tables[name]), "reason": reason}


def composite_references(log: CheckedLog) -> Iterator[Facts]:
    """Yield the references of several columns to published tables."""
    published = {place_of(table): table for table in log.tables}
    for place, table in published.items():
        relation = log.catalogue.at(place)
        for foreign in relation.foreign_keys if relation is not None else ():
            target = published.get((foreign.target_schema or "", foreign.target))
            if len(foreign.columns) > 1:
                yield {"where": str(table), "columns": ", ".join(foreign.columns), "target": target}


def keys_without_rows(log: CheckedLog) -> Iterator[Facts]:
    """Yield the keys of published tables by which no query-back finds a row."""
    for relation in filter(None, map(log.catalogue.at, map(place_of, log.tables))):
        for key in unfindable_keys(log.connection, log.log.dialect, relation):
            yield {"where": str(relation.table), "key": key}


def sequences(log: CheckedLog) -> Iterator[Facts]:
    for name, cache_size, *mending in log.ask("check_sequence"):
        yield {"sequence": name, "cache_size": cache_size, "commands": mending}


def position(log: CheckedLog) -> Iterator[Facts]:
    last, highest, _ = read_position(log.connection, log.queries)
    if last is not None:
        commands = _one_line([advancing(log.log, highest)])
        yield {"next": last + 1, "highest": highest, "again": last < highest, "commands": commands}


def routines_of_log(log: CheckedLog) -> Iterator[Facts]:
    statements = [*routines(log.log)] if log.catalogue.sees_routines(log.log) else []
    written = "\n".join(statements).replace("'", "")
    bodies = log.catalogue.routines(log.log)
    for name in routine_names(log.log, statements):
        body = (bodies.get(name) or "").strip()
        yield {"routine": name, "missing": name not in bodies, "differs": body not in written}


def recorded_tables(log: CheckedLog) -> Iterator[Facts]:
    for entry in log.record:
        relation = log.catalogue.at(entry.place)
        now = Identity() if relation is None else relation.identity
        yield {
            **_tracking(entry, log.record.choice(entry)),
            "now": now,
            "gone": relation is None,
            "no_table": not now.is_table,
            "another": relation is not None and now.is_table and not entry.is_still(now),
        }


def tables_not_on_record(log: CheckedLog) -> Iterator[Facts]:
    for place, is_ours in sorted(log.catalogue.marked(log.log).items()):
        name = ".".join(place)
        if log.record.get(place) is None and not log.record.parents(place):
            yield {**_tracking(name, Choice()), "ours": is_ours, "of_others": not is_ours}


def drift(table: CheckedTable) -> Iterator[Facts]:
    log = table.of
    try:
        subject = read_subject(log.catalogue, log.record, log.log, table.relation, table.choice)
        raise_refusals(subject)
    except EventlogError as fault:
        yield {"misfit": fault}
        return
    if hidden := _hidden(table, subject):
        yield {"hidden": ", ".join(hidden)}
    elif track.plan_for(log.catalogue, log.record, subject).statements:
        yield {"differences": "; ".join(_differences(table, subject))}


def _hidden(table: CheckedTable, subject: Subject) -> list[str]:
    """Return the tables whose triggers we do not see, though there may be some."""
    children = [child.relation.place for child in subject.children]
    shown = {(trigger.schema, trigger.table) for trigger in _installed(table, children)}
    places = [place for place in (table.relation.place, *children) if place not in shown]
    return [".".join(place) for place in places if not table.of.catalogue.shows_triggers(place)]


def _installed(table: CheckedTable, children: Iterable[Place]) -> list[Installed]:
    log = table.of
    return [*installed_of(log.catalogue, log.record, log.log, table.relation, children)]


def _differences(table: CheckedTable, subject: Subject) -> Iterator[str]:
    quote_name = subject.dialect.quote
    triggers = {(t.schema, t.table, t.name): t for t in triggers_of(subject)}
    children = [entry.place for entry in table.of.record.children(table.relation.place)]
    installed = {(t.schema, t.table, t.name): t for t in _installed(table, children)}
    for place in sorted(triggers.keys() - installed.keys(), key=str):
        yield f"trigger {place[2]} is missing on {place[1]}"
    for place in sorted(installed.keys() - triggers.keys(), key=str):
        yield f"trigger {place[2]} on {place[1]} has nothing to do any more"
    both = [(triggers[place], trigger) for place, trigger in installed.items() if place in triggers]
    for intended, trigger in both:
        if trigger.firing is not intended.firing:
            which = f"trigger {trigger.name} on {trigger.table}"
            yield f"{which} is disabled, or enabled in another way than by track"
    written = "".join(intended.body for intended, _ in both)
    installed_text = "".join(trigger.body for _, trigger in both)
    if written.split() != installed_text.split():
        yield "its triggers differ from those that track would write for the current table" + "".join(
            f": column {column.name} is not logged as it should be"
            for column in subject.table.columns.values()
            if written.count(quote_name(column.name)) != installed_text.count(quote_name(column.name))
        )


def triggers_before_ours(table: CheckedTable) -> Iterator[Facts]:
    relation, dialect = table.relation, table.of.log.dialect
    our_names = trigger_names(table.of.log, relation.table.name, [None])
    first = min((t.name for t in relation.triggers if t.name in our_names), default="")
    for trigger in relation.triggers:
        if trigger.row and not trigger.internal:
            yield {
                "trigger": trigger.name,
                "first": first,
                "early": dialect.triggers.by_statement and trigger.name < first,
                "trigger_name": dialect.quote(trigger.name),
                "later_name": dialect.quote(f"~{trigger.name}"),  # a tilde sorts after all letters
                "table_name": qualified(dialect, trigger.schema, trigger.table or relation.table.name),
            }


def silent_cascades(table: CheckedTable) -> Iterator[Facts]:
    dialect = table.of.log.dialect
    for target in table.relation.silent_cascades(dialect):
        yield {"target": target, "title": dialect.title}


def subscriptions(table: CheckedTable) -> Iterator[Facts]:
    if not table.choice.replicated:
        place = table.relation.table.schema, table.relation.table.name
        for name in table.of.catalogue.subscriptions(*place):
            yield {"subscription": name, "flags": replace(table.choice, replicated=True).flags()}


def ways_round(table: CheckedTable) -> Iterator[Facts]:
    """Yield the changes of a table, and of its children, that no trigger sees; a choice to log what is
    replicated leaves none.
    """
    log = table.of
    if not table.choice.replicated:
        for place in (table.relation.table, *log.record.children(table.relation.place)):
            for way, remedy in log.log.dialect.triggers.ways_round:
                yield {"where": str(place), "way": way, "remedy": remedy}


def view_truncates(log: CheckedLog) -> Iterator[Facts]:
    """Yield the published views with the tables whose truncate fires no trigger that could log it."""
    views = {place_of(table): str(table) for table in log.tables if table.view}
    if not log.log.dialect.triggers.on_truncate:
        yield from ({"where": name, "unseen": True} for name in views.values())
        return
    rows = [{"schema_name": schema, "view_name": name} for schema, name in views]
    places = json.dumps(rows, ensure_ascii=False)
    for schema, name, silent_tables in log.ask("check_view_truncates", places=places, mark=f"{MARK}{{"):
        yield {"where": views[schema, name], "silent_tables": ", ".join(silent_tables)}
