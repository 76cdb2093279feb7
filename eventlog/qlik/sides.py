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
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Side, Value

Sides = tuple[Sequence[Side], Sequence[Side]]  # before and after


class Masks(NamedTuple):
    """The bits of the masks of a row for its columns."""

    changed: tuple[bool, ...] | None = None  # None: there is no mask
    places: tuple[int, ...] = ()  # of the changed columns
    captured: tuple[bool, ...] | None = None  # None: all columns


# --- change tables


def inserted(values: Sequence[Value], masks: Masks) -> Sequence[Side]:
    """Return the row after an I row, and after a U row without a B row."""
    if masks.changed is None or len(masks.places) == len(values) or None not in values:
        return values
    return [v if bit or v is not None else ABSENT for v, bit in zip(values, masks.changed, strict=True)]


def deleted(values: Sequence[Value], masks: Masks) -> Sequence[Side]:
    """Return the row before a D row."""
    if masks.changed is None or not masks.places:
        return values
    if any(v is not None for v, bit in zip(values, masks.changed, strict=True) if not bit):
        return values
    return [v if bit else ABSENT for v, bit in zip(values, masks.changed, strict=True)]


def updated(values: Sequence[Value], masks: Masks) -> Sides:
    """Return both sides of a U row with a mask and without a B row."""
    assert masks.changed is not None
    before = [ABSENT if bit or v is None else v for v, bit in zip(values, masks.changed, strict=True)]
    return before, inserted(values, masks)


def updated_with_image(
    values: Sequence[Value],
    masks: Masks,
    image: Sequence[Any],
    key: Container[int],
    convert: Callable[[int, Any], Value],
) -> Sides:
    """Return both sides of a U row with a mask and a B row; only its cells that may differ are converted."""
    assert masks.changed is not None
    before: list[Side] = list(values)
    after: Sequence[Side] = values
    for i in masks.places:
        old_value = ABSENT if image[i] is ABSENT else convert(i, image[i])
        before[i] = ABSENT if old_value is None and values[i] is None else old_value
    if None in values:
        after = list(values)
        for i, value in enumerate(values):
            if value is not None or masks.changed[i]:
                continue
            if image[i] is not None and image[i] is not ABSENT:
                before[i], after[i] = convert(i, image[i]), ABSENT
            elif i not in key:
                before[i] = after[i] = ABSENT
    return before, after


# --- messages


def captured(values: Sequence[Value], masks: Masks) -> Sequence[Side]:
    """Return the captured part of a row."""
    if masks.captured is None:
        return values
    return [v if bit else ABSENT for v, bit in zip(values, masks.captured, strict=True)]


def unchanged(values: Sequence[Value], masks: Masks, lobs: Sequence[bool]) -> list[Side]:
    """Return the row before an update without beforeData."""
    if masks.changed is None:
        return [ABSENT] * len(values)
    return [ABSENT if bit or lob else v for v, bit, lob in zip(values, masks.changed, lobs, strict=True)]


def updated_message(
    values: Sequence[Value],
    masks: Masks,
    before: list[Side],
    in_image: Sequence[bool],
    has_image: bool,
    lobs: Sequence[bool],
) -> Sides:
    """Return both sides of an update.

    `before` is the row in beforeData, else `unchanged`; `in_image` shows which columns beforeData has, if
    not all.
    """
    if masks.captured is None and not in_image:
        for i in masks.places:
            if before[i] is None and values[i] is None:
                before[i] = ABSENT
        return before, values
    after: list[Side] = list(values)
    by_mask = unchanged(values, masks, lobs)
    for i, is_captured in enumerate(masks.captured or repeat(True, len(values))):
        if not is_captured:
            after[i] = ABSENT
            before[i] = ABSENT if before[i] is None or not has_image else before[i]
        elif in_image and not in_image[i]:
            before[i] = by_mask[i]
        elif before[i] is None and values[i] is None and masks.changed is not None and masks.changed[i]:
            before[i] = ABSENT
    return before, after
