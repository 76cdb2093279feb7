"""The checks of the rows of a log and of tracked tables, and all findings together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from sqlalchemy.engine import Connection

from eventlog.core import tablekey
from eventlog.core.entry import EVENT_TYPES, MAX_RECORD_ID, Letter, read_event_type, read_integer
from eventlog.core.errors import AmbiguousName, EventlogError, MalformedKey, WrongRow
from eventlog.core.identity import object_of
from eventlog.core.plurals import quantity
from eventlog.core.tables import Table, Tables
from eventlog.sql.capture import track
from eventlog.sql.capture.findings import LOG_CHECKS, Checked, Finding, Watched
from eventlog.sql.capture.record import TrackRecord, read_record
from eventlog.sql.capture.refusals import refuse
from eventlog.sql.capture.subject import installed_of, read_subject, trigger_names
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.log.upkeep import Upkeep
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.relation import Installed, qualified
from eventlog.sql.trigger_rows import Subject, triggers_of

_PER_FIELD = frozenset(number for number, kind in EVENT_TYPES.items() if kind.per_field)
SAMPLE = 10_000  # pending rows that are looked at one by one
_PLAIN = re.compile("[A-Za-z0-9]+")
_LETTERS = frozenset(status.value for status in Letter)


def _null_times(checked: Checked) -> Iterator[Finding]:
    names = checked.log.names()
    for (count,) in checked.ask("check_null_times"):
        if count:
            yield checked.of_log(
                f"{quantity(count, 'row has', 'rows have')} no event_time",
                "give the column its default, and the rows a time:",
                f"update {names['log']} set {names['event_time']} = {names['utc_now']}"  # noqa: S608
                f" where {names['event_time']} is null;",
            )


def _letters(checked: Checked) -> Iterator[Finding]:
    for letter, count in checked.ask("check_letters"):
        if letter not in _LETTERS:
            named = "null" if letter is None else repr(letter)
            rows = quantity(count, "row has", "rows have")
            yield checked.of_log(
                f"{rows} the status {named}, which is reserved: none is ever picked up",
                "delete them, or set it to N to have them sent:",
                *_renewed(checked, letter),
            )


def _renewed(checked: Checked, letter: str | None) -> Iterator[str]:
    """Yield the statement that makes such rows new, where it cannot mean others: not by case, nor
    by a quote.
    """
    if letter and _PLAIN.fullmatch(letter) and checked.log.stored["status"].exact:
        names = checked.log.names()
        condition = f"where {names['status']} = '{letter}'"
        yield f"update {names['log']} set {names['status']} = 'N' {condition};"  # noqa: S608


def _types(checked: Checked) -> Iterator[Finding]:
    for cell, count in checked.ask("check_types"):
        try:
            read_event_type(cell)
        except WrongRow as fault:
            remedy = "mend the trigger that writes them; the publisher gives them status E"
            yield checked.of_log(f"of {count} pending rows {fault}", remedy)


def _unusable(checked: Checked) -> Iterator[Finding]:
    for (count,) in checked.ask("check_ids"):
        if count:
            yield checked.of_log(
                f"{count} pending rows have no usable record_id, a whole number from 1 to {MAX_RECORD_ID}: no"
                " publisher can finish them, and none picks them up",
                "give each a record_id, or delete it",
            )


def _pending(checked: Checked) -> Iterator[Finding]:
    rows = checked.ask("check_pending", most=SAMPLE)
    tables = checked.tables
    keys = {(row.table_name, row.table_key) for row in rows if None not in row[1:3]}
    yield from _malformed(checked, keys)
    yield from _padded(checked, keys)
    yield from _two_forms(checked, keys)
    yield from _unknown_names(
        checked, Counter(row.table_name for row in rows if row.table_name is not None), tables
    )
    named = Counter(
        (row.table_name, row.column_name)
        for row in rows
        if None not in row[1:] and read_integer(row.event_type) in _PER_FIELD
    )
    yield from _unknown_columns(checked, named, tables)
    yield from _loopback(checked, Counter(row.perpetrator for row in rows))


def _malformed(checked: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for table, key in sorted(keys):
        try:
            tablekey.read(key)
        except MalformedKey as fault:
            routine = checked.log.companion_name("key_value")
            remedy = f"write keys as {routine} has them, or track {table} with eventlog"
            yield checked.of_log(f"the key {key!r} of {table}: {fault}", remedy)


def _padded(checked: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    spellings: dict[tuple[str, str], set[str]] = {}
    for table, key in keys:
        spellings.setdefault((table, key.replace(" ", "")), set()).add(key)
    for (table, _), spelled_keys in sorted(spellings.items()):
        if len(spelled_keys) > 1:
            listed = ", ".join(map(repr, sorted(spelled_keys)))
            yield checked.of_log(
                f"keys of {table} differ only in blanks: {listed}; they count as different objects",
                "write the keys of one table in one format, from every trigger",
            )


def _two_forms(checked: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Report objects of published tables whose association is another one as logged than in the catalogue's
    names."""
    forms = {(table, key): object_of(checked.tables, table, key) for table, key in sorted(keys)}
    odd = {name: key for (_, key), name in forms.items() if name[1] != key}
    if odd:
        (table, canonical), logged = min(odd.items())
        yield checked.of_log(
            f"{len(odd)} pending objects have two associations, such as {logged} of {table}, which is"
            f" {canonical} in the catalogue's names",
            "write keys with the catalogue's names, in the order of the key, and quotes only where needed;"
            ' or set association = "canonical", on an attached log only after the receiver has its objects'
            " under the catalogue's names",
        )


