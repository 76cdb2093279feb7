"""What is wrong with a log and its triggers: one small function per finding, each with its remedy.

A fault needs somebody to act; a note is a way round the triggers that the database leaves open to
anyone, so that nobody has to find it out by losing a change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog import tablekey
from eventlog.entry import Status, read_event_type
from eventlog.errors import AmbiguousName, EventlogError, MalformedKey, WrongRow
from eventlog.identity import object_of
from eventlog.sql import track
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.choice import Choice
from eventlog.sql.dialects import literal
from eventlog.sql.leader import holder_of
from eventlog.sql.log import Log
from eventlog.sql.queries import Queries
from eventlog.sql.record import Record, read_record
from eventlog.sql.refusals import refuse
from eventlog.sql.relation import Installed, Relation
from eventlog.sql.subject import installed_of, read_subject, trigger_names
from eventlog.sql.triggers import Subject
from eventlog.sql.upkeep import read_time
from eventlog.sql.writers import writer_of
from eventlog.tables import Table, Tables

SAMPLE = 10_000  # pending rows that are looked at one by one
_LETTERS = frozenset(status.value for status in Status)


class Finding(NamedTuple):
    """Something that is wrong, and what to do about it."""

    where: str
    what: str
    remedy: str
    fault: bool = True


class Watched(NamedTuple):
    """A tracked table with the choice that its triggers remember."""

    relation: Relation
    ours: tuple[Installed, ...]
    choice: Choice


@dataclass(frozen=True)
class Checked:
    """What the findings are looked for in."""

    connection: Connection
    log: Log
    catalogue: Catalogue
    record: Record
    tables: Tables
    driver_user: str | None = None
    patience: timedelta = timedelta(days=1)

    def ask(self, name: str, **values: Any) -> list[Any]:
        names = {
            "status_text": literal(self.log.column("status")),
            "log_sequence_text": literal(self.log.beside("sequence")),
        }
        rows: list[Any] = Queries(self.log).run(self.connection, name, names, **values).all()
        return rows


def check(
    connection: Connection,
    log: Log,
    driver_user: str | None = None,
    patience: timedelta = timedelta(days=1),
    published: Tables | None = None,
) -> Iterator[Finding]:
    """Every finding about the log and the tables that are tracked; `published` are those that rows may name,
    if others than these."""
    catalogue = Catalogue(connection)
    log = catalogue.located(log)
    record = read_record(connection, log)
    tables = Tables(_recorded(catalogue, record)) if published is None else published
    seen = Checked(connection, log, catalogue, record, tables, driver_user, patience)
    for of_log in LOG_CHECKS:
        yield from of_log(seen)
    for watched in tracked_tables(seen):
        for of_table in TABLE_CHECKS:
            yield from of_table(seen, watched)


def tracked_tables(seen: Checked) -> Iterator[Watched]:
    """The tables that are tracked and still what they were then, with their choices."""
    for entry in seen.record:
        relation = seen.catalogue.at(entry.place)
        if relation is not None and entry.is_still(relation.identity):
            names = trigger_names(seen.log, entry.table, [None])
            ours = tuple(trigger for trigger in relation.triggers if trigger.name in names)
            yield Watched(relation, ours, seen.record.choice(entry))


# Of the log


def _null_times(seen: Checked) -> Iterator[Finding]:
    for (count,) in seen.ask("check_null_times"):
        if count:
            yield _of_log(
                seen, f"{count} rows have no event_time", "give the column its default, and the rows a time"
            )


def _letters(seen: Checked) -> Iterator[Finding]:
    for letter, count in seen.ask("check_letters"):
        if letter not in _LETTERS:
            yield _of_log(
                seen,
                f"{count} rows have the status {letter!r}, which is reserved: they are never picked up",
                "set it to N to have them sent, or delete them",
            )


def _types(seen: Checked) -> Iterator[Finding]:
    for cell, count in seen.ask("check_types"):
        try:
            read_event_type(cell)
        except WrongRow as fault:
            remedy = "mend the trigger that writes them; the publisher gives them status E"
            yield _of_log(seen, f"of {count} rows {fault}", remedy)


def _unusable(seen: Checked) -> Iterator[Finding]:
    ((_, _, count),) = seen.ask("oldest_pending")
    if count:
        most = seen.log.stored["record_id"].most
        yield _of_log(
            seen,
            f"{count} pending rows have no usable record_id, a whole number from 1 to {most}: no publisher"
            " can finish them, and none picks them up",
            "eventlog errors lists them; give each a record_id, or delete it",
        )


def _pending(seen: Checked) -> Iterator[Finding]:
    rows = seen.ask("check_pending", most=SAMPLE)
    tables = seen.tables
    keys = {(row.table_name, row.table_key) for row in rows if None not in row[1:]}
    yield from _malformed(seen, keys)
    yield from _padded(seen, keys)
    yield from _two_forms(seen, keys)
    yield from _unknown_names(
        seen, Counter(row.table_name for row in rows if row.table_name is not None), tables
    )
    yield from _loopback(seen, Counter(row.perpetrator for row in rows))


def _malformed(seen: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for table, key in sorted(keys):
        try:
            tablekey.read(key)
        except MalformedKey as fault:
            remedy = f"write keys as {_key_value(seen)} does, or track {table} with eventlog"
            yield _of_log(seen, f"the key {key!r} of {table}: {fault}", remedy)


def _padded(seen: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    spellings: dict[tuple[str, str], set[str]] = {}
    for table, key in keys:
        spellings.setdefault((table, key.replace(" ", "")), set()).add(key)
    for (table, _), same in sorted(spellings.items()):
        if len(same) > 1:
            yield _of_log(
                seen,
                f"keys of {table} differ only in blanks: {', '.join(map(repr, sorted(same)))}; they count as"
                " different objects",
                "write the keys of one table in one format, from every trigger",
            )


def _two_forms(seen: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Objects whose association is another one as logged than in the catalogue's names."""
    tables = Tables(_named_by(seen, {table for table, _ in keys}))
    forms = {(table, key): object_of(tables, table, key) for table, key in sorted(keys)}
    odd = {name: key for (_, key), name in forms.items() if name[1] != key}
    if odd:
        (table, canonical), logged = min(odd.items())
        yield _of_log(
            seen,
            f"{len(odd)} pending objects have two associations, such as {logged} of {table}, which is"
            f" {canonical} in the catalogue's names",
            "write keys with the catalogue's names, in the order of the key, and quotes only where they must"
            " be; the setting `association` says which of the two documents carry",
        )


