"""The constant texts of events, with slots for keys, ids and values.

The plain writer makes them, from changes whose values are marks. So a writer of many events fills the slots
without knowing any markup.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column, Tables
from eventlog.core.values import Kind
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter, Render, Spell

_MARK = "\ue000"  # of private use: legal in XML, and not touched by escaping
BEFORE, AFTER = "\ue001", "\ue002"  # marks of a field's sides
_SIDES = re.compile(f"([{BEFORE}{AFTER}])")
MARKS = frozenset((_MARK, BEFORE, AFTER))


class Treatment(enum.IntEnum):
    """The way in which the text of a value becomes the text in a slot."""

    TEXT = 0  # escaped
    PADDED = 1  # without the blanks at its end, escaped
    INT = 2  # as it is
    ELEMENT = 3  # its whole element, rendered one by one


class Frame(NamedTuple):
    """The texts around the body of an event."""

    before_id: str
    before_key: str
    before_body: str
    after_body: str


def treatment(column: Column | None) -> Treatment:
    """Return the treatment of a column; a column without a description is text."""
    if column is None:
        return Treatment.TEXT
    if column.reference is not None:
        return Treatment.ELEMENT
    return _TREATMENTS.get(column.kind, Treatment.ELEMENT)


_TREATMENTS = {Kind.STRING: Treatment.TEXT, Kind.PADDED: Treatment.PADDED, Kind.INT: Treatment.INT}


class Skeletons:
    """Writes the skeletons of events of some tables."""

    def __init__(self, tables: Tables, settings: XdsSettings) -> None:
        self._writer = EventWriter(tables, settings, _slot)

    def frame(self, element: str, change: Change) -> Frame:
        """Return the frame of the events of the change's table that have this element."""
        marked = change._replace(extra=(("table_key", _MARK),))
        texts = self._writer.around(element, marked, _MARK, _MARK).split(_MARK)
        if len(texts) != len(Frame._fields):
            raise NotExpressible(f"a name of {change.table} holds a mark")
        return Frame(*texts)

    def body(self, element: str, change: Change) -> tuple[str, ...]:
        """Return what the change's fields, whose values are marks, add: texts, and marks between them."""
        return tuple(text for text in _SIDES.split(self._writer.body(element, change)) if text)


def _slot(column: Column | None, tables: Tables, time_syntax: int, spell: Spell) -> Render:
    """Return how a column's marks are rendered."""
    how = treatment(column)
    if how is Treatment.ELEMENT:
        return str
    type_name = "int" if how is Treatment.INT else "string"
    return lambda mark: f'<value type="{type_name}">{mark!s}</value>'
