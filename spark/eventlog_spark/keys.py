"""Keys that can be told to be right by a pattern: without quotes, markup or characters that XML lacks.

The patterns mean the same to Arrow (RE2) and to Spark (Java).
"""

from __future__ import annotations

import re

from eventlog.tables import Table
from eventlog_spark.templates import Treatment, treatment

_WORD = r"[^,;'+\"=\\<>&\x00-\x1f\x{FFFE}\x{FFFF}]"
PLAIN_KEY = rf"^{_WORD}+={_WORD}*(?:\+{_WORD}+={_WORD}*)*\z"
_TEXTS = {Treatment.TEXT: f"{_WORD}*", Treatment.INT: "(?:0|-?[1-9][0-9]{0,17})"}


def key_form(table: Table) -> str | None:
    """The pattern of keys that surely name a row, each row in one way; None where no pattern can tell."""
    if not table.key:
        return None
    forms = [_TEXTS.get(treatment(column)) for column in table.key_columns]
    if None in forms:
        return None
    named = zip(table.key, forms, strict=True)
    return "^" + r"\+".join(f"{re.escape(column)}={form}" for column, form in named) + r"\z"
