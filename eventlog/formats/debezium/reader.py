"""Messages read: each envelope as the change of a row; a tombstone only where its delete is missing."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, EVENT_PART, KEY_DIGEST, Change, Facts, Field, Key, Op, Side, Value
from eventlog.core.errors import EventlogError, InvalidValue, Refused, WrongRow
from eventlog.core.formats import Object, Source
from eventlog.core.grouped_warnings import GroupedWarnings
from eventlog.core.tables import Table, Tables
from eventlog.core.values import dump_base64
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.formats.debezium.transactions import is_boundary
from eventlog.formats.debezium.types import UNTYPED, TypeChoices, ValueType, type_of_column, types_of_fields

_OPS = {"c": Op.INSERT, "r": Op.SNAPSHOT, "u": Op.UPDATE, "d": Op.DELETE, "t": Op.TRUNCATE}
_OF_MYSQL = frozenset(("mysql", "mariadb"))  # whose schemas are databases
_DIGITS_OF_CONNECTOR = {
    "mysql": 0,
    "mariadb": 0,
    "sqlserver": 7,
}  # after the second, of a type that states none
_MAX_TABLES = 10_000
# the inserts of a COPY share a position, and so do the delete and the insert of a key change
_SHARED: Facts = ((EVENT_PART, KEY_DIGEST),)
_PLACES = (("scn", "rs_id", "ssn"), ("file", "pos", "row"))  # Oracle: an scn has many changes
_FLATTENED = (
    "it has no op: in a message whose envelope was removed (ExtractNewRecordState) an insert and an update"
    " are alike; read the topic before that"
)
_ROWLESS = "{count} messages describe transactions, heartbeats or DDL, and no row, at {places}"

Json = dict[str, Any]


class MessagePart(NamedTuple):
    """The key or the value of a message, with its schema if it has one."""

    payload: Any
    schema: Any = None

    def fields(self, name: str = "") -> Any:
        """Return the schemas of the fields, or those of one member's."""
        fields = self.schema.get("fields") if isinstance(self.schema, dict) else None
        if not name or not isinstance(fields, list):
            return fields
        named = (field for field in fields if isinstance(field, dict) and field.get("field") == name)
        return next(named, {}).get("fields")


class SchemaColumns(NamedTuple):
    """The types of a table's columns, as a schema or a tables file has them."""

    fields: Any  # of the schema that they were read from
    types: Mapping[str, ValueType]


