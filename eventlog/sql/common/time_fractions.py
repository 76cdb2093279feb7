"""Columns whose times have fractions of a second, which documents with whole seconds lose."""

from __future__ import annotations

import re
from collections.abc import Iterable

from eventlog.core.tables import Column
from eventlog.core.values import Kind
from eventlog.sql.common.dialect import Dialect

_DIGITS = re.compile(r"\(\s*(\d{1,9})")
WHOLE_SECONDS = 1  # the time-syntax of documents that have them
LOST = (
    "{} may have fractions of a second, which documents with time-syntax = 1 lose; time-syntax = 3 of the"
    " publisher keeps them"
)


def fraction_digits(column: Column, dialect: Dialect) -> int:
    """Return how many digits after the second a column of dates or times holds."""
    sizes = _DIGITS.search(column.type)
    if sizes:
        return int(sizes[1])
    return 0 if column.type.lower() == "date" else dialect.values.fraction


def with_fractions(columns: Iterable[Column], dialect: Dialect) -> list[str]:
    """Return the names of the columns whose times have fractions of a second."""
    return [
        column.name
        for column in columns
        if column.kind in (Kind.TIME, Kind.TIMESTAMP) and fraction_digits(column, dialect)
    ]
