"""The texts of Arrow's values, as a log would hold them: by column where Arrow surely writes the same."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.files import parquet
from eventlog.log_files.current import cell_text

_AS_OURS = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)
_PLAIN_SCALE = 6  # from the seventh digit after the point on, Arrow writes small numbers with an exponent
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAYS = (dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH)  # that Python knows
_DAY = 86_400_000_000  # microseconds
_MOMENTS = ((_DAYS[0] + 1) * _DAY, _DAYS[1] * _DAY)  # that it knows in all zones


def texts_of(column: pa.Array) -> pa.Array:
    """Return the texts of a column's values."""
    plain = parquet.decoded(column)
    if plain is not None and plain is not column:
        return texts_of(plain)
    found = _by_column(column)
    if found is not None:
        return found
    return pa.array([cell_text(cell) for cell in parquet.cells(column)], pa.string())


def _by_column(column: pa.Array) -> pa.Array | None:
    """Return the texts as Arrow writes them, None where they may be others than ours."""
    kind = column.type
    if any(is_type(kind) for is_type in _AS_OURS):
        return column.cast(pa.string())
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= _PLAIN_SCALE:
        return column.cast(pa.string())
    if pa.types.is_date32(kind) and _within(column.cast(pa.int32()), _DAYS):
        return column.cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.unit == "us" and _within(column.cast(pa.int64()), _MOMENTS):
        return _moments(column)
    return None


def _moments(column: pa.Array) -> pa.Array:
    """Write timestamps of microseconds in UTC, with a fraction unless it is zero."""
    numbers = column.cast(pa.int64())
    moments = numbers.cast(pa.timestamp("us"))
    if not np.any(pc.fill_null(numbers, 0).to_numpy() % 1_000_000):
        return moments.cast(pa.timestamp("s")).cast(pa.string())
    return pc.replace_substring_regex(moments.cast(pa.string()), r"\.000000\z", "")


def _within(numbers: pa.Array, bounds: tuple[int, int]) -> bool:
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or (bounds[0] <= found["min"] and found["max"] <= bounds[1])
