"""What differs between versions of Spark, as a table, and one function for each difference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

_TASKS: Final = 200
_MAX_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MAX_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"


class SparkVersion(NamedTuple):
    """The properties of a version, which those after it share up to the next one of the table."""

    first: tuple[int, int]
    newest_java: int | None  # None: there is no limit
    batches: Mapping[str, str]  # settings that bound batches; users' sessions need the last one
    max_batch: int | None  # MiB that a task takes where no setting bounds them
    takes_arrow_tables: bool  # createDataFrame does
    numbers_tasks: bool  # by repartitionById
    condition: str  # the method of an error that returns its condition

    @property
    def bound(self) -> tuple[str, str]:
        """Return the setting that bounds batches in a user's session, and its value."""
        return [*self.batches.items()][-1]


_BY_ROWS: Final = {_MAX_ROWS: "256"}  # packed rows, of 1 MiB at most
_BY_BYTES: Final = {_MAX_ROWS: "32768", _MAX_BYTES: str(8 << 20)}
_VERSIONS: Final = (
    SparkVersion((3, 5), 17, _BY_ROWS, 256, False, False, "getErrorClass"),
    SparkVersion((4, 0), 21, _BY_BYTES, None, True, False, "getCondition"),
    SparkVersion((4, 1), 21, _BY_BYTES, None, True, True, "getCondition"),
    SparkVersion((4, 2), None, _BY_BYTES, None, True, True, "getCondition"),
)


def version_of(number: str) -> SparkVersion:
    """Return the properties of a version of this number."""
    major, minor = (int(part) for part in number.split(".")[:2])
    return [version for version in _VERSIONS if version.first <= (major, minor)][-1]


VERSION: Final = version_of(pyspark.__version__)


def context_of(spark: Any) -> Any:
    """Return the context of a session; over Spark Connect there is none."""
    try:
        return spark.sparkContext
    except (AttributeError, NotImplementedError):
        return None


def partitions_of(spark: Any) -> int:
    """Return how many tasks a shuffle has; Spark's own default if the session decides it for each shuffle."""
    stated = setting_of(spark, "spark.sql.shuffle.partitions", "")
    return int(stated) if stated.isdecimal() else _TASKS


def setting_of(spark: Any, name: str, default: str) -> str:
    """Return a setting of a session; the default where a serverless session does not give it."""
    try:
        return str(spark.conf.get(name, default))
    except PySparkException:
        return default


def condition_of(error: Any) -> str | None:
    """Return the name of the condition that is the cause of an error of Spark."""
    condition: str | None = getattr(error, VERSION.condition)()
    return condition


def frame_of(spark: Any, rows: pa.Table) -> Any:
    """Return rows of Arrow as a DataFrame."""
    if VERSION.takes_arrow_tables:
        return spark.createDataFrame(rows)
    cells = [tuple(row.values()) for row in rows.to_pylist()]
    return spark.createDataFrame(cells, from_arrow_schema(rows.schema))


# --- a task for each number


def to_tasks(frame: Any, count: int, number: Any) -> Any:
    """Return the rows in so many partitions, each row in that of its number."""
    if VERSION.numbers_tasks:
        return frame.repartitionById(count, number)
    keys = f.split(f.lit(",".join(map(str, _keys(count)))), ",")
    return frame.repartition(count, f.element_at(keys, number + 1).cast("int"))


@cache
def _keys(count: int) -> list[int]:
    """Return for each partition the lowest whole number that Spark's hash puts there."""
    size = 8 * count
    while True:
        partitions, keys = np.unique(_murmur3(np.arange(size)) % count, return_index=True)
        if len(partitions) == count:
            return [int(key) for key in keys]
        size *= 2


def _murmur3(values: Any) -> Any:
    """Return Spark's hash of each int: Murmur3 of one word, x86, 32 bits, whose seed is 42."""
    mixed = _rotated(values.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    mixed = _rotated(mixed ^ np.uint32(42), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)  # bytes
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (mixed ^ (mixed >> np.uint32(16))).view(np.int32)


def _rotated(values: Any, bits: int) -> Any:
    """Return 32 bits of each value rotated to the left."""
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
