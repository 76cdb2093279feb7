"""The object of a row, independent of the spelling of its table and its key.

For a known table the name is the catalogue's, and the key has the catalogue's columns in key order, with the
exact texts of their values. The row of a child table names the child and the key columns of its parent, and
belongs to the parent's object. For an unknown table both are as spelled.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.tablekey import Pairs
from eventlog.core.tables import Table, Tables

ObjectName = tuple[str, str]  # table_name and table_key, in the one spelling


class Identified(NamedTuple):
    """The object that a row names."""

    name: ObjectName
    table: Table | None
    pairs: Pairs  # the columns and texts of its key, as `name` has them
    child: str = ""  # the child table that the row names and that has its columns


def object_of(tables: Tables, table_name: str, table_key: str) -> ObjectName:
    """Return the object's name; that of a row that cannot be understood is its own."""
    try:
        return identify(tables, table_name, table_key).name
    except EventlogError:
        return table_name, table_key


def object_hash(table_name: str, table_key: str) -> str:
    """Return the name of an object that an index can hold, however long its key."""
    text = f"{table_name}\0{table_key}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_of_key(table_key: str) -> str:
    """Return the name of an object among those of its table, in 32 characters."""
    return hashlib.sha256(table_key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def names_object(tables: Tables, table_name: str, table_key: str, table: str | None, key: str | None) -> bool:
    """Return whether a row is of that table and that key, independent of spelling; None matches any."""
    searched = table_name if table is None else table, table_key if key is None else key
    row = table_name, table_key
    return searched == row or object_of(tables, *searched) == object_of(tables, *row)


def longest_value(table_key: str) -> str:
    """Return a text that every spelling of the key contains: the longest of its values, as inside quotes."""
    try:
        pairs = tablekey.read(table_key)
    except EventlogError:
        return table_key
    return max((tablekey.quote(value).strip('"') for _, value in pairs), key=len)


def identify(tables: Tables, table_name: str, table_key: str) -> Identified:
    """Return the object that a row names; raise EventlogError if none of its rows can be understood."""
    table = tables.find(table_name)
    pairs = tablekey.read(table_key)
    if table is not None and table.key and (ordered := table.key_pairs(pairs)) is not None:
        return _identify_in(tables, table, ordered, pairs, table_key)
    parents = tables.parents(table_name)
    orderings = [(parent, child, parent.key_pairs(pairs)) for parent, child in parents]
    matches = [(parent, child, ordered) for parent, child, ordered in orderings if ordered is not None]
    if len(matches) > 1:
        raise WrongRow(f"{table_name} is a child of {' and of '.join(str(parent) for parent, *_ in matches)}")
    if matches:
        parent, child, ordered = matches[0]
        return _identify_in(tables, parent, ordered, pairs, table_key)._replace(child=child)
    if table is not None and not table.key:
        return _identify_in(tables, table, table.in_one_order(pairs), pairs, table_key)
    if table is None and not parents:
        return Identified((table_name, table_key), None, pairs)
    raise wrong_key(table or parents[0][0], pairs)


def wrong_key(table: Table, pairs: Pairs) -> WrongRow:
    """Return the fault of a key that is not exactly the table's."""
    names, key = ", ".join(name for name, _ in pairs), ", ".join(table.key) or "not known"
    return WrongRow(f"the key names {names}, but the key of {table} is {key}")


def child_column(table: Table | None, child: str, column: str | None) -> str | None:
    """Return the parent's name for a column of a child's row; a column of the key may be the parent's."""
    prefix = f"{child}."
    if column is None:
        return None
    bare = column[len(prefix) :] if column.lower().startswith(prefix.lower()) else column
    qualified = f"{prefix}{bare}"
    if table is not None and table.column(qualified) is None:
        parent_column = table.column(bare)
        if parent_column is not None and parent_column.name in table.key:
            return parent_column.name
    return qualified


def _identify_in(tables: Tables, table: Table, ordered: Pairs, pairs: Pairs, table_key: str) -> Identified:
    plain = ordered is pairs and '"' not in table_key
    return Identified(
        (tables.name_of(table), table_key if plain else tablekey.write(ordered)), table, ordered
    )
