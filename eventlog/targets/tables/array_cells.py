"""The cells of a column of Arrow, where each of its values is plain; `cells` makes all others.

What is plain here is plain in `cell_columns`, too, and becomes the same cells.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.captures.column_values import NotPlain
from eventlog.core.tables import Column
from eventlog.core.values import Kind, Precision
from eventlog.sql.common.dialect import Dialect
from eventlog.targets.tables.cell_columns import decimal_pattern, moment_pattern
from eventlog.targets.tables.cells import text_length

ToArray = Callable[[pa.Array], pa.Array]


def to_array(column: Column, dialect: Dialect) -> ToArray:
    """Return a function that makes the cells of an array; it raises NotPlain if a value is not plain."""
    if column.number is Precision.EXACT:
        return _matching(decimal_pattern(column))
    if column.number is not None:
        return _typed(pa.float64() if column.number is Precision.DOUBLE else None)
    if column.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP):
        return _moments(moment_pattern(column, dialect))
    if column.kind in (Kind.STRING, Kind.PADDED):
        return _texts(column, dialect)
    return _typed({Kind.INT: pa.int64(), Kind.STATE: pa.bool_()}.get(column.kind))


def _typed(kind: pa.DataType | None) -> ToArray:
    """Return a function that accepts all values of one type; none if the type is None."""

    def read(array: pa.Array) -> pa.Array:
        if array.type != kind:
            raise NotPlain
        return array

    return read


def _matching(pattern: str | None) -> ToArray:
    """Return a function that accepts texts of this pattern."""

    def read(array: pa.Array) -> pa.Array:
        if pattern is None or not pa.types.is_string(array.type):
            raise NotPlain
        if pc.all(pc.match_substring_regex(array, rf"^(?:{pattern})\z")).as_py() is False:
            raise NotPlain
        return array

    return read


def _moments(pattern: str | None) -> ToArray:
    match = _matching(pattern)
    return lambda array: pc.replace_substring(match(array), "T", " ")


def _texts(column: Column, dialect: Dialect) -> ToArray:
    most = text_length(column)

    def read(array: pa.Array) -> pa.Array:
        if not pa.types.is_string(array.type):
            raise NotPlain
        if most is not None and (pc.max(pc.utf8_length(array)).as_py() or 0) > most:
            raise NotPlain
        if dialect.empty_is_null or pc.any(pc.match_substring(array, "\0")).as_py():
            raise NotPlain
        return array

    return read
