"""Sources that are no log: each change is its own event, so nothing is shuffled.

One task reads one stream from its start: a file of `changes` or `xds`, else all files of one input, as
capture streams and change tables go on from file to file. Parts stand in the order of the inputs.
Where all inputs are to be one sequence, one task reads them all, and sorts on its disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from eventlog.convert.conversion import Job, allowed, expand_truncates, format_named, in_order, load_current
from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.files.inputs import open_sources
from eventlog.files.limits import Limits
from eventlog.streams.ordered import read_changes
from eventlog.streams.settings import StreamSettings
from eventlog_spark.input.datasource import load
from eventlog_spark.input.storage import File
from eventlog_spark.output import summary
from eventlog_spark.output.summary import Summary
from eventlog_spark.output.task import Attempt, Task

SELF_CONTAINED = frozenset(("changes", "xds"))  # formats whose files say nothing about each other


@dataclass(frozen=True)
class Streams:
    """The streams of a job; reading one is converting it."""

    source: str
    inputs: Sequence[Sequence[File]]
    task: Task
    expanding: Job | None = None  # its current rows say what a truncate removed
    in_sequence: bool = False

    @property
    def schema(self) -> str:
        return summary.SCHEMA

    def pieces(self) -> Sequence[int]:
        return range(len(self.inputs))

    def read(self, piece: int) -> Iterator[pa.RecordBatch]:
        """The summary of one stream."""
        yield self.convert(piece).batch()

    def convert(self, piece: int) -> Summary:
        """What one stream came to, whose part is written."""
        with Attempt(self.task, piece) as attempt:
            changes = _good(allowed(self._changes(piece, attempt), self.task.tables), attempt)
            attempt.write_changes(self.task, self._expanded(changes, attempt))
        return attempt.summary

    def _expanded(self, changes: Iterator[Change], attempt: Attempt) -> Iterator[Change]:
        if self.expanding is None:
            yield from changes
            return
        with load_current(self.expanding) as current:
            yield from _good(expand_truncates(changes, self.task.tables, current), attempt)

    def _changes(self, piece: int, attempt: Attempt) -> Iterator[Change]:
        source = format_named(self.source)
        files = self.inputs[piece]
        limits = settings.build(Limits, self.task.given)
        containers = {file.name: file.container for file in files}
        opener = self.task.stores.opener
        opened = (
            open_sources([name], source.shape, containers[name], limits=limits, opened=opener(name))
            for name in in_order(tuple(containers), source)
        )
        sources = _good(chain.from_iterable(opened), attempt)
        reading: Any = settings.build(source.settings, self.task.given)
        if self.in_sequence:
            read = read_changes(source, self.task.tables, reading, StreamSettings(), [("", sources)])
        else:
            read = source.read(sources, self.task.tables, reading)
        for number, change in enumerate(_good(read, attempt), 1):
            attempt.summary.rows += 1
            unplaced = piece and change.position is None
            yield change._replace(position=f"{piece + 1}.{number}") if unplaced else change


def run(
    spark: Any,
    source: str,
    inputs: Sequence[Sequence[File]],
    task: Task,
    expanding: Job | None,
    in_sequence: bool = False,
) -> list[Summary]:
    """What the tasks tell."""
    if in_sequence:
        inputs = [[file for files in inputs for file in files]]
    if source in SELF_CONTAINED:
        inputs = [[file] for files in inputs for file in files]
    if not inputs:
        return []  # Spark calls a source without pieces all the same
    frame = load(spark, Streams(source, inputs, task, expanding, in_sequence))
    return [summary.load(row.summary) for row in frame.collect()]


def _good(records: Iterable[Any], attempt: Attempt) -> Iterator[Any]:
    for record in records:
        if isinstance(record, Refused):
            if record.fault or record.told:  # what else is counted is told of together
                attempt.refuse(record)
        else:
            yield record
