"""Events of a known shape: constants with gaps, filled in one join.

An event's text depends on its values only where they are. Events whose changes have the same operation, table
and columns differ in their gaps alone. The plain writer makes the constants, from a change whose values are
marks. Only text is filled in this way; everything else goes to that writer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import eq

from eventlog.core.change import ABSENT, Change, Field, Side
from eventlog.core.errors import IllegalCharacter
from eventlog.xds.text import content

_MARK, _MARK_AFTER = "\ue000", "\ue001"  # of private use: legal in XML, not touched by escaping, and unequal
_BETWEEN = "`"  # rare, printable and of one byte; a text that holds it goes the plain way
_MAX_SHAPES = 10_000

Assemble = Callable[[Change, str], str]
Shape = tuple[object, ...]


class Shapes:
    """The shapes seen so far, each with its constants; none for one that cannot be filled."""

    def __init__(self, assemble: Assemble, takes_text: Callable[[Change], bool]) -> None:
        self._assemble = assemble
        self._takes_text = takes_text
        self._shapes: dict[Shape, list[str]] = {}

    def fill(self, change: Change, event_id: str) -> str:
        """Return the event of a change whose values are texts; empty if only the plain writer can make it."""
        op, schema, table, _, fields, _, _, _, _, current, extra, _ = change
        if not fields or not extra or extra[-1][0] != "table_key" or '"' in event_id:
            return ""
        columns, before, after = zip(*fields)  # noqa: B905 - a field has three members
        replaced = before.count(ABSENT)
        sides = after if replaced else before + after
        nulls = None if None not in sides else tuple([side is None for side in sides])
        shape = (op, schema, table, current, replaced, columns, nulls)
        pieces = self._shapes.get(shape)
        if pieces is None:
            pieces = self._learn(shape, change)
        if not pieces:
            return ""
        if not replaced:
            if any(map(eq, before, after)):
                return ""
            sides = tuple(chain.from_iterable(zip(before, after)))  # noqa: B905
        if nulls is not None:
            sides = tuple([side for side in sides if side is not None])
        try:
            texts = content(_BETWEEN.join((event_id, str(extra[-1][1]), *sides))).split(_BETWEEN)
        except (TypeError, IllegalCharacter):  # no text, or not legal in XML: the plain writer reports it
            return ""
        if len(texts) * 2 != len(pieces) - 1:
            return ""
        filled = pieces[:]
        filled[1::2] = texts
        return "".join(filled)

    def _learn(self, shape: Shape, change: Change) -> list[str]:
        """Learn the text of the shape from the plain writer, cut at its values."""
        if len(self._shapes) >= _MAX_SHAPES:
            self._shapes.clear()
        pieces: list[str] = []
        before = {field.before is ABSENT for field in change.fields}
        if len(before) == 1 and self._takes_text(change):
            marked = [
                Field(f.column, _mark(f.before, _MARK), _mark(f.after, _MARK_AFTER)) for f in change.fields
            ]
            extra = (("table_key", _MARK),)
            text = self._assemble(change._replace(fields=tuple(marked), extra=extra), _MARK)
            values = sum(side is not None and side is not ABSENT for f in change.fields for side in f[1:])
            constants = text.replace(_MARK_AFTER, _MARK).split(_MARK)
            if len(constants) == values + 3:
                pieces = [piece for constant in constants for piece in (constant, "")][:-1]
        self._shapes[shape] = pieces
        return pieces


def _mark(side: Side, mark: str) -> Side:
    return side if side is ABSENT or side is None else mark
