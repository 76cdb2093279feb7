"""A reader of messages: their changes, by the metadata messages before them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.extras import MissingExtra
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.qlik import avro, envelope, metadata
from eventlog.qlik.envelope import Body, InvalidMessage, UnnamedTable
from eventlog.qlik.mask import MaskOrder
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.records import RecordReader
from eventlog.qlik.structure import DataColumn, Structure
from eventlog.qlik.tables import read_structure, table_name


def with_key(known: Metadata, schema: str) -> Metadata:
    """Return the metadata of a table, its key that of this schema of keys; unchanged if that names other
    columns.
    """
    names = metadata.names_of(schema)
    if not names or not set(names) <= set(known.structure.names):
        return known
    columns = tuple(
        replace(column, key_position=names.index(column.name) + 1 if column.name in names else 0)
        for column in known.structure.columns
    )
    return replace(known, structure=Structure(known.structure.schema, known.structure.table, columns))


class RegisteredSchemas:
    """The metadata by the ids of schemas."""

    def __init__(self, schema_of: Callable[[int], str] | None, known: Iterable[Metadata] = ()) -> None:
        self._ask = schema_of
        self._known = {
            number: one for one in known if (number := metadata.number_of(one.schema_id)) is not None
        }
        self._keys: set[tuple[int, int]] = set()  # schemas of messages and of keys that belong together

    def of(self, number: int) -> Metadata:
        """Return the metadata in the schema of a message."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = metadata.registered(number, self._schema(number))
        return known

    def learn_key(self, message: bytes, key: bytes) -> bool:
        """Take the key of a table from the key of its message, for no schema of messages has it; whether that
        was new."""
        if not (avro.is_framed(message) and avro.is_framed(key)):
            return False
        numbers = avro.unframe(message)[0], avro.unframe(key)[0]
        if numbers in self._keys:
            return False
        self._known[numbers[0]] = with_key(self.of(numbers[0]), self._schema(numbers[1]))
        self._keys.add(numbers)
        return True

    def _schema(self, number: int) -> str:
        if self._ask is None:
            raise InvalidMessage(f"schema {number} is in a registry: name it with schema-registry")
        return self._ask(number)


_MAX_READERS = 1_000
_MAX_KNOWN = 10_000


