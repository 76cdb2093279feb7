"""Messages written: whole rows or none, because what is not known must not become null."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Change, Key, Op, Side, check_decoded, row_events
from eventlog.core.errors import EventlogError, InvalidValue, NotExpressible, Refused
from eventlog.core.tables import Table, Tables
from eventlog.core.values import Kind, read_moment
from eventlog.formats import neutral
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.formats.debezium.types import MOMENT_DUMPS, UNTYPED, TypeChoices, ValueType, type_of_column

Json = dict[str, Any]
_OPS = {Op.INSERT: "c", Op.SNAPSHOT: "r", Op.UPDATE: "u", Op.DELETE: "d", Op.TRUNCATE: "t"}
Row = Mapping[str, Side]
_TEXT_FIELDS = (
    "version",
    "connector",
    "name",
    "snapshot",
    "db",
    "schema",
    "table",
    "txId",
    "position",
    "user_name",
)
_TIME_FIELDS = ("ts_ms", "ts_us", "ts_ns")


class TableMessages(NamedTuple):
    """The types of a table's columns, and the schemas of its messages."""

    table: Table | None
    types: Mapping[str, ValueType]
    name: str  # of the topic

    def schema(self, names: Iterable[str], ending: str, field: str = "") -> Json:
        """Return the schema of a row, or of a key."""
        is_key = ending == "Key"
        fields = []
        for name in names:
            if name not in self.types or not self.types[name].schema:
                raise NotExpressible(f"column {name}: its type is not known, and the schema needs it")
            fields.append({**self.types[name].schema, "optional": not is_key, "field": name})
        schema = {"type": "struct", "fields": fields, "optional": not is_key, "name": f"{self.name}.{ending}"}
        return {**schema, "field": field} if field else schema


class DebeziumWriter:
    """Writes messages, and keeps the columns of each table."""

    def __init__(self, tables: Tables, settings: DebeziumSettings) -> None:
        self._tables = tables
        self._settings = settings
        choices = TypeChoices(
            texts=settings.decimals == "string", connect=settings.time_precision == "connect"
        )
        self._choices = choices
        self._shapes: dict[tuple[str | None, str], TableMessages] = {}

    def write(self, changes: Iterable[Change]) -> Iterator[Json | Refused]:
        """Yield the messages of changes."""
        for change in changes:
            try:
                check_decoded(change)
                events = (change,) if change.op is Op.SNAPSHOT else row_events(change)
                messages = [message for event in events for message in self._messages(event)]
            except EventlogError as fault:
                yield neutral.refuse(change, fault)
                continue
            yield from messages

    def _messages(self, change: Change) -> Iterator[Json]:
        shape = self._shape(change)
        before, after = _rows(change, shape)
        value: Any = {
            "before": self._dumped(before, shape),
            "after": self._dumped(after, shape),
            "source": self._source(change),
            "transaction": None,
            "op": _OPS[change.op],
            "ts_ms": _units(change.time, 3),
        }
        if self._settings.message_schemas:
            value = {"schema": _envelope_schema(shape), "payload": value}
        if not self._settings.message_keys:
            yield value
            return
        key: Any = None
        if change.key:
            key = self._dumped(dict(change.key), shape)
            if self._settings.message_schemas:
                key = {"schema": shape.schema(key, "Key"), "payload": key}
        yield {"key": key, "value": value}
        if change.op is Op.DELETE and key is not None:
            yield {"key": key, "value": None}

    def _shape(self, change: Change) -> TableMessages:
        at = change.schema, change.table
        shape = self._shapes.get(at)
        if shape is None:
            table = self._tables.of(*at)
            columns = {} if table is None else table.columns
            types = {name: type_of_column(column, self._choices) for name, column in columns.items()}
            name = ".".join(part for part in (self._settings.topic_prefix, *at) if part)
            shape = self._shapes[at] = TableMessages(table, types, name)
        return shape

    def _dumped(self, row: Mapping[str, Side] | None, shape: TableMessages) -> Json | None:
        return (
            None
            if row is None
            else {name: dump_side(name, side, shape.types.get(name, UNTYPED)) for name, side in row.items()}
        )

    def _source(self, change: Change) -> Json:
        return {
            "version": "1",
            "connector": "eventlog",
            "name": self._settings.topic_prefix,
            "ts_ms": _units(change.time, 3),
            "snapshot": "true" if change.op is Op.SNAPSHOT else "false",
            "db": "",
            "schema": change.schema,
            "table": change.table,
            "ts_us": _units(change.time, 6),
            "ts_ns": _units(change.time, 9),
            "txId": change.transaction,
            "position": change.position,
            "user_name": change.user,
        }


def _rows(change: Change, shape: TableMessages) -> tuple[Row | None, Row | None]:
    """Return the rows before and after a change: the one after is whole, or NotExpressible is raised."""
    if change.op is Op.TRUNCATE:
        return None, None
    before = _with_key(change.key_before, change.before)
    if change.op is Op.DELETE:
        if not before:
            raise NotExpressible("a delete that names neither a key nor values")
        return before, None
    after = _with_key(change.key, change.after)
    if shape.table is None:
        if change.op is Op.UPDATE:
            raise NotExpressible(
                f"whether this is the whole row of {change.table} is not known: describe it in a tables file"
            )
        return None, after
    names = [name for name, column in shape.table.columns.items() if column.of_child is None]
    if missing := [name for name in names if name not in after]:
        raise NotExpressible(
            f"column {missing[0]} of the row after the change is not known, and would become null"
        )
    is_whole = change.op is Op.UPDATE and all(name in before for name in names)
    return before if is_whole else None, after


def _with_key(key: Key, row: Mapping[str, Side]) -> Mapping[str, Side]:
    missing = {name: value for name, value in key if name not in row}
    return {**missing, **row} if missing else row


def dump_side(column: str, side: Side, value_type: ValueType) -> Any:
    """Return a value of a column as JSON has it; NotExpressible if it is not of the column's type."""
    if side is None or side is ABSENT:
        return None
    dump = value_type.dump
    try:
        return [dump(item) for item in side] if isinstance(side, tuple) else dump(side)
    except InvalidValue as fault:
        raise NotExpressible(f"column {column}: {fault}") from None


def _units(time: str | None, digits: int) -> int | None:
    """Return a time of the model as a number since 1970, whose digits beyond are cut."""
    if time is None:
        return None
    moment = read_moment(Kind.TIMESTAMP, time)
    cut = moment._replace(fraction=moment.fraction[: digits + 1], zoned=False)
    return MOMENT_DUMPS[digits](cut.iso)


def _envelope_schema(shape: TableMessages) -> Json:
    sides = [shape.schema(shape.types, "Value", side) for side in ("before", "after")]
    texts = [{"type": "string", "optional": True, "field": name} for name in _TEXT_FIELDS]
    times = [{"type": "int64", "optional": True, "field": name} for name in _TIME_FIELDS]
    source = {"type": "struct", "fields": texts + times, "optional": False, "field": "source"}
    transaction_fields = [
        {"type": "string", "optional": False, "field": "id"},
        {"type": "int64", "optional": False, "field": "total_order"},
        {"type": "int64", "optional": False, "field": "data_collection_order"},
    ]
    transaction = {"type": "struct", "fields": transaction_fields, "optional": True, "field": "transaction"}
    ends = [
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ]
    fields = [*sides, source, transaction, *ends]
    return {"type": "struct", "fields": fields, "optional": False, "name": f"{shape.name}.Envelope"}