def _named_by(seen: Checked, names: Iterable[str]) -> Iterator[Table]:
    """The tables that rows name, those that there are."""
    found = {}
    for name in names:
        with suppress(EventlogError):
            relation = seen.catalogue.find(name)
            found[relation.place] = relation.table
    yield from found.values()


def _unknown_names(seen: Checked, names: Counter[str], tables: Tables) -> Iterator[Finding]:
    for name, count in sorted(names.items()):
        try:
            known = tables.find(name) is not None
        except AmbiguousName as fault:
            yield _of_log(seen, f"{count} pending rows: {fault}", "log the name with its schema")
            continue
        if not known:
            yield _of_log(
                seen,
                f"{count} pending rows name {name}, which is no table or view that is published",
                "track it, name it in sync-tables or sync-schema, or mend the trigger that writes them",
            )


def _loopback(seen: Checked, perpetrators: Counter[str | None]) -> Iterator[Finding]:
    if seen.driver_user is not None and (count := perpetrators[seen.driver_user]):
        yield _of_log(
            seen,
            f"{count} pending rows are the work of {seen.driver_user}, as whom the publisher connects: they"
            " count as loopback and are not published",
            "let the publisher connect as a user of its own, or set allow-loopback",
        )


def _overdue(seen: Checked) -> Iterator[Finding]:
    ((_, found, _),) = seen.ask("oldest_pending")
    oldest = read_time(found)
    ((now,),) = seen.ask("now")
    if oldest is not None and now - oldest > seen.patience:
        age = timedelta(seconds=int((now - oldest).total_seconds()))
        yield _of_log(
            seen, f"the oldest pending row has waited {age}", "is a publisher running? eventlog status tells"
        )


def _lock(seen: Checked) -> Iterator[Finding]:
    holder = holder_of(seen.connection, Queries(seen.log))
    if holder is not None and not holder.publisher:
        yield _of_log(
            seen,
            f"the lock of its publisher is held by {holder}: as long as it is, nothing is published",
            "end that session, and take from its role the right to connect",
        )


def _index(seen: Checked) -> Iterator[Finding]:
    for (count,) in seen.ask("check_index"):
        if not count:
            yield _of_log(
                seen,
                "no index finds its pending rows: each pick-up reads the whole log",
                "eventlog install makes it",
            )


def _sequence(seen: Checked) -> Iterator[Finding]:
    for name, cached in seen.ask("check_sequence"):
        yield _of_log(
            seen,
            f"sequence {name} hands out numbers from a cache ({cached}): the order of record_id is not the"
            " order of the changes",
            "alter it to cache 1 (PostgreSQL), nocache order (Oracle)",
        )


def _made_anew(seen: Checked) -> Iterator[Finding]:
    for entry in seen.record:
        relation = seen.catalogue.at(entry.place)
        again = f"eventlog track {quote(str(entry))}{seen.record.choice(entry).flags()}"
        if relation is None:
            yield Finding(
                str(entry),
                "it is tracked, and there is no such table any more",
                f"eventlog untrack {quote(str(entry))}",
            )
        elif not entry.is_still(relation.identity):
            yield Finding(
                str(entry),
                "it is not read: it is another table than the one that was tracked, or belongs to"
                f" {relation.identity.owner} now",
                f"{again}, or eventlog untrack {quote(str(entry))}",
            )


