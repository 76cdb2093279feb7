"""The names of objects by column: whatever rows call an object, it has one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.errors import EventlogError
from eventlog.core.identity import child_column, identify
from eventlog.core.tables import Tables
from eventlog.fold.by_column.key_patterns import named_form
from eventlog.fold.by_column.vectors import Ints, codes_of, encode_texts, flags, match_keys

_ANY = ""  # the pattern of all keys


def object_names(
    tables: Tables, names: pa.Array, keys: pa.Array, columns: pa.Array | None = None
) -> list[pa.Array]:
    """Return the table, the key and the column of each row, under the one name of its object.

    A row that cannot be understood keeps its own.
    """
    columns = pa.nulls(len(names), pa.string()) if columns is None else columns
    table_of, spellings = encode_texts(names)
    names_and_forms = [_find(tables, spelling) for spelling in spellings]
    catalogued = pa.array([name for name, _ in names_and_forms], pa.string()).take(pa.array(table_of))
    is_odd = ~match_keys(keys, table_of, [form for _, form in names_and_forms])
    is_odd &= flags(names.is_valid()) & flags(keys.is_valid())
    named = [catalogued, keys, columns]
    if not is_odd.any():
        return named
    mask = pa.array(is_odd)
    odd_rows = zip(*(column.filter(mask).to_pylist() for column in (names, keys, columns)), strict=True)
    texts = zip(*(_under_object_name(tables, *row) for row in odd_rows), strict=True)
    pairs = zip(named, texts, strict=True)
    return [pc.replace_with_mask(column, mask, pa.array(odd, pa.string())) for column, odd in pairs]


def object_texts(tables: Tables, names: pa.Array, keys: pa.Array) -> pa.Array:
    """Return one text for each object: its table's name, a zero character, its key."""
    return pc.binary_join_element_wise(*object_names(tables, names, keys)[:2], "\0")


def object_codes(tables: Tables, names: pa.Array, keys: pa.Array) -> Ints:
    """Return a number for each object."""
    return codes_of(object_texts(tables, names, keys))


def _find(tables: Tables, spelling: str | None) -> tuple[str | None, str | None]:
    """Return the name of a spelling's table, and the pattern of keys that are those of their objects."""
    try:
        table = tables.find(spelling or "")
    except EventlogError:
        return spelling, None
    if table is not None:
        return tables.name_of(table), named_form(table.key) if table.key else None
    return spelling, None if tables.parents(spelling or "") else _ANY


def _under_object_name(
    tables: Tables, table_name: str, table_key: str, column_name: str | None
) -> tuple[str, str, str | None]:
    try:
        identity = identify(tables, table_name, table_key)
    except EventlogError:
        return table_name, table_key, column_name
    if identity.child:
        column_name = child_column(identity.table, identity.child, column_name)
    return *identity.name, column_name
