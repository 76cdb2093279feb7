"""Change tables of a task, read piece by piece and joined range by range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.qlik.control import Control, control_table
from eventlog.qlik.sequenced_rows import RowSequencer, SequencedRow
from eventlog.qlik.tables import TableSettings
from eventlog_spark.io.batches import answers_of, pack, unpack
from eventlog_spark.sequence.range_join import LookAtPairs, RangeJoin, RecordsOf
from eventlog_spark.sequence.sorted_items import FACTS, GroupPlaces, SequenceItem, placed, refused, unpacked


@dataclass(frozen=True)
class ReadRows:
    """Reads the rows of one source."""

    tables: Tables
    settings: TableSettings
    control: Control

    def items(self, piece: int, source: Source[Any]) -> Iterator[SequenceItem]:
        """Yield the rows with their places, then the facts about the source."""
        sequencer = RowSequencer(self.tables, self.settings, control=self.control)
        for number, row in enumerate(sequencer.parse(0, source)):
            if isinstance(row, Refused):
                yield refused(piece, number, row)
            else:
                alone = sequencer.has_sequence(row.place.source)
                yield placed(piece, 0, row.place, alone, tuple(row[1:]))
        yield SequenceItem(piece, FACTS, item=pack((source._replace(records=()), sequencer.seen)))


class ChangeTables:
    """All change tables of a task."""

    def __init__(self, tables: Tables, settings: TableSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._sequencer = RowSequencer(tables, settings)

    def describes_others(self, stem: str) -> bool:
        """Return whether a source of this name is a control table, which describes the others."""
        return bool(control_table(self._settings.table or stem))

    def read_control(self, source: Source[Any]) -> Iterator[Refused]:
        """Read a control table, before all sources that it describes; yield what is refused of it."""
        return (record for record in self._sequencer.parse(0, source) if isinstance(record, Refused))

    def reading(self) -> ReadRows:
        """Return what reads a source."""
        return ReadRows(self._tables, self._settings, self._sequencer.control)

    def add_piece(self, piece: int, facts: bytes) -> list[GroupPlaces]:
        """Number the table of a piece, and note what it proves; pieces come in their order."""
        source, seen = unpack(facts)
        first = self._sequencer.readers
        if list(self._sequencer.parse(0, source)):
            return []  # it is no change table, as was reported where it was read
        table = self._sequencer.table_of(first)
        for proof in seen:
            self._sequencer.also(table, proof)
        return [GroupPlaces(piece, 0, self._sequencer.task_of(table), table, first)]

    @property
    def tasks(self) -> list[str]:
        """The tasks that were read, in their order."""
        return self._sequencer.tasks

    def join(self, ordered: Any) -> RangeJoin:
        """Return what joins the rows of a range."""
        return join_rows(self._sequencer, self._tables, ordered, partial(unpacked, SequencedRow))


def join_rows(sequencer: RowSequencer, tables: Tables, ordered: Any, records: RecordsOf) -> RangeJoin:
    """Return what joins these sorted rows.

    If only U rows with their B rows prove the byte order of some masks, read all of them first.
    """
    if sequencer.needs_pairs:
        for seen in answers_of(ordered, LookAtPairs(sequencer, records)):
            for table, proof in enumerate(seen):
                sequencer.also(table, proof)
    return RangeJoin(sequencer, records, tables)
