"""Records on their way into one sequence: Spark sorts them by their places; all else is packed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Placed
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.qlik import sequence
from eventlog.qlik.sequenced import SequencePlace
from eventlog.streams.settings import StreamSettings
from eventlog.streams.transactions import assemble

Good = Callable[[Iterable[Any]], Iterator[Any]]  # takes out what was refused

ITEM, REFUSED, TOLD = 0, 1, 2  # a record, one that was refused, and what is to be known of a whole piece

ITEMS = pa.schema(
    [
        ("piece", pa.int32()),  # the source, among those that are read
        ("kind", pa.int8()),
        ("group", pa.int32()),  # of the tables and tasks of a piece
        ("seq", pa.string()),
        ("behind", pa.bool_()),
        ("source", pa.int32()),  # in its piece
        ("number", pa.int64()),
        ("alone", pa.bool_()),  # records without a sequence of its source say nothing of each other
        ("item", pa.binary()),
    ]
)
COLUMNS = (
    "piece int, kind byte, group int, seq string, behind boolean, source int, number long, alone boolean,"
    " item binary"
)
_ORDER = ("task", "seq", "behind", "table", "source", "number")
_RANGES = ("task", "time", "load", "at")


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


class KnownPlaces(NamedTuple):
    """What the places of a group of a piece are, among those of all pieces."""

    piece: int
    group: int
    task: int
    table: int
    source: int  # the first of the piece


def pack(value: Any) -> bytes:
    """What `unpack` reads."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def unpack(item: bytes) -> Any:
    """What our own tasks packed."""
    return pickle.loads(item)  # noqa: S301 - from our own task


def placed(piece: int, group: int, place: SequencePlace, alone: bool, rest: tuple[Any, ...]) -> SequenceItem:
    """A record with its place in its piece."""
    return SequenceItem(
        piece, ITEM, group, place.seq, place.behind, place.source, place.number, alone, pack(rest)
    )


def refused(piece: int, number: int, record: Refused) -> SequenceItem:
    """A record that is none, which stands before all others."""
    return SequenceItem(piece, REFUSED, number=number, item=pack(record))


def in_sequence(spark: Any, items: Any, known: Iterable[KnownPlaces], partitions: int) -> Any:
    """The items in ranges of the sequence, each sorted; no range begins in the middle of a hundredth of a
    second, so that none cuts a transaction."""
    told = spark.createDataFrame(list(known), "piece int, group int, task int, table int, first int")
    found = items.where(f.col("kind") != TOLD).join(f.broadcast(told), ["piece", "group"], "left")
    source = f.coalesce(f.col("first") + f.col("source"), "piece")
    table = f.when(f.col("behind"), source).otherwise(f.col("table"))
    return in_ranges(found.withColumns({"table": table, "source": source}), partitions)


def in_ranges(items: Any, partitions: int) -> Any:
    """The same of items whose task, table and source are known among all."""
    loaded = f.col("seq") == ""  # before all changes: it need not stay together
    found = items.select(
        "kind",
        f.when(f.col("kind") == REFUSED, -1).otherwise(f.col("task")).alias("task"),
        *_ORDER[1:],
        f.substring("seq", 1, sequence.TIME).alias("time"),
        f.when(loaded, f.col("source")).alias("load"),
        f.when(loaded & f.col("alone"), f.col("number")).alias("at"),
        "item",
    )
    return found.repartitionByRange(partitions, *_RANGES).sortWithinPartitions(*_ORDER)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[SequencePlace, Any] | Refused]:
    """The records of sorted items with their places, and what was refused."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("kind", *_ORDER, "item"))
        for kind, *place, item in zip(*columns, strict=True):
            found = unpack(item)
            yield found if kind == REFUSED else (SequencePlace(*place), found)


def changes_of(joined: Iterable[Placed | Refused], whole: bool, good: Good) -> Iterator[Change]:
    """The changes of a range; if they are to come in `whole` transactions, an error where one lacks some."""
    if not whole:
        return (placed.change for placed in good(joined))
    wholes = good(assemble(joined, StreamSettings().open_transactions))
    return (placed.change for one in wholes for placed in one.changes)


class Counting:
    """What the ranges of a sequence count, each for itself, and what is said of all of them together."""

    def __init__(self, tallies: Sequence[GroupedWarnings]) -> None:
        self._tallies = tallies

    @property
    def counted(self) -> list[Mapping[str, tuple[int, list[str]]]]:
        """What was counted, to be told of together."""
        return [tally.totals for tally in self._tallies]

    def told(self, counted: Iterable[list[Mapping[str, tuple[int, list[str]]]]]) -> Iterator[Refused]:
        """What is to be said of all ranges together."""
        for parts, tally in zip(zip(*counted, strict=True), self._tallies, strict=True):
            for part in parts:
                tally.merge(part)
            yield from tally.warnings()
