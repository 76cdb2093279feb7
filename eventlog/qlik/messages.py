"""Messages of a Kafka target: an envelope each, with the structure of a table or with one change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Misuse, NotExpressible, Refused
from eventlog.core.extras import MissingExtra
from eventlog.core.formats import Format, Object, Shape, Source
from eventlog.core.settings import setting
from eventlog.core.tables import Tables
from eventlog.qlik import avro, envelope, metadata, sequence, transactions
from eventlog.qlik.envelope import Body, InvalidMessage
from eventlog.qlik.mask import Order
from eventlog.qlik.memory import Memory, goes_on, remembered
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.numbering import Numbered, number, utc_millis, without_no_ops
from eventlog.qlik.records import RecordReader, RecordWriter, Style
from eventlog.qlik.registered import Registered
from eventlog.qlik.structure import Column, Structure, observe, shown, structure_of
from eventlog.qlik.tables import read_structure, table_name

Message = dict[str, Any] | bytes
_MAX_KNOWN = 10_000
_MAX_READERS = 1_000


@dataclass(frozen=True, slots=True)
class MessageSettings:
    table: str = setting("", "the table of messages that name none; for Kafka the topic")
    encoding: str = setting("json", "how messages are encoded", choices=("json", "avro"))
    framing: str = setting(
        "envelope", "what Avro messages stand in: Replicate's envelope, or Confluent's wire format",
        choices=("envelope", "confluent"),
    )  # fmt: skip
    logical_types: bool = setting(False, "write dates, times and decimals as logical types of Avro")
    mask_order: str = setting(
        "auto",
        "byte order of the masks; auto reads the one that columnMask proves, and writes one number, big",
        choices=("auto", "little", "big"),
    )
    table_names: str = setting(
        "message", "where schema and table are written", choices=("message", "headers", "off")
    )
    metadata: bool = setting(True, "write metadata messages, and their ids into data messages")
    external_schema_id: bool = setting(False, "write the header externalSchemaId")
    before_images: bool = setting(True, "write beforeData on updates")
    no_op_updates: str = setting(
        "write",
        "updates that are known to change nothing: written or dropped",
        choices=("write", "drop"),
    )
    whole_transactions: bool = setting(False, "read only complete transactions, each change once")
    until: str = setting("", "read to this change_seq, and no further", metavar="SEQ")
    server: str = setting("", "the name of the server in metadata messages")
    task: str = setting("", "the name of the task in metadata messages")
    last_sequence: str = setting(sequence.START, "the change_seq to continue after", metavar="SEQ")
    now: str = setting("", "the time of metadata messages, and of changes that have none", metavar="TIME")
    published: tuple[Metadata, ...] = ()  # what was written or read before, in its order
    memory: Memory | None = None  # what a writer goes on from, and keeps up to date
    table_of_topic: bool = False  # a source is named as its table is, if its messages name none
    schema_of: Callable[[int], str] | None = None  # of a registry, by id
    register: Callable[[str, str], int] | None = None  # at a registry: table and schema, for an id
    register_key: Callable[[str, str], int] | None = None  # likewise, the schema of its keys


# --- reading


def read(
    sources: Iterable[Source[Object]], tables: Tables, settings: MessageSettings
) -> Iterator[Change | Refused]:
    """The changes that messages state; metadata messages say how to read those behind them."""
    if settings.until:
        sequence.check(settings.until)
    changes = MessageReader(tables, settings).run(sources)
    return transactions.whole(changes) if settings.whole_transactions else changes


class MessageReader:
    """Reads messages, and knows the metadata that it has met."""

    def __init__(self, tables: Tables, settings: MessageSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._order = None if settings.mask_order == "auto" else Order(settings.mask_order)
        self._only = next(iter(tables)) if len(tables) == 1 else None
        self._topic = settings.table
        self._readers: dict[object, RecordReader] = {}
        self._nearest: dict[object, RecordReader] = {}
        self.known: dict[str, Metadata] = {m.schema_id: m for m in settings.published}
        self._registered = Registered(settings.schema_of)

    def run(self, sources: Iterable[Source[Object]]) -> Iterator[Change | Refused]:
        """The changes, and what was refused, in the order of the messages."""
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
                if change is not None and (not until or (change.position or "") <= until):
                    yield change

    def read_of(self, source: Source[Object], record: Object) -> Change | None:
        """The same of a message of this source, which may be called as its table is."""
        if self._settings.table_of_topic:
            self._topic = source.stem
        value = envelope.binary(record.value)
        if record.key is not None and type(value) is bytes and self._registered.learn_key(value, record.key):
            self._forget()
        return self.read(value)

    def lacks_metadata(self, value: Any) -> bool:
        """Whether a message names metadata that was not met yet, and that may still come."""
        if isinstance(value, dict):
            schema_id = value.get("messageSchemaId")
            return type(schema_id) is str and schema_id not in self.known and value.get("type") == "DT"
        message = envelope.binary(value)
        if type(message) is not bytes or not message.startswith(avro.MAGIC):
            return False
        try:
            outer = avro.decode(avro.envelope(), message)
        except MissingExtra:
            raise
        except EventlogError:
            return False  # told when it is read
        schema_id = outer["messageSchemaId"]
        return outer["type"] == "DT" and outer["messageSchema"] is None and schema_id not in self.known

    def read(self, value: Any) -> Change | None:
        """The change of one message; None for a metadata message."""
        body = self._body_of_avro(value) if type(value) is bytes else self._body(value)
        if body is None:
            return None
        data = body.data or body.before
        if data is None:
            raise InvalidMessage("neither data nor beforeData holds the row")
        try:
            return self._reader_of(body, tuple(data)).change(body)
        except (TypeError, KeyError, AttributeError) as fault:
            raise InvalidMessage(f"it has not the form of one: {type(fault).__name__} {fault}") from fault

    def _reader_of(self, body: Body, names: tuple[str, ...]) -> RecordReader:
        """What reads messages of this kind; mostly it is the one that read the last of their table."""
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
            return envelope.body(message, schema_id)
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
        return envelope.body(avro.decode(avro.foreign(schema), inner), schema_id)

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
            return RecordReader(own, own, self._order)
        added = tuple(Column(name) for name in names if name not in structure.index)
        whole = Structure(schema, table, structure.columns + added)
        if any(name not in whole.index for name in own.names):
            own = Structure(schema, table, tuple(whole.columns[whole.index[n]] for n in names))
        return RecordReader(whole, own, self._order)

    def _name(self, body: Body, known: Metadata | None) -> tuple[str | None, str]:
        """Schema and table: of the message, else its headers, else its metadata, else of the settings."""
        headers = body.headers
        for schema, table in ((body.schema, body.table), (headers.get("schema"), headers.get("table"))):
            if table:
                return (None if not schema else str(schema)), str(table)
        if known is not None and known.structure.table:
            return known.structure.schema, known.structure.table
        if self._topic:
            return table_name(self._topic, self._tables)
        return (self._only.schema, self._only.name) if self._only else (None, "")


# --- writing


def write(
    changes: Iterable[Change], tables: Tables, settings: MessageSettings
) -> Iterator[Message | Refused]:
    """The messages: before the first of a structure its metadata message."""
    writer = Writer(tables, settings)
    for numbered in numbers(changes, tables, settings):
        for written in writer.write(numbered):
            yield written.message if isinstance(written, Written) else written


def numbers(
    changes: Iterable[Change], tables: Tables, settings: MessageSettings
) -> Iterator[Numbered | Refused]:
    """The changes of which a message is written, with their numbers."""
    drops = settings.no_op_updates == "drop"
    kept = without_no_ops(changes, tables) if drops else changes
    memory = remembered(settings, settings.published)
    return number(kept, memory, settings.now or None, recounted=drops)


@dataclass(frozen=True, slots=True)
class Written:
    """A message, with what decides where it goes."""

    message: Message
    metadata: Metadata | None  # of a metadata message
    change: Change | None  # of a data message
    structure: Structure


class Writer:
    """Writes messages, and knows which structure each table had last."""

    def __init__(self, tables: Tables, settings: MessageSettings) -> None:
        if settings.framing == "confluent" and (settings.encoding != "avro" or settings.register is None):
            raise Misuse("Confluent's wire format needs encoding avro and a schema registry")
        if settings.encoding == "avro":
            avro.library()  # missing, it is said before anything is read
        self._tables = tables
        self._settings = settings
        self._style = Style(
            settings.encoding == "avro",
            settings.logical_types,
            settings.table_names,
            settings.external_schema_id,
            settings.before_images,
            Order.BIG if settings.mask_order == "auto" else Order(settings.mask_order),
        )
        self._last = remembered(settings, settings.published).published
        for at, known in self._last.items():
            self._last[at] = replace(known, structure=shown(known.structure))
        self._writers: dict[tuple[str | None, str], RecordWriter] = {}
        self._encoders: dict[str, Callable[[Mapping[str, Any]], bytes]] = {}

    def write(self, numbered: Numbered | Refused) -> Iterator[Written | Refused]:
        """The messages of one change: one, or the metadata message first."""
        if isinstance(numbered, Refused):
            yield numbered
            return
        change = numbered.change
        try:
            writer, new = self._writer(change)
            message = self._wrap(writer, writer.message(numbered))
        except EventlogError as fault:
            yield Refused(f"{change.table}:{change.position or numbered.sequence}", str(fault))
            return
        self._writers[change.schema, change.table] = writer
        if new and writer.metadata is not None:
            self._last[change.schema, change.table] = writer.metadata
            if self._settings.framing == "envelope":
                dumped = metadata.write_avro if self._style.avro else metadata.write
                yield Written(dumped(writer.metadata), writer.metadata, None, writer.structure)
        yield Written(message, None, change, writer.structure)

    def _writer(self, change: Change) -> tuple[RecordWriter, bool]:
        """The writer for a change, and whether its structure is a new one."""
        at = change.schema, change.table
        writer = self._writers.get(at)
        if writer is not None and writer.holds(change):
            return writer, False
        last = self._last.get(at)
        structure = observe(self._known(at, writer, last), change)
        if self._style.avro:
            metadata.check_names(structure)
        if not self._settings.metadata and not self._style.avro:
            return RecordWriter(structure, None, self._style), False
        if last is not None and last.structure == structure:
            return RecordWriter(structure, last, self._style), False
        return RecordWriter(structure, self._following(last, structure), self._style), True

    def _known(
        self, at: tuple[str | None, str], writer: RecordWriter | None, last: Metadata | None
    ) -> Structure | None:
        if writer is not None:
            return writer.structure
        table = self._tables.of(*at)
        if table is not None and table.columns:
            return Structure(*at, shown(structure_of(table)).columns)
        return last.structure if last else None

    def _following(self, last: Metadata | None, structure: Structure) -> Metadata:
        settings, style = self._settings, self._style
        made = utc_millis(settings.now) if settings.now else ""
        lineage = Metadata("", structure, 0, "", None, settings.server, settings.task, made)
        return metadata.following(last, structure, style.logical, style.names, style.external, lineage)

    def _wrap(self, writer: RecordWriter, message: dict[str, Any]) -> Message:
        known = writer.metadata
        if not self._style.avro:
            return _envelope(known.schema_id if known else None, message)
        assert known is not None
        encode = self._encoders.get(known.schema_id)
        if encode is None:
            if len(self._encoders) >= _MAX_KNOWN:
                self._encoders.clear()
            encode = self._encoders[known.schema_id] = self._encoder(known)
        return encode(message)

    def _encoder(self, known: Metadata) -> Callable[[Mapping[str, Any]], bytes]:
        schema = avro.foreign(known.data_schema)
        if self._settings.framing == "confluent":
            assert self._settings.register is not None
            number = self._settings.register(str(known.structure), known.data_schema)
            return lambda message: avro.frame(number, avro.encode(schema, message))
        if not self._settings.metadata:
            raise NotExpressible("Avro in Replicate's envelope cannot be read without metadata messages")
        around = {**_envelope(known.schema_id, {}), "magic": avro.MAGIC}
        outer = avro.envelope()
        return lambda message: avro.encode(outer, {**around, "message": avro.encode(schema, message)})


def _envelope(schema_id: str | None, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "magic": "atMSG",
        "type": "DT",
        "headers": None,
        "messageSchemaId": schema_id,
        "messageSchema": None,
        "message": message,
    }


FORMAT: Format = Format(
    name="qlik-message",
    help="messages of a Kafka target of Qlik Replicate",
    shape=Shape.OBJECTS,
    settings=MessageSettings,
    read=read,
    write=write,
    remember=goes_on,
)
