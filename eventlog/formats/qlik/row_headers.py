"""The header cells of rows: the kind of change, change_seq and mask of a row, and the facts of its change."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from eventlog.core.change import Change, Facts, Field, Key, Op
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.headers import ISO, Heading, letter_of, read_header_time
from eventlog.formats.qlik.mask import InvalidMask, MaskEvidence, MaskOrder, load, orders_of, read
from eventlog.formats.qlik.sides import Masks, Readings
from eventlog.formats.qlik.structure import Structure

_MAX_CACHED = 10_000  # masks
_NO_MASK = Masks()
NO_TIME = "1970-01-01"
_ZONE = re.compile(r" (?:UTC|([+-][0-9]{2}(?::?[0-9]{2})?))\Z", re.ASCII)  # as warehouses write them
FACTS = ("stream_position", "partition_name")
_new = tuple.__new__  # a third of the cost of a named tuple's constructor


class HeaderReader:
    """Reads the header cells of the rows of one source."""

    def __init__(self, heading: Heading, time_form: str) -> None:
        self._kind = heading.header("change_oper", "operation")
        self._seq = heading.header("change_seq")
        self._circumstance = heading.header("transaction_id", "timestamp")
        self._facts = tuple((name, heading.headers[name]) for name in FACTS if name in heading.headers)
        self._sequenced = heading.sequenced
        self.time_form = time_form
        self._is_full_load = heading.full_load

    def letter(self, cells: Sequence[Any]) -> str:
        """Return the letter of a row."""
        return self.letter_of(self._kind(cells))

    def letter_of(self, kind: tuple[object, object]) -> str:
        """Return the letter of rows with these cells, change_oper and operation."""
        return "I" if self._is_full_load else letter_of(*kind)

    def seq(self, cells: Sequence[Any], letter: str) -> str | None:
        """Return the change_seq of a row: empty in a full load, None if the table has no such column."""
        if not self._sequenced:
            return None
        seq = self._seq(cells)
        if not seq and letter == "I":
            return ""
        return sequence.check("" if seq is None else str(seq))

    def transaction(self, cells: Sequence[Any]) -> str | None:
        """Return the id of a row's transaction."""
        transaction, _ = self._circumstance(cells)
        return None if transaction is None or transaction == "" else str(transaction)

    def time(self, cell: object) -> str | None:
        """Return the time of a change in UTC; 1970-01-01 means a time that was unknown before the commit."""
        form = self.time_form
        if isinstance(cell, dt.datetime):
            cell, form = cell.isoformat(), ISO
        text = str(cell) if form != ISO else _ZONE.sub(lambda zone: zone[1] or "Z", str(cell))
        if text == "" or text.startswith(NO_TIME):
            return None
        time = read_header_time(text, form)
        return None if form != ISO and time.startswith(NO_TIME) else time

    def change(
        self,
        op: Op,
        structure: Structure,
        key: Key,
        fields: tuple[Field, ...],
        seq: str | None,
        cells: Sequence[Any],
    ) -> Change:
        """Return the change of a row with the facts that its headers state."""
        transaction, time = self._circumstance(cells)
        return make_change(
            op,
            structure.schema,
            structure.table,
            key,
            fields,
            seq or None,
            None if transaction is None or transaction == "" else str(transaction),
            None if time is None else self.time(time),
            tuple([(name, str(cells[i])) for name, i in self._facts if cells[i]]),
        )


class MaskReader:
    """Reads the masks of the rows of one source."""

    def __init__(self, heading: Heading, order: MaskOrder | None, evidence: MaskEvidence) -> None:
        """Take the stated byte order of masks; None if each mask is to prove its own."""
        self.evidence = evidence
        self._mask = heading.header("change_mask")
        self._is_there = "change_mask" in heading.headers
        self._layout = heading.layout
        self._places = heading.places  # of the data columns
        self._order = order
        self._loaded: dict[object, bytes] = {}
        self._readings: dict[bytes | None, Readings] = {None: Readings((_NO_MASK,), ())}

    def load(self, cells: Sequence[Any]) -> bytes | None:
        """Return the mask of a row; None if the table has no such column."""
        if not self._is_there:
            return None
        return self.load_cell(self._mask(cells))

    def load_cell(self, cell: Any) -> bytes:
        """Return the mask that a cell holds."""
        mask = self._loaded.get(cell)
        if mask is None:
            mask = self._loaded[cell] = load(cell, self._layout, self._order)
            _limit(self._loaded)
        return mask

    def readings(self, mask: bytes | None) -> Readings:
        """Return what a mask means in each byte order in which it is possible."""
        readings = self._readings.get(mask)
        if readings is None:
            assert mask is not None
            orders = orders_of(mask, self._layout, self._order)
            masks = tuple(dict.fromkeys(self._read(mask, order) for order in orders))
            readings = self._readings[mask] = Readings(masks, () if self._order else orders)
            _limit(self._readings)
        return readings

    def _read(self, mask: bytes, order: MaskOrder) -> Masks:
        bits = read(mask, order)
        if fault := self._layout.fault(bits):
            raise InvalidMask(f"mask {mask.hex().upper()} in {order} byte order: {fault}")
        changed = tuple(bits >> place & 1 == 1 for place in self._places)
        return Masks(changed, tuple(i for i, bit in enumerate(changed) if bit))


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
