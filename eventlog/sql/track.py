"""Install, replace and remove the triggers of a table; doing it twice changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection, Engine

from eventlog.errors import EventlogError
from eventlog.sql import templates
from eventlog.sql.catalogue import Catalogue, NoSuchTable
from eventlog.sql.choice import Choice, read_mark
from eventlog.sql.connect import execute_plain
from eventlog.sql.log import Log
from eventlog.sql.refusals import refuse
from eventlog.sql.relation import Installed, Relation
from eventlog.sql.triggers import EVENTS, Child, Subject, qualified, routines
from eventlog.sql.writers import writer_of


class NoChild(EventlogError):
    """--child {0}: {1}"""


@dataclass(frozen=True)
class Plan:
    """What it takes to bring the triggers of one table to a choice."""

    relation: Relation
    drops: tuple[str, ...]
    creates: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def statements(self) -> tuple[str, ...]:
        return self.drops + self.creates


def track(engine: Engine, log: Log, name: str, choice: Choice) -> Plan:
    """Bring the triggers of a table to the choice; an empty plan says that they were so already."""
    with engine.begin() as connection:
        plan = plan_track(connection, log, name, choice)
        _run(connection, plan)
    return plan


def untrack(engine: Engine, log: Log, name: str) -> Plan:
    """Take the triggers of a table away."""
    with engine.begin() as connection:
        plan = plan_untrack(connection, log, name)
        _run(connection, plan)
    return plan


def install_routines(engine: Engine, log: Log) -> None:
    """The procedures for triggers of one's own, and the switch for bulk loads; any number of times."""
    with engine.begin() as connection:
        for statement in routines(located(log, Catalogue(connection))):
            execute_plain(connection, statement)


def remove_routines(engine: Engine, log: Log) -> None:
    """The opposite, before the log is uninstalled."""
    with engine.begin() as connection:
        for statement in routines(located(log, Catalogue(connection)), "drop_routines"):
            execute_plain(connection, statement)


def tracked(connection: Connection, log: Log) -> list[str]:
    """The tables that carry triggers of this log, which could not be written to without it."""
    catalogue = Catalogue(connection)
    names = located(log, catalogue).names()
    return [f"{schema}.{name}" for schema, name, _ in catalogue.tracked(names["log"])]


def plan_track(connection: Connection, log: Log, name: str, choice: Choice) -> Plan:
    """What `track` would do."""
    catalogue = Catalogue(connection)
    relation = catalogue.find(name)
    subject = read_subject(catalogue, log, relation, choice)
    refuse(subject)
    return plan_for(catalogue, subject, relation)


def plan_for(catalogue: Catalogue, subject: Subject, relation: Relation) -> Plan:
    """What brings the triggers of a subject to what they should be."""
    writer = writer_of(subject.dialect)
    expected = list(writer.write(subject))
    installed = list(installed_of(catalogue, subject.log, relation))
    if _standing(installed) == {(t.schema, t.table, t.name): t.body.strip() for t in expected}:
        return Plan(relation, (), ())
    kept = {(trigger.schema, trigger.table, trigger.name) for trigger in expected}
    stale = [t for t in installed if (t.schema, t.table, t.name) not in kept]
    used = {t.routine for t in installed} - {t.routine for t in stale}
    creates = (statement for trigger in expected for statement in trigger.create)
    return Plan(
        relation,
        tuple(_drops(subject.log, stale, used)),
        (*routines(subject.log), *creates),
        tuple(_warnings(subject)),
    )


def plan_untrack(connection: Connection, log: Log, name: str) -> Plan:
    """What `untrack` would do."""
    catalogue = Catalogue(connection)
    relation = catalogue.find(name)
    installed = installed_of(catalogue, located(log, catalogue), relation)
    return Plan(relation, tuple(_drops(log, installed)), ())


def script(log: Log, plan: Plan) -> str:
    """The plan as a file for the database's own client."""
    head = templates.statements(log.dialect, "session", {}) if plan.statements else ()
    return log.dialect.script([*head, *plan.statements])


def read_subject(catalogue: Catalogue, log: Log, relation: Relation, choice: Choice) -> Subject:
    """What the triggers of a table are written from."""
    others = tuple(t for t in relation.triggers if read_mark(t.body) is None)
    children = _columns_of_children(catalogue, choice)
    return Subject(
        located(log, catalogue),
        replace(relation, triggers=others),
        choice,
        tuple(_child(catalogue, relation, name, columns) for name, columns in children.items()),
    )


