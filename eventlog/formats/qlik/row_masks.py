"""The masks of the rows of one source, each read once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventlog.formats.qlik.headers import Heading
from eventlog.formats.qlik.mask import InvalidMask, MaskEvidence, MaskOrder, load, orders_of, read
from eventlog.formats.qlik.sides import Masks, Readings

_MAX_MASKS = 10_000  # that are remembered
_NO_MASK = Masks()


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
        cell = self._mask(cells)
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
    if len(cache) > _MAX_MASKS:
        cache.pop(next(iter(cache)))
