"""Which tables are published: those on record as tracked, and those that sync-schema and sync-tables name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.core.meta_identifiers import MetaName, read_name
from eventlog.core.remedies import Remedy
from eventlog.core.tables import LOST, Column, Table
from eventlog.sql.capture.subject import children_of, is_child, linked, split
from eventlog.sql.capture.track_record import Recorded, TrackRecord, read_record
from eventlog.sql.catalogue import Catalogue, Directory, NoSuchTable
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.names import COMPANIONS, Log
from eventlog.sql.queries import Queries
from eventlog.sql.readable import ReadableTable, readable, with_children
from eventlog.sql.relation import Child, Relation, qualified


def refer(column: Column, table: Table, targets: Sequence[Table], *, meta: bool) -> Column:
    """Return the column of a table as a reference to one of the targets, by exactly that one's key; or as
    none.
    """
    if table.view and meta and column.of_child is None:
        return _in_view(column, table, targets)
    target = next((target for target in targets if str(target) == column.reference), None)
    if target is None or (column.referred or target.key[0]) not in target.key or len(target.key) > 1:
        return replace(column, reference=None, referred=None)
    return replace(column, referred=None)


def among(tables: Sequence[Table]) -> list[Table]:
    """Return the tables with the references that they have to each other, and no others."""
    return [
        replace(
            table,
            columns={name: refer(column, table, tables, meta=True) for name, column in table.columns.items()},
        )
        for table in tables
    ]


def _in_view(column: Column, table: Table, targets: Sequence[Table]) -> Column:
    """Return a column fk__idg__name as a reference to what has the key idg: a view, if there is one, else a
    table. Where several could be meant none is, and columns of one group are plain values.
    """
    meta_name = read_name(column.name)
    group = [name for name in table.columns if _share_group(meta_name, read_name(name))]
    if not meta_name.is_foreign or meta_name.column is None or len(group) > 1:
        return replace(column, reference=None, referred=None)
    matching = [target for target in targets if _key_of(target) == [meta_name.column.lower()]]
    candidates = [target for target in matching if target.view] or matching
    return replace(column, reference=str(candidates[0]) if len(candidates) == 1 else None, referred=None)


def _share_group(meta_name: MetaName, column_name: MetaName) -> bool:
    return column_name.is_foreign and column_name.group is not None and column_name.group == meta_name.group


def _key_of(table: Table) -> list[str]:
    """Return the effective names of the key's columns."""
    return [(read_name(name).name if table.view else name).lower() for name in table.key]


class UnreadableChild(EventlogError):
    """{0} cannot be read ({2}), but query-backs of its parent {1} read its values: grant select on it, \
remove it from sync-tables or sync-schema, or track {1} without it"""


def with_places(catalogue: Catalogue, table: Table) -> tuple[Table, tuple[Child, ...]]:
    """Return the table with the place of each column of a child, and these children; UnreadableChild for one
    that may not be read.
    """
    if not any("." in name for name in table.columns):
        return table, ()
    parent = catalogue.relation(table.schema or "", table.name)
    columns = {name: _placed(catalogue, parent, column) for name, column in table.columns.items()}
    names_of: dict[tuple[str, str], list[str]] = {}
    for column in columns.values():
        if column.of_child is not None:
            names_of.setdefault(column.of_child[:2], []).append(column.of_child[2])
    children = tuple(linked(parent, catalogue.relation(*place), names) for place, names in names_of.items())
    for child in children:
        _try_to_read(catalogue, child, table)
    return replace(table, columns=columns), children


def readable_in(catalogue: Catalogue, table: Table) -> ReadableTable:
    """Return how the current rows of a table and its children are read."""
    placed, children = with_places(catalogue, table)
    return readable(catalogue.connection, placed, catalogue.dialect, children)


def describe_children(tables: Iterable[Table]) -> Iterator[str]:
    """Yield a sentence for each table whose query-backs read children."""
    for table in tables:
        names = [column.name for column in table.data if column.of_child is not None]
        if names:
            yield f"query-backs of {table} read the rows of its children too: {', '.join(names)}"


def _placed(catalogue: Catalogue, parent: Relation, column: Column) -> Column:
    """Return the column with its place; a tables file has only the names of children."""
    if column.of_child is not None or column.unread == LOST or column.name in parent.table.columns:
        return column
    name, bare_name = split(catalogue, column.name)
    return replace(column, of_child=(*catalogue.find(name).place, bare_name))


def _try_to_read(catalogue: Catalogue, child: Child, parent: Table) -> None:
    child_table, quote = child.relation.table, catalogue.dialect.quote
    columns = ", ".join(quote(name) for name in (*child.link.columns, *(c.name for c in child.columns)))
    source = qualified(catalogue.dialect, child_table.schema, child_table.name)
    try:
        execute_plain(catalogue.connection, f"select {columns} from {source} where 1 = 0")  # noqa: S608 - quoted names of the catalogue
    except DatabaseFailed as fault:
        raise UnreadableChild(child_table, parent, fault) from fault


logger = logging.getLogger("eventlog.publishing")
NOT_READ = "%s is tracked and not read: %s"