class DebeziumReader:
    """Reads messages, and keeps the columns of each table."""

    def __init__(self, tables: Tables, settings: DebeziumSettings) -> None:
        self._tables = tables
        self._settings = settings
        placeholder = settings.unavailable
        self._unavailable = (placeholder, [placeholder], dump_base64(placeholder.encode()))
        self._columns: dict[tuple[str | None, str, str], SchemaColumns] = {}
        self._deleted: dict[str, Any] = {}  # the key of the last message, if it was a delete, by source
        self._rowless_messages = GroupedWarnings(_ROWLESS, fault=False)

    def run(self, sources: Iterable[Source[Object]]) -> Iterator[Change | Refused]:
        """Yield the changes, and what was refused, in the order of the messages."""
        for source in sources:
            for record in source.records:
                read = record if isinstance(record, Refused) else self.read_record(source, record)
                if read is not None:
                    yield read
        yield from self.warnings()

    def read_record(self, source: Source[Object], record: Object) -> Change | Refused | None:
        """Return the change of the next message of a source; None for one that describes no row."""
        try:
            return self._change_of(source, record)
        except (EventlogError, RecursionError) as fault:
            return source.refuse(record, str(fault))

    def warnings(self) -> Iterator[Refused]:
        """Yield a warning about the messages that described no row since the last time."""
        yield from self._rowless_messages.warnings()
        self._rowless_messages = GroupedWarnings(_ROWLESS, fault=False)

    def _change_of(self, source: Source[Object], record: Object) -> Change | None:
        key, value = message_parts(record)
        deleted = self._deleted.pop(source.name, ABSENT)
        if value.payload is None:
            return None if deleted in (key.payload, None) else self._of_tombstone(source, record, key)
        if not isinstance(value.payload, dict):
            raise WrongRow("a message must be a JSON object, or null after a delete")
        if value.payload.get("op") is None:
            self._skip(source, record, value.payload)
            return None
        change = self._read(key, value)
        if change.op is Op.DELETE:
            self._deleted[source.name] = key.payload
        return change

    def _skip(self, source: Source[Object], record: Object, payload: Json) -> None:
        is_ddl = "ddl" in payload or "tableChanges" in payload
        if not (is_boundary(payload) or is_ddl or payload.keys() <= _HEARTBEAT):
            raise WrongRow(_FLATTENED)
        self._rowless_messages.add("messages", source.at(record.where), None)

    def _read(self, key: MessagePart, value: MessagePart) -> Change:
        payload, op = value.payload, _op(value.payload)
        source = payload.get("source")
        if not isinstance(source, dict) or not isinstance(source.get("table"), str):
            raise WrongRow("source names no table")
        connector, table = str(source.get("connector") or ""), source["table"]
        schema = _text(source, "db" if connector in _OF_MYSQL else "schema")
        described = self._tables.of(schema, table)
        before = self._row(value, "before", (schema, table, connector), described)
        after = self._row(value, "after", (schema, table, connector), described)
        if op not in (Op.DELETE, Op.TRUNCATE) and after is None:
            raise WrongRow(f"op {payload['op']} without the row after it")
        key_of_change = self._key(key, described, after if op is not Op.DELETE else before)
        if op is Op.DELETE:
            before, after = _captured(before, key_of_change), None
        transaction = payload.get("transaction")
        return Change(
            op,
            schema,
            table,
            key_of_change,
            _fields(None if op in (Op.INSERT, Op.SNAPSHOT) else before, after),
            _position(source),
            _transaction(transaction if isinstance(transaction, dict) else {}, source),
            _time(source),
            _text(source, "user_name"),
            extra=_SHARED if op is Op.INSERT else (),
        )

    def _row(
        self, value: MessagePart, side: str, named: tuple[str | None, str, str], described: Table | None
    ) -> dict[str, Side] | None:
        row = value.payload.get(side)
        if row is None:
            return None
        if not isinstance(row, dict):
            raise WrongRow(f"{side} must be an object or null")
        types = self._types(value.fields(side), named, described)
        return {column: self._load(column, cell, types) for column, cell in row.items()}

    def _load(self, column: str, cell: Any, types: Mapping[str, ValueType]) -> Side:
        if cell is None:
            return None
        if cell in self._unavailable:
            return ABSENT
        try:
            return types.get(column, UNTYPED).load(cell)
        except InvalidValue as fault:
            raise WrongRow(f"column {column}: {fault}") from None

    def _types(
        self, fields: Any, named: tuple[str | None, str, str], described: Table | None
    ) -> Mapping[str, ValueType]:
        """Return the types of columns: those of the message's schema, else those of the tables file."""
        columns = self._columns.get(named)
        if columns is not None and columns.fields == fields:
            return columns.types
        types = types_of_fields(fields)
        if not types and described is not None:
            choices = self._choices(named[2])
            types = {name: type_of_column(column, choices) for name, column in described.columns.items()}
        if len(self._columns) >= _MAX_TABLES:
            self._columns.clear()
        self._columns[named] = SchemaColumns(fields, types)
        return types

    def _choices(self, connector: str) -> TypeChoices:
        mode, default_digits = self._settings.time_precision, _DIGITS_OF_CONNECTOR.get(connector, 6)
        if mode == "auto":
            mode = "adaptive_time_microseconds" if connector in _OF_MYSQL else "adaptive"
        is_connect, has_micros = mode == "connect", mode == "adaptive_time_microseconds"
        clock_digits = 6 if has_micros else None
        return TypeChoices(clock_digits, default_digits, self._settings.decimals == "string", is_connect)

    def _key(self, key: MessagePart, described: Table | None, row: Mapping[str, Side] | None) -> Key:
        """Return the key: its columns are those of the message's key, else those of the tables file."""
        if not isinstance(key.payload, dict):
            names = () if described is None else described.key
            return tuple((name, _value(row[name])) for name in names if name in row) if row else ()
        row, types = row or {}, types_of_fields(key.fields())
        return tuple(
            (name, _value(row[name] if name in row else self._load(name, cell, types)))
            for name, cell in key.payload.items()
        )

    def _of_tombstone(self, source: Source[Object], record: Object, key: MessagePart) -> Change:
        """Return the delete that a tombstone means, where a compacted topic lacks the message of it."""
        if not isinstance(key.payload, dict):
            raise WrongRow("a tombstone without a key names no row")
        name = str(key.schema.get("name") or "") if isinstance(key.schema, dict) else ""
        full_name = name.removesuffix(".Key") if name.endswith(".Key") else source.stem
        *_, schema, table = ["", "", *full_name.split(".")]
        if not schema:
            raise WrongRow(f"a tombstone whose topic, {full_name!r}, names no schema and table")
        described = self._tables.of(schema, table)
        types = self._types(key.fields(), (schema, table, "key"), described)
        pairs = tuple((name, _value(self._load(name, cell, types))) for name, cell in key.payload.items())
        return Change(Op.DELETE, schema, table, pairs, (), str(record.where), extra=_SHARED)


