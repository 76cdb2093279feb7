"""Which tables are published: those on record as tracked, and those that sync-schema and sync-tables name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog.sql.capture.record import Recorded, TrackRecord, read_record
from eventlog.sql.capture.subject import children_of, is_child
from eventlog.sql.catalogue import Catalogue, Directory, NoSuchTable
from eventlog.sql.names import COMPANIONS, Log
from eventlog.sql.queries import Queries
from eventlog.sql.readable import with_children
from eventlog.sql.relation import Child, Relation

logger = logging.getLogger("eventlog.publishing")

Absent = Callable[[str, NoSuchTable], None]


class NothingPublished(EventlogError):
    """{0} is an attached log without a list of the tables that its rows may name: name them in sync-schema \
or sync-tables, or track them"""


def published(
    connection: Connection,
    log: Log,
    sync_tables: Sequence[str],
    sync_schema: str | None,
    passes: Callable[[str], bool],
    *,
    children: bool = False,
    compared: bool = False,
    absent: Absent | None = None,
) -> list[Table]:
    """Return the published tables as the catalogue describes them, each once.

    `passes` selects tables of the schema by name; `children` adds the children of sync_tables. A missing
    table is reported to `absent`, or raises NoSuchTable. If states are compared, views of the schema are read
    only if they belong to the log's owner.
    """
    catalogue = Catalogue(connection)
    log = catalogue.located(log)
    record = read_record(connection, log)
    ours = {
        (log.place, log.dialect.fold(log.table)),
        *((log.place, log.beside(name)) for name in (*COMPANIONS, "rows")),
    }
    asked = _asked_for(catalogue, ours, sync_tables, sync_schema, passes, children, absent)
    asked = [relation for relation in asked if not _turned(record, relation)]
    if compared:
        asked = list(_trusted(catalogue.owner(log).name, asked, sync_tables))
    found = [*_tracked(catalogue, record), *asked]
    if not found and _attached(connection, log):
        raise NothingPublished(log.table)
    return _each_once(catalogue, record, found)


def published_elsewhere(
    connection: Connection,
    sync_tables: Sequence[str],
    sync_schema: str | None,
    passes: Callable[[str], bool],
    *,
    children: bool = False,
    absent: Absent | None = None,
) -> list[Table]:
    """Return the same of a database in which no log is."""
    catalogue = Catalogue(connection)
    found = _asked_for(catalogue, (), sync_tables, sync_schema, passes, children, absent)
    return _each_once(catalogue, TrackRecord(), found)


def _asked_for(
    catalogue: Catalogue,
    ours: Container[object],
    names: Sequence[str],
    schema: str | None,
    passes: Callable[[str], bool],
    children: bool,
    absent: Absent | None,
) -> list[Relation]:
    """Return the tables of these names, their children if wanted, and those of the schema that pass."""
    listed = list(_listed(catalogue, names, absent))
    return [
        *listed,
        *(_children_beside(catalogue, listed) if children else ()),
        *(_in_schema(catalogue, ours, schema, passes) if schema is not None else ()),
    ]


def _each_once(catalogue: Catalogue, record: TrackRecord, found: Sequence[Relation]) -> list[Table]:
    """Return the tables of relations with their children; a child is not a table of its own."""
    relations = list({relation.place: relation for relation in found}.values())
    named = [relation for relation in relations if record.get(relation.place) is None]
    families = {r.place: children_of(catalogue, record, r, named) for r in relations}
    theirs = {child.relation.place for children in families.values() for child in children}
    return [
        _described(record, r, families[r.place]) for r in relations if r.table.key or r.place not in theirs
    ]


def _listed(catalogue: Catalogue, names: Sequence[str], absent: Absent | None) -> Iterator[Relation]:
    directory = Directory(catalogue)
    for name in names:
        try:
            yield directory.find(name)
        except NoSuchTable as fault:
            if absent is None:
                raise
            absent(name, fault)


def _tracked(catalogue: Catalogue, record: TrackRecord) -> Iterator[Relation]:
    """Return the tables on record, except those that changed since they were tracked."""
    for entry in record:
        relation = catalogue.at(entry.place)
        if relation is not None and entry.is_still(relation.identity):
            yield relation
        else:
            logger.warning("%s is tracked and not read: %s", entry, _change(entry, relation))


def _change(entry: Recorded, relation: Relation | None) -> str:
    if relation is None:
        return f"this table no longer exists; `eventlog untrack {entry}` removes it from the record"
    if not relation.identity.is_table:
        return f"it is a {relation.kind} now; `eventlog untrack {entry}` removes it from the record"
    return f"it was created again or has another owner; `eventlog track {entry}` records it again"


def _turned(record: TrackRecord, relation: Relation) -> bool:
    """Return whether it was a tracked table, and is something else by now."""
    return record.get(relation.place) is not None and not relation.identity.is_table


def _trusted(owner: str | None, asked: Iterable[Relation], names: Sequence[str]) -> Iterator[Relation]:
    """Yield what may be read whole: of views only those of the log's owner and those that are named."""
    for relation in asked:
        theirs = relation.identity.owner
        named = not {relation.table.name, str(relation.table)}.isdisjoint(names)
        if relation.table.view and not named and theirs is not None and theirs != owner:
            words = "%s is not read: the view belongs to %s, and its functions would run as the publisher;"
            logger.warning(f"{words} name it in sync-tables to read it", relation.table, theirs)
        else:
            yield relation


def _in_schema(
    catalogue: Catalogue, ours: Container[object], schema: str, passes: Callable[[str], bool]
) -> Iterator[Relation]:
    """Return the tables and views of a schema that pass, except the log's own."""
    for found, name, _ in catalogue.names(schema):
        if (found, name) not in ours and passes(name):
            yield catalogue.relation(found, name)


def _children_beside(catalogue: Catalogue, parents: Sequence[Relation]) -> Iterator[Relation]:
    """Yield the child tables of tables, in the schemas of these."""
    for schema in dict.fromkeys(parent.place[0] for parent in parents):
        for found, name, kind in catalogue.names(schema):
            relation = None if kind.endswith("view") else catalogue.at((found, name))
            if relation is not None and any(is_child(relation, parent) for parent in parents):
                yield relation


def _described(record: TrackRecord, relation: Relation, children: Sequence[Child]) -> Table:
    table = with_children(relation.table, children)
    logged_as = record.logged_as(relation.place)
    return table if logged_as == table.name else replace(table, logged_as=logged_as)


def _attached(connection: Connection, log: Log) -> bool:
    return bool(Queries(log).run(connection, "attached").scalar())
