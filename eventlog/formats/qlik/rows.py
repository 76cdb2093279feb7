"""Rows of a change table, and the changes that they state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Change, Op, Side, Value
from eventlog.core.errors import EventlogError, Refused, WrongRow
from eventlog.core.formats import Placed, Row, Source
from eventlog.core.plurals import quantity
from eventlog.formats.qlik import sequence, sides
from eventlog.formats.qlik.headers import Heading
from eventlog.formats.qlik.mask import WrongMaskOrder
from eventlog.formats.qlik.row_headers import HeaderReader, MaskReader
from eventlog.formats.qlik.row_plans import RowPlan
from eventlog.formats.qlik.sides import Masks, Readings
from eventlog.formats.qlik.structure import Structure


class TablePart(NamedTuple):
    """A source of rows of a change table, and how their cells are read."""

    source: Source[Row]
    heading: Heading
    structure: Structure
    plan: RowPlan  # of the data cells
    headers: HeaderReader
    masks: MaskReader
    data_cells: Callable[[Sequence[Any]], Sequence[Any]]  # of the cells of a row


class ChangeRow(NamedTuple):
    """A row of a change table, its headers checked, its data as it came."""

    where: int
    letter: str
    seq: str | None
    mask: bytes | None  # None: the table has no such column
    data: Sequence[Any]
    cells: Sequence[Any]
    raw: bytes | None
    part: TablePart

    @property
    def table_name(self) -> str:
        return str(self.part.structure)

    @property
    def at(self) -> str:
        """Return the place that reports name."""
        return self.part.source.at(self.where)

    def has_same_values(self, record: ChangeRow) -> bool:
        """Return whether two rows are equal, whatever their containers."""
        try:
            return _are_equal(self, record)
        except WrongMaskOrder:
            raise
        except EventlogError:  # of a value or a mask that cannot be read
            return False

    def placed(self, image: ChangeRow | None = None) -> Placed | Refused:
        """Return the change of the row with its place."""
        change = self.change(image)
        if isinstance(change, Refused):
            return change
        image_at = "" if image is None else image.at
        return Placed(change, self.at, self._raw(image), self.part.source.name, self.where, image_at)

    def change(self, image: ChangeRow | None) -> Change | Refused:
        """Return the change of the row, with its B row if there is one."""
        try:
            return _change_of(self, None if image is None else _align_image(self, image))
        except WrongMaskOrder as fault:
            raise WrongMaskOrder(f"{self.at}: {fault}") from None
        except EventlogError as fault:
            refused = self.refused(str(fault))
            return refused._replace(raw=self._raw(image) or refused.raw)

    def _raw(self, image: ChangeRow | None) -> bytes | None:
        return self.raw if image is None or image.raw is None else image.raw + (self.raw or b"")

    def image_fault(self, image: ChangeRow) -> str | None:
        """Return why a B row cannot be that of this row."""
        try:
            column = _contradicted_column(self, _align_image(self, image))
        except WrongMaskOrder:
            raise
        except EventlogError:  # what is wrong with the row is reported with it
            return None
        where = f"B row of change_seq {self.seq}"
        return column and f"{where}: {column} is another in the U row, but not in its mask"

    def refused(self, reason: str, *, with_transaction: bool = False) -> Refused:
        """Return the row left out, as it came."""
        refused = self.part.source.refuse(Row(self.where, tuple(self.cells), self.raw), reason)
        return refused._replace(spoils=self._transaction()) if with_transaction else refused

    def _transaction(self) -> tuple[str, str] | None:
        """Return the identity of the row's transaction: its id and the time part of its change_seq."""
        transaction = self.part.headers.transaction(self.cells)
        return (transaction, self.seq[: sequence.TIME]) if transaction and self.seq else None

    def readings(self) -> Readings:
        """Return what the mask means in each byte order in which it is possible."""
        try:
            return self.part.masks.readings(self.mask)
        except WrongMaskOrder as fault:
            raise WrongMaskOrder(f"{self.at}: {fault}") from None


def read_row(part: TablePart, where: int, cells: Sequence[Any], raw: bytes | None) -> ChangeRow:
    """Return a row, as far as it can be understood without its B row."""
    headers, columns = part.headers, part.heading.columns
    if len(cells) != columns:
        raise WrongRow(f"{quantity(len(cells), 'cell')}, but the header line names {columns} columns")
    try:
        letter = headers.letter(cells)
        mask = part.masks.load(cells)
    except TypeError as fault:
        raise WrongRow(f"change_oper, operation or change_mask holds no text: {fault}") from fault
    seq = headers.seq(cells, letter)
    return ChangeRow(where, letter, seq, mask, part.data_cells(cells), cells, raw, part)


# --- two rows that are compared


def _are_equal(first: ChangeRow, second: ChangeRow) -> bool:
    """Return whether two rows are equal, whatever their containers."""
    if first.mask != second.mask and _marked_columns(first) != _marked_columns(second):
        return False
    if first.part.structure.names != second.part.structure.names:
        return _supplied_values(first) == _supplied_values(second)
    first_text, second_text = (repr(row.part.plan(row.data)) for row in (first, second))
    return first.data == second.data or first_text == second_text