def _unknown_names(checked: Checked, names: Counter[str], tables: Tables) -> Iterator[Finding]:
    for name, count in sorted(names.items()):
        try:
            exists = tables.find(name) is not None or bool(tables.parents(name))
        except AmbiguousName as fault:
            yield checked.of_log(f"{quantity(count, 'pending row')}: {fault}", "log the name with its schema")
            continue
        if not exists:
            rows = quantity(count, "pending row names", "pending rows name")
            yield checked.of_log(
                f"{rows} {name}, which is no table or view that is published",
                "track it, name it in sync-tables or sync-schema, or mend the trigger that writes them",
            )


def _unknown_columns(checked: Checked, named: Counter[tuple[str, str]], tables: Tables) -> Iterator[Finding]:
    """Report columns that rows name and their tables lack."""
    counts: Counter[tuple[str, str]] = Counter()
    for (name, column), count in named.items():
        with suppress(EventlogError):
            table = tables.find(name)
            if table is not None and table.key and table.column(column) is None:
                counts[str(table), column] += count
    for (name, column), count in sorted(counts.items()):
        rows = quantity(count, "pending row names", "pending rows name")
        yield checked.of_log(
            f"{rows} column {column!r}, which {name} lacks: values leave as strings, and types 7 and 8 bring"
            " none",
            "add the column, mend what writes the rows, or refuse them with unknown-columns = refuse",
        )


def _loopback(checked: Checked, perpetrators: Counter[str | None]) -> Iterator[Finding]:
    if checked.driver_user is not None and (count := perpetrators[checked.driver_user]):
        rows = quantity(count, "pending row is", "pending rows are")
        yield checked.of_log(
            f"{rows} the work of {checked.driver_user}, as whom the publisher connects: such"
            " count as loopback and are not published",
            "let the publisher connect as a user of its own, or set allow-loopback",
        )


def _overdue(checked: Checked) -> Iterator[Finding]:
    oldest = Upkeep(checked.connection, Queries(checked.log)).backlog().oldest
    ((now,),) = checked.ask("now")
    if oldest is not None and now - oldest > checked.patience:
        age = timedelta(seconds=int((now - oldest).total_seconds()))
        yield checked.of_log(
            f"the oldest pending row has waited {age}",
            "start a publisher, or see why the one that runs does not send them:",
            checked.command("status"),
        )


ROW_CHECKS: tuple[Callable[[Checked], Iterator[Finding]], ...] = (
    _null_times,
    _letters,
    _types,
    _unusable,
    _pending,
    _overdue,
)


def _drift(checked: Checked, watched: Watched) -> Iterator[Finding]:
    relation, choice = watched.relation, watched.choice
    table = relation.table
    remedy = checked.track(table, choice)
    try:
        subject = read_subject(checked.catalogue, checked.record, checked.log, relation, choice)
        refuse(subject)
    except EventlogError as fault:
        yield Finding(str(table), f"its triggers no longer fit: {fault}", f"{remedy}, with another choice")
        return
    plan = track.plan_for(checked.catalogue, checked.record, subject)
    hidden = _hidden(checked, subject, watched)
    if hidden:
        yield Finding(
            str(table),
            f"its triggers cannot be compared: this user may not see those of {', '.join(hidden)}",
            "run check as the log's owner",
            fault=False,
            shown=True,
        )
    elif plan.statements:
        yield Finding(str(table), "; ".join(_differences(checked, subject, watched)), remedy)


def _hidden(checked: Checked, subject: Subject, watched: Watched) -> list[str]:
    """Return the tables whose triggers we do not see, though there may be some."""
    children = [child.relation.place for child in subject.children]
    installed = installed_of(checked.catalogue, checked.record, checked.log, watched.relation, children)
    shown = {(trigger.schema, trigger.table) for trigger in installed}
    places = [place for place in (watched.relation.place, *children) if place not in shown]
    return [".".join(place) for place in places if not checked.catalogue.shows_triggers(place)]


