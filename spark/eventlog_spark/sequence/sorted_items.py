"""Records on their way into one sequence: Spark sorts them by their places; all else is packed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core.errors import Refused
from eventlog.qlik import sequence
from eventlog.qlik.sequenced import SequencePlace
from eventlog_spark.io.batches import pack, unpack

Record = TypeVar("Record")

ITEM, REFUSED, FACTS = 0, 1, 2  # a record, one that was refused, and facts about a whole piece

ITEMS = pa.schema(
    [
        ("piece", pa.int32()),  # the source, among those that are read
        ("kind", pa.int8()),
        ("group", pa.int32()),  # of the tables and tasks of a piece
        ("seq", pa.string()),
        ("behind", pa.bool_()),
        ("source", pa.int32()),  # in its piece
        ("number", pa.int64()),
        ("alone", pa.bool_()),  # records without a sequence of its source do not depend on each other
        ("item", pa.binary()),
    ]
)
_ORDER: Final = ("task", "seq", "behind", "table", "source", "number")
_RANGES: Final = ("task", "time", "load", "at")


class SequenceItem(NamedTuple):
    """A row of ITEMS."""

    piece: int
    kind: int
    group: int = 0
    seq: str = ""
    behind: bool = True
    source: int = 0
    number: int = 0
    alone: bool = True
    item: bytes = b""


class GroupPlaces(NamedTuple):
    """The task, the table and the first source of a group of a piece, numbered among those of all pieces."""

    piece: int
    group: int
    task: int
    table: int
    source: int


def placed(piece: int, group: int, place: SequencePlace, alone: bool, rest: tuple[Any, ...]) -> SequenceItem:
    """Return a record with its place in its piece."""
    return SequenceItem(
        piece, ITEM, group, place.seq, place.behind, place.source, place.number, alone, pack(rest)
    )


def refused(piece: int, number: int, record: Refused) -> SequenceItem:
    """Return the item of a bad record, which precedes all others."""
    return SequenceItem(piece, REFUSED, number=number, item=pack(record))


def in_sequence(spark: Any, items: Any, groups: Iterable[GroupPlaces], partitions: int) -> Any:
    """Return the items in ranges of the sequence, each sorted; no range begins in the middle of a hundredth
    of a second, so that none cuts a transaction.
    """
    places = spark.createDataFrame(list(groups), "piece int, group int, task int, table int, first int")
    records = items.where(f.col("kind") != FACTS).join(f.broadcast(places), ["piece", "group"], "left")
    source = f.coalesce(f.col("first") + f.col("source"), "piece")
    table = f.when(f.col("behind"), source).otherwise(f.col("table"))
    return in_ranges(records.withColumns({"table": table, "source": source}), partitions, "kind", "item")


def in_ranges(records: Any, partitions: int, *contents: str) -> Any:
    """Return the same of records whose task, table and source are numbered among all; `contents` are the
    columns that are needed besides their place.
    """
    loaded = f.col("seq") == ""  # before all changes: it need not stay together
    ranged = records.select(
        f.when(f.col("kind") == REFUSED, -1).otherwise(f.col("task")).alias("task"),
        *_ORDER[1:],
        f.substring("seq", 1, sequence.TIME).alias("time"),
        f.when(loaded, f.col("source")).alias("load"),
        f.when(loaded & f.col("alone"), f.col("number")).alias("at"),
        *contents,
    )
    return ranged.repartitionByRange(partitions, *_RANGES).sortWithinPartitions(*_ORDER)


def unpacked(record: Callable[..., Record], batches: Iterable[pa.RecordBatch]) -> Iterator[Record | Refused]:
    """Yield the records of sorted items, each made of its place and the rest; and what was refused."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("kind", *_ORDER, "item"))
        for kind, *place, item in zip(*columns, strict=True):
            rest = unpack(item)
            yield rest if kind == REFUSED else record(SequencePlace(*place), *rest)
