"""What a task answers to the driver when it is done: its files and its counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from eventlog_spark.cluster.gauges import Counts
from eventlog_spark.io.part_files import PartFile
from eventlog_spark.io.spelling import Noticed

_FIRST = 20  # reasons that are kept as examples


@dataclass
class Summary:
    rows: int = 0  # log rows, or changes where the source is no log
    fates: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)  # by table and operation: "usr modify"
    unreadable: int = 0
    noticed: Noticed = field(default_factory=Noticed)  # of rows that may not have met
    reasons: list[tuple[str, str]] = field(default_factory=list)
    files: list[PartFile] = field(default_factory=list)
    refused: str | None = None  # a file of record_ids and reasons, if there are any
    explained: list[PartFile] = field(default_factory=list)  # of records that are refused as they stand
    ids: str | None = None  # a file of all record_ids
    kept: str | None = None  # a file of events that are still to be sorted

    @property
    def refused_rows(self) -> int:
        """How many records were left out."""
        return sum(file.records for file in self.explained)

    @property
    def counts(self) -> Counts:
        """What it comes to."""
        size = sum(file.size for file in self.files)
        return Counts(self.rows, self.events.total(), self.refused_rows, size)

    def refuse(self, where: str, reason: str) -> None:
        """Keep the first reasons as examples."""
        if len(self.reasons) < _FIRST:
            self.reasons.append((where, reason))

    def add(self, other: Summary) -> None:
        """Take another task's counts and files."""
        self.rows += other.rows
        self.fates += other.fates
        self.events += other.events
        self.unreadable += other.unreadable
        self.reasons = [*self.reasons, *other.reasons][:_FIRST]
        self.files += other.files
        self.explained += other.explained

    def written_by(self, writing: Summary) -> None:
        """Take the files and events of the tasks that wrote what was folded before."""
        self.files, self.events = writing.files, writing.events


def total(summaries: Iterable[Summary]) -> Summary:
    """All of them together."""
    whole = Summary()
    for summary in summaries:
        whole.add(summary)
    return whole
