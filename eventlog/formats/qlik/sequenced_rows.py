"""Rows of all change tables, in the order of their sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from eventlog.core.errors import Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.formats.qlik.change_tables import TableSettings, read_rows, table_part
from eventlog.formats.qlik.mask import MaskEvidence
from eventlog.formats.qlik.rows import ChangeRow, TablePart
from eventlog.formats.qlik.sequenced import SequencePlace, Sequencer, SourcePlaces

_ROW_BYTES = 400  # bytes that a row takes besides its cells


class SequencedRow(NamedTuple):
    """A row with its place in the sequence."""

    place: SequencePlace
    where: int
    letter: str
    mask: bytes | None
    cells: Sequence[Any]
    raw: bytes | None


class _ChangeTable(NamedTuple):
    """A source that is a change table, with the number of its table."""

    part: TablePart
    table: int
    places: SourcePlaces


class RowSequencer(Sequencer):
    """The sequencer of change tables; its items are rows as they came."""

    def __init__(self, tables: Tables, settings: TableSettings, since: str = "", until: str = "") -> None:
        """Set up a sequencer; `until` has priority over the setting."""
        super().__init__(since, settings.until)
        self._described_tables = tables
        self._settings = settings
        self._since = since
        self._until = until or settings.until
        self._change_tables: list[_ChangeTable] = []
        self.evidence = MaskEvidence()

    @property
    def source_count(self) -> int:
        """Return how many sources there are."""
        return len(self._change_tables)

    def part_of(self, source: int) -> TablePart:
        """Return a source as a part of its change table."""
        return self._change_tables[source].part

    def table_of(self, source: int) -> int:
        """Return the number of the table of a source, as places have it."""
        return self._change_tables[source].table

    @property
    def later_rows(self) -> int:
        """Return how many rows are after the end of what is read."""
        return sum(table.places.later_records for table in self._change_tables)

    def parse(self, source: Source[Row]) -> Iterator[SequencedRow | Refused]:
        """Yield the rows of a source with their places, and Refused for bad ones."""
        part = self.add_source(source)
        if isinstance(part, Refused):
            yield part
        else:
            yield from self.rows(len(self._change_tables) - 1, source.records)

    def add_source(self, source: Source[Row]) -> TablePart | Refused:
        """Return the next source as a part of its change table; Refused if its columns are unfit."""
        settings = self._settings
        name = settings.table or source.stem
        part = table_part(name, source, self._described_tables, settings, self.evidence)
        if not isinstance(part, Refused):
            table = self.table_number(part.structure.schema, part.structure.table)
            places = SourcePlaces(len(self._change_tables), self._since, self._until)
            self._change_tables.append(_ChangeTable(part, table, places))
        return part

    def rows(self, number: int, records: Iterable[Row | Refused]) -> Iterator[SequencedRow | Refused]:
        """Yield rows of a parsed source, by its number among the change tables."""
        part, table, places = self._change_tables[number]
        for row in read_rows(part, records):
            if isinstance(row, Refused):
                yield row
                continue
            place = places.place(row.seq, table)
            if place is not None:
                yield SequencedRow(place, row.where, row.letter, row.mask, row.cells, row.raw)

    def size(self, row: SequencedRow) -> int:
        """Return roughly how many bytes a row takes."""
        cells = (
            len(row.raw)
            if row.raw is not None
            else sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row.cells)
        )
        return _ROW_BYTES + 2 * cells + 50 * len(row.cells)

    def record(self, row: SequencedRow) -> ChangeRow:
        """Return the row with its part of a change table."""
        place, where, letter, mask, cells, raw = row
        part = self._change_tables[place.source].part
        none = "" if part.heading.sequenced else None
        seq = none if place.without_sequence else place.seq
        return ChangeRow(where, letter, seq, mask, part.data_cells(cells), cells, raw, part)
