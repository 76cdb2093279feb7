"""Both sides of a change, from its row, the masks, and the row before.

A row of a change table has one mask, and a null in it is ambiguous:

    row  bit    value   before                      after
    I    set    any     absent                      the value
    I    clear  null    absent                      absent
    I    clear  else    absent                      the value
    U    set    any     that of the B row (1)       the value
    U    clear  null    that of the B row (2)       absent (2)
    U    clear  else    the value                   the value
    D    any    any     the value (3)               absent

1: absent without a B row, and if both values are null. 2: a B row that is null too proves nothing, because an
unchanged LOB is null there; but null is the value of a key column on both sides. 3: absent for a clear bit
if only columns with a set bit have values.

In a message columnMask shows which columns of the new row were captured, so a null is a value:

    changeMask   columnMask  beforeData   before                         after
    any          clear       any          that of beforeData if not null absent
    any          set         has it       that of beforeData (1)         the value
    set, or LOB  set         lacks it     absent                         the value
    clear        set         lacks it     the value                      the value

Without a mask every bit is set. Rows without a B row, and updates without changeMask, have no row before.

So a row of a change table is a message whose columnMask follows from its nulls, and whose B row is beforeData
for the columns that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Field, Key, Side, Value
from eventlog.formats.qlik.mask import MaskOrder
from eventlog.formats.qlik.structure import Structure

Parts = tuple[Key, tuple[Field, ...]]  # of a change
_new = tuple.__new__  # a third of the cost of a named tuple's constructor


class Masks(NamedTuple):
    """The bits of the masks of a row for its columns."""

    changed: tuple[bool, ...] | None = None  # None: there is no mask
    places: tuple[int, ...] = ()  # of the changed columns
    absent: Sequence[int] = ()  # the places of the columns that were not captured


class Readings(NamedTuple):
    """The meanings of the masks of a row, each once, and the byte orders in which they are possible."""

    masks: tuple[Masks, ...]
    orders: tuple[MaskOrder, ...]  # empty if no order is proven: it is stated, or there are no masks

    @property
    def proven(self) -> MaskOrder | None:
        """Return the only order in which the masks are possible, if there is one."""
        return self.orders[0] if len(self.orders) == 1 else None


def absent_in_row(values: Sequence[Value], masks: Masks) -> Sequence[int]:
    """Return the places of an I or U row that were not captured: nulls under clear bits."""
    changed = masks.changed
    if changed is None or len(masks.places) == len(values) or None not in values:
        return ()
    return [i for i, value in enumerate(values) if value is None and not changed[i]]


def absent_in_deletion(values: Sequence[Value], masks: Masks) -> Sequence[int]:
    """Return the places of a D row that were not captured: those with a clear bit, if none has a value."""
    if masks.changed is None or not masks.places:
        return ()
    clear = [i for i, bit in enumerate(masks.changed) if not bit]
    return () if any(values[i] is not None for i in clear) else clear


def insert(structure: Structure, values: Sequence[Value], absent: Sequence[int]) -> Parts:
    """Return the parts of an insert."""
    after = _without(values, absent)
    return structure.key_of(after), _fields(structure, repeat(ABSENT), after, absent)


def delete(structure: Structure, values: Sequence[Value], masks: Masks, absent: Sequence[int]) -> Parts:
    """Return the parts of a deletion, whose mask names the key if nothing else does."""
    before = _without(values, absent)
    key = structure.key_of(before)
    if not structure.key and masks.changed is not None:
        key = tuple([(structure.names[i], values[i]) for i in masks.places])
    return key, _fields(structure, before, repeat(ABSENT), absent)


def update(
    structure: Structure,
    values: Sequence[Value],
    changed: Sequence[int],
    absent: Sequence[int],
    before: list[Side],
    has_image: bool,
) -> Parts:
    """Return the parts of an update; `before` is the row in the image, else `unchanged`."""
    for i in changed:
        if before[i] is None and values[i] is None:
            before[i] = ABSENT
    if not absent:
        return structure.key_of(values), _fields(structure, before, values, absent)
    for i in absent:
        if before[i] is None or not has_image:
            before[i] = ABSENT
    after = _without(values, absent)
    key_side = _without(values, absent)
    for i in absent:
        key_side[i] = before[i]
    return structure.key_of(key_side), _fields(structure, before, after, absent)


def unchanged(values: Sequence[Value], masks: Masks, lobs: Sequence[bool]) -> list[Side]:
    """Return the row before an update without an image."""
    if masks.changed is None:
        return [ABSENT] * len(values)
    return [ABSENT if bit or lob else v for v, bit, lob in zip(values, masks.changed, lobs, strict=True)]


def _without(values: Sequence[Value], absent: Sequence[int]) -> list[Side]:
    row: list[Side] = list(values)
    for i in absent:
        row[i] = ABSENT
    return row


def _fields(structure: Structure, before: Any, after: Any, absent: Sequence[int]) -> tuple[Field, ...]:
    """Return the fields of columns; one that was captured on neither side is none."""
    fields = [_new(Field, cells) for cells in zip(structure.names, before, after, strict=False)]
    if absent:
        fields = [f for f in fields if f.before is not ABSENT or f.after is not ABSENT]
    return tuple(fields)
