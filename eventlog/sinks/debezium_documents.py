"""Events as messages of Debezium: the row as it is now (op r), or a delete by its key (op d).

The text of an event is the message with two tabs around the names of its table and two around its key,
which JSON allows as white space.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from eventlog.core.change import ABSENT, Change, Key, Op
from eventlog.core.errors import Misuse, NotExpressible
from eventlog.core.tables import LOST, Column, Table, Tables
from eventlog.core.values import Kind, check_xml
from eventlog.formats.debezium.types import UNTYPED, TypeChoices, ValueType, type_of_column
from eventlog.formats.debezium.writer import dump_side
from eventlog.sinks.document_kinds import DocumentKind, KafkaRecord
from eventlog.sinks.sink import Item
from eventlog.xds.skeleton import AFTER, Frame, Treatment
from eventlog.xds.write import Render, Spell, spelling

_TAB = "\t"
_MAX_TABLES = 10_000  # whose shapes are remembered
_DELETE = '{"op":"d"'
_OPS = {"add": "r", "delete": "d"}  # by element
_NOT_IN_TOPIC = re.compile(r"[^a-zA-Z0-9._-]")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class PresentRowWriter:
    """Writes messages of the present rows of tables; an EventForm."""

    around = "", ""
    escapes = ("\\", "\\\\"), ('"', '\\"'), ("\t", "\\t")

    def __init__(self, tables: Tables, topic_prefix: str) -> None:
        self._tables = tables
        self._topic_prefix = topic_prefix
        self._shapes: dict[tuple[str | None, str], _RowShape] = {}

    def write(self, change: Change, event_id: str) -> str:
        """Return the message of a change."""
        element, shape = self.element(change), self._shape(change)
        before_id, before_key, before_body, after_body = shape.frame(_OPS[element])
        body = shape.row(change) if element == "add" else ""
        start = f"{before_id}{self.event_id(event_id)}{before_key}"
        return f"{start}{shape.pairs(change.key)}{before_body}{body}{after_body}"

    def element(self, change: Change) -> str:
        """Return the name of the element that the change is in XDS."""
        return "delete" if change.op is Op.DELETE else "add"

    def frame(self, element: str, change: Change) -> Frame:
        """Return the frame of the messages of the change's table that are of this element."""
        return self._shape(change).frame(_OPS[element])

    def body(self, element: str, change: Change) -> tuple[str, ...]:
        """Return the members of columns whose values are marks, with the marks between them."""
        return tuple(
            part for column, _, after in change.fields for part in self._shape(change).slots(column, after)
        )

    def key_constants(self, change: Change) -> Sequence[str]:
        """Return the texts around the values of a key; none if a value is not copied."""
        return self._shape(change).key_constants(change.key)

    def treatment(self, column: Column | None) -> Treatment:
        """Return the treatment of a column's values."""
        return Treatment.TEXT if column is None else _treatment(column, _type_of(column))

    def renderer(self, column: Column, table: Table | None, written: str) -> Render:
        """Return how a column's values are rendered."""
        value_type = _type_of(column)
        return lambda value: _encode(dump_side(column.name, value, value_type))

    def event_id(self, text: str) -> str:
        """Return the beginning of an event-id as a message contains it."""
        return _encode(text)[1:-1]

    def content(self, text: str) -> str:
        """Return a text as a message contains it."""
        return _encode(check_xml(text))[1:-1]

    def _shape(self, change: Change) -> _RowShape:
        table = change.schema, change.table
        shape = self._shapes.get(table)
        if shape is None:
            if len(self._shapes) >= _MAX_TABLES:
                self._shapes.clear()
            shape = self._shapes[table] = _RowShape(self._tables, *table, self._topic_prefix)
        return shape