_HEARTBEAT = frozenset(("ts_ms", "ts_us", "ts_ns"))


def message_parts(record: Object) -> tuple[MessagePart, MessagePart]:
    """Return the key and the value of a message, whichever way a file has both."""
    value, key = record.value, None if record.key is None else _decoded(record.key)
    if isinstance(value, dict) and "op" not in value:
        if value.keys() == {"key", "value"}:  # as we write them
            key, value = value["key"], value["value"]
        elif "topic" in value and "payload" in value:  # as kcat -J writes them
            key, value = _decoded(value.get("key")), _decoded(value["payload"])
    return _part(key), _part(value)


def is_tombstone(record: Object) -> bool:
    """Return whether a message has no value."""
    try:
        return message_parts(record)[1].payload is None
    except WrongRow:
        return False


def _decoded(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise WrongRow("its key or value is no JSON") from None


def _part(part: Any) -> MessagePart:
    if isinstance(part, dict) and "payload" in part and part.keys() <= {"schema", "payload"}:
        return MessagePart(part["payload"], part.get("schema"))
    return MessagePart(part)


def _op(payload: Json) -> Op:
    name = payload["op"]
    if name == "m":
        raise WrongRow("op m is a message in the database's log, and no change of a row")
    if not isinstance(name, str) or name not in _OPS:
        raise WrongRow(f"op is {str(name)[:20]!r}, not one of {', '.join(_OPS)}")
    return _OPS[name]


def _value(side: Side) -> Value:
    if side is ABSENT:
        raise WrongRow("a value of its key was not captured")
    return side


def _captured(before: dict[str, Side] | None, key: Key) -> dict[str, Side] | None:
    """Return the row before a delete; PostgreSQL writes null for all but the key where it has only that."""
    names = {name for name, _ in key}
    if before is None or any(value is not None for name, value in before.items() if name not in names):
        return before
    return {name: value for name, value in before.items() if name in names}


def _fields(before: Mapping[str, Side] | None, after: Mapping[str, Side] | None) -> tuple[Field, ...]:
    before, after = before or {}, after or {}
    sides = (
        (name, before.get(name, ABSENT), after.get(name, ABSENT)) for name in dict.fromkeys((*after, *before))
    )
    return tuple(Field(*side) for side in sides if side[1:] != (ABSENT, ABSENT))


def _text(source: Json, name: str) -> str | None:
    value = source.get(name)
    return value if isinstance(value, str) and value else None


def _position(source: Json) -> str | None:
    """Return the place of the change in the log of its database."""
    for name in ("position", "change_lsn", "lsn"):
        if source.get(name) is not None:
            return str(source[name])
    for names in _PLACES:
        if parts := [str(source[name]) for name in names if source.get(name) is not None]:
            return ":".join(parts)
    return None


def _transaction(transaction: Json, source: Json) -> str | None:
    number = transaction.get("id") or source.get("txId") or source.get("gtid")
    return None if number is None else str(number)


def _time(source: Json) -> str | None:
    """Return when the database made the change, in UTC, as precisely as the message states it."""
    for name, digits in (("ts_ns", 9), ("ts_us", 6), ("ts_ms", 3)):
        number = source.get(name)
        if type(number) is int:
            seconds, units = divmod(number, 10**digits)
            try:
                at = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
            except OverflowError:
                return None
            return at.isoformat() + f".{units:0{digits}}".rstrip("0").rstrip(".")
    return None
