"""Files of change tables and messages, shared out among tasks that read them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from eventlog.convert.conversion import format_named
from eventlog.core import settings
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Source
from eventlog.files.inputs import open_input, open_sources
from eventlog.files.limits import Limits
from eventlog.qlik.metadata import Metadata
from eventlog_spark.input.batches import bounded
from eventlog_spark.input.datasource import load
from eventlog_spark.input.storage import File
from eventlog_spark.output.task import Task
from eventlog_spark.sequence.items import COLUMNS, ITEMS, SequenceItem, pack, refused, unpack
from eventlog_spark.sequence.messages import ReadMessages
from eventlog_spark.sequence.rows import ReadRows

Groups = Sequence[Sequence[tuple[int, File]]]  # the files of a task each, with their numbers
_GROUPS: Final = 4  # for each core
_METADATA: Final = re.compile(rb'"MD"|\x04MD|044[dD]44|\\u004[dD4]')  # stands in all files that have some
_OVERLAP: Final = 8
_BLOCK: Final = 1 << 20
_FOUND: Final = pa.schema([("piece", pa.int32()), ("metadata", pa.binary())])


def shared_out(files: Sequence[File], cores: int) -> Groups:
    """Neighbours go to one task, where they are many and small."""
    most = sum(file.size for file in files) // (_GROUPS * cores)
    groups: list[list[tuple[int, File]]] = []
    held = most + 1
    for numbered in enumerate(files):
        size = numbered[1].size
        if held + size > most:
            groups.append([])
            held = 0
        groups[-1].append(numbered)
        held += size
    return groups


@dataclass(frozen=True)
class Opened:
    """Files of one format."""

    source: str
    task: Task

    def sources(self, file: File) -> Iterator[Source[Any] | Refused]:
        """The source in a file; Refused for one that cannot be read at all."""
        return open_sources(
            [file.name],
            format_named(self.source).shape,
            file.container,
            limits=self._limits,
            opened=self.task.stores.opener(file.name),
        )

    def may_hold_metadata(self, file: File) -> bool:
        """Whether a look at its bytes cannot rule out that a file has metadata messages."""
        end = b""
        opener = self.task.stores.opener(file.name)
        try:
            with open_input(file.name, limits=self._limits, opened=opener) as stream:
                while block := stream.read(_BLOCK):
                    if _METADATA.search(end + block):
                        return True
                    end = block[-_OVERLAP:]
        except (EventlogError, OSError, EOFError, zlib.error):
            return True  # what is wrong is told when it is read
        return False

    @property
    def _limits(self) -> Limits:
        return settings.build(Limits, self.task.given)


@dataclass(frozen=True)
class ItemReader:
    """Reads the items of files."""

    opened: Opened
    groups: Groups
    how: ReadRows | ReadMessages

    @property
    def schema(self) -> str:
        return COLUMNS

    def pieces(self) -> Sequence[int]:
        return range(len(self.groups))

    def read(self, piece: int) -> Iterator[pa.RecordBatch]:
        """The items of one group of files."""
        return bounded(self._items(piece), ITEMS)

    def _items(self, piece: int) -> Iterator[SequenceItem]:
        for number, file in self.groups[piece]:
            for source in self.opened.sources(file):
                if isinstance(source, Refused):
                    yield refused(number, 0, source)
                else:
                    yield from self.how.items(number, source)


@dataclass(frozen=True)
class _FindMetadata:
    """Reads the metadata that stand among messages."""

    opened: Opened
    groups: Groups
    how: ReadMessages

    @property
    def schema(self) -> str:
        return "piece int, metadata binary"

    def pieces(self) -> Sequence[int]:
        return range(len(self.groups))

    def read(self, piece: int) -> Iterator[pa.RecordBatch]:
        """The metadata of one group of files."""
        found = (
            (number, pack(self.how.metadata(source)))
            for number, file in self.groups[piece]
            if self.opened.may_hold_metadata(file)
            for source in self.opened.sources(file)
            if not isinstance(source, Refused)
        )
        return bounded(found, _FOUND)


def metadata_of(spark: Any, opened: Opened, groups: Groups, how: ReadMessages) -> list[Metadata]:
    """The metadata of all files, in the order of these."""
    told = load(spark, _FindMetadata(opened, groups, how)).collect()
    return [one for row in sorted(told, key=lambda row: row.piece) for one in unpack(row.metadata)]
