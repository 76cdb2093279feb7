"""Rows of a change table and their changes, in both directions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Change, Facts, Field, Key, Op, Side, Value
from eventlog.core.errors import EventlogError, NotExpressible, Refused, WrongRow
from eventlog.core.formats import Placed, Row, Source
from eventlog.core.plurals import quantity
from eventlog.formats.qlik import sequence, sides
from eventlog.formats.qlik.headers import (
    HEADERS,
    ISO,
    NAMES,
    OPERATIONS,
    Heading,
    letter_of,
    read_header_time,
    utc,
)
from eventlog.formats.qlik.mask import (
    InvalidMask,
    MaskEvidence,
    MaskLayout,
    MaskOrder,
    WrongMaskOrder,
    join,
    load,
    orders_of,
    read,
    trimmed,
)
from eventlog.formats.qlik.numbering import Numbered, stream_position
from eventlog.formats.qlik.row_plans import RowPlan, differing, row_sides
from eventlog.formats.qlik.sides import Masks, Readings
from eventlog.formats.qlik.structure import Structure

Cells = tuple[Any, ...]
_STREAM_WIDTH = next(header.width for header in HEADERS if header.name == "stream_position")
# change_seq, stream_position, id, timestamp, partition_name
HeaderCells = tuple[str, str, str, str | None, object]
_MAX_CACHED = 10_000
_NO_TIME = "1970-01-01"
_NO_MASK = Masks()
_ZONE = re.compile(r" (?:UTC|([+-][0-9]{2}(?::?[0-9]{2})?))\Z", re.ASCII)  # as warehouses write them
_new = tuple.__new__


class ChangeRow(NamedTuple):
    """A row of a change table, its headers checked, its data as it came."""

    where: int
    letter: str
    seq: str | None
    mask: bytes | None  # None: the table has no such column
    data: Sequence[Any]
    cells: Sequence[Any]
    raw: bytes | None
    table: RowReader

    @property
    def table_name(self) -> str:
        return str(self.table.structure)

    @property
    def at(self) -> str:
        """Return the place that reports name."""
        return self.table.source.at(self.where)

    def has_same_values(self, record: ChangeRow) -> bool:
        """Return whether two rows are equal, whatever their containers."""
        try:
            return self.table.has_same_values(self, record)
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
        return Placed(change, self.at, self._raw(image), self.table.source.name, self.where, image_at)

    def change(self, image: ChangeRow | None) -> Change | Refused:
        """Return the change of the row, with its B row if there is one."""
        try:
            return self.table.change(self, None if image is None else self.table.align_image(image))
        except WrongMaskOrder:
            raise
        except EventlogError as fault:
            refused = self.refused(str(fault))
            return refused._replace(raw=self._raw(image) or refused.raw)

    def _raw(self, image: ChangeRow | None) -> bytes | None:
        return self.raw if image is None or image.raw is None else image.raw + (self.raw or b"")

    def image_fault(self, image: ChangeRow) -> str | None:
        """Return why a B row cannot be that of this row."""
        try:
            column = self.table.contradicted_column(self, self.table.align_image(image))
        except WrongMaskOrder:
            raise
        except EventlogError:  # what is wrong with the row is reported with it
            return None
        where = f"B row of change_seq {self.seq}"
        return column and f"{where}: {column} is another in the U row, but not in its mask"

    def refused(self, reason: str, *, with_transaction: bool = False) -> Refused:
        """Return the row left out, as it came."""
        refused = self.table.source.refuse(Row(self.where, tuple(self.cells), self.raw), reason)
        return refused._replace(spoils=self.table.transaction(self)) if with_transaction else refused


class RowReader:
    """Reads the rows of one source, whose heading and structure are known."""

    def __init__(
        self,
        source: Source[Row],
        heading: Heading,
        structure: Structure,
        plan: RowPlan,
        order: MaskOrder | None,
        evidence: MaskEvidence,
        time_form: str = ISO,
    ) -> None:
        """Take the stated byte order of masks; None if each mask is to prove its own."""
        self.source = source
        self.structure = structure
        self.heading = heading
        self.layout: MaskLayout = heading.layout
        self.places = heading.places
        self._order = order
        self._evidence = evidence
        self._time_form = time_form
        self._no_lobs = (False,) * len(structure.columns)  # a clear bit of theirs is as good as others
        self._plan = plan
        self.data_cells = heading.row()
        self._kind = heading.header("change_oper", "operation")
        self._seq = heading.header("change_seq")
        self._mask = heading.header("change_mask")
        self._circumstance = heading.header("transaction_id", "timestamp")
        self._masked = "change_mask" in heading.headers
        self._sequenced = heading.sequenced
        facts = ("stream_position", "partition_name")
        self._facts = tuple((f, heading.headers[f]) for f in facts if f in heading.headers)
        self._last_seq = ""
        # caches of what has few different values
        self._letters: dict[tuple[object, object], str] = {(None, None): "I"} if heading.full_load else {}
        self._masks: dict[object, bytes] = {}
        self._readings: dict[bytes | None, Readings] = {None: Readings((_NO_MASK,), ())}

    def parse(self, where: int, cells: Sequence[Any], raw: bytes | None) -> ChangeRow:
        """Return the row, as far as it can be understood without its B row."""
        if len(cells) != self.heading.columns:
            count = quantity(len(cells), "cell")
            raise WrongRow(f"{count}, but the header line names {self.heading.columns} columns")
        try:
            kind = self._kind(cells)
            letter = self._letters.get(kind) or self._letter(kind)
            mask = None
            if self._masked:
                cell = self._mask(cells)
                mask = self._masks.get(cell)
                if mask is None:
                    mask = self._load_mask(cell)
        except TypeError as fault:
            raise WrongRow(f"change_oper, operation or change_mask holds no text: {fault}") from fault
        seq = self._sequence(self._seq(cells), letter) if self._sequenced else None
        return _new(ChangeRow, (where, letter, seq, mask, self.data_cells(cells), cells, raw, self))

    def transaction(self, row: ChangeRow) -> tuple[str, str] | None:
        """Return the identity of a row's transaction: its id and the time part of its change_seq."""
        transaction = self._circumstance(row.cells)[0]
        return (str(transaction), row.seq[: sequence.TIME]) if transaction and row.seq else None

    def has_same_values(self, first: ChangeRow, second: ChangeRow) -> bool:
        """Return whether two rows are equal, whatever their containers."""
        pair = first, second
        if first.mask != second.mask:
            first_marks, second_marks = (row.table._marked_columns(row) for row in pair)
            if first_marks != second_marks:
                return False
        if first.table.structure.names != second.table.structure.names:
            return first.table.supplied_values(first) == second.table.supplied_values(second)
        first_text, second_text = (repr(row.table._plan(row.data)) for row in pair)
        return first.data == second.data or first_text == second_text

    def _marked_columns(self, row: ChangeRow) -> list[frozenset[str]] | None:
        """Return the columns whose bits a mask sets, in each possible order; None where there is no mask."""
        if row.mask is None:
            return None
        readings = self._readings_of(row)
        return [frozenset(self.structure.names[i].lower() for i in masks.places) for masks in readings.masks]

    def supplied_values(self, row: ChangeRow) -> dict[str, str]:
        """Return the values of a row by their columns; what is null may be a column that was added later."""
        cells = zip(self.structure.names, self._plan(row.data), strict=True)
        return {name.lower(): str(value) for name, value in cells if value is not None}

    def align_image(self, image: ChangeRow) -> ChangeRow:
        """Return a B row with its values in the order of this source's columns."""
        names, image_names = self.structure.names, image.table.structure.names
        if names == image_names:
            return image
        values_by_name = {name.lower(): value for name, value in zip(image_names, image.data, strict=True)}
        return image._replace(data=tuple(values_by_name.get(name.lower(), ABSENT) for name in names))

    def contradicted_column(self, row: ChangeRow, image: ChangeRow) -> str | None:
        """Return a column whose bit is clear and whose value differs from the B row, in each byte order."""
        columns = [self._contradicted_column(row, image, masks) for masks in self._readings_of(row).masks]
        return None if None in columns else columns[0]

    def _contradicted_column(self, row: ChangeRow, image: ChangeRow, masks: Masks) -> str | None:
        if masks.changed is None:
            return None
        changed, convert = masks.changed, self._plan.convert_value
        for i, (after, before) in enumerate(zip(row.data, image.data, strict=False)):
            if after == before or changed[i] or after is None or before is None or before is ABSENT:
                continue
            if convert(i, after) != convert(i, before):
                return self.structure.names[i]
        return None

    def change(self, row: ChangeRow, image: ChangeRow | None) -> Change:
        """Return the change of a row, with its B row if there is one.

        Raise WrongMaskOrder if it depends on the byte order, and neither the mask nor the B row proves one.
        """
        if row.letter == "T":
            return self._make_change(Op.TRUNCATE, row, (), ())
        readings = self._readings.get(row.mask) or self._readings_of(row)
        if len(readings.masks) == 1:
            self._evidence.add(readings.proven)
            return self._change(row, image, readings.masks[0])
        possible = [
            (order, masks)
            for order, masks in zip(readings.orders, readings.masks, strict=True)
            if image is None or self._is_proven(row, image, masks)
        ]
        changes = {
            repr(change): change for change in (self._change(row, image, masks) for _, masks in possible)
        }
        if len(changes) == 1:
            self._evidence.add(possible[0][0] if len(possible) == 1 else None)
            return changes.popitem()[1]
        assert row.mask is not None
        raise WrongMaskOrder(
            f"{self.source.at(row.where)}: mask {row.mask.hex().upper()} marks other columns in each byte"
            f" order, and no B row proves one{self._evidence.remedy()}"
        )

    def _is_proven(self, row: ChangeRow, image: ChangeRow, masks: Masks) -> bool:
        """Return whether exactly the marked columns differ from the B row; a null proves nothing."""
        if any(row.data[i] is not None and row.data[i] == image.data[i] for i in masks.places):
            return False
        return self._contradicted_column(row, image, masks) is None

    def _change(self, row: ChangeRow, image: ChangeRow | None, masks: Masks) -> Change:
        values = self._plan(row.data)
        if row.letter == "D":
            absent = sides.absent_in_deletion(values, masks)
            key, fields = sides.delete(self.structure, values, masks, absent)
            return self._make_change(Op.DELETE, row, key, fields)
        absent = sides.absent_in_row(values, masks)
        if row.letter == "I":
            key, fields = sides.insert(self.structure, values, absent)
            return self._make_change(Op.SNAPSHOT if row.seq == "" else Op.INSERT, row, key, fields)
        if image is None:
            before = sides.unchanged(values, masks, self._no_lobs)
        else:
            key_places = self.structure.key  # a null in both rows is one that was captured
            absent = [i for i in absent if image.data[i] is not None or i not in key_places]
            before = self._before(values, masks, absent, image.data)
        has_image = image is not None
        key, fields = sides.update(self.structure, values, masks.places, absent, before, has_image)
        return self._make_change(Op.UPDATE, row, key, fields)

    def _before(
        self, values: Sequence[Value], masks: Masks, absent: Sequence[int], image: Sequence[Any]
    ) -> list[Side]:
        """Return the row before; only cells of the image that may differ are converted."""
        before: list[Side] = list(values)
        for i in range(len(before)) if masks.changed is None else (*masks.places, *absent):
            cell = image[i]
            before[i] = cell if cell is None or cell is ABSENT else self._plan.convert_value(i, cell)
        return before

    def _letter(self, kind: tuple[object, object]) -> str:
        letter = self._letters[kind] = letter_of(*kind)
        _limit(self._letters)
        return letter

    def _load_mask(self, cell: Any) -> bytes:
        mask = self._masks[cell] = load(cell, self.layout, self._order)
        _limit(self._masks)
        return mask

    def _sequence(self, seq: Any, letter: str) -> str:
        if seq and seq == self._last_seq:  # a B row shares that of its U row
            return self._last_seq
        if not seq and letter == "I":
            return ""  # rows of a full load have none
        self._last_seq = sequence.check("" if seq is None else str(seq))
        return self._last_seq

    def _readings_of(self, row: ChangeRow) -> Readings:
        """Return what a mask means in each byte order in which it is possible."""
        mask = row.mask
        readings = self._readings.get(mask)
        if readings is None:
            assert mask is not None
            try:
                orders = orders_of(mask, self.layout, self._order)
            except WrongMaskOrder as fault:
                raise WrongMaskOrder(f"{self.source.at(row.where)}: {fault}") from None
            masks = tuple(dict.fromkeys(self._read_mask(mask, order) for order in orders))
            readings = self._readings[mask] = Readings(masks, () if self._order else orders)
            _limit(self._readings)
        return readings

    def _read_mask(self, mask: bytes, order: MaskOrder) -> Masks:
        bits = read(mask, order)
        if fault := self.layout.fault(bits):
            raise InvalidMask(f"mask {mask.hex().upper()} in {order} byte order: {fault}")
        changed = tuple(bits >> place & 1 == 1 for place in self.places)
        return Masks(changed, tuple(i for i, bit in enumerate(changed) if bit))

    def _make_change(self, op: Op, row: ChangeRow, key: Key, fields: tuple[Field, ...]) -> Change:
        cells = row.cells
        transaction, time = self._circumstance(cells)
        return make_change(
            op,
            self.structure.schema,
            self.structure.table,
            key,
            fields,
            row.seq or None,
            None if transaction is None or transaction == "" else str(transaction),
            None if time is None else _time(time, self._time_form),
            tuple([(name, str(cells[i])) for name, i in self._facts if cells[i]]),
        )


