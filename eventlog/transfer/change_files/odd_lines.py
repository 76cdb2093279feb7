"""The lines of changes by the plain writer, in their places among those that were made by column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from eventlog.change_batches.masks import proven_order
from eventlog.change_batches.values import Texts
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.grouped_warnings import unchanged_updates
from eventlog.files.jsonlines import dump_line
from eventlog.fold.by_column.vectors import Ints, offsets
from eventlog.formats.qlik.mask import MaskEvidence
from eventlog.transfer.connectors import Endpoint
from eventlog.transfer.report import Prepare, Report
from eventlog.xds.documents import write_events
from eventlog.xds.write import EventWriter

T = TypeVar("T")
ChangesOf = Callable[[int], Iterable[Change | Refused]]  # of an odd line, by its number


class Interleaved(ABC, Generic[T]):
    """A writer of lines that were made by column, and between them of odd changes."""

    def among(self, lines: Texts, proven: Ints, evidence: MaskEvidence, changes_of: ChangesOf) -> Iterator[T]:
        """Yield the lines in their order; the changes of an odd one are read when those before it are out."""
        done = 0
        for odd in [*np.flatnonzero(lines.odd).tolist(), len(proven)]:
            if odd > done:
                yield self.pass_on(lines.texts[done:odd])
            for number, count in enumerate(np.bincount(proven[done:odd]).tolist()):
                evidence.add(proven_order(number), count)
            if odd < len(proven):
                yield from self.write(changes_of(odd))
            done = odd + 1

    @abstractmethod
    def pass_on(self, texts: pa.Array) -> T:
        """Return lines together."""

    @abstractmethod
    def write(self, changes: Iterable[Change | Refused]) -> Iterator[T]:
        """Yield the lines of changes."""


class OddLines(Interleaved[bytes | memoryview]):
    """Writes changes one by one, and reports what the plain writer refuses and counts."""

    def __init__(self, target: Endpoint, prepare: Prepare, report: Report) -> None:
        self._target = target
        self._prepare = prepare
        self._report = report
        self._tally = unchanged_updates()
        self._number = 0  # of changes
        self._events = EventWriter(target.tables, target.of_format) if target.format.name == "xds" else None

    def write(self, changes: Iterable[Change | Refused]) -> Iterator[bytes]:
        """Yield the lines of changes."""
        counted = self._report.count(self._prepare(self._report.accepted(changes)))
        for record in self._records(self._numbered(counted)):
            if isinstance(record, Refused):
                self._report.refuse_change(record)
            else:
                yield record if isinstance(record, bytes) else dump_line(record)

    def pass_on(self, texts: pa.Array) -> memoryview:
        """Return lines together, and count their changes."""
        at = offsets(texts)
        self._number += len(texts)
        self._report.add_changes(len(texts))
        return memoryview(texts.buffers()[2] or b"")[at[0] : at[-1]]

    def end(self) -> None:
        """Report what was counted."""
        for warning in self._tally.warnings():
            self._report.refuse_change(warning)

    def _records(self, changes: Iterable[Change]) -> Iterator[Any]:
        if self._events is None:
            return self._target.format.write(changes, self._target.tables, self._target.of_format)
        first = self._number + 1
        return write_events(changes, self._events, self._target.of_format, self._tally, first)

    def _numbered(self, changes: Iterable[Change]) -> Iterator[Change]:
        for change in changes:
            self._number += 1
            yield change
