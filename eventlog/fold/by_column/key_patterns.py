"""Keys of rows by pattern: which are certainly plain, and the values of those.

A pattern proves that a key has no quotes, markup or characters that XML lacks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.tables import Column, Table
from eventlog.core.values import Precision
from eventlog.fold import QueryKey
from eventlog.xds.skeleton import Treatment, treatment

_WORD = r"[^,;'+\"=\\<>&\x00-\x1f\x{FFFE}\x{FFFF}]"
_DECIMAL = r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{0,17}[1-9]"
_NUMBERS = {Precision.EXACT: rf"(?:0|-?[1-9][0-9]{{0,17}}|{_DECIMAL})"}


def int_form(column: Column) -> str:
    """Return the pattern of canonical integers that are certainly in the column's range."""
    low, high = certain_bounds(column)
    digits, sign = len(str(high)), "-?" if low else ""
    return rf"(?:0|{sign}[1-9][0-9]{{0,{digits - 1}}})" if high else "0"


def certain_bounds(column: Column) -> tuple[int, int]:
    """Return the least and the greatest integer of `int_form`."""
    low, high = column.bounds or (-(1 << 63), (1 << 63) - 1)
    greatest = 10 ** (len(str(high)) - 1) - 1
    return (-greatest if low < 0 else 0), greatest


def named_form(names: Sequence[str]) -> str:
    """Return the pattern of keys that name exactly these columns, in this order and spelling."""
    return "^" + r"\+".join(f"{re.escape(name)}={_WORD}*" for name in names) + r"\z"


def key_values(names: Sequence[str], keys: pa.Array) -> list[pa.Array]:
    """Return the values of such keys, for each of these columns."""
    if len(names) == 1:
        return [pc.utf8_slice_codeunits(keys, len(names[0]) + 1)]
    parts = pc.split_pattern(keys, "+")
    named = ((f"{name}=", pc.list_element(parts, at)) for at, name in enumerate(names))
    return [pc.utf8_slice_codeunits(part, len(name)) for name, part in named]


def key_form(table: Table, names: Sequence[str]) -> str | None:
    """Return the pattern of keys that certainly name a row, each in one way; None if there is no such
    pattern.
    """
    forms = [_value_form(column) for column in table.key_columns]
    if not forms or None in forms:
        return None
    return "^" + r"\+".join(f"{re.escape(n)}={form}" for n, form in zip(names, forms, strict=True)) + r"\z"


def current_key(table: Table, key: QueryKey) -> str:
    """Return one text for all keys that find the same row; that of a plain key is the key as a log has it."""
    if all(type(value) is int or (type(value) is str and not {"+", "="} & {*value}) for value in key):
        texts = map(str, key)
        return "+".join(f"{name}={text}" for name, text in zip(table.key, texts, strict=True))
    return repr(key)


def current_form(table: Table) -> str | None:
    """Return the pattern of keys that are their own `current_key`; None if there is no such pattern."""
    if any(column.number is not None for column in table.key_columns):
        return None
    return key_form(table, table.key)


def _value_form(column: Column) -> str | None:
    """Return the pattern of a key's values that certainly name a row, each in one way."""
    if treatment(column) is Treatment.INT:
        return int_form(column)
    if treatment(column) is not Treatment.TEXT:
        return None
    return f"{_WORD}*" if column.number is None else _NUMBERS.get(column.number)