def children_of(catalogue: Catalogue, log: Log, relation: Relation) -> tuple[Child, ...]:
    """The child tables whose columns are tracked as attributes of a table."""
    for trigger in installed_of(catalogue, located(log, catalogue), relation):
        choice = read_mark(trigger.body)
        if choice is not None and choice.children:
            return read_subject(catalogue, log, relation, choice).children
    return ()


def located(log: Log, catalogue: Catalogue) -> Log:
    """The log with its schema, which triggers must name: they run under a search path of their own."""
    return log if log.schema else replace(log, schema=catalogue.home())


def installed_of(catalogue: Catalogue, log: Log, relation: Relation) -> Iterator[Installed]:
    """The triggers of ours for a table, those on its children included."""
    mine = list(_named(log, relation, None))
    yield from mine
    choices = [choice for trigger in mine if (choice := read_mark(trigger.body))]
    for name in {name for choice in choices for name in _columns_of_children(catalogue, choice)}:
        yield from _named(log, catalogue.find(name), relation.table.name)


def _named(log: Log, relation: Relation, parent: str | None) -> Iterator[Installed]:
    name_of = writer_of(log.dialect).name
    for trigger in relation.triggers:
        if trigger.name in {name_of(log, trigger.table, event, parent) for event in EVENTS}:
            yield trigger


def _standing(installed: Iterable[Installed]) -> dict[tuple[str | None, str, str], str]:
    return {(t.schema, t.table, t.name): t.body.strip() for t in installed if t.enabled}


def _columns_of_children(catalogue: Catalogue, choice: Choice) -> dict[str, list[str]]:
    """The columns of each child table that a choice names."""
    children: dict[str, list[str]] = {}
    for name in choice.children:
        table, column = _split(catalogue, name)
        children.setdefault(table, []).append(column)
    return children


def _split(catalogue: Catalogue, name: str) -> tuple[str, str]:
    """The table and the column of a name that joins them by a dot; both may hold dots themselves."""
    table, _, column = name.rpartition(".")
    for dot in reversed([found.start() for found in re.finditer(r"\.", name)]):
        with suppress(NoSuchTable):
            if name[dot + 1 :] in catalogue.find(name[:dot]).table.columns:
                return name[:dot], name[dot + 1 :]
    return table, column


def _child(catalogue: Catalogue, parent: Relation, name: str, columns: list[str]) -> Child:
    relation = catalogue.find(name) if name else None
    if relation is None:
        raise NoChild(".".join(columns), "name the child table and its column, as in usr_phone.phoneno")
    link = relation.parent(parent.table.schema, parent.table.name)
    if link is None or set(link.target_columns) != set(parent.table.key):
        raise NoChild(name, f"it has no foreign key to the primary key of {parent.table}")
    missing = [column for column in columns if column not in relation.table.columns]
    if missing:
        raise NoChild(f"{name}.{missing[0]}", f"{relation.table} has no such column")
    return Child(relation, tuple(relation.table.columns[column] for column in columns), link)


def _warnings(subject: Subject) -> Iterator[str]:
    writer = writer_of(subject.dialect)
    for relation in (subject.relation, *(child.relation for child in subject.children)):
        for foreign in relation.foreign_keys:
            if foreign.cascades and not writer.cascades_fire:
                yield (
                    f"the foreign key of {relation.table} to {foreign.target} cascades and fires no trigger"
                    f" in {subject.dialect.title}: such changes will not be logged"
                )


def _drops(log: Log, installed: Iterable[Installed], used: Collection[str] = ()) -> Iterator[str]:
    stale = sorted(installed, key=lambda t: (t.schema or "", t.table, t.name))
    for trigger in stale:
        holes = {
            "trigger": log.dialect.quote(trigger.name),
            "table": qualified(log.dialect, trigger.schema, trigger.table),
            "schema": log.dialect.quote(trigger.schema or ""),
        }
        yield from templates.statements(log.dialect, "drop_trigger", holes)
    for routine in sorted({t.routine for t in stale if t.routine} - set(used)):
        yield from templates.statements(log.dialect, "drop_routine", {"routine": routine})


def _run(connection: Connection, plan: Plan) -> None:
    for statement in plan.statements:
        execute_plain(connection, statement)
