"""Change tables of a task, read piece by piece and joined range by range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventlog.core.errors import Refused
from eventlog.core.formats import Placed, Source
from eventlog.core.tables import Tables
from eventlog.qlik.control import Control, control_table
from eventlog.qlik.ordering import Seen
from eventlog.qlik.sequenced import SequencePlace
from eventlog.qlik.sequenced_rows import RowSequencer, SequencedRow
from eventlog.qlik.tables import TableSettings
from eventlog_spark.sequence.items import (
    TOLD,
    Counting,
    KnownPlaces,
    SequenceItem,
    pack,
    placed,
    refused,
    unpack,
    unpacked,
)

SEEN = pa.schema([("seen", pa.binary())])


@dataclass(frozen=True)
class ReadRows:
    """Reads the rows of one source."""

    tables: Tables
    settings: TableSettings
    control: Control

    def items(self, piece: int, source: Source[Any]) -> Iterator[SequenceItem]:
        """The rows with their places, then what is to be known of the source."""
        sequencer = RowSequencer(self.tables, self.settings, control=self.control)
        for number, row in enumerate(sequencer.parse(0, source)):
            if isinstance(row, Refused):
                yield refused(piece, number, row)
            else:
                alone = sequencer.has_sequence(row.place.source)
                yield placed(piece, 0, row.place, alone, tuple(row[1:]))
        yield SequenceItem(piece, TOLD, item=pack((source._replace(records=()), sequencer.seen)))


class ChangeTables:
    """All change tables of a task."""

    def __init__(self, tables: Tables, settings: TableSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._sequencer = RowSequencer(tables, settings)

    def speaks_of_others(self, stem: str) -> bool:
        """Whether a source so called says more of the others."""
        return bool(control_table(self._settings.table or stem))

    def ahead(self, sources: Iterable[Source[Any]]) -> Iterator[Refused]:
        """Hear of all sources what the control tables say."""
        for source in sources:
            yield from (one for one in self._sequencer.parse(0, source) if isinstance(one, Refused))

    def reading(self) -> ReadRows:
        """What reads a source."""
        return ReadRows(self._tables, self._settings, self._sequencer.control)

    def know(self, piece: int, told: bytes) -> list[KnownPlaces]:
        """Take over what was found in a piece; pieces come in their order."""
        source, seen = unpack(told)
        first = self._sequencer.readers
        if list(self._sequencer.parse(0, source)):
            return []  # it is no change table, as was told where it was read
        table = self._sequencer.table_of(first)
        for one in seen:
            self._sequencer.also(table, one)
        return [KnownPlaces(piece, 0, self._sequencer.task_of(table), table, first)]

    @property
    def tasks(self) -> list[str]:
        """The tasks that were read, in their order."""
        return self._sequencer.tasks

    def look(self, ordered: Any) -> None:
        """Find the byte order of masks in U rows beside their B rows, where nothing else tells it."""
        if not self._sequencer.needs_pairs:
            return
        told = ordered.mapInArrow(_Look(self._sequencer), "seen binary").collect()
        for row in told:
            for table, seen in enumerate(unpack(row.seen)):
                self._sequencer.also(table, seen)

    def joining(self) -> JoinRows:
        """What joins the rows of a range."""
        return JoinRows(self._sequencer)


class JoinRows(Counting):
    """Joins sorted rows to changes."""

    def __init__(self, sequencer: RowSequencer) -> None:
        super().__init__(sequencer.tallies)
        self._sequencer = sequencer

    def joined(self, items: Iterable[tuple[SequencePlace, Any]]) -> Iterator[Placed | Refused]:
        return self._sequencer.joined(_rows(items))


class _Look:
    """What U rows prove with their B rows, of the rows of a range."""

    def __init__(self, sequencer: RowSequencer) -> None:
        self._sequencer = sequencer

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        items = (item for item in unpacked(batches) if not isinstance(item, Refused))
        self._sequencer.look_at_pairs(_rows(items))
        seen: list[Seen] = self._sequencer.seen
        yield pa.record_batch([pa.array([pack(seen)], pa.binary())], schema=SEEN)


def _rows(items: Iterable[tuple[SequencePlace, Any]]) -> Iterator[SequencedRow]:
    return (SequencedRow(place, *rest) for place, rest in items)
