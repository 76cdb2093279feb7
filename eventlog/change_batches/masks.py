"""The masks of changes, each distinct one read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.core.errors import EventlogError
from eventlog.fold.by_column.vectors import Flags, Ints
from eventlog.formats.qlik.mask import MaskOrder
from eventlog.formats.qlik.sides import Masks, Readings

_ORDERS: tuple[MaskOrder | None, ...] = (None, *MaskOrder)
_NO_MASK, _NO_READINGS = Masks(), Readings((), ())


class MaskTable(NamedTuple):
    """The meanings of masks, each once."""

    numbers: Ints  # of each change, that of its masks
    changed: npt.NDArray[np.bool_]  # of each mask, by column
    absent: npt.NDArray[np.bool_]
    are_stated: Flags  # whether there is a mask of changed columns
    odd: Flags
    proven: Ints  # the byte order, by its number in `proven_order`


def proven_order(number: int) -> MaskOrder | None:
    """Return a byte order by its number; None for 0."""
    return _ORDERS[number]


def masks_of(
    numbers: Ints, cells: Sequence[Any], read: Callable[[Any], Readings | None], width: int
) -> MaskTable:
    """Return the masks of so many columns by their numbers; those without one meaning are odd."""
    masks, odd, proven = [], [], []
    for cell in cells:
        try:
            readings = read(cell) or _NO_READINGS
        except EventlogError:
            readings = _NO_READINGS
        odd.append(len(readings.masks) != 1)
        masks.append(_NO_MASK if odd[-1] else readings.masks[0])
        proven.append(_ORDERS.index(readings.proven))
    changed, absent = np.zeros((len(masks), width), np.bool_), np.zeros((len(masks), width), np.bool_)
    for number, mask in enumerate(masks):
        changed[number, list(mask.places)] = True
        absent[number, list(mask.absent)] = True
    are_stated = np.array([mask.changed is not None for mask in masks])
    return MaskTable(numbers, changed, absent, are_stated, np.array(odd), np.array(proven))
