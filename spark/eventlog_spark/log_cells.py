"""The ten cells of a log as expressions of Spark, as far as Spark reads them as `convert` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.core.entry import COLUMNS

Given = Mapping[str, tuple[Any, t.DataType]]  # the columns of a log that a frame has, with their types

_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_NUMBERS = frozenset(("record_id", "event_type"))
_WRITTEN = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"  # the times whose years have four digits,
_WRITTEN_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999  # also since 1970


def log_cells(given: Given, clock: str) -> dict[str, Any]:
    """Return the cells as columns of the types of an entry, and `sure`: whether they certainly are one.

    `clock` is the event_time of a log without one. In doubt the other cells of a row mean nothing.
    """
    cell = {name: _text(*given[name]) if name in given else f.lit(None).cast("string") for name in COLUMNS}
    for name in _NUMBERS:
        cell[name] = _integer(*given[name])
    if "status" not in given:
        cell["status"] = f.lit("N")
    cell["status"] = f.coalesce(cell["status"], f.lit("None"))
    time, sure_time = _time(*given["event_time"]) if "event_time" in given else (f.lit(clock), f.lit(True))
    cell["event_time"] = f.replace(time, f.lit(" "), f.lit("T"))
    plain = all(
        _is_text_type(kind) for name, (_, kind) in given.items() if name not in (*_NUMBERS, "event_time")
    )
    cell["sure"] = _sure(cell, sure_time) if plain else f.lit(False)
    return cell


def _is_text_type(kind: t.DataType) -> bool:
    return isinstance(kind, t.NullType | t.CharType | t.VarcharType) or kind == t.StringType()


def _text(column: Any, kind: t.DataType) -> Any:
    return column.cast("string") if _is_text_type(kind) else f.lit(None).cast("string")


def _integer(column: Any, kind: t.DataType) -> Any:
    """Return integers; null for other values, and for types that Python reads."""
    if isinstance(kind, _INTEGERS):
        return column.cast("long")
    if isinstance(kind, t.DecimalType):
        return f.when(column % 1 == 0, column.try_cast("long"))
    return f.lit(None).cast("long")


def _time(column: Any, kind: t.DataType) -> tuple[Any, Any]:
    """Return the time as text, in UTC, and whether it surely is one. A time is judged without its text, which
    is made only where it goes on: it would be an eighth of a job.
    """
    if isinstance(kind, t.TimestampType):  # an instant; as a text it would be in the session's time zone
        micros = f.unix_micros(column)
        moment = f.timestamp_add("MICROSECOND", micros, _moment("1970-01-01 00:00:00")).cast("string")
        return moment, micros.between(*_WRITTEN_MICROS)
    if isinstance(kind, t.TimestampNTZType):
        return column.cast("string"), column.between(*map(_moment, _WRITTEN))
    text = _text(column, kind)
    shortest = f.rtrim(f.rtrim(text, f.lit("0")), f.lit("."))
    return f.when(text.contains("."), shortest).otherwise(text), _sure_time(text)


def _moment(text: str) -> Any:
    return f.lit(text).cast("timestamp_ntz")


def _sure(cell: Mapping[str, Any], sure_time: Any) -> Any:
    """Return whether a row is certainly an entry; doubtful rows go to the reader of `convert`."""
    named = (cell["column_name"] != "") | cell["event_type"].isin(4, 5, 6)
    sure = (cell["record_id"] > 0) & cell["event_type"].between(1, 8) & named
    sure &= cell["table_name"].isNotNull() & cell["table_key"].isNotNull() & sure_time
    return f.coalesce(sure, f.lit(False))


def _sure_time(time: Any) -> Any:
    """Return the time if it has the form yyyy-mm-dd hh:mm:ss, with a fraction of up to six digits."""
    shape = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?\z"
    moment = f.try_to_timestamp(f.replace(time, f.lit(" "), f.lit("T")))
    return (time >= "0001") & time.rlike(shape) & moment.isNotNull()