def _marked_columns(row: ChangeRow) -> list[frozenset[str]] | None:
    """Return the columns whose bits a mask sets, in each possible order; None where there is no mask."""
    if row.mask is None:
        return None
    names = row.part.structure.names
    return [frozenset(names[i].lower() for i in masks.places) for masks in row.readings().masks]


def _supplied_values(row: ChangeRow) -> dict[str, str]:
    """Return the values of a row by their columns; what is null may be a column that was added later."""
    cells = zip(row.part.structure.names, row.part.plan(row.data), strict=True)
    return {name.lower(): str(value) for name, value in cells if value is not None}


def _align_image(row: ChangeRow, image: ChangeRow) -> ChangeRow:
    """Return a B row with its values in the order of the row's columns."""
    names, image_names = row.part.structure.names, image.part.structure.names
    if names == image_names:
        return image
    values_by_name = {name.lower(): value for name, value in zip(image_names, image.data, strict=True)}
    return image._replace(data=tuple(values_by_name.get(name.lower(), ABSENT) for name in names))


def _contradicted_column(row: ChangeRow, image: ChangeRow) -> str | None:
    """Return a column whose bit is clear and whose value differs from the B row, in each byte order."""
    columns = [_contradicted_by(masks, row, image) for masks in row.readings().masks]
    return None if None in columns else columns[0]


def _contradicted_by(masks: Masks, row: ChangeRow, image: ChangeRow) -> str | None:
    if masks.changed is None:
        return None
    changed, convert = masks.changed, row.part.plan.convert_value
    for i, (after, before) in enumerate(zip(row.data, image.data, strict=False)):
        if after == before or changed[i] or after is None or before is None or before is ABSENT:
            continue
        if convert(i, after) != convert(i, before):
            return row.part.structure.names[i]
    return None


def _is_proven(masks: Masks, row: ChangeRow, image: ChangeRow) -> bool:
    """Return whether exactly the marked columns differ from the B row; a null proves nothing."""
    if any(row.data[i] is not None and row.data[i] == image.data[i] for i in masks.places):
        return False
    return _contradicted_by(masks, row, image) is None


# --- the change of a row


def _change_of(row: ChangeRow, image: ChangeRow | None) -> Change:
    """Return the change of a row, with its B row if there is one.

    Raise WrongMaskOrder if it depends on the byte order, and neither the mask nor the B row proves one.
    """
    part = row.part
    if row.letter == "T":
        return part.headers.change(Op.TRUNCATE, part.structure, (), (), row.seq, row.cells)
    readings, evidence = part.masks.readings(row.mask), part.masks.evidence
    if len(readings.masks) == 1:
        evidence.add(readings.proven)
        return _change_by(readings.masks[0], row, image)
    possible = [
        (order, masks)
        for order, masks in zip(readings.orders, readings.masks, strict=True)
        if image is None or _is_proven(masks, row, image)
    ]
    changes = {repr(change): change for change in (_change_by(masks, row, image) for _, masks in possible)}
    if len(changes) == 1:
        evidence.add(possible[0][0] if len(possible) == 1 else None)
        return changes.popitem()[1]
    assert row.mask is not None
    raise WrongMaskOrder(
        f"mask {row.mask.hex().upper()} marks other columns in each byte order, and no B row proves one"
        f"{evidence.remedy()}"
    )


def _change_by(masks: Masks, row: ChangeRow, image: ChangeRow | None) -> Change:
    part, letter = row.part, row.letter
    structure, values = part.structure, part.plan(row.data)
    if letter == "D":
        absent = sides.absent_in_deletion(values, masks)
        op, (key, fields) = Op.DELETE, sides.delete(structure, values, masks, absent)
    elif letter == "I":
        op = Op.SNAPSHOT if row.seq == "" else Op.INSERT
        key, fields = sides.insert(structure, values, sides.absent_in_row(values, masks))
    else:
        op, (key, fields) = Op.UPDATE, _update(structure, values, masks, part.plan, image)
    return part.headers.change(op, structure, key, fields, row.seq, row.cells)


def _update(
    structure: Structure, values: Sequence[Value], masks: Masks, plan: RowPlan, image: ChangeRow | None
) -> sides.Parts:
    absent = sides.absent_in_row(values, masks)
    if image is None:
        no_lobs = (False,) * len(values)  # here a clear bit of a LOB means what every clear bit does
        before = sides.unchanged(values, masks, no_lobs)
    else:
        key_places = structure.key  # a null in both rows is one that was captured
        absent = [i for i in absent if image.data[i] is not None or i not in key_places]
        before = _before(values, masks, absent, plan, image.data)
    return sides.update(structure, values, masks.places, absent, before, image is not None)


def _before(
    values: Sequence[Value], masks: Masks, absent: Sequence[int], plan: RowPlan, image: Sequence[Any]
) -> list[Side]:
    """Return the row before; only cells of the image that may differ are converted."""
    before: list[Side] = list(values)
    for i in range(len(before)) if masks.changed is None else (*masks.places, *absent):
        cell = image[i]
        before[i] = cell if cell is None or cell is ABSENT else plan.convert_value(i, cell)
    return before
