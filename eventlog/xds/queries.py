"""Queries of the engine, each read as searches of known tables.

Specification 2: read-attr and search-attr name only what may leave. Withheld, missing and unconfigured names
are refused in the same words, so that no one learns which of them it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lxml import etree

from eventlog.core import tablekey, values
from eventlog.core.errors import EventlogError, MalformedAssociation
from eventlog.core.tables import Column, Table, Tables
from eventlog.xds.settings import XdsSettings
from eventlog.xds.text import attribute, content

MOST_VALUES = 100  # that one query looks for
SCOPES = ("entry", "subordinates", "subtree")


class Unanswerable(EventlogError):
    """{0}"""


class Value(NamedTuple):
    """A value that is looked for, and the object that it names if it is a reference."""

    text: str
    association: str | None = None


class Query(NamedTuple):
    """One question, as it was asked."""

    event_id: str | None = None
    classes: tuple[str, ...] = ()
    association: str | None = None
    search: tuple[tuple[str, Value], ...] = ()  # an attribute, and a value that it must have
    read: tuple[str, ...] | None = None  # the attributes to return; None is all, empty is none
    scope: str = "subtree"
    named_otherwise: bool = False  # by a name of the engine's, which no row has


class Criterion(NamedTuple):
    """A value that a column must have, as text of the column's kind."""

    column: Column
    text: str


class Search(NamedTuple):
    """A search for objects of one table: one by its key, or all that have some values."""

    table: Table
    table_key: str | None
    criteria: tuple[Criterion, ...]
    columns: frozenset[str]  # that are returned


def read_queries(document: etree._Element) -> list[Query]:
    """Yield the queries of a document, anywhere in it."""
    return [_query(element) for element in document.iterfind("*/query")]


def understand(query: Query, tables: Tables, settings: XdsSettings) -> list[Search]:
    """Return the searches that answer a query; raise Unanswerable with the reason if there are none."""
    if query.scope not in SCOPES:
        raise Unanswerable(f"the scope is {query.scope!r}, not {', '.join(SCOPES)}")
    if len(query.search) > MOST_VALUES:
        raise Unanswerable(f"more than {MOST_VALUES} values are looked for")
    if query.association is not None:
        return _one_object(query, query.association, tables, settings)
    if query.named_otherwise:
        raise Unanswerable("an object is named by its association; rows have no dest-dn and no entry id")
    if query.scope == "entry":
        return []  # the base of all objects has no row
    return _many_objects(query, tables, settings)


def _one_object(query: Query, association: str, tables: Tables, settings: XdsSettings) -> list[Search]:
    try:
        table_key, name, schema = tablekey.read_association(association)
    except MalformedAssociation as fault:
        raise Unanswerable(str(fault)) from fault
    table = _table(tables, name if schema is None else f"{schema}.{name}")
    wanted = [_table(tables, name) for name in query.classes]
    if query.scope == "subordinates" or (wanted and table not in wanted):
        return []  # rows have no subordinates
    search = _search(table, table_key, query, settings)
    _check_read(query, [table])
    return [search]


def _many_objects(query: Query, tables: Tables, settings: XdsSettings) -> list[Search]:
    """Return the searches of each class; among several, of those that have the attributes."""
    if query.classes:
        wanted = [_table(tables, name) for name in dict.fromkeys(query.classes)]
    else:
        wanted = [table for table in tables if table.key]
    found, faults = [], []
    for table in dict.fromkeys(wanted):
        try:
            found.append(_search(table, None, query, settings))
        except Unanswerable as fault:
            faults.append(fault)
    if faults and not found:
        raise faults[0]
    _check_read(query, [search.table for search in found])
    return found


def _search(table: Table, table_key: str | None, query: Query, settings: XdsSettings) -> Search:
    criteria = tuple(_criterion(table, name, value, settings) for name, value in query.search)
    return Search(table, table_key, criteria, frozenset(_columns_read(table, query)))


def _check_read(query: Query, tables: Sequence[Table]) -> None:
    """Check that each attribute to be returned belongs to a class and may leave."""
    for name in query.read or ():
        if not any(_attribute(table, name) for table in tables):
            raise _unknown(f"attribute {name!r} of class {', '.join(str(table) for table in tables)}")


