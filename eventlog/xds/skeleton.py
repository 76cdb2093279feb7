"""The constant texts of events, with slots for keys, ids and values.

The plain writer makes them, from changes whose values are marks. So a writer of many events fills the slots
without knowing any markup. XDS is one form of such events; another kind of documents may be one, too.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from eventlog.core.change import Change
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Kind
from eventlog.xds.documents import HEAD, TAIL
from eventlog.xds.text import attribute, content
from eventlog.xds.write import EventWriter, Render, Spell, renderer, spelling
from eventlog.xds.xds_settings import XdsSettings

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


@runtime_checkable
class EventForm(Protocol):
    """The form of the texts of events: whole, or as constant texts and what fills their slots."""

    @property
    def around(self) -> tuple[str, str]:
        """The texts around the events of a document."""

    @property
    def escapes(self) -> Sequence[tuple[str, str]]:
        """The characters that values hold otherwise, besides controls."""

    def write(self, change: Change, event_id: str) -> str:
        """Return the text of an event; empty for a modify that changes nothing."""

    def element(self, change: Change) -> str:
        """Return the name of the change's element in XDS."""

    def frame(self, element: str, change: Change) -> Frame:
        """Return the frame of the events of the change's table that have this element."""

    def body(self, element: str, change: Change) -> tuple[str, ...]:
        """Return what the change's fields, whose values are marks, add: texts, and marks between them."""

    def key_constants(self, change: Change) -> Sequence[str] | None:
        """Return the texts around the values of a key, one more than values. None means the key as it is; no
        texts, that its values cannot be copied.
        """

    def treatment(self, column: Column | None) -> Treatment:
        """Return the treatment of a column's values."""

    def renderer(self, column: Column, table: Table | None, written: str) -> Render:
        """Return how a column's values are rendered in events with this spelling of its table's name."""

    def event_id(self, text: str) -> str:
        """Return the beginning of an event-id as an event contains it."""

    def content(self, text: str) -> str:
        """Return a value's text as an event contains it; raise EventlogError if that is impossible."""


class Skeletons:
    """The form of events that XDS is."""

    around = HEAD, TAIL
    escapes = ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")
    treatment = staticmethod(treatment)
    event_id = staticmethod(attribute)
    content = staticmethod(content)

    def __init__(self, tables: Tables, settings: XdsSettings) -> None:
        self._tables = tables
        self._time_syntax = settings.time_syntax
        self._writer = EventWriter(tables, settings, _slot)
        plain_writer = EventWriter(tables, settings)
        self.write, self.element = plain_writer.write, plain_writer.element

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

    def key_constants(self, change: Change) -> Sequence[str] | None:
        """Return None, because an association holds the key as it is."""
        return None

    def renderer(self, column: Column, table: Table | None, written: str) -> Render:
        """Return how a column's values are rendered in events with this spelling of its table's name."""
        return renderer(column, self._tables, self._time_syntax, spelling(self._tables, table, written))


def _slot(column: Column | None, tables: Tables, time_syntax: int, spell: Spell) -> Render:
    how = treatment(column)
    if how is Treatment.ELEMENT:
        return str
    type_name = "int" if how is Treatment.INT else "string"
    return lambda mark: f'<value type="{type_name}">{mark!s}</value>'
