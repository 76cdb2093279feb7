"""Rows of all change tables: parsed in their order, joined in the order of their sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Placed, Row, Source
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.tables import Tables
from eventlog.qlik import row_plans
from eventlog.qlik.headers import read_heading
from eventlog.qlik.mask import MaskOrder
from eventlog.qlik.ordering import DOCUMENTED, Finder, Seen
from eventlog.qlik.pairing import pair
from eventlog.qlik.rows import ChangeRow, RowReader
from eventlog.qlik.sequenced import SequencePlace, WantedStretch, check_limits, lone_images, repeats
from eventlog.qlik.tables import TableSettings, read_structure, table_name

_ROW = 400  # bytes that a row takes besides its cells


Skip = Callable[[str, str], bool]


def _none(table: str, seq: str) -> bool:
    return False


class SequencedRow(NamedTuple):
    """A row with its place in the sequence."""

    place: SequencePlace
    where: int
    letter: str
    mask: bytes | None
    cells: Sequence[Any]
    raw: bytes | None


class _Opened(NamedTuple):
    """A source that is a change table, with the number of its table."""

    reader: RowReader
    table: int
    stretch: WantedStretch
    data: Callable[[Sequence[Any]], Sequence[Any]]  # the data cells among the cells of a row


class RowSequencer:
    """Reads the rows of change tables in two steps, between which they are sorted by their places."""

    def __init__(
        self,
        tables: Tables,
        settings: TableSettings,
        since: str = "",
        until: str = "",
        skip: Skip = _none,
    ) -> None:
        """Take `until` before the setting.

        Call `skip` for each table and change_seq in order, with the letters of its rows.
        """
        check_limits(since, settings.until)
        self._known = tables
        self._settings = settings
        self._since = since
        self._until = until or settings.until
        self._skip = skip
        self._opened: list[_Opened] = []
        self._finder_of: dict[RowReader, Finder] = {}
        self._tables: dict[tuple[str | None, str], int] = {}
        self._finders: list[Finder] = []
        self._lone = lone_images()
        self._repeats = repeats()

    # --- the first step

    def has_sequence(self, source: int) -> bool:
        """Return whether the rows of a source have a change_seq, except for those of a full load."""
        return self._opened[source].reader.heading.sequenced

    def table_of(self, source: int) -> int:
        """Return the number of the table of a source, as places have it."""
        return self._opened[source].table

    def parse(self, source: Source[Row]) -> Iterator[SequencedRow | Refused]:
        """Yield the rows of a source with their places, and Refused for bad ones."""
        settings = self._settings
        schema, table = table_name(settings.table or source.stem, self._known, settings.suffix)
        try:
            heading = read_heading(source.columns, settings.header_prefix)
        except Misuse as fault:
            yield Refused(source.at(1), str(fault))
            return
        structure = read_structure(schema, table, heading.data, self._known)
        if settings.heard is not None:
            settings.heard(structure)
        at = self._tables.setdefault((structure.schema, structure.table), len(self._tables))
        if at == len(self._finders):
            self._finders.append(
                Finder(None if settings.mask_order == "auto" else MaskOrder(settings.mask_order))
            )
        plan = row_plans.loading(structure.columns)
        reader = RowReader(source, heading, structure, plan, settings.header_time_format)
        self._finder_of[reader] = self._finders[at]
        stretch = WantedStretch(len(self._opened), self._since, self._until)
        self._opened.append(_Opened(reader, at, stretch, heading.row()))
        yield from self._rows(self._opened[-1], source.records)

    def rows(self, number: int, records: Iterable[Row | Refused]) -> Iterator[SequencedRow | Refused]:
        """Yield further rows of a parsed source, by its number among the change tables."""
        return self._rows(self._opened[number], records)

    @property
    def beyond(self) -> int:
        """Return how many rows are after the end of what is read."""
        return sum(opened.stretch.beyond for opened in self._opened)

    def _rows(self, opened: _Opened, records: Iterable[Row | Refused]) -> Iterator[SequencedRow | Refused]:
        reader, at, stretch, _ = opened
        source, finder = reader.source, self._finders[at]
        for record in records:
            if isinstance(record, Refused):
                yield record
                continue
            try:
                row = reader.parse(*record)
            except EventlogError as fault:
                yield Refused(source.at(record.where), str(fault), record.raw)
                continue
            finder.see(row)
            place = stretch.place(row.seq, at)
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
        return _ROW + 2 * cells + 50 * len(row.cells)

    @property
    def seen(self) -> list[Seen]:
        """Return what the rows that were read prove of the byte order of masks, table by table."""
        return [finder.seen for finder in self._finders]

    def also(self, at: int, seen: Seen) -> None:
        """Note what others have read of a table."""
        self._finders[at].also(seen)

    # --- the second step

    def join(self, rows: Callable[[], Iterable[SequencedRow]]) -> Iterator[Placed | Refused]:
        """Yield the changes of the rows, which `rows` returns sorted, then what was left over."""
        yield from self.joined(rows())
        for tally in self.tallies:
            yield from tally.warnings()

    @property
    def tallies(self) -> tuple[GroupedWarnings, ...]:
        """Return the counters that are reported when all is joined."""
        return self._lone, self._repeats

    def joined(self, rows: Iterable[SequencedRow]) -> Iterator[Placed | Refused]:
        """Yield the changes that sorted rows state, and nothing of what was left over."""
        for finder in self._finders:
            finder.settle()
        for place, group in groupby(rows, key=_table_and_sequence):
            if place[1]:
                yield from self._without_sequence(group)
                continue
            found = [self._restore(item) for item in group]
            if self._skip(*_named(found)):
                continue
            if len(found) == 1 and found[0].letter != "B":
                yield self._change(found[0], None)
            else:
                yield from self._of_sequence(found)

    def _restore(self, item: SequencedRow) -> ChangeRow:
        place, where, letter, mask, cells, raw = item
        reader, _, _, data = self._opened[place.source]
        none = "" if reader.heading.sequenced else None
        seq = none if place.behind else place.seq
        return ChangeRow(where, letter, seq, mask, data(cells), cells, raw, reader)

    def _without_sequence(self, group: Iterable[SequencedRow]) -> Iterator[Placed | Refused]:
        """Yield rows of a full load, and of tables without a column change_seq, paired as they come."""
        rows = (self._restore(item) for item in group)
        for row, image in pair(rows, ChangeRow):
            yield self._leave_out(row) if row.letter == "B" else self._change(row, image)

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
            yield self._repeats.add(str(row.table.structure), _at(row), row.raw)
        image = by_letter.pop("B", None)
        if image is not None and "U" not in by_letter:
            yield self._leave_out(image)
            image = None
        yield from self._stated([by_letter[letter] for letter in sorted(by_letter)], image)

    def _stated(self, rows: list[ChangeRow], image: ChangeRow | None) -> Iterator[Placed | Refused]:
        letters = "".join(row.letter for row in rows)
        if letters == "DI":
            both = [self._change(row, None) for row in rows]
            if _keys_differ(*both):
                yield from both
                return
        if len(rows) > 1:
            known = rows if image is None else [*rows, image]
            yield from self._contradiction(known, f"as rows {', '.join(letters)}, which are no one change")
        elif rows:
            yield from self._paired(rows[0], image)

    def _paired(self, row: ChangeRow, image: ChangeRow | None) -> Iterator[Placed | Refused]:
        if image is not None:
            given, image = image, row.table.aligned(image)
            try:
                column = row.table.contradicted(row, image, self._order(row))
            except EventlogError:
                column = None  # what is wrong with the row is reported with it
            if column is not None:
                said = f"B row of change_seq {row.seq}: {column} is another in the U row, but not in its mask"
                yield Refused(_at(given), said, _raw(given))
                image = None
        yield self._change(row, image)

    def _contradiction(self, rows: Sequence[ChangeRow], how: str) -> Iterator[Refused]:
        """Yield rows that are refused together, and their transactions with them."""
        for row in rows:
            said = f"change_seq {row.seq} of {row.table.structure} is there {how}"
            yield Refused(_at(row), said, _raw(row), spoils=row.table.transaction(row))

    def _leave_out(self, image: ChangeRow) -> Refused:
        return self._lone.add(str(image.table.structure), _at(image), _raw(image))

    def _same(self, one: ChangeRow, other: ChangeRow) -> bool:
        order = self._finder_of[one.table].order or DOCUMENTED
        try:
            return one.table.same(one, other, order)
        except EventlogError:  # of a value or a mask that cannot be read
            return False

    def _order(self, row: ChangeRow) -> MaskOrder:
        return self._finder_of[row.table].check(row)

    def _change(self, row: ChangeRow, image: ChangeRow | None) -> Placed | Refused:
        raw = row.raw if image is None or image.raw is None else image.raw + (row.raw or b"")
        try:
            change = row.table.change(row, image, self._order(row))
            beside = "" if image is None else _at(image)
            return Placed(change, _at(row), raw, row.table.source.name, row.where, beside)
        except EventlogError as fault:
            return Refused(_at(row), str(fault), raw or _raw(row))


def _table_and_sequence(row: SequencedRow) -> tuple[Any, ...]:
    return row.place[:3]


def _named(rows: Sequence[ChangeRow]) -> tuple[str, str]:
    """Return the table of rows, and their change_seq with their letters."""
    return str(rows[0].table.structure), (rows[0].seq or "") + "".join(sorted({row.letter for row in rows}))


def _at(row: ChangeRow) -> str:
    return row.table.source.at(row.where)


def _raw(row: ChangeRow) -> bytes:
    """Return the row as it came, or as JSON where its container has no lines."""
    return row.table.source.raw(Row(row.where, tuple(row.cells), row.raw))


def _keys_differ(one: Placed | Refused, other: Placed | Refused) -> bool:
    if isinstance(one, Refused) or isinstance(other, Refused):
        return True  # what can be read of the two is
    return not one.change.key or one.change.key != other.change.key
