"""DataFrames of messages as one sequence: read in blocks of a partition's offsets, sorted, joined in ranges.

A row of a full load stands behind the greatest changeSequence that its partition had before it. What a block
knows of that is made whole by a window over those rows, and over what each block says of all of its messages.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.convert.conversion import allowed
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.qlik import avro
from eventlog.qlik.message_settings import MessageSettings
from eventlog_spark.input.batches import bounded
from eventlog_spark.input.messages import message_rows, messages_of, source_named, source_of
from eventlog_spark.output.frame_rows import FrameForm, Told, rows_of_changes, without_refused
from eventlog_spark.sequence.items import ITEM, REFUSED, TOLD, changes_of, in_ranges, pack, unpack, unpacked
from eventlog_spark.sequence.messages import JoinMessages, Messages, ReadMessages

_BLOCK: Final = 1000  # offsets
_PLACE: Final = ("topic", "partition", "offset")
_IN_JSON: Final = (b'"MD"', b"\\u004", b"044d44", b"044D44", b"\0")  # one stands in all metadata messages
_FOUND: Final = pa.schema([("metadata", pa.binary())])
_READ: Final = pa.schema(
    [
        ("kind", pa.int8()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("number", pa.int64()),
        ("task", pa.int32()),
        ("seq", pa.string()),  # of a row of a full load and of a block: the greatest before it in the block
        ("behind", pa.bool_()),
        ("table", pa.string()),
        ("item", pa.binary()),
    ]
)


def messages(
    frame: Any, tables: Tables, settings: MessageSettings, form: FrameForm, partitions: int, name: str
) -> Any:
    """The changes of messages, read in so many tasks. Metadata messages are looked for first, at once."""
    given = messages_of(frame)
    way = Messages(tables, settings)
    one = given.where(_may_be_metadata(settings.encoding)).repartition(1).sortWithinPartitions(*_PLACE)
    look = _FindMetadata(way.reading(), name, settings.encoding)
    found = [one for row in one.mapInArrow(look, "metadata binary").collect() for one in unpack(row.metadata)]
    way.learn(found)
    placed = given.withColumn("offset", f.coalesce("offset", f.monotonically_increasing_id() + 1))
    block = f.floor(f.col("offset") / _BLOCK)
    placed = placed.repartition(partitions, "topic", "partition", block).sortWithinPartitions(*_PLACE)
    read = _Read(way.reading(), way.numbers(found), name, settings.encoding)
    items = _known_before(placed.mapInArrow(read, from_arrow_schema(_READ)), partitions)
    join = _Join(way.joining(), settings.whole_transactions, tables, form)
    return in_ranges(items, partitions).mapInArrow(join, from_arrow_schema(form.schema))


def _may_be_metadata(encoding: str) -> Any:
    """Whether a look at the bytes of a message cannot rule out that it is a metadata message."""
    value = f.col("value")
    if encoding == "avro":
        return f.startswith(value, f.lit(avro.METADATA))
    return reduce(operator.or_, (f.contains(value, f.lit(sign)) for sign in _IN_JSON))


def _known_before(items: Any, partitions: int) -> Any:
    """The items, of which rows of a full load know the greatest changeSequence before them."""
    source = f.struct("topic", "partition")
    alone = (f.col("kind") != TOLD) & ~f.col("behind")
    items = items.select(
        *(name for name in _READ.names if name not in (*_PLACE, "table")),
        f.when(~f.col("behind"), f.col("table")).alias("table"),
        source.alias("source"),
        f.when(alone, f.col("number")).alias("group"),
    ).repartition(partitions, "source", "group")
    before = Window.partitionBy("source", "group").orderBy("number", "kind")
    greatest = f.max("seq").over(before.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    told = items.withColumns({"seq": greatest, "alone": f.lit(True)})
    return told.where(f.col("kind") != TOLD)


@dataclass(frozen=True)
class _FindMetadata:
    """Reads the metadata messages, in the order of their sources."""

    how: ReadMessages
    name: str
    encoding: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._found(batches), _FOUND)

    def _found(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Told]:
        for at, group in groupby(message_rows(batches), key=source_named):
            yield (pack(self.how.metadata(source_of(self.name, self.encoding, at, group))),)


@dataclass(frozen=True)
class _Read:
    """Reads messages, block by block."""

    how: ReadMessages
    tasks: dict[str, int]
    name: str
    encoding: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._items(batches), _READ)

    def _items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Told]:
        reader = self.how.reader()
        for (topic, partition, block), group in groupby(message_rows(batches), key=_block):
            stretch = self.how.stretch()
            source = source_of(self.name, self.encoding, (topic, partition), group)
            for number, found in enumerate(self.how.changes(reader, source, stretch)):
                if isinstance(found, Refused):
                    yield REFUSED, topic, partition, number, 0, "", False, None, pack(found)
                    continue
                (task, *table), told = found
                if told is not None:
                    place = self.tasks.get(task, 0), told.place.seq, told.place.behind, repr(table)
                    yield ITEM, topic, partition, told.number, *place, pack(tuple(told[1:]))
            last = (block + 1) * _BLOCK - 1
            yield TOLD, topic, partition, last, 0, stretch.mark().greatest, True, None, b""


@dataclass(frozen=True)
class _Join:
    """Joins the sorted messages of a range to changes."""

    joining: JoinMessages
    whole: bool
    tables: Tables
    form: FrameForm

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        heard: list[Refused] = []
        good = without_refused(heard)
        changes = changes_of(self.joining.joined(good(unpacked(batches))), self.whole, good)
        return bounded(
            rows_of_changes(self.form, good(allowed(changes, self.tables)), heard), self.form.schema
        )


def _block(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["offset"] // _BLOCK
