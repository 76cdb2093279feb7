"""Sources that are no log: each change is its own event, so nothing is shuffled.

One task reads one stream from its start. A file of `changes` or `xds` is one; change tables, captures and
queues continue through all files of an input. Parts are in the order of the inputs. If all
inputs form one sequence, one task reads and sorts them on its disk.
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
from eventlog.jobs.job import Job, load_current
from eventlog.sequence.ordered import read_changes
from eventlog.sequence.settings import StreamSettings
from eventlog_spark.io.batches import ANSWER, answer, answers
from eventlog_spark.io.pieces import load
from eventlog_spark.io.storage import File
from eventlog_spark.io.task import Attempt, Summary, Task

SELF_CONTAINED = frozenset(("changes", "xds"))  # formats whose files do not depend on each other


@dataclass(frozen=True)
class ChangeSources:
    """The sources of a job; one task converts each."""

    source: str
    inputs: Sequence[Sequence[File]]
    task: Task
    expanding: Job | None = None  # its current rows are those that a truncate removed
    in_sequence: bool = False

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
        source = format_named(self.source)
        files = self.inputs[piece]
        limits = settings.build(Limits, self.task.given)
        containers = {file.name: file.container for file in files}
        opener = self.task.stores.opener
        opened = (
            open_sources([name], source.shape, containers[name], limits=limits, opened=opener(name))
            for name in containers
        )
        sources = attempt.good(chain.from_iterable(opened))
        reading: Any = settings.build(source.settings, self.task.given)
        if self.in_sequence:
            return read_changes(source, self.task.tables, reading, StreamSettings(), sources)
        return source.read(sources, self.task.tables, reading)


def run(
    spark: Any,
    source: str,
    inputs: Sequence[Sequence[File]],
    task: Task,
    expanding: Job | None,
    in_sequence: bool = False,
) -> list[Summary]:
    """Return the summaries of the tasks."""
    files = [file for one in inputs for file in one]
    if in_sequence:
        inputs = [files]
    if source in SELF_CONTAINED:
        inputs = [[file] for file in files]
    sources = ChangeSources(source, inputs, task, expanding, in_sequence)
    return answers(load(spark, ANSWER, range(len(inputs)), sources.read))