class MessageReader:
    """Reads messages, and knows the metadata that it has met."""

    def __init__(self, tables: Tables, settings: MessageSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._order = None if settings.mask_order == "auto" else MaskOrder(settings.mask_order)
        self._only = next(iter(tables)) if len(tables) == 1 else None
        self._topic = settings.table
        self._unproven: dict[str, bool] = {}  # tables, and whether that is still to be reported
        self._readers: dict[object, RecordReader] = {}
        self._nearest: dict[object, RecordReader] = {}
        self.known: dict[str, Metadata] = {m.schema_id: m for m in settings.published}
        self._registered = RegisteredSchemas(settings.schema_of, settings.published)

    def run(self, sources: Iterable[Source[Object]]) -> Iterator[Change | Refused]:
        """Yield the changes, and what was refused, in the order of the messages."""
        until = self._settings.until
        for source in sources:
            for record in source.records:
                if isinstance(record, Refused):
                    yield record
                    continue
                try:
                    change = self.read_of(source, record)
                except MissingExtra:
                    raise
                except EventlogError as fault:
                    yield Refused(source.at(record.where), str(fault), record.raw)
                    continue
                yield from self.notices()
                if change is not None and (not until or (change.position or "") <= until):
                    yield change

    def read_of(self, source: Source[Object], record: Object) -> Change | None:
        """Return the same of a message of this source, which may be called as its table is."""
        if self._settings.table_of_topic:
            self._topic = source.stem
        value = envelope.binary(record.value)
        if record.key is not None and type(value) is bytes and self._registered.learn_key(value, record.key):
            self._forget()
        return self.read(value)

    @staticmethod
    def is_metadata(value: Any) -> bool:
        """Return whether a message is marked as metadata."""
        if isinstance(value, dict):
            return value.get("type") == "MD"
        message = envelope.binary(value)
        return type(message) is bytes and message.startswith(avro.METADATA)

    def awaits(self, value: Any) -> str | None:
        """Return the id of the metadata that a message names, if these were not met yet, and may
        still come.
        """
        if isinstance(value, dict):
            schema_id = value.get("messageSchemaId")
            awaited = type(schema_id) is str and schema_id not in self.known and value.get("type") == "DT"
            return schema_id if awaited else None
        message = envelope.binary(value)
        if type(message) is not bytes or not message.startswith(avro.MAGIC):
            return None
        try:
            outer = avro.decode(avro.envelope(), message)
        except MissingExtra:
            raise
        except EventlogError:
            return None  # reported when it is read
        named = outer["messageSchemaId"] if outer["type"] == "DT" and outer["messageSchema"] is None else None
        return None if named in self.known else named

    def read(self, value: Any) -> Change | None:
        """Return the change of one message; None for a metadata message."""
        body = self._body_of_avro(value) if type(value) is bytes else self._body(value)
        if body is None:
            return None
        data = body.data or body.before
        if data is None:
            raise InvalidMessage("neither data nor beforeData holds the row")
        try:
            reader = self._reader_of(body, _names(body, data))
            change = reader.change(body)
        except (TypeError, KeyError, AttributeError) as fault:
            raise InvalidMessage(f"it has not the form of one: {type(fault).__name__} {fault}") from fault
        if reader.unproven:
            self._unproven.setdefault(str(reader.structure), True)
        return change

    def notices(self) -> Iterator[Refused]:
        """Report each table once whose masks do not prove their byte order."""
        for table, new in self._unproven.items():
            if new:
                self._unproven[table] = False
                said = "no columnMask proves the byte order of its masks: read as one number, big"
                yield Refused(table, f"{said} (set mask-order to little or big)", fault=False)

    def _reader_of(self, body: Body, names: tuple[str, ...]) -> RecordReader:
        """Return the reader for messages of this kind, mostly that of the last one of their table."""
        near = (body.schema_id, body.schema, body.table, body.headers.get("table"), self._topic)
        reader = self._nearest.get(near)
        if reader is None or reader.names != names:
            reader = self._readers.get((near, names))
            if reader is None:
                if len(self._readers) >= _MAX_READERS:
                    self._forget()
                reader = self._readers[near, names] = self._reader(body, names)
            self._nearest[near] = reader
        return reader

    def _forget(self) -> None:
        self._readers.clear()
        self._nearest.clear()

    def _body(self, value: Any) -> Body | None:
        kind, schema_id, schema, message = envelope.read(value)
        if kind == "DT":
            found = envelope.body(message, schema_id)
            return found if found.table else envelope.named_outside(found, value.get("headers"))
        if kind != "MD":
            raise InvalidMessage(f"type {str(kind)[:40]!r} is neither MD nor DT")
        self._learn(message, schema)
        return None

    def _body_of_avro(self, data: bytes) -> Body | None:
        if not data.startswith(avro.MAGIC):
            return self._body_of_registry(*avro.unframe(data))
        outer = avro.decode(avro.envelope(), data)
        kind, schema_id, schema, inner = (
            outer[k] for k in ("type", "messageSchemaId", "messageSchema", "message")
        )
        if kind == "MD":
            if schema is None:
                raise InvalidMessage("a metadata message without its messageSchema cannot be decoded")
            self._learn(avro.decode(avro.foreign(schema), inner), schema)
            return None
        if kind != "DT":
            raise InvalidMessage(f"type {kind[:40]!r} is neither MD nor DT")
        if schema is None:
            schema = self._schema(schema_id)
        found = envelope.body(avro.decode(avro.foreign(schema), inner), schema_id)
        return envelope.named_outside(found, outer["headers"])

    def _schema(self, schema_id: str | None) -> str:
        known = self.known.get(schema_id or "")
        if known is None:
            raise InvalidMessage(
                f"schemaId {schema_id} is unknown: no metadata message before this one has it;"
                " read the metadata topic first"
            )
        return known.data_schema

    def _body_of_registry(self, number: int, record: bytes) -> Body:
        known = self._registered.of(number)
        self.known[known.schema_id] = known
        return envelope.body(avro.decode(avro.foreign(known.data_schema), record), known.schema_id)

    def _learn(self, message: Any, schema: str | None) -> None:
        known = metadata.read(message, schema)
        if known != self.known.get(known.schema_id):
            self._forget()
        if len(self.known) >= _MAX_KNOWN:
            self.known.pop(next(iter(self.known)))
        self.known[known.schema_id] = known

    def _reader(self, body: Body, names: tuple[str, ...]) -> RecordReader:
        known = self.known.get(body.schema_id or "")
        schema, table = self._name(body, known)
        structure = known.structure if known else None
        own = read_structure(schema, table, names, self._tables, structure)
        if structure is None:
            self._tell(own)
            return RecordReader(own, own, self._order, self._settings.header_time_format)
        added = tuple(DataColumn(name) for name in names if name not in structure.index)
        whole = Structure(schema, table, structure.columns + added)
        self._tell(whole)
        if any(name not in whole.index for name in own.names):
            own = Structure(schema, table, tuple(whole.columns[whole.index[n]] for n in names))
        return RecordReader(whole, own, self._order, self._settings.header_time_format)

    def _tell(self, structure: Structure) -> None:
        if self._settings.heard is not None:
            self._settings.heard(structure)

    def _name(self, body: Body, known: Metadata | None) -> tuple[str | None, str]:
        """Return schema and table: from the message, its headers, its metadata, or the settings, in this
        order.
        """
        headers = body.headers
        for schema, table in ((body.schema, body.table), (headers.get("schema"), headers.get("table"))):
            if table:
                return (None if not schema else str(schema)), str(table)
        if known is not None and known.structure.table:
            return known.structure.schema, known.structure.table
        if self._topic:
            return table_name(self._topic, self._tables)
        if self._only is None:
            raise UnnamedTable
        return self._only.schema, self._only.name


def _names(body: Body, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a message: those of its row, then any of an update that only beforeData holds."""
    names = tuple(data)
    if not body.before or tuple(body.before) == names or body.headers["operation"] != "UPDATE":
        return names
    return names + tuple(name for name in body.before if name not in data)
