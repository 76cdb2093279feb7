"""The facts from which the triggers of a table are written, and its existing triggers that are ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from eventlog.core.errors import EventlogError
from eventlog.sql.capture.track_record import TrackRecord, columns_of
from eventlog.sql.catalogue import Catalogue, NoSuchTable
from eventlog.sql.names import Log
from eventlog.sql.relation import Child, Choice, ForeignKey, Installed, Place, Relation
from eventlog.sql.trigger_rows import EVENTS, Subject


class NoChild(EventlogError):
    """--child {0}: {1}"""


def read_subject(
    catalogue: Catalogue, record: TrackRecord, log: Log, relation: Relation, choice: Choice
) -> Subject:
    """Read the facts from which the triggers of a table are written."""
    our_names = trigger_names(log, relation.table.name, [None, *record.parents(relation.place)])
    child_columns = sorted(_columns_of_children(catalogue, choice).items())
    children = tuple(_child(catalogue, relation, child, columns) for child, columns in child_columns)
    canonical = (f"{child.relation.table}.{column.name}" for child in children for column in child.columns)
    return Subject(
        log,
        replace(relation, triggers=tuple(t for t in relation.triggers if t.name not in our_names)),
        replace(choice, children=tuple(canonical)),
        children,
        record.logged_as(relation.place),
        catalogue.owner(log).name,
    )


def children_of(
    catalogue: Catalogue, record: TrackRecord, parent: Relation, relations: Iterable[Relation] = ()
) -> tuple[Child, ...]:
    """Return the child tables of a table.

    They are those that are tracked with it and were not made anew since, with their tracked columns. Named
    tables that are its children are included, with all columns.
    """
    candidates = [(entry, catalogue.at(entry.place)) for entry in record.children(parent.place)]
    tracked = {
        relation.place: linked(parent, relation, columns_of(entry))
        for entry, relation in candidates
        if relation is not None and entry.is_still(relation.identity)
    }
    untracked = {
        relation.place: _whole_child(parent, relation) for relation in relations if is_child(relation, parent)
    }
    return tuple((tracked | untracked).values())


def is_child(relation: Relation, parent: Relation) -> bool:
    """Return whether a table without a key of its own refers to the key of another one."""
    table = relation.table
    return not table.key and not table.view and _link(parent, relation) is not None


def _whole_child(parent: Relation, relation: Relation) -> Child:
    """Return the child with all columns but those that name its parent."""
    link = _link(parent, relation)
    keys = link.columns if link else ()
    return linked(parent, relation, [name for name in relation.table.columns if name not in keys])


def _link(parent: Relation, relation: Relation) -> ForeignKey | None:
    """Return the foreign key by which a child names its parent.

    If there are several, it is the one with the parent's key names, else the first one of the table.
    """
    parent_table, key = parent.table, set(parent.table.key)
    order = list(relation.table.columns)
    links = [
        foreign
        for foreign in relation.foreign_keys
        if key
        and (foreign.target_schema, foreign.target) == (parent_table.schema, parent_table.name)
        and set(foreign.target_columns) == key
    ]
    links.sort(key=lambda foreign: (set(foreign.columns) != key, min(map(order.index, foreign.columns))))
    return links[0] if links else None


def installed_of(
    catalogue: Catalogue, record: TrackRecord, log: Log, relation: Relation, children: Iterable[Place]
) -> Iterator[Installed]:
    """Yield the triggers of ours for a table, those on its children included, and those that it has kept from
    when it was tracked under another name.
    """
    parent = relation.table.name
    current_names = trigger_names(log, parent, [None])
    former_names = {name for table in record.names() for name in trigger_names(log, table, [None])}
    yield from _called(
        relation, current_names | (former_names - trigger_names(log, parent, record.parents(relation.place)))
    )
    for place in sorted(set(children)):
        if child := catalogue.at(place):
            yield from _called(child, trigger_names(log, child.table.name, [parent]))


def trigger_names(log: Log, table: str, parents: Iterable[str | None]) -> set[str]:
    """Return the names that triggers of ours have on a table; a parent is named where it is a child."""
    writer = log.dialect.triggers
    return {writer.name(log, table, event, parent) for parent in parents for event in EVENTS}


def _called(relation: Relation, names: Collection[str]) -> Iterator[Installed]:
    return (trigger for trigger in relation.triggers if trigger.name in names)


def _columns_of_children(catalogue: Catalogue, choice: Choice) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for name in choice.children:
        table, column = split(catalogue, name)
        children.setdefault(table, []).append(column)
    return children


def split(catalogue: Catalogue, name: str) -> tuple[str, str]:
    """Return the table and the column of a name that joins them by a dot; both may hold dots themselves."""
    for dot in reversed([match.start() for match in re.finditer(r"\.", name)]):
        with suppress(NoSuchTable):
            if name[dot + 1 :] in catalogue.find(name[:dot]).table.columns:
                return name[:dot], name[dot + 1 :]
    table, _, column = name.rpartition(".")
    return table, column


def _child(catalogue: Catalogue, parent: Relation, name: str, columns: Sequence[str]) -> Child:
    if not name:
        raise NoChild(".".join(columns), "name the child table and its column, as in usr_phone.phoneno")
    return linked(parent, catalogue.find(name), columns)


def linked(parent: Relation, relation: Relation, columns: Sequence[str]) -> Child:
    """Return the child with these columns of it; NoChild where it is none, or lacks one."""
    table, link = relation.table, _link(parent, relation)
    if link is None:
        raise NoChild(str(table), f"it has no foreign key to the primary key of {parent.table}")
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise NoChild(f"{table}.{missing[0]}", f"{table} has no such column")
    return Child(relation, tuple(table.columns[column] for column in columns), link)
