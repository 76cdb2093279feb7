"""Files of change tables and messages, shared out among tasks that read them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from eventlog.core import settings
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Source
from eventlog.files.inputs import open_input, open_sources
from eventlog.files.limits import Limits
from eventlog.formats import format_named
from eventlog.qlik.metadata import Metadata
from eventlog_spark.io.batches import ANSWER, answer, answers, bounded
from eventlog_spark.io.pieces import load
from eventlog_spark.io.storage import File
from eventlog_spark.io.task import Task
from eventlog_spark.sequence.change_tables import ReadRows
from eventlog_spark.sequence.sorted_items import ITEMS, SequenceItem, refused
from eventlog_spark.sequence.topic_messages import ReadMessages

NumberedFiles = Sequence[tuple[int, File]]
Groups = Sequence[NumberedFiles]  # the files of a task each
_GROUPS: Final = 4  # for each core
_METADATA: Final = re.compile(rb'"MD"|\x04MD|044[dD]44|\\u004[dD4]')  # is in all files that have some
_OVERLAP: Final = 8
_BLOCK: Final = 1 << 20


def shared_out(files: Sequence[File], cores: int) -> Groups:
    """Return groups of neighbouring files, several to a task if they are many and small."""
    most = sum(file.size for file in files) // (_GROUPS * cores)
    groups: list[list[tuple[int, File]]] = []
    size = most + 1
    for number, file in enumerate(files):
        if size + file.size > most:
            groups.append([])
            size = 0
        groups[-1].append((number, file))
        size += file.size
    return groups


@dataclass(frozen=True)
class Opened:
    """The open files of one format."""

    source: str
    task: Task

    def sources(self, file: File) -> Iterator[Source[Any] | Refused]:
        """Yield the source in a file; Refused for one that cannot be read at all."""
        return open_sources(
            [file.name],
            format_named(self.source).shape,
            file.container,
            limits=self._limits,
            opened=self.task.stores.opener(file.name),
        )

    def may_hold_metadata(self, file: File) -> bool:
        """Return whether a file may contain metadata messages, from a look at its bytes."""
        end = b""
        opener = self.task.stores.opener(file.name)
        try:
            with open_input(file.name, opened=opener) as stream:
                while block := stream.read(_BLOCK):
                    if _METADATA.search(end + block):
                        return True
                    end = block[-_OVERLAP:]
        except (EventlogError, OSError, EOFError, zlib.error):
            return True  # what is wrong is reported when the file is read
        return False

    @property
    def _limits(self) -> Limits:
        return settings.build(Limits, self.task.given)


@dataclass(frozen=True)
class _ReadItems:
    """Reads the items of a group of files."""

    opened: Opened
    reading: ReadRows | ReadMessages

    def __call__(self, files: NumberedFiles) -> Iterator[pa.RecordBatch]:
        return bounded(self._items(files), ITEMS)

    def _items(self, files: NumberedFiles) -> Iterator[SequenceItem]:
        for number, file in files:
            for source in self.opened.sources(file):
                if isinstance(source, Refused):
                    yield refused(number, 0, source)
                else:
                    yield from self.reading.items(number, source)


def items_of(spark: Any, opened: Opened, groups: Groups, reading: ReadRows | ReadMessages) -> Any:
    """Return the items of files."""
    return load(spark, ITEMS, groups, _ReadItems(opened, reading))


@dataclass(frozen=True)
class _ReadMetadata:
    """A task that returns the metadata among the messages of a group of files."""

    opened: Opened
    reading: ReadMessages

    def __call__(self, files: NumberedFiles) -> Iterator[pa.RecordBatch]:
        sources = (
            (number, source)
            for number, file in files
            if self.opened.may_hold_metadata(file)
            for source in self.opened.sources(file)
            if not isinstance(source, Refused)
        )
        yield answer([(number, self.reading.metadata(source)) for number, source in sources])


def metadata_of(spark: Any, opened: Opened, groups: Groups, reading: ReadMessages) -> list[Metadata]:
    """Return the metadata of all files, in the order of these."""
    pieces = chain.from_iterable(answers(load(spark, ANSWER, groups, _ReadMetadata(opened, reading))))
    return [known for _, metadata in sorted(pieces, key=itemgetter(0)) for known in metadata]
