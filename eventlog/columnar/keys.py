"""Keys that a pattern proves to be plain: without quotes, markup or characters that XML lacks.

The patterns mean the same to Arrow (RE2) and to Spark (Java).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from eventlog.core.tables import Column, Table
from eventlog.core.values import Precision
from eventlog.xds.skeleton import Treatment, treatment

_WORD = r"[^,;'+\"=\\<>&\x00-\x1f\x{FFFE}\x{FFFF}]"
_DECIMAL = r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{0,17}[1-9]"
_NUMBERS = {Precision.EXACT: rf"(?:0|-?[1-9][0-9]{{0,17}}|{_DECIMAL})"}


def int_form(column: Column) -> str:
    """Return the pattern of canonical integers that are surely in the column's range."""
    low, high = column.bounds or (-(1 << 63), (1 << 63) - 1)
    digits = len(str(high)) - 1
    sign = "-?" if low < 0 else ""
    return rf"(?:0|{sign}[1-9][0-9]{{0,{digits - 1}}})" if digits else "0"


def named_form(names: Sequence[str]) -> str:
    """Return the pattern of keys that name exactly these columns, in this order and spelling."""
    return "^" + r"\+".join(f"{re.escape(name)}={_WORD}*" for name in names) + r"\z"


def key_form(table: Table, names: Sequence[str]) -> str | None:
    """Return the pattern of keys that certainly name a row, each in one way; None if there is no such
    pattern.
    """
    forms = [_form(column) for column in table.key_columns]
    if not forms or None in forms:
        return None
    return "^" + r"\+".join(f"{re.escape(n)}={form}" for n, form in zip(names, forms, strict=True)) + r"\z"


def _form(column: Column) -> str | None:
    """Return the pattern of a key's values that surely name a row, and in one way."""
    how = treatment(column)
    if how is Treatment.INT:
        return int_form(column)
    if how is not Treatment.TEXT:
        return None
    return f"{_WORD}*" if column.number is None else _NUMBERS.get(column.number)
