"""Sources that are no log: each change is its own event, so nothing is shuffled.

One task reads one stream from its start: a file of `changes` or `xds`, a part of a capture, or all files of
one input. Change tables and queues continue from file to file. Parts are in the order of the inputs. If all
inputs form one sequence, `sequence` reads them in parallel. If the output is one stream of records too, one
task reads and sorts them on its disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.files.inputs import open_sources
from eventlog.files.limits import Limits
from eventlog.formats import format_named
from eventlog.jobs.filters import allowed, expand_truncates
from eventlog.jobs.job import Job, in_order, load_current
from eventlog.sequence.ordered import read_changes
from eventlog.sequence.settings import StreamSettings
from eventlog_spark.io.batches import ANSWER, answer, answers
from eventlog_spark.io.pieces import load
from eventlog_spark.io.storage import File
from eventlog_spark.io.storage import partitions as by_size
from eventlog_spark.io.task import Attempt, Summary, Task
from eventlog_spark.sequence import captures, range_parts
from eventlog_spark.sequence.captures import Captures, CaptureStretch

_APART = 1 << 20  # bytes of the stretches of a capture, at least, if their number is not given
SELF_CONTAINED = frozenset(("changes", "xds"))  # formats whose files do not depend on each other


@dataclass(frozen=True)
class ChangeSources:
    """The sources of a job; one task converts each."""

    source: str
    inputs: Sequence[Sequence[File]]
    task: Task
    expanding: Job | None = None  # its current rows are those that a truncate removed
    in_sequence: bool = False
    stretches: Sequence[CaptureStretch] | None = None  # of captures, instead of the inputs

    def read(self, piece: int) -> Iterator[pa.RecordBatch]:
        """Convert one source; answer its summary."""
        yield answer(self.convert(piece))

    def convert(self, piece: int) -> Summary:
        """Write the part of one source; return its summary."""
        with Attempt(self.task, piece) as attempt:
            changes = attempt.good(allowed(self._changes(piece, attempt), self.task.tables))
            attempt.write_changes(self.task, self._expanded(changes, attempt))
        return attempt.summary

    def _expanded(self, changes: Iterator[Change], attempt: Attempt) -> Iterator[Change]:
        if self.expanding is None:
            yield from changes
            return
        with load_current(self.expanding) as current:
            yield from attempt.good(expand_truncates(changes, self.task.tables, current))

    def _changes(self, piece: int, attempt: Attempt) -> Iterator[Change]:
        for number, change in enumerate(attempt.count_rows(attempt.good(self._read(piece, attempt))), 1):
            unplaced = piece and change.position is None
            yield change._replace(position=f"{piece + 1}.{number}") if unplaced else change

    def _read(self, piece: int, attempt: Attempt) -> Iterator[Change | Refused]:
        if self.stretches is not None:
            return _captures(self.task).read(self.stretches[piece])
        source = format_named(self.source)
        files = self.inputs[piece]
        limits = settings.build(Limits, self.task.given)
        containers = {file.name: file.container for file in files}
        opener = self.task.stores.opener
        opened = (
            open_sources([name], source.shape, containers[name], limits=limits, opened=opener(name))
            for name in in_order(tuple(containers), source)
        )
        sources = attempt.good(chain.from_iterable(opened))
        reading: Any = settings.build(source.settings, self.task.given)
        if self.in_sequence:
            return read_changes(source, self.task.tables, reading, StreamSettings(), [("", sources)])
        return source.read(sources, self.task.tables, reading)


def run(
    spark: Any,
    source: str,
    inputs: Sequence[Sequence[File]],
    task: Task,
    expanding: Job | None,
    in_sequence: bool = False,
    partitions: int = 0,
) -> list[Summary]:
    """Return the summaries of the tasks; `partitions` is their number, if inputs can be divided."""
    files = [file for one in inputs for file in one]
    count = partitions or by_size(files, spark.sparkContext.defaultParallelism)
    if in_sequence:
        if count > 1 and expanding is None and range_parts.fits(source, task):
            return range_parts.run(spark, source, files, task, count)
        inputs = [files]
    if source in SELF_CONTAINED:
        inputs = [[file] for file in files]
    if not files:
        return []  # Spark calls a source without pieces all the same
    apart = max(sum(file.size for file in files) // count, 1 if partitions else _APART)
    stretches = None
    if source == "gbase":
        stretches = captures.stretches(spark, files, _captures(task), apart)
    sources = ChangeSources(source, inputs, task, expanding, in_sequence, stretches)
    pieces = range(len(inputs if stretches is None else stretches))
    return answers(load(spark, ANSWER, pieces, sources.read))


def _captures(task: Task) -> Captures:
    return Captures(task.tables, task.given, task.stores)