def _differences(checked: Checked, subject: Subject, watched: Watched) -> Iterator[str]:
    triggers = {(t.schema, t.table, t.name): t for t in triggers_of(subject)}
    expected = {place: trigger.body for place, trigger in triggers.items()}
    children = [entry.place for entry in checked.record.children(watched.relation.place)]
    installed = list(installed_of(checked.catalogue, checked.record, checked.log, watched.relation, children))
    installed_bodies = {(t.schema, t.table, t.name): t.body for t in installed}
    for place in sorted(expected.keys() - installed_bodies.keys(), key=str):
        yield f"trigger {place[2]} is missing on {place[1]}"
    for place in sorted(installed_bodies.keys() - expected.keys(), key=str):
        yield f"trigger {place[2]} on {place[1]} has nothing to do any more"
    for trigger in installed:
        intended = triggers.get((trigger.schema, trigger.table, trigger.name))
        if intended is not None and trigger.firing is not intended.firing:
            which = f"trigger {trigger.name} on {trigger.table}"
            yield f"{which} is disabled, or enabled in another way than by track"
    written = "".join(expected[place] for place in expected.keys() & installed_bodies.keys())
    installed_text = "".join(installed_bodies[place] for place in expected.keys() & installed_bodies.keys())
    if written.split() != installed_text.split():
        yield "its triggers differ from those that track would write for the current table" + "".join(
            f": column {column.name} is not logged as it should be"
            for column in subject.table.columns.values()
            if written.count(checked.log.dialect.quote(column.name))
            != installed_text.count(checked.log.dialect.quote(column.name))
        )


def _before_ours(checked: Checked, watched: Watched) -> Iterator[Finding]:
    if not checked.log.dialect.statement_triggers:
        return
    first = min((t.name for t in watched.our_triggers), default="")
    for trigger in watched.relation.triggers:
        if trigger.row and not trigger.internal and trigger.name < first:
            yield Finding(
                str(watched.relation.table),
                f"trigger {trigger.name} fires before capture: its changes are in the log too early",
                f"rename it so that it sorts after {first}:",
                commands=(_renamed(checked, watched, trigger),),
            )


def _renamed(checked: Checked, watched: Watched, trigger: Installed) -> str:
    """Return the statement after which a trigger fires after ours: a tilde sorts after all letters."""
    quoted, table = checked.log.dialect.quote, watched.relation.table
    quoted_table = qualified(checked.log.dialect, trigger.schema, trigger.table or table.name)
    return f"alter trigger {quoted(trigger.name)} on {quoted_table} rename to {quoted('~' + trigger.name)};"


def _cascades(checked: Checked, watched: Watched) -> Iterator[Finding]:
    for target in watched.relation.silent_cascades(checked.log.dialect):
        yield Finding(
            str(watched.relation.table),
            f"its foreign key to {target} cascades, which fires no trigger in"
            f" {checked.log.dialect.title}: such changes are not logged",
            f"let the foreign key restrict, and change the rows in a trigger on {target}",
        )


def _replicated(checked: Checked, watched: Watched) -> Iterator[Finding]:
    if watched.choice.replicated:
        return
    table = watched.relation.table
    for name in checked.catalogue.subscriptions(table.schema, table.name):
        yield Finding(
            str(table),
            f"subscription {name} writes to it as a replica, which fires no trigger of ours",
            checked.track(table, replace(watched.choice, replicated=True)),
        )


def _ways_round(checked: Checked, watched: Watched) -> Iterator[Finding]:
    if watched.choice.replicated:
        return  # the one way round where there is such a choice
    for way, remedy in checked.log.dialect.triggers.ways_round:
        yield Finding(str(watched.relation.table), way, remedy, fault=False)


TABLE_CHECKS: tuple[Callable[[Checked, Watched], Iterator[Finding]], ...] = (
    _drift,
    _before_ours,
    _cascades,
    _replicated,
    _ways_round,
)


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
    log_name = f"{log.schema}.{log.table}" if log.schema else log.table
    log = catalogue.located(log)
    record = read_record(connection, log)
    tables = Tables(_recorded(catalogue, record)) if published is None else published
    checked = Checked(
        connection,
        log,
        catalogue,
        record,
        tables,
        driver_user,
        patience,
        "" if log_name == Log.table else log_name,
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
            our_triggers = tuple(trigger for trigger in relation.triggers if trigger.name in names)
            yield Watched(relation, our_triggers, checked.record.choice(entry))


def _recorded(catalogue: Catalogue, record: TrackRecord) -> Iterator[Table]:
    for entry in record:
        if relation := catalogue.at(entry.place):
            yield replace(relation.table, logged_as=entry.logged_as)