class _RowShape:
    """The names and types of one table's columns, and the frames of its messages."""

    def __init__(self, tables: Tables, schema: str | None, name: str, topic_prefix: str) -> None:
        self._table = tables.of(schema, name)
        self._names = (schema, name, topic_prefix)
        self._spell: Spell = spelling(tables, self._table, name)
        columns = {} if self._table is None else self._table.columns
        self._types = {name: _type_of(column) for name, column in columns.items()}
        self._frames: dict[str, Frame] = {}

    def frame(self, op: str) -> Frame:
        """Return the texts around the event-id, the key and the further columns of a message."""
        if op not in self._frames:
            self._frames[op] = self._make_frame(op)
        return self._frames[op]

    def _make_frame(self, op: str) -> Frame:
        """Return a new frame; raise NotExpressible if the table has a column that no present row shows."""
        is_delete = op == "d"
        if self._table is not None and not is_delete:
            _check_readable(self._table)
        schema, name, topic_prefix = self._names
        snapshot = "false" if is_delete else "incremental"  # as Debezium calls rows read among changes
        source = {
            "version": "1",
            "connector": "eventlog",
            "name": topic_prefix,
            "snapshot": snapshot,
            "db": "",
        }
        names = _encode({"schema": schema, "table": name})[1:-1]
        side, empty_side = ("before", "after") if is_delete else ("after", "before")
        start = f'{{"op":"{op}","{empty_side}":null,"source":{_encode(source)[:-1]},{_TAB}{names}{_TAB}'
        return Frame(f'{start},"position":"', f'"}},"{side}":{{{_TAB}', _TAB, "}}\n")

    def pairs(self, key: Key) -> str:
        """Return the members of a key."""
        return ",".join(self._member(column, value) for column, value in key)

    def row(self, change: Change) -> str:
        """Return the members of the other columns, each after a comma; NotExpressible if one is missing."""
        if self._table is None or len(change.fields) != len(self._table.data):
            raise NotExpressible("a part of a row, which was cut by max-changes, is no message")
        return "".join(f",{self._member(column, after)}" for column, _, after in change.fields)

    def slots(self, column: str, side: Any) -> tuple[str, ...]:
        """Return the member of a column whose value is a mark or null, after a comma."""
        name = f",{_encode(self._spell(column))}:"
        if side != AFTER:
            return (f"{name}null",)
        is_text = self._treatment(column) in (Treatment.TEXT, Treatment.PADDED)
        return (f'{name}"', AFTER, '"') if is_text else (name, AFTER)

    def key_constants(self, key: Key) -> Sequence[str]:
        """Return the texts around the values of a key; none if a value is not copied."""
        if any(self._treatment(column) not in _QUOTES for column, _ in key):
            return ()
        quotes = [_QUOTES[self._treatment(column)] for column, _ in key]
        names = [f"{_encode(self._spell(column))}:" for column, _ in key]
        between = [
            f"{before},{name}{quote}"
            for before, name, quote in zip(quotes, names[1:], quotes[1:], strict=False)
        ]
        return (names[0] + quotes[0], *between, quotes[-1])

    def _treatment(self, column: str) -> Treatment:
        described = None if self._table is None else self._table.column(column)
        return Treatment.TEXT if described is None else _treatment(described, self._types[described.name])

    def _member(self, column: str, side: Any) -> str:
        if side is ABSENT:
            raise NotExpressible(f"column {column} of the row after the change is not known")
        described = None if self._table is None else self._table.column(column)
        value_type = UNTYPED if described is None else self._types[described.name]
        return f"{_encode(self._spell(column))}:{_encode(dump_side(column, side, value_type))}"


_QUOTES = {Treatment.TEXT: '"', Treatment.INT: ""}  # around values that are copied
_CHOICES = TypeChoices()


def _type_of(column: Column) -> ValueType:
    return type_of_column(column, _CHOICES)


def _treatment(column: Column, value_type: ValueType) -> Treatment:
    """Return the treatment of a column's values: those that JSON writes as they are need no rendering."""
    name = value_type.schema.get("name", value_type.schema.get("type"))
    if column.kind is Kind.INT and name in ("int16", "int32", "int64"):
        return Treatment.INT
    if name == "string" and column.kind in (Kind.STRING, Kind.PADDED):
        return Treatment.PADDED if column.kind is Kind.PADDED else Treatment.TEXT
    return Treatment.ELEMENT


def _check_readable(table: Table) -> None:
    for column in table.columns.values():
        if column.leaves and column.unread not in ("", LOST):
            raise NotExpressible(
                f"column {column.name} of {table} {column.unread}, so no row would be whole: withhold it"
            )


def _parts(item: Item) -> list[str]:
    """Return an event's text up to the names, the names, up to the key, the key, and after it."""
    return item.text.rstrip("\n").split(_TAB)


def _request(items: Sequence[Item]) -> tuple[dict[str, str], bytes]:
    (item,) = items
    return {"Content-Type": "application/json"}, "".join(_parts(item)).encode()


def _records(item: Item) -> Sequence[KafkaRecord]:
    """Return the message of an event, and a tombstone after a delete, in the topic of its table."""
    parts = _parts(item)
    key, topic, headers = f"{{{parts[3]}}}".encode(), _topic(parts[1]), {"event-id": item.event_id}
    message = KafkaRecord(key, "".join(parts).encode(), headers, topic)
    if not item.text.startswith(_DELETE):
        return (message,)
    return message, KafkaRecord(key, None, headers, topic)


@lru_cache(1000)
def _topic(names: str) -> str:
    """Return the end of the topic of a table, by its names in a message."""
    return _topic_of(*json.loads(f"{{{names}}}").values())


def _topic_of(schema: str | None, name: str) -> str:
    """Return the end of the topic of a table, as Debezium writes it."""
    return "".join("." + _NOT_IN_TOPIC.sub("_", part) for part in (schema, name) if part)


def _check_topics(tables: Tables) -> None:
    """Raise Misuse if two tables have the same topic, because their names differ in what no topic has."""
    tables_by_topic: dict[str, Table] = {}
    for table in tables:
        topic = _topic_of(table.schema, table.name)
        first = tables_by_topic.setdefault(topic, table)
        if first is not table:
            raise Misuse(
                f"the messages of {first} and {table} have one topic, whose name ends with {topic}: publish"
                " one of them by another publisher, with another kafka-topic, or rename it"
            )


def _writer(tables: Tables, settings: Mapping[str, Any]) -> PresentRowWriter:
    if settings.get("sink") == "kafka":
        _check_topics(tables)
    return PresentRowWriter(tables, str(settings.get("kafka_topic") or "eventlog"))


KINDS = {"debezium": DocumentKind(_request, _records, writer=_writer)}
