"""Records sorted in ranges of one sequence, and joined to changes range by range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.change_batches.lines import MakeForm
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.files.stores import SpoolFile
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.sequenced import Sequencer
from eventlog.formats.qlik.whole_transactions import assemble
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.change_files.sorted_batches import RangeLines, cut
from eventlog.transfer.report import publish
from eventlog_spark.batches import bounded, joined
from eventlog_spark.reports import NoteRefused, Reports
from eventlog_spark.result_rows import FrameRow, Good, filter_into

RecordsOf = Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]  # of the batches of a range

ITEM, REFUSED, FACTS = 0, 1, 2  # a record, one that was refused, and facts about a block of records
ORDER: Final = ("seq", "without_sequence", "table", "source", "number")
_RANGES: Final = ("understood", "time", "load", "at")


def in_ranges(records: Any, partitions: int, *contents: str) -> Any:
    """Return the records in ranges of the sequence, each sorted.

    No range begins in the middle of a hundredth of a second, so that none cuts a transaction. `contents` are
    the columns that are needed besides the place.
    """
    loaded = f.col("seq") == ""  # before all changes: it need not stay together
    ranged = records.select(
        (f.col("kind") != REFUSED).alias("understood"),  # refused ones come first
        *ORDER,
        f.substring("seq", 1, sequence.TIME).alias("time"),
        f.when(loaded, f.col("source")).alias("load"),
        f.when(loaded & f.col("splittable"), f.col("number")).alias("at"),
        *contents,
    )
    return ranged.repartitionByRange(partitions, *_RANGES).sortWithinPartitions(*ORDER)


class RangeOutput(NamedTuple):
    """The rows that changes become, and the records that are refused meanwhile."""

    rows: Callable[[Iterator[Change], list[Refused]], Iterable[FrameRow]]
    schema: pa.Schema
    make_form: MakeForm | None  # of lines by column; None if all changes go one by one
    line: pa.DataType  # of these lines
    reports: Reports | None = None  # of the job, if a command runs it


@dataclass(frozen=True)
class RangeJoin:
    """A task that joins the sorted records of a range to the rows of a DataFrame."""

    sequencer: Sequencer
    records: RecordsOf
    tables: Tables
    output: RangeOutput
    whole_transactions: bool = False  # refuse transactions that lack some of their changes

    def rows(self, ordered: Any) -> Any:
        """Return what the changes of a DataFrame of sorted records become."""
        task = self if self.output.reports is None else NoteRefused(self, self.output.reports)
        return ordered.mapInArrow(task, from_arrow_schema(self.output.schema))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refused: list[Refused] = []
        changes = self._changes(batches, filter_into(refused))
        return bounded(self.output.rows(changes, refused), self.output.schema)

    def by_column(
        self, lines_of: Callable[[RangeLines, list[Refused]], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of lines that were made by column.

        `lines_of` takes a writer, which writes odd changes, too, and a list for what is refused.
        """
        refused: list[Refused] = []

        def write(changes: Iterable[Change | Refused]) -> Iterator[pa.RecordBatch]:
            rows = self.output.rows(filter_into(refused)(changes), refused)
            return bounded(rows, self.output.schema)

        return joined(cut(lines_of(RangeLines(self.output.schema, write), refused)))

    def _changes(self, batches: Iterable[pa.RecordBatch], good: Good) -> Iterator[Change]:
        """Yield the changes of a range, in their order."""
        joined = self.sequencer.join(good(self.records(batches)))
        return good(publish(self._of_transactions(joined, good), self.tables))

    def _of_transactions(self, joined: Iterable[Any], good: Good) -> Iterator[Change]:
        if not self.whole_transactions:
            return (placed.change for placed in good(joined))
        transactions = good(assemble(joined, StreamSettings().open_transactions, SpoolFile()))
        return (placed.change for transaction in transactions for placed in transaction.changes)
