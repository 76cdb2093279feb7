"""Parts of the pending rows that one statement reads."""

from __future__ import annotations

from typing import Any, NamedTuple

LOWEST, HIGHEST = -(2**63), 2**63 - 1  # record_ids
ENDS = {"after_row": "after", "up_to_row": "upto"}  # conditions, and the values that they compare with


class Lane(NamedTuple):
    """A part of the pending rows: conditions of the pick-up, their values, and the relation that is read."""

    conditions: tuple[str, ...]
    values: dict[str, Any]
    rows: str = "every_row"
    new: str = "pending"  # the condition that selects pending rows


def between(after: int | None = None, upto: int | None = None) -> Lane:
    """Return the lane of the rows after one row, up to another."""
    bounds = {name: end for name, end in zip(ENDS, (after, upto), strict=True) if end is not None}
    return Lane(tuple(bounds), {ENDS[name]: end for name, end in bounds.items()})
