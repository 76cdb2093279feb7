"""Ranges of sorted records joined to changes, whichever inputs they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.jobs.filters import allowed
from eventlog.qlik.sequenced_messages import MessageSequencer
from eventlog.qlik.sequenced_rows import RowSequencer
from eventlog.sequence.settings import StreamSettings
from eventlog.sequence.transactions import assemble
from eventlog_spark.io.batches import answer
from eventlog_spark.io.frame_rows import FrameForm, Good, batches_of_changes

RecordsOf = Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]  # of the batches of a range
Counts = list[Mapping[str, tuple[int, list[str]]]]  # the totals of each tally


@dataclass(frozen=True)
class RangeJoin:
    """A task that joins the sorted records of a range to changes."""

    sequencer: RowSequencer | MessageSequencer
    records: RecordsOf
    tables: Tables
    whole: bool = False  # refuse transactions that lack some of their changes

    def changes(
        self, batches: Iterable[pa.RecordBatch], good: Good, counted: Callable[[Any], Any] = iter
    ) -> Iterator[Change]:
        """Yield the changes of a range, in their order; `counted` also sees those that may not leave."""
        joined = self.sequencer.joined(good(self.records(batches)))
        return good(allowed(counted(self._of_transactions(joined, good)), self.tables))

    def _of_transactions(self, joined: Iterable[Any], good: Good) -> Iterator[Change]:
        if not self.whole:
            return (placed.change for placed in good(joined))
        transactions = good(assemble(joined, StreamSettings().open_transactions))
        return (placed.change for transaction in transactions for placed in transaction.changes)

    @property
    def counted(self) -> Counts:
        """Return the counts of this range, to be reported with those of the others."""
        return [tally.totals for tally in self.sequencer.tallies]

    def warnings(self, counted: Iterable[Counts]) -> Iterator[Refused]:
        """Yield the warnings of all ranges together."""
        for totals, tally in zip(zip(*counted, strict=True), self.sequencer.tallies, strict=True):
            for total in totals:
                tally.merge(total)
            yield from tally.warnings()


@dataclass(frozen=True)
class JoinToRows:
    """A task that joins the records of a range to the rows of a DataFrame."""

    join: RangeJoin
    form: FrameForm

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of_changes(self.form, lambda good: self.join.changes(batches, good))


@dataclass(frozen=True)
class LookAtPairs:
    """A task that returns what U rows with their B rows prove of the byte order of masks, table by table."""

    sequencer: RowSequencer
    records: RecordsOf

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.sequencer.look_at_pairs(row for row in self.records(batches) if not isinstance(row, Refused))
        yield answer(self.sequencer.seen)
