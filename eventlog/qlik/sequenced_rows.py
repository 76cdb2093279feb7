"""Rows of all change tables, in the order of their sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Placed, Row, Source
from eventlog.core.tables import Tables
from eventlog.qlik.change_tables import TableSettings, read_rows, row_reader
from eventlog.qlik.mask import WrongMaskOrder
from eventlog.qlik.rows import ChangeRow, RowReader, pair
from eventlog.qlik.sequenced import SequencePlace, SourcePlaces, check_limits, lone_images, repeats

_ROW_BYTES = 400  # bytes that a row takes besides its cells


Skip = Callable[[str, str], bool]


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

    reader: RowReader
    table: int
    places: SourcePlaces


class RowSequencer:
    """Reads the rows of change tables in two steps, between which they are sorted by their places."""

    def __init__(
        self,
        tables: Tables,
        settings: TableSettings,
        since: str = "",
        until: str = "",
        skip: Skip | None = None,
    ) -> None:
        """Set up a sequencer; `until` has priority over the setting.

        `skip` is called for each table and change_seq in order, with the letters of its rows.
        """
        check_limits(since, settings.until)
        self._described_tables = tables
        self._settings = settings
        self._since = since
        self._until = until or settings.until
        self._skip = skip
        self._change_tables: list[_ChangeTable] = []
        self._tables: dict[tuple[str | None, str], int] = {}
        self._lone = lone_images()
        self._repeats = repeats()

    # --- the first step

    def has_sequence(self, source: int) -> bool:
        """Return whether the rows of a source have a change_seq, except for those of a full load."""
        return self._change_tables[source].reader.heading.sequenced

    def table_of(self, source: int) -> int:
        """Return the number of the table of a source, as places have it."""
        return self._change_tables[source].table

    def parse(self, source: Source[Row]) -> Iterator[SequencedRow | Refused]:
        """Yield the rows of a source with their places, and Refused for bad ones."""
        settings = self._settings
        reader = row_reader(settings.table or source.stem, source, self._described_tables, settings)
        if isinstance(reader, Refused):
            yield reader
            return
        structure = reader.structure
        at = self._tables.setdefault((structure.schema, structure.table), len(self._tables))
        places = SourcePlaces(len(self._change_tables), self._since, self._until)
        self._change_tables.append(_ChangeTable(reader, at, places))
        yield from self.rows(len(self._change_tables) - 1, source.records)

    @property
    def later_rows(self) -> int:
        """Return how many rows are after the end of what is read."""
        return sum(table.places.later_records for table in self._change_tables)

    def rows(self, number: int, records: Iterable[Row | Refused]) -> Iterator[SequencedRow | Refused]:
        """Yield rows of a parsed source, by its number among the change tables."""
        reader, at, places = self._change_tables[number]
        for row in read_rows(reader, records):
            if isinstance(row, Refused):
                yield row
                continue
            place = places.place(row.seq, at)
            if place is not None:
                yield SequencedRow(place, row.where, row.letter, row.mask, row.cells, row.raw)

    def flush(self) -> Iterator[SequencedRow | Refused]:
        """Yield what waited for the end of all sources: nothing."""
        return iter(())

    @staticmethod
    def size(row: SequencedRow) -> int:
        """Return roughly how many bytes a row takes."""
        cells = (
            len(row.raw)
            if row.raw is not None
            else sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row.cells)
        )
        return _ROW_BYTES + 2 * cells + 50 * len(row.cells)

    # --- the second step

    def join(self, rows: Iterable[SequencedRow]) -> Iterator[Placed | Refused]:
        """Yield the changes of sorted rows, then the reports."""
        yield from self.join_sorted(rows)
        yield from self._lone.warnings()
        yield from self._repeats.warnings()

    def join_sorted(self, rows: Iterable[SequencedRow]) -> Iterator[Placed | Refused]:
        """Yield the changes of sorted rows, without reports."""
        for place, group in groupby(rows, key=_table_and_sequence):
            if place[1]:
                yield from self._without_sequence(group)
                continue
            place_rows = [self._restore(item) for item in group]
            if self._skip is not None and self._skip(*_table_and_letters(place_rows)):
                continue
            if len(place_rows) == 1 and place_rows[0].letter != "B":
                yield self._change(place_rows[0], None)
            else:
                yield from self._of_sequence(place_rows)

    def _restore(self, item: SequencedRow) -> ChangeRow:
        place, where, letter, mask, cells, raw = item
        reader = self._change_tables[place.source].reader
        none = "" if reader.heading.sequenced else None
        seq = none if place.without_sequence else place.seq
        return ChangeRow(where, letter, seq, mask, reader.data_cells(cells), cells, raw, reader)

    def _without_sequence(self, group: Iterable[SequencedRow]) -> Iterator[Placed | Refused]:
        """Yield rows of a full load, and of tables without a column change_seq, paired as they come."""
        rows = (self._restore(item) for item in group)
        for row, image in pair(rows):
            yield self._refuse_lone_image(row) if row.letter == "B" else self._change(row, image)

    def _of_sequence(self, rows: list[ChangeRow]) -> Iterator[Placed | Refused]:
        """Yield the rows of one table under one change_seq, which are one change, or are refused together."""
        by_letter: dict[str, ChangeRow] = {}
        for row in rows:
            first = by_letter.setdefault(row.letter, row)
            if first is row:
                continue
            if not self._same(first, row):
                yield from self._contradiction(rows, f"with different values as {row.letter} rows")
                return
            yield self._repeats.add(str(row.table.structure), _where(row), row.raw)
        image = by_letter.pop("B", None)
        if image is not None and "U" not in by_letter:
            yield self._refuse_lone_image(image)
            image = None
        yield from self._changes_of([by_letter[letter] for letter in sorted(by_letter)], image)

    def _changes_of(self, rows: list[ChangeRow], image: ChangeRow | None) -> Iterator[Placed | Refused]:
        letters = "".join(row.letter for row in rows)
        if letters == "DI":
            changes = [self._change(row, None) for row in rows]
            if _keys_differ(*changes):
                yield from changes
                return
        if len(rows) > 1:
            all_rows = rows if image is None else [*rows, image]
            difference = f"as rows {', '.join(letters)}, which are no one change"
            yield from self._contradiction(all_rows, difference)
        elif rows:
            yield from self._update_change(rows[0], image)

    def _update_change(self, row: ChangeRow, image: ChangeRow | None) -> Iterator[Placed | Refused]:
        if image is None:
            yield self._change(row, None)
            return
        align_image = row.table.align_image(image)
        try:
            column = row.table.contradicted_column(row, align_image)
        except WrongMaskOrder:
            raise
        except EventlogError:
            column = None  # what is wrong with the row is reported with it
        if column is None:
            yield self._change(row, align_image)
            return
        reason = f"B row of change_seq {row.seq}: {column} is another in the U row, but not in its mask"
        yield Refused(_where(image), reason, _raw(image))
        yield self._change(row, None)

    def _contradiction(self, rows: Sequence[ChangeRow], difference: str) -> Iterator[Refused]:
        """Yield rows that are refused together, and their transactions with them."""
        for row in rows:
            reason = f"change_seq {row.seq} of {row.table.structure} is there {difference}"
            yield Refused(_where(row), reason, _raw(row), spoils=row.table.transaction(row))

    def _refuse_lone_image(self, image: ChangeRow) -> Refused:
        return self._lone.add(str(image.table.structure), _where(image), _raw(image))

    def _same(self, first: ChangeRow, second: ChangeRow) -> bool:
        try:
            return first.table.has_same_values(first, second)
        except WrongMaskOrder:
            raise
        except EventlogError:  # of a value or a mask that cannot be read
            return False

    def _change(self, row: ChangeRow, image: ChangeRow | None) -> Placed | Refused:
        raw = row.raw if image is None or image.raw is None else image.raw + (row.raw or b"")
        try:
            change = row.table.change(row, image)
            image_where = "" if image is None else _where(image)
            return Placed(change, _where(row), raw, row.table.source.name, row.where, image_where)
        except WrongMaskOrder:
            raise
        except EventlogError as fault:
            return Refused(_where(row), str(fault), raw or _raw(row))


def _table_and_sequence(row: SequencedRow) -> tuple[Any, ...]:
    return row.place[:3]


def _table_and_letters(rows: Sequence[ChangeRow]) -> tuple[str, str]:
    """Return the table of rows, and their change_seq with their letters."""
    return str(rows[0].table.structure), (rows[0].seq or "") + "".join(sorted({row.letter for row in rows}))


def _where(row: ChangeRow) -> str:
    return row.table.source.at(row.where)


def _raw(row: ChangeRow) -> bytes:
    """Return the row as it came, or as JSON where its container has no lines."""
    return row.table.source.raw(Row(row.where, tuple(row.cells), row.raw))


def _keys_differ(deletion: Placed | Refused, insertion: Placed | Refused) -> bool:
    if isinstance(deletion, Refused) or isinstance(insertion, Refused):
        return True  # what can be read of the two is
    return not deletion.change.key or deletion.change.key != insertion.change.key
