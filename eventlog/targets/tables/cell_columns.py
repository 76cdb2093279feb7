"""The cells of a whole column at once, where each of its values is plain; `cells` makes all others.

Nothing is decided here that `cells` decides otherwise: a column with a value that is not certain to become
the same cell there is not plain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

from eventlog.core.change import ABSENT, Absent
from eventlog.core.tables import Column
from eventlog.core.values import Kind, Precision
from eventlog.sql.common.dialect import Dialect
from eventlog.targets.tables.cells import SIZES, Cell, text_length

Cells = Sequence[Cell | Absent]
ToColumn = Callable[[Sequence[Any]], Cells | None]
_Make = Callable[[Sequence[Any]], Sequence[Cell] | None]  # of values that are neither null nor absent

_MOST_SCALE = 100


def to_column(column: Column, dialect: Dialect) -> ToColumn:
    """Return a function that makes the cells of many values; it returns None if a value is not plain."""
    kind, make = _plain(column, dialect)
    kinds = frozenset((kind, NoneType, Absent))

    def read(values: Sequence[Any]) -> Cells | None:
        value_types = set(map(type, values))
        if not value_types <= kinds:
            return None
        if make is None:
            return values
        plain_values = (
            values if value_types == {kind} else [v for v in values if v is not None and v is not ABSENT]
        )
        plain_cells = make(plain_values)
        if plain_cells is None:
            return None
        if plain_cells is plain_values:
            return values
        cells = iter(plain_cells)
        return [v if v is None or v is ABSENT else next(cells) for v in values]

    return read


def _plain(column: Column, dialect: Dialect) -> tuple[type, _Make | None]:
    """Return the type of a column's plain values, and what makes their cells; None where they are cells
    already.
    """
    if column.number is Precision.EXACT:
        return str, _decimals(column)
    if column.number is not None:
        return float, None if column.number is Precision.DOUBLE else _never
    if column.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP):
        return str, _moments(column, dialect)
    if column.kind in (Kind.STRING, Kind.PADDED):
        return str, _texts(column, dialect)
    return {Kind.INT: int, Kind.STATE: bool, Kind.OCTET: bytes}[column.kind], None


def _never(values: Sequence[Any]) -> None:
    """No value is plain."""


def decimal_pattern(column: Column) -> str | None:
    """Return the pattern of plain decimals of a column; None if none is plain."""
    sizes = SIZES.search(column.type)
    scale = int(sizes[2] or 0) if sizes else _MOST_SCALE
    if scale < 0:
        return None
    fraction = rf"(?:\.[0-9]{{1,{min(scale, _MOST_SCALE)}}})?" if scale else ""
    return rf"-?[0-9]{{1,100}}{fraction}"


def moment_pattern(column: Column, dialect: Dialect) -> str | None:
    """Return the pattern of plain dates and times of a column; None if none is plain."""
    if column.kind is Kind.TIME:
        return None
    sizes = SIZES.search(column.type)
    digits = int(sizes[1]) if sizes else 0 if column.type.lower() == "date" else dialect.fraction
    fraction = rf"(?:\.\d{{1,{digits}}})?" if digits else ""
    time = rf"(?:[ T]\d\d:\d\d:\d\d{fraction})?" if column.kind is Kind.TIMESTAMP else ""
    return rf"\d{{4}}-\d\d-\d\d{time}"


def _lines(pattern: str) -> Callable[[Sequence[str]], str | None]:
    """Return a function that gives texts as lines, if each of them matches this pattern."""
    every = re.compile(rf"(?:{pattern}\n)*+", re.ASCII)

    def read(texts: Sequence[str]) -> str | None:
        lines = "\n".join((*texts, ""))
        return lines if lines.count("\n") == len(texts) and every.fullmatch(lines) else None

    return read


def _decimals(column: Column) -> _Make:
    pattern = decimal_pattern(column)
    if pattern is None:
        return _never
    lines = _lines(pattern)
    return lambda texts: texts if lines(texts) is not None else None


def _moments(column: Column, dialect: Dialect) -> _Make:
    pattern = moment_pattern(column, dialect)
    if pattern is None:
        return _never
    lines = _lines(pattern)

    def make(texts: Sequence[str]) -> Sequence[Cell] | None:
        joined_lines = lines(texts)
        if joined_lines is None or "T" not in joined_lines:
            return None if joined_lines is None else texts
        return joined_lines.replace("T", " ").split("\n")[:-1]

    return make


def _texts(column: Column, dialect: Dialect) -> _Make:
    length_limit = text_length(column)
    longest = sys.maxsize if length_limit is None else length_limit

    def make(texts: Sequence[str]) -> Sequence[Cell] | None:
        joined = "".join(texts)
        if max(map(len, texts), default=0) > longest or (dialect.empty_is_null and "" in texts):
            return None
        if "\0" in joined or not (joined.isascii() or _encodes(joined)):
            return None
        return texts

    return make


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
