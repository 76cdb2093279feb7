"""A reader of messages, which needs the metadata messages that describe them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.extras import MissingExtra
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Table, Tables
from eventlog.formats.qlik import avro, envelope, metadata
from eventlog.formats.qlik.change_tables import read_structure, table_name
from eventlog.formats.qlik.envelope import Body, InvalidMessage, UnnamedTable
from eventlog.formats.qlik.mask import MaskEvidence, MaskOrder, WrongMaskOrder
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.metadata_index import Description, MetadataIndex
from eventlog.formats.qlik.records import RecordReader
from eventlog.formats.qlik.structure import Structure, check_width, keyed, structure_of


def with_key(table_metadata: Metadata, schema: str) -> Metadata:
    """Return the metadata of a table with the key that a schema of keys states, if it has all its columns."""
    return replace(table_metadata, structure=keyed(table_metadata.structure, metadata.names_of(schema)))


class RegisteredSchemas:
    """The metadata by the ids of schemas."""

    def __init__(self, schema_of: Callable[[int], str] | None, published: Iterable[Metadata] = ()) -> None:
        self._schema_of = schema_of
        numbered = ((metadata.number_of(message.schema_id), message) for message in published)
        self._metadata_by_id = {number: message for number, message in numbered if number is not None}
        self._keys: set[tuple[int, int]] = set()  # schemas of messages and of keys that belong together

    def metadata_of(self, number: int) -> Metadata:
        """Return the metadata in the schema of a message."""
        table_metadata = self._metadata_by_id.get(number)
        if table_metadata is None:
            table_metadata = metadata.read_registered(number, self._schema(number))
            self._metadata_by_id[number] = table_metadata
        return table_metadata

    def learn_key(self, message: bytes, key: bytes) -> bool:
        """Take the key of a table from the key of its message, because no schema of messages has it.

        Return whether that was new.
        """
        if not (avro.is_framed(message) and avro.is_framed(key)):
            return False
        numbers = avro.unframe(message)[0], avro.unframe(key)[0]
        if numbers in self._keys:
            return False
        self._metadata_by_id[numbers[0]] = with_key(self.metadata_of(numbers[0]), self._schema(numbers[1]))
        self._keys.add(numbers)
        return True

    def _schema(self, number: int) -> str:
        if self._schema_of is None:
            raise InvalidMessage(f"schema {number} is in a registry: name it with schema-registry")
        return self._schema_of(number)


_MAX_READERS = 1_000


class MessageReader:
    """Reads messages, and keeps the metadata that they need."""

    def __init__(self, tables: Tables, settings: MessageSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._order = None if settings.mask_order == "auto" else MaskOrder(settings.mask_order)
        self.evidence = MaskEvidence()
        self._only = next(iter(tables)) if len(tables) == 1 else None
        self._topic = settings.table
        self._doubts: dict[tuple[str, str], bool] = {}  # of tables, and whether they are to be reported
        self._readers: dict[object, RecordReader] = {}
        self.version = 0  # which changes with the readers of messages
        self._index = MetadataIndex(settings.published)
        self.metadata_by_id = self._index.by_id
        self._registered = RegisteredSchemas(settings.schema_of, settings.published)

    @property
    def last_metadata(self) -> Metadata:
        """Return the metadata that were read last."""
        return next(reversed(self.metadata_by_id.values()))

    def set_newest(self, published: Iterable[Metadata]) -> None:
        """Take these metadata as all that were read before, for messages without an id."""
        if self._index.set_newest(published):
            self._clear_readers()

    def run(self, sources: Iterable[Source[Object]]) -> Iterator[Change | Refused]:
        """Yield the changes, and what was refused, in the order of the messages."""
        until = self._settings.until
        for source in sources:
            for record in source.records:
                change = record if isinstance(record, Refused) else self.read_record(source, record)
                if isinstance(change, Refused):
                    yield change
                yield from self.notices()
                if isinstance(change, Change) and (not until or (change.position or "") <= until):
                    yield change

    def read_record(self, source: Source[Object], record: Object) -> Change | Refused | None:
        """Return the change of a message of this source, whose name may be that of the table.

        Return None for metadata, Refused for what cannot be read.
        """
        try:
            return self._read_of(source, record)
        except MissingExtra:
            raise
        except WrongMaskOrder as fault:
            raise WrongMaskOrder(f"{source.at(record.where)}: {fault}") from None
        except EventlogError as fault:
            return Refused(source.at(record.where), str(fault), record.raw)

    def body_with_reader(self, source: Source[Object], value: Any) -> tuple[Body, RecordReader] | None:
        """Return the body of a data message with the reader of its kind; None for what has none."""
        self._set_topic(source)
        try:
            body = self._body(value) if envelope.read(value)[0] == "DT" else None
            data = None if body is None else body.data or body.before
            return None if body is None or data is None else (body, self._reader_of(body, data))
        except (EventlogError, TypeError, KeyError, AttributeError):
            return None  # reported when it is read

    def read_by(self, reader: RecordReader, value: Any) -> Change:
        """Return the change of a data message by a reader that it had."""
        body = self._body(value)
        assert body is not None
        return self._change_by(reader, body)

    def _set_topic(self, source: Source[Object]) -> None:
        if self._settings.table_of_topic:
            self._topic = source.stem

    def _read_of(self, source: Source[Object], record: Object) -> Change | None:
        self._set_topic(source)
        value = envelope.binary(record.value)
        if record.key is not None and type(value) is bytes and self._registered.learn_key(value, record.key):
            self._clear_readers()
        return self.read(value)

    @staticmethod
    def is_metadata(value: Any) -> bool:
        """Return whether a message is marked as metadata, or has their fields."""
        if isinstance(value, dict):
            return value.get("type") == "MD" or envelope.is_bare_metadata(value)
        message = envelope.binary(value)
        return type(message) is bytes and message.startswith(avro.METADATA)

    def awaits(self, value: Any) -> str | None:
        """Return the id of the metadata that a message needs and that were not read yet; else None."""
        if isinstance(value, dict):
            ids = envelope.ids_of(value)
            return ids[0] if ids and ids[0] not in self.metadata_by_id else None
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
        return None if named in self.metadata_by_id else named

    def read(self, value: Any) -> Change | None:
        """Return the change of one message; None for a metadata message."""
        if value is None:
            raise InvalidMessage("a message without a value")
        body = self._body_of_avro(value) if type(value) is bytes else self._body(value)
        if body is None:
            return None
        data = body.data or body.before
        if data is None:
            raise InvalidMessage("neither data nor beforeData holds the row")
        try:
            return self._change_by(self._reader_of(body, data), body)
        except (TypeError, KeyError, AttributeError) as fault:
            raise InvalidMessage(f"it has not the form of one: {type(fault).__name__} {fault}") from fault

    def _change_by(self, reader: RecordReader, body: Body) -> Change:
        """Return the change of a message, and note what is doubtful even if it is refused."""
        try:
            return reader.change(body)
        finally:
            for doubt in reader.doubts:
                self._doubts.setdefault((str(reader.structure), doubt), True)
            reader.doubts.clear()

    def notices(self) -> Iterator[Refused]:
        """Report each table once whose masks have no metadata."""
        for doubt, is_unreported in self._doubts.items():
            if is_unreported:
                self._doubts[doubt] = False
                yield Refused(*doubt, fault=False)

    def _reader_of(self, body: Body, data: Mapping[str, Any]) -> RecordReader:
        """Return the reader for messages of this kind."""
        names = _names(body, data)
        kind = names if len(names) == len(data) else (names, len(data), tuple(body.before or ()))
        headers = body.headers
        ids = body.schema_id, headers.get("externalSchemaId")
        key = (*ids, body.schema, body.table, headers.get("table"), self._topic, kind)
        reader = self._readers.get(key)
        if reader is None:
            if len(self._readers) >= _MAX_READERS:
                self._clear_readers()
            reader = self._readers[key] = self._reader(body, names)
        return reader

    def _clear_readers(self) -> None:
        self.version += 1
        self._readers.clear()

    def _body(self, value: Any) -> Body | None:
        kind, schema_id, schema, message = envelope.read(value)
        if kind == "DT":
            body = envelope.body(message, schema_id)
            return body if body.table else envelope.named_outside(body, value.get("headers"))
        if kind != "MD":
            raise InvalidMessage(f"type {str(kind)[:40]!r} is neither MD nor DT")
        self._store_metadata(message, schema)
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
            self._store_metadata(avro.decode(avro.foreign(schema), inner), schema)
            return None
        if kind != "DT":
            raise InvalidMessage(f"type {kind[:40]!r} is neither MD nor DT")
        if schema is None:
            schema = self._schema(schema_id)
        body = envelope.body(avro.decode(avro.for_reading(schema), inner), schema_id)
        return envelope.named_outside(body, outer["headers"])

    def _schema(self, schema_id: str | None) -> str:
        table_metadata = self.metadata_by_id.get(schema_id or "")
        if table_metadata is None:
            raise InvalidMessage(
                f"schemaId {schema_id} is unknown: no metadata message before this one has it;"
                " read the metadata topic first"
            )
        return table_metadata.data_schema

    def _body_of_registry(self, number: int, record: bytes) -> Body:
        table_metadata = self._registered.metadata_of(number)
        self.metadata_by_id[table_metadata.schema_id] = table_metadata
        return envelope.body(
            avro.decode(avro.for_reading(table_metadata.data_schema), record), table_metadata.schema_id
        )

    def _store_metadata(self, message: Any, schema: str | None) -> None:
        if self._index.add(metadata.read(message, schema)):
            self._clear_readers()

    def _reader(self, body: Body, names: tuple[str, ...]) -> RecordReader:
        description, (schema, table) = self._description_and_table(body, names)
        described = description.metadata.structure if description.metadata else None
        message_structure = table_structure = read_structure(schema, table, names, self._tables, described)
        by_keys = described is None or bool(description.lack)
        if described is not None and not by_keys:
            table_structure = Structure(schema, table, described.columns)
        check_width(table_structure)
        self._report_structure(table_structure)
        row, orders = None, []
        if body.data and len(names) > len(body.data):
            row = message_structure.names[: len(body.data)]
        if by_keys:
            count = len(body.data or body.before or ())
            of_file = _order_of_file(self._tables.of(schema, table), message_structure.names, count)
            orders = [_order_of_image(body, message_structure, names), of_file]
        return RecordReader(
            table_structure,
            message_structure,
            names,
            self._order,
            self.evidence,
            self._settings.header_time_format,
            row,
            [order for order in orders if order is not None],
            by_keys=by_keys,
            lack=description.lack,
        )

    def _report_structure(self, structure: Structure) -> None:
        if self._settings.on_structure is not None:
            self._settings.on_structure(structure)

    def _description_and_table(
        self, body: Body, columns: Sequence[str]
    ) -> tuple[Description, tuple[str | None, str]]:
        """Return what describes a message, and its table: named by the message, else by the metadata, else
        by the settings.
        """
        ids, stated = _ids_of(body), _stated_table(body)
        if not stated[1]:
            stated = self._unstated_table(self._index.named(ids))
        return self._index.describe(ids, stated, columns), stated

    def _unstated_table(self, table_metadata: Metadata | None) -> tuple[str | None, str]:
        if table_metadata is not None and table_metadata.structure.table:
            return table_metadata.structure.schema, table_metadata.structure.table
        if self._topic:
            return table_name(self._topic, self._tables)
        if self._only is None:
            raise UnnamedTable
        return self._only.schema, self._only.name


def _stated_table(body: Body) -> tuple[str | None, str]:
    """Return the schema and table that a message or its headers name; empty names if none."""
    headers = body.headers
    for schema, table in ((body.schema, body.table), (headers.get("schema"), headers.get("table"))):
        if table:
            return (None if not schema else str(schema)), str(table)
    return None, ""


def _ids_of(body: Body) -> dict[str, str]:
    """Return the ids by which a message names its metadata, by their headers."""
    ids = {"messageSchemaId": body.schema_id, "externalSchemaId": body.headers.get("externalSchemaId")}
    return {header: str(schema_id) for header, schema_id in ids.items() if schema_id}


def _names(body: Body, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a message: those of its row, then any of an update that only beforeData holds."""
    names = tuple(data)
    if not body.before or tuple(body.before) == names or body.headers["operation"] != "UPDATE":
        return names
    return names + tuple(name for name in body.before if name not in data)


def _order_of_image(body: Body, structure: Structure, names: tuple[str, ...]) -> Structure | None:
    """Return the columns in the order of beforeData, if data have fewer of them in the same order."""
    data, image = tuple(body.data or ()), tuple(body.before or ())
    in_order = tuple(name for name in image if name in data) == data
    if not in_order or not len(data) < len(image) == len(names):
        return None
    columns = dict(zip(names, structure.columns, strict=True))
    return replace(structure, columns=tuple(columns[name] for name in image))


def _order_of_file(table: Table | None, names: Sequence[str], count: int) -> Structure | None:
    """Return the columns of the tables file if they are more than those of data, the first of the names.

    In another order they are not the ordinals of the message.
    """
    if table is None:
        return None
    structure = structure_of(table)
    places = [structure.index.get(name, -1) for name in names]
    in_order = all(first < second for first, second in pairwise(places[:count]))
    return structure if in_order and -1 not in places and count < len(structure.columns) else None
