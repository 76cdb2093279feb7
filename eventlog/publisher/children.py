"""The child tables that query-backs of their parents read: their places, and our right to read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from eventlog.core.errors import EventlogError
from eventlog.core.tables import GONE, Column, Table
from eventlog.sql.capture.subject import linked, split
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.relation import Child, Relation, qualified


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
    held: dict[tuple[str, str], list[str]] = {}
    for column in columns.values():
        if column.of_child is not None:
            held.setdefault(column.of_child[:2], []).append(column.of_child[2])
    children = tuple(linked(parent, catalogue.relation(*place), names) for place, names in held.items())
    for child in children:
        _try_to_read(catalogue, child, table)
    return replace(table, columns=columns), children


def describe_children(tables: Iterable[Table]) -> Iterator[str]:
    """Yield a sentence for each table whose query-backs read children."""
    for table in tables:
        names = [column.name for column in table.data if column.of_child is not None]
        if names:
            yield f"query-backs of {table} read the rows of its children too: {', '.join(names)}"


def _placed(catalogue: Catalogue, parent: Relation, column: Column) -> Column:
    """Return the column with its place; a tables file has only the names of children."""
    if column.of_child is not None or column.unread == GONE or column.name in parent.table.columns:
        return column
    name, own = split(catalogue, column.name)
    return replace(column, of_child=(*catalogue.find(name).place, own))


def _try_to_read(catalogue: Catalogue, child: Child, parent: Table) -> None:
    own, quote = child.relation.table, catalogue.dialect.quote
    columns = ", ".join(quote(name) for name in (*child.link.columns, *(c.name for c in child.columns)))
    source = qualified(catalogue.dialect, own.schema, own.name)
    try:
        execute_plain(catalogue.connection, f"select {columns} from {source} where 1 = 0")  # noqa: S608 - quoted names of the catalogue
    except DatabaseFailed as fault:
        raise UnreadableChild(own, parent, fault) from fault