def _limit(cache: dict[Any, Any]) -> None:
    """Drop the oldest entry of a cache that is full."""
    if len(cache) > _MAX_CACHED:
        cache.pop(next(iter(cache)))


def make_change(
    op: Op,
    schema: str | None,
    table: str,
    key: Key,
    fields: tuple[Field, ...],
    position: str | None,
    transaction: str | None,
    time: str | None,
    extra: Facts,
) -> Change:
    """Return a change as Replicate has it: without a user or query-backs, and with everything decoded."""
    parts = (op, schema, table, key, fields, position, transaction, time, None, False, extra, None)
    return _new(Change, parts)


def _time(cell: object, form: str) -> str | None:
    """Return the time of a change in UTC; 1970-01-01 means a time that was unknown before the commit."""
    if isinstance(cell, dt.datetime):
        cell, form = cell.isoformat(), ISO
    text = str(cell) if form != ISO else _ZONE.sub(lambda zone: zone[1] or "Z", str(cell))
    if text == "" or text.startswith(_NO_TIME):
        return None
    time = read_header_time(text, form)
    return None if form != ISO and time.startswith(_NO_TIME) else time


class ChangeRowWriter:
    """Writes the changes of one table as rows of its change table."""

    def __init__(
        self, structure: Structure, plan: RowPlan, names: Sequence[str], order: MaskOrder, images: bool
    ) -> None:
        self.structure = structure
        self._plan = plan
        self._is_written = tuple(name in names for name in NAMES)
        self._first = len(names)
        self._order = order
        self._images = images
        self._masks: dict[int, bytes] = {}

    def rows(self, numbered: Numbered) -> list[Cells]:
        """Return the rows that state a change: one, or a B row and its U row."""
        change = numbered.change
        stream = stream_position(change)
        if len(stream) > _STREAM_WIDTH:
            raise NotExpressible(f"a stream position of {len(stream)} characters: at most {_STREAM_WIDTH}")
        facts = (
            numbered.sequence,
            stream,
            numbered.transaction,
            None if change.time is None else utc(change.time).replace("T", " "),
            change.fact("partition_name") if change.extra else None,
        )
        if change.op is Op.TRUNCATE:
            return [self._row("T", 0, facts, (None,) * len(self.structure.columns))]
        before, after = row_sides(self.structure, change)
        if change.op is Op.DELETE:
            return [self._row("D", self.structure.key_bits, facts, self._plan(before))]
        if change.op is Op.UPDATE:
            return self._update(facts, before, after)
        bits = join(i for i, value in enumerate(after) if value is not ABSENT)
        return [self._row("I", bits, facts, self._plan(after))]

    def _update(self, facts: HeaderCells, before: Sequence[Side], after: Sequence[Side]) -> list[Cells]:
        row = self._plan(after)
        image = self._plan.convert_similar(before, after, row)
        changed = differing(before, after, image, row)
        update = self._row("U", join(changed), facts, row)
        if self._images and _says_more(before, after, changed):
            return [self._row("B", 0, facts, image), update]
        return [update]

    def _row(self, letter: str, bits: int, facts: HeaderCells, data: Sequence[Any]) -> Cells:
        seq, stream, transaction, time, partition = facts
        mask = self._mask(bits)
        cells = (seq, letter, mask, stream, OPERATIONS[letter], transaction, time, partition)
        return (*compress(cells, self._is_written), *data)

    def _mask(self, bits: int) -> bytes:
        mask = self._masks.get(bits)
        if mask is None:
            mask = self._masks[bits] = trimmed(bits << self._first, self._order)
            _limit(self._masks)
        return mask


def _says_more(before: Sequence[Side], after: Sequence[Side], changed: list[int]) -> bool:
    """Return whether a B row contains something that its U row alone does not."""
    if ABSENT not in before:
        return True
    both = enumerate(zip(before, after, strict=True))
    return any(b is not ABSENT and (i in changed or b is None or a is ABSENT) for i, (b, a) in both)
