"""The answer for an object whose current row the database refuses to tell: a reason in the place of cells."""

from __future__ import annotations

from eventlog.core.errors import WrongRow
from eventlog.fold import CurrentRow

_CELLS = 64  # more than are ever filled in, so that the object goes the plain way
_MARK = "\0untold"  # NUL cannot stand in a value, so no real row ends like this


def unreadable_row(reason: str) -> CurrentRow:
    """What stands in the place of the cells."""
    return (reason, *[None] * _CELLS, _MARK)


def fault_of(cells: CurrentRow) -> WrongRow | None:
    """Why the row cannot be told, if that is so."""
    told = len(cells) != _CELLS + 2 or cells[-1] != _MARK
    return None if told else WrongRow(cells[0] or "")