OnAbsent = Callable[[str, NoSuchTable], None]


class TableChoice(NamedTuple):
    """The tables that settings name, besides those on record as tracked."""

    names: Sequence[str]
    schema: str | None  # whose tables are read, too
    passes: Callable[[str], bool]  # selects tables of the schema by name
    children: bool  # also the child tables of the named ones
    absent: OnAbsent  # is called for a name without a table


class NothingPublished(EventlogError):
    """{0} is an attached log without a list of the tables that its rows may name: name them in sync-schema \
or sync-tables, or track them"""


class EmptySchema(NoSuchTable):
    """sync-schema {0} has no table or view that is published: name another schema, or change \
include-table-filter and exclude-table-filter"""


def published(catalogue: Catalogue, log: Log, choice: TableChoice, *, compared: bool) -> list[Table]:
    """Return the published tables as the catalogue describes them, each once.

    If states are compared, views of the schema are read only if they belong to the log's owner.
    """
    log = catalogue.located(log)
    record = read_record(catalogue.connection, log)
    ours = {
        (log.place, log.dialect.fold(log.table)),
        *((log.place, log.companion_name(name)) for name in (*COMPANIONS, "rows")),
    }
    requested = _requested(catalogue, ours, choice)
    # what was tracked as a table and is something else by now is not read
    requested = [r for r in requested if r.identity.is_table or record.get(r.place) is None]
    if compared:
        requested = list(_readable_whole(catalogue.owner(log).name, requested, choice.names))
    relations = [*_tracked(catalogue, record), *requested]
    if not relations and Queries(log).run(catalogue.connection, "attached").scalar():
        raise NothingPublished(log.full_name)
    return _each_once(catalogue, record, relations)


def published_elsewhere(catalogue: Catalogue, choice: TableChoice) -> list[Table]:
    """Return the chosen tables of a database in which no log is, each once."""
    return _each_once(catalogue, TrackRecord(), _requested(catalogue, (), choice))


def _requested(catalogue: Catalogue, ours: Container[object], choice: TableChoice) -> list[Relation]:
    """Return the tables of the chosen names, their children if wanted, and those of the schema that pass."""
    listed = list(_listed(catalogue, choice))
    return [
        *listed,
        *(_child_relations(catalogue, listed) if choice.children else ()),
        *(_in_schema(catalogue, ours, choice.schema, choice.passes) if choice.schema is not None else ()),
    ]


def _each_once(catalogue: Catalogue, record: TrackRecord, named_relations: Sequence[Relation]) -> list[Table]:
    """Return the tables of relations with their children; a child is not a table of its own."""
    relations = list({relation.place: relation for relation in named_relations}.values())
    named = [relation for relation in relations if record.get(relation.place) is None]
    families = {r.place: children_of(catalogue, record, r, named) for r in relations}
    theirs = {child.relation.place for children in families.values() for child in children}
    return [
        _described(record, r, families[r.place]) for r in relations if r.table.key or r.place not in theirs
    ]


def _listed(catalogue: Catalogue, choice: TableChoice) -> Iterator[Relation]:
    directory = Directory(catalogue)
    for name in choice.names:
        try:
            yield directory.find(name)
        except NoSuchTable as fault:
            choice.absent(name, fault)


def _tracked(catalogue: Catalogue, record: TrackRecord) -> Iterator[Relation]:
    """Return the tables on record, except those that changed since they were tracked."""
    for entry in record:
        relation = catalogue.at(entry.place)
        if relation is not None and entry.is_still(relation.identity):
            yield relation
        else:
            logger.warning(NOT_READ, entry, _change(entry, relation))


def _change(entry: Recorded, relation: Relation | None) -> str:
    removing = f"`{Remedy.UNTRACK.command(TABLE=entry)}` removes it from the record"
    if relation is None:
        return f"this table no longer exists; {removing}"
    if not relation.identity.is_table:
        return f"it is a {relation.kind} now; {removing}"
    tracking = Remedy.TRACK.command(TABLE=entry)
    return f"it was created again or has another owner; `{tracking}` records it again"


def _readable_whole(
    owner: str | None, requested: Iterable[Relation], names: Sequence[str]
) -> Iterator[Relation]:
    """Yield what may be read whole: of views only those of the log's owner and those that are named."""
    for relation in requested:
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
    for table_schema, name, _ in catalogue.names(schema):
        if (table_schema, name) not in ours and passes(name):
            yield catalogue.relation(table_schema, name)


def _child_relations(catalogue: Catalogue, parents: Sequence[Relation]) -> Iterator[Relation]:
    """Yield the child tables of tables, in the schemas of these."""
    for schema in dict.fromkeys(parent.place[0] for parent in parents):
        for table_schema, name, kind in catalogue.names(schema):
            relation = None if kind.endswith("view") else catalogue.at((table_schema, name))
            if relation is not None and any(is_child(relation, parent) for parent in parents):
                yield relation


def _described(record: TrackRecord, relation: Relation, children: Sequence[Child]) -> Table:
    table = with_children(relation.table, children)
    logged_as = record.logged_as(relation.place)
    return table if logged_as == table.name else replace(table, logged_as=logged_as)
