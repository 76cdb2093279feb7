"""The two sides of a table as one DataFrame: the key and the values of each row, and its side.

If a column has one type on both sides, Spark compares its values as they are. If the types differ and are not
plain, all values first become texts, by the reader of one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.compare.files import places_of
from eventlog.compare.texts import texts_of
from eventlog.core.errors import InvalidTables, Misuse
from eventlog.core.tables import Table
from eventlog_spark.io.log_frames import by_number

OLD, NEW = 0, 1
_PLAIN = (t.StringType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.BooleanType, t.NullType)
_TYPED = (
    t.DecimalType,
    t.FloatType,
    t.DoubleType,
    t.BinaryType,
    t.DateType,
    t.TimestampType,
    t.TimestampNTZType,
)
_OTHERWISE = (t.FloatType, t.DoubleType, t.NullType)  # -0 is 0 to Spark; of nothing nothing is compared


class TableState(NamedTuple):
    """A state of a table, and what errors call it."""

    name: str
    frame: Any


def both(table: Table, old: TableState, new: TableState) -> Any:
    """Return the rows of both sides: `side`, then the key's columns and the others, called v0, v1 ….

    Nothing is read yet; what a state cannot contain is reported at once.
    """
    frames = [_columns(table, side) for side in (old, new)]
    if not all(map(_alike, *map(_types, frames))):
        frames = [_as_texts(frame) for frame in frames]
    kinds = [_types(frame) for frame in frames]
    common = [one if one == other else t.StringType() for one, other in zip(*kinds, strict=True)]
    sides = [
        frame.select(f.lit(number).cast("byte").alias("side"), *(f.col(n).cast(c) for n, c in named))
        for number, frame, named in (
            (number, frame, tuple(zip(frame.columns, common, strict=True)))
            for number, frame in zip((OLD, NEW), frames, strict=True)
        )
    ]
    return sides[OLD].unionAll(sides[NEW])


def comparable(frame: Any, name: str) -> Any:
    """Return a column of `both` such that two values are equal only if their texts are.

    Collations and numbers such as -0 would differ from that. None means that they can be compared as they
    are.
    """
    kind = frame.schema[name].dataType
    if isinstance(kind, t.StringType) and kind != t.StringType():
        return f.col(name).cast("binary")
    return f.col(name).cast("string") if isinstance(kind, _OTHERWISE) else None


def _columns(table: Table, side: TableState) -> Any:
    """Return the columns of the table alone, in its order."""
    keys, data = places_of(table, tuple(side.frame.columns), side.name)
    chosen = [*keys, *data]
    fields = side.frame.schema.fields
    for at in chosen:
        if not isinstance(fields[at].dataType, _PLAIN + _TYPED):
            kind = fields[at].dataType.simpleString()
            raise Misuse(f"{side.name}: column {fields[at].name} is a {kind}, and cells hold single values")
    numbered = by_number(side.frame)
    return numbered.select(*(f.col(f"c{at}").alias(f"v{number}") for number, at in enumerate(chosen)))


def _types(frame: Any) -> list[t.DataType]:
    return [field.dataType for field in frame.schema.fields]


def _alike(one: t.DataType, other: t.DataType) -> bool:
    return one == other or (isinstance(one, _PLAIN) and isinstance(other, _PLAIN))


def _as_texts(frame: Any) -> Any:
    schema = pa.schema([(name, pa.string()) for name in frame.columns])
    return frame.mapInArrow(_Texts(schema), from_arrow_schema(schema))


class _Texts(NamedTuple):
    """A task that turns all values into texts."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch(texts(batch.columns), schema=self.schema)


def texts(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the texts of columns, as a log would hold them."""
    try:
        for column in columns:
            column.validate(full=True)
    except pa.ArrowInvalid as fault:
        raise InvalidTables(f"{fault}: the rows of a state cannot be read") from fault
    return [texts_of(column) for column in columns]