def _not_on_record(seen: Checked) -> Iterator[Finding]:
    for place, ours in sorted(seen.catalogue.marked(seen.log).items()):
        name = ".".join(place)
        if seen.record.get(place) is None and not seen.record.parents(place):
            yield Finding(
                name,
                "it is not read: its triggers say that they are of this log, and it is not on record"
                + ("" if ours else "; they belong to somebody else"),
                f"eventlog track {quote(name)}, or drop the triggers",
                fault=ours,
            )


# Of a tracked table


def _drift(seen: Checked, watched: Watched) -> Iterator[Finding]:
    table = watched.relation.table
    remedy = f"eventlog track {quote(str(table))}{watched.choice.flags()}"
    try:
        subject = read_subject(seen.catalogue, seen.record, seen.log, watched.relation, watched.choice)
        refuse(subject)
    except EventlogError as fault:
        yield Finding(str(table), f"its triggers no longer fit: {fault}", f"{remedy}, with another choice")
        return
    plan = track.plan_for(seen.catalogue, seen.record, subject)
    if plan.statements:
        yield Finding(str(table), "; ".join(_differences(seen, subject, watched)), remedy)


def _differences(seen: Checked, subject: Subject, watched: Watched) -> Iterator[str]:
    expected = {(t.schema, t.table, t.name): t.body for t in writer_of(seen.log.dialect).write(subject)}
    children = [entry.place for entry in seen.record.children(watched.relation.place)]
    installed = list(installed_of(seen.catalogue, seen.log, watched.relation, children))
    standing = {(t.schema, t.table, t.name): t.body for t in installed}
    for place in sorted(expected.keys() - standing.keys(), key=str):
        yield f"trigger {place[2]} is missing on {place[1]}"
    for place in sorted(standing.keys() - expected.keys(), key=str):
        yield f"trigger {place[2]} on {place[1]} has nothing to do any more"
    for trigger in installed:
        if not trigger.enabled:
            which = f"trigger {trigger.name} on {trigger.table}"
            yield f"{which} is disabled, or enabled in another way than by track"
    written = "".join(expected[place] for place in expected.keys() & standing.keys())
    found = "".join(standing[place] for place in expected.keys() & standing.keys())
    if written.split() != found.split():
        yield "its triggers are not those that track writes for the table as it is now" + "".join(
            f": column {column.name} is not logged as it should be"
            for column in subject.table.columns.values()
            if written.count(seen.log.dialect.quote(column.name))
            != found.count(seen.log.dialect.quote(column.name))
        )


def _before_ours(seen: Checked, watched: Watched) -> Iterator[Finding]:
    if not seen.log.dialect.statement_triggers:
        return
    first = min((t.name for t in watched.ours), default="")
    for trigger in watched.relation.triggers:
        if trigger.row and not trigger.internal and trigger.name < first:
            yield Finding(
                str(watched.relation.table),
                f"trigger {trigger.name} fires before capture: what it changes stands in the log too early",
                f"rename it so that it sorts after {first}",
            )


def _cascades(seen: Checked, watched: Watched) -> Iterator[Finding]:
    if writer_of(seen.log.dialect).cascades_fire:
        return
    for foreign in watched.relation.foreign_keys:
        if foreign.cascades:
            yield Finding(
                str(watched.relation.table),
                f"its foreign key to {foreign.target} cascades, which fires no trigger in"
                f" {seen.log.dialect.title}: such changes are not logged",
                f"let the foreign key restrict, and change the rows in a trigger on {foreign.target}",
            )


def _replicated(seen: Checked, watched: Watched) -> Iterator[Finding]:
    table = watched.relation.table
    for name in seen.catalogue.subscriptions(table.schema, table.name):
        yield Finding(
            str(table),
            f"subscription {name} writes to it as a replica, which fires no trigger of ours",
            "track the table where it is replicated from; leave the triggers here as they are:"
            " enabled always, they would stop the subscription",
        )


def _ways_round(seen: Checked, watched: Watched) -> Iterator[Finding]:
    for way, remedy in writer_of(seen.log.dialect).ways_round:
        yield Finding(str(watched.relation.table), way, remedy, fault=False)


def _of_log(seen: Checked, what: str, remedy: str) -> Finding:
    return Finding(seen.log.table, what, remedy)


def _key_value(seen: Checked) -> str:
    return seen.log.beside("key_value")


def _recorded(catalogue: Catalogue, record: Record) -> Iterator[Table]:
    for entry in record:
        if relation := catalogue.at(entry.place):
            yield replace(relation.table, logged_as=entry.logged_as)


LOG_CHECKS: tuple[Callable[[Checked], Iterator[Finding]], ...] = (
    _null_times,
    _letters,
    _types,
    _unusable,
    _pending,
    _overdue,
    _lock,
    _index,
    _sequence,
    _made_anew,
    _not_on_record,
)
TABLE_CHECKS: tuple[Callable[[Checked, Watched], Iterator[Finding]], ...] = (
    _drift,
    _before_ours,
    _cascades,
    _replicated,
    _ways_round,
)
