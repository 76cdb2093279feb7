"""What the triggers of a table are written from, and which of those that stand are ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from eventlog.errors import EventlogError
from eventlog.sql.catalogue import Catalogue, NoSuchTable
from eventlog.sql.choice import Choice
from eventlog.sql.log import Log
from eventlog.sql.record import Record, columns_of
from eventlog.sql.relation import Installed, Place, Relation
from eventlog.sql.triggers import EVENTS, Child, Subject
from eventlog.sql.writers import writer_of


class NoChild(EventlogError):
    """--child {0}: {1}"""


def read_subject(
    catalogue: Catalogue, record: Record, log: Log, relation: Relation, choice: Choice
) -> Subject:
    """What the triggers of a table are written from."""
    own = trigger_names(log, relation.table.name, [None, *record.parents(relation.place)])
    named = sorted(_columns_of_children(catalogue, choice).items())
    children = tuple(_child(catalogue, relation, child, columns) for child, columns in named)
    canonical = (f"{child.relation.table}.{column.name}" for child in children for column in child.columns)
    return Subject(
        log,
        replace(relation, triggers=tuple(t for t in relation.triggers if t.name not in own)),
        replace(choice, children=tuple(canonical)),
        children,
        record.logged_as(relation.place),
        catalogue.owner(log).name,
    )


def children_of(catalogue: Catalogue, record: Record, parent: Relation) -> tuple[Child, ...]:
    """The child tables whose columns are tracked as attributes of a table, but for those made anew since."""
    found = [(entry, catalogue.at(entry.place)) for entry in record.children(parent.place)]
    return tuple(
        _linked(parent, relation, columns_of(entry))
        for entry, relation in found
        if relation is not None and entry.is_still(relation.identity)
    )


def installed_of(
    catalogue: Catalogue, log: Log, relation: Relation, children: Iterable[Place]
) -> Iterator[Installed]:
    """The triggers of ours for a table, those on its children included."""
    parent = relation.table.name
    yield from _called(relation, trigger_names(log, parent, [None]))
    for place in sorted(set(children)):
        if child := catalogue.at(place):
            yield from _called(child, trigger_names(log, child.table.name, [parent]))


def trigger_names(log: Log, table: str, parents: Iterable[str | None]) -> set[str]:
    """The names that triggers of ours have on a table; a parent is named where it is a child."""
    name_of = writer_of(log.dialect).name
    return {name_of(log, table, event, parent) for parent in parents for event in EVENTS}


def _called(relation: Relation, names: Collection[str]) -> Iterator[Installed]:
    return (trigger for trigger in relation.triggers if trigger.name in names)


def _columns_of_children(catalogue: Catalogue, choice: Choice) -> dict[str, list[str]]:
    """The columns of each child table that a choice names."""
    children: dict[str, list[str]] = {}
    for name in choice.children:
        table, column = _split(catalogue, name)
        children.setdefault(table, []).append(column)
    return children


def _split(catalogue: Catalogue, name: str) -> tuple[str, str]:
    """The table and the column of a name that joins them by a dot; both may hold dots themselves."""
    for dot in reversed([found.start() for found in re.finditer(r"\.", name)]):
        with suppress(NoSuchTable):
            if name[dot + 1 :] in catalogue.find(name[:dot]).table.columns:
                return name[:dot], name[dot + 1 :]
    table, _, column = name.rpartition(".")
    return table, column


def _child(catalogue: Catalogue, parent: Relation, name: str, columns: Sequence[str]) -> Child:
    if not name:
        raise NoChild(".".join(columns), "name the child table and its column, as in usr_phone.phoneno")
    return _linked(parent, catalogue.find(name), columns)


def _linked(parent: Relation, relation: Relation, columns: Sequence[str]) -> Child:
    table = relation.table
    link = relation.parent(parent.table.schema, parent.table.name)
    if link is None or set(link.target_columns) != set(parent.table.key):
        raise NoChild(str(table), f"it has no foreign key to the primary key of {parent.table}")
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise NoChild(f"{table}.{missing[0]}", f"{table} has no such column")
    return Child(relation, tuple(table.columns[column] for column in columns), link)