def _columns_read(table: Table, query: Query) -> Iterator[str]:
    if query.read is None:
        yield from (column.name for column in table.data)
    for name in query.read or ():
        column = _attribute(table, name)
        if column is not None:
            yield column.name


def _criterion(table: Table, name: str, value: Value, settings: XdsSettings) -> Criterion:
    column = _attribute(table, name)
    if column is None:
        raise _unknown(f"attribute {name!r} of class {table}")
    try:
        return Criterion(column, _text(column, value, settings))
    except EventlogError as fault:
        raise Unanswerable(f"attribute {name!r} of class {table}: {fault}") from fault


def _text(column: Column, value: Value, settings: XdsSettings) -> str:
    """Return the text of a value in the column's own form; of a reference, the key to which it leads."""
    text = _key_of(value.association, column) if value.association else value.text
    if column.kind in values.TIMES:
        moment = values.read_time(column.kind, text, settings.time_syntax)
        return values.dump(column.kind, values.load(column.kind, moment))
    return values.dump(column.kind, values.load(column.kind, text))


def _key_of(association: str, column: Column) -> str:
    """Return the value of the key to which a reference leads; of several, the one that the column holds."""
    table_key, _, _ = tablekey.read_association(association)
    pairs = tablekey.read(table_key)
    if len(pairs) == 1:
        return pairs[0][1]
    own = dict(column.by).get(column.name)
    found = [text for name, text in pairs if name == own]
    if not found:
        raise Unanswerable(f"{table_key} is a key of several columns, and {column.name} refers to no such")
    return found[0]


def _attribute(table: Table, name: str) -> Column | None:
    """Return the column of an attribute, if it leaves in events or belongs to the key."""
    column = table.published.get(name) or table.column(name)
    return column if column is not None and (column.leaves or column.name in table.key) else None


def _table(tables: Tables, name: str) -> Table:
    """Return the table of a class whose objects can be identified."""
    try:
        table = tables.find(name)
    except EventlogError:  # two of that name: an event would contain their schemas
        table = None
    if table is None or not table.key:
        raise _unknown(f"class {name!r}")
    return table


def _unknown(what: str) -> Unanswerable:
    return Unanswerable(f"{what} is not there to be read")


def _query(element: etree._Element) -> Query:
    found = [child.get("class-name", "") for child in element.iterfind("search-class")]
    base = element.get("class-name")
    names = [child.get("attr-name") for child in element.iterfind("read-attr")]
    association = element.find("association")
    return Query(
        element.get("event-id"),
        tuple(found or ([base] if base else [])),
        None if association is None else "".join(map(str, association.itertext())).strip(),
        tuple(_searched(element)),
        tuple(name for name in names if name) if names else None,
        element.get("scope", "subtree"),
        bool(element.get("dest-dn") or element.get("dest-entry-id")),
    )


def _searched(element: etree._Element) -> Iterator[tuple[str, Value]]:
    """Yield each attribute with each of its values: all must be there."""
    for child in element.iterfind("search-attr"):
        name = child.get("attr-name", "")
        for value in child.iterfind("value"):
            yield name, Value("".join(map(str, value.itertext())), value.get("association-ref"))


def write_query(query: Query) -> str:
    """Return the element of a query, for a receiver of ours and for people."""
    event_id = "" if query.event_id is None else f' event-id="{attribute(query.event_id)}"'
    parts = [f'<query{event_id} scope="{attribute(query.scope)}">']
    if query.association is not None:
        parts.append(f"<association>{content(query.association)}</association>")
    parts += (f'<search-class class-name="{attribute(name)}"/>' for name in query.classes)
    parts += (
        f'<search-attr attr-name="{attribute(name)}"><value {_kind(value)}>{content(value.text)}</value>'
        "</search-attr>"
        for name, value in query.search
    )
    parts += _read_attrs(query.read)
    return "".join([*parts, "</query>"])


def _kind(value: Value) -> str:
    if value.association is None:
        return 'type="string"'
    return f'type="dn" association-ref="{attribute(value.association)}"'


def _read_attrs(names: Iterable[str] | None) -> Iterator[str]:
    if names is None:
        return
    elements = [f'<read-attr attr-name="{attribute(name)}"/>' for name in names]
    yield from elements or ["<read-attr/>"]
