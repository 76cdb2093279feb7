"""Avro: schemas built and checked, envelopes framed, in Replicate's way or Confluent's.

A schema that came in a message is foreign: only the forms that a data or metadata message can
have are let through to the decoder. An array or a record that holds itself could make it read
for ever, or overflow its stack.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from io import BytesIO
from typing import Any, cast

from eventlog.core.errors import EventlogError, NotExpressible
from eventlog.core.extras import extra
from eventlog.formats.qlik.row_plans import avro_type
from eventlog.formats.qlik.structure import DataColumn

Schema = dict[str, Any]
MAGIC = b"atMSG"
METADATA = MAGIC + b"\x04MD"  # how the envelope of a metadata message begins
_CONFLUENT = b"\0"
_NAMESPACE = "com.attunity.queue.msg"
_MAX_SCHEMA = 4_000_000
_MAX_DEPTH = 8
_MAX_VALUES = 100_000  # of a record
_MAX_DECIMAL = 1_000  # bytes, and digits after the point
_DIGITS = decimal.Context(prec=3 * _MAX_DECIMAL)  # more than that many bytes have
_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))


class InvalidAvro(EventlogError):
    """{0}"""


@cache
def library() -> Any:
    """Return the package that reads and writes Avro."""
    with extra("avro", "Avro"):
        import fastavro
    for kind in ("bytes", "fixed"):
        fastavro.read.LOGICAL_READERS[f"{kind}-{_EXACT_DECIMAL}"] = _read_decimal
    return fastavro


_EXACT_DECIMAL = "eventlog-decimal"  # read by us, because the package rounds to the declared precision


def _read_decimal(data: bytes, schema: Schema | None, _: Schema | None) -> decimal.Decimal:
    """Return a number with all its digits, even if the schema declares fewer."""
    scale = (schema or {}).get("scale", 0)
    if len(data) > _MAX_DECIMAL or type(scale) is not int or not 0 <= scale <= _MAX_DECIMAL:
        raise ValueError(f"a decimal of {len(data)} bytes and scale {scale}: at most {_MAX_DECIMAL} are read")
    return decimal.Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _DIGITS)


def _parse(schema: Schema) -> Schema:
    return cast(Schema, library().parse_schema(schema))


# "Attunity envelope": the schema of every message in Avro
_ENVELOPE: Schema = {
    "type": "record",
    "name": "MessageEnvelope",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 5}},
        {"name": "type", "type": "string"},
        {"name": "headers", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "messageSchemaId", "type": ["null", "string"]},
        {"name": "messageSchema", "type": ["null", "string"]},
        {"name": "message", "type": "bytes"},
    ],
}


@cache
def envelope() -> Schema:
    """Return the schema of the envelope, ready for use."""
    return _parse(_ENVELOPE)


_OPERATION = {"type": "enum", "name": "operation", "symbols": ["INSERT", "UPDATE", "DELETE", "REFRESH"]}


def _optional(name: str, avro: Any) -> Schema:
    return {"name": name, "type": ["null", avro], "default": None}


def data_schema(columns: Sequence[DataColumn], logical: bool, names: str, external: bool) -> Schema:
    """Return the schema of the data messages of a table."""
    table_fields = [{"name": "schema", "type": "string"}, {"name": "table", "type": "string"}]
    headers = [
        *(table_fields if names == "headers" else ()),
        {"name": "operation", "type": _OPERATION},
        *({"name": n, "type": "string"} for n in ("changeSequence", "timestamp", "streamPosition")),
        {"name": "transactionId", "type": "string"},
        _optional("changeMask", "bytes"),
        _optional("columnMask", "bytes"),
        *([_optional("externalSchemaId", "string")] if external else ()),
        _optional("transactionEventCounter", "long"),
        _optional("transactionLastEvent", "boolean"),
    ]
    data = [_optional(c.name, avro_type(c, logical)) for c in columns]
    return {
        "type": "record",
        "name": "DataRecord",
        "fields": [
            *(table_fields if names == "message" else ()),
            {"name": "data", "type": {"type": "record", "name": "Data", "fields": data}},
            _optional("beforeData", "Data"),
            {
                "name": "headers",
                "type": {
                    "type": "record",
                    "name": "Headers",
                    "namespace": _NAMESPACE,
                    "fields": headers,
                },
            },
        ],
    }


def _record(name: str, fields: Mapping[str, Any]) -> Schema:
    typed = [{"name": n, "type": {"type": t} if isinstance(t, str) else t} for n, t in fields.items()]
    return {"type": "record", "name": name, "fields": typed}


_COLUMN = {
    "ordinal": "int",
    "type": "string",
    "length": "int",
    "precision": "int",
    "scale": "int",
    "primaryKeyPosition": "int",
    "nullable": "boolean",
}
_LINEAGE = {
    "server": "string",
    "task": "string",
    "schema": "string",
    "table": "string",
    "tableVersion": "long",
    "timestamp": "string",
}


def metadata_schema(names: Sequence[str]) -> Schema:
    """Return the schema of a metadata message: it has a record for each column, named as the column is."""
    columns = {name: _record(name, _COLUMN) for name in names}
    return _record(
        "MetadataMessage",
        {
            "schemaId": "string",
            "lineage": _record("Lineage", _LINEAGE),
            "tableStructure": _record("TableStructure", {"tableColumns": _record("TableColumns", columns)}),
            "dataSchema": "string",
        },
    )


def dump_schema(schema: Schema) -> str:
    """Return the text of a schema, as messages carry it."""
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=1000)
def foreign(text: str) -> Schema:
    """Return a schema that came with a message, ready for use."""
    with _of_schemas():
        return _parse(load_schema(text))


@lru_cache(maxsize=1000)
def for_reading(text: str) -> Schema:
    """Return a schema that came with a message, ready to decode values without a loss of digits."""
    load_schema(text)
    with _of_schemas():
        return _parse(json.loads(text, object_hook=_with_exact_decimal))


def _with_exact_decimal(schema: Schema) -> Schema:
    return schema | {"logicalType": _EXACT_DECIMAL} if schema.get("logicalType") == "decimal" else schema


def load_schema(text: str) -> Schema:
    """Return a schema that came with a message, as it was written: JSON needs no more of it."""
    if len(text) > _MAX_SCHEMA:
        raise InvalidAvro(f"an Avro schema of {len(text)} characters: at most {_MAX_SCHEMA} are read")
    with _of_schemas():
        schema = json.loads(text)
        _check(schema, {}, 0)
        return cast(Schema, schema)


@contextmanager
def _of_schemas() -> Iterator[None]:
    """Report every error inside as an error of a schema."""
    try:
        yield
    except EventlogError:
        raise
    except Exception as fault:
        raise InvalidAvro(f"invalid Avro schema: {fault}") from fault


def _check(schema: Any, closed: dict[str, int], depth: int) -> int:
    """Accept what a message of Replicate consists of; a name needs an earlier definition.

    Return the number of values of a record, with every use of a name counted, because some values need no
    byte.
    """
    if depth > _MAX_DEPTH:
        raise InvalidAvro(f"an Avro schema nested deeper than {_MAX_DEPTH}")
    size = _check_form(schema, closed, depth)
    if size > _MAX_VALUES:
        raise InvalidAvro(f"an Avro schema whose records have over {_MAX_VALUES} values")
    return size


def _check_form(schema: Any, closed: dict[str, int], depth: int) -> int:
    if isinstance(schema, list):
        return sum(_check(branch, closed, depth + 1) for branch in schema)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return 1
        if schema.rpartition(".")[2] not in closed:
            raise InvalidAvro(f"an Avro schema that refers to {schema[:60]!r}, which is not defined before")
        return closed[schema.rpartition(".")[2]]
    if not isinstance(schema, dict) or "type" not in schema:
        raise InvalidAvro("an Avro schema must be a name, an object with a type, or a list of these")
    name = str(schema.get("name")).rpartition(".")[2]
    if schema["type"] == "record":
        closed[name] = sum(_check(field["type"], closed, depth + 1) for field in schema.get("fields", ())) + 1
        return closed[name]
    if schema["type"] == "enum":
        closed[name] = 1
        return 1
    if _is_fixed_decimal(schema):
        closed[name] = 1
        return 1
    if schema["type"] in ("array", "map", "fixed"):
        raise InvalidAvro(f"an Avro schema with {schema['type']}, which no message has")
    return _check(schema["type"], closed, depth + 1)


def _is_fixed_decimal(schema: Schema) -> bool:
    """Return whether a schema is of decimals that all have the same number of bytes."""
    size = schema.get("size")
    is_decimal = schema["type"] == "fixed" and schema.get("logicalType") == "decimal"
    return is_decimal and type(size) is int and 0 < size <= _MAX_DECIMAL


def decode(schema: Schema, data: bytes) -> dict[str, Any]:
    """Return the record that the bytes hold, all of them."""
    stream = BytesIO(data)
    read = library().schemaless_reader
    try:
        record = read(stream, schema, None)
    except Exception as fault:
        raise InvalidAvro(f"truncated or broken Avro at byte {stream.tell()}: {_reason(fault)}") from fault
    if stream.tell() != len(data):
        raise InvalidAvro(f"{len(data) - stream.tell()} bytes after the Avro record")
    return cast(dict[str, Any], record)


def encode(schema: Schema, record: Mapping[str, Any]) -> bytes:
    """Return the bytes of a record."""
    stream = BytesIO()
    write = library().schemaless_writer
    try:
        write(stream, schema, record)
    except Exception as fault:
        raise NotExpressible(f"no Avro record of its schema: {_reason(fault)}") from fault
    return stream.getvalue()


def _reason(fault: Exception) -> str:
    return f"{type(fault).__name__} {str(fault)[:200]}".rstrip()


def frame(schema_id: int, record: bytes) -> bytes:
    """Return a record in Confluent's wire format: a zero byte, the schema's id, the record."""
    return _CONFLUENT + schema_id.to_bytes(4, "big") + record


def is_framed(data: bytes) -> bool:
    """Return whether bytes are in Confluent's wire format."""
    return data[:1] == _CONFLUENT and len(data) >= 5


def unframe(data: bytes) -> tuple[int, bytes]:
    """Return the schema's id and the record of Confluent's wire format."""
    if not is_framed(data):
        raise InvalidAvro(f"wrong magic {data[:5]!r}: neither {MAGIC.decode()} nor Confluent's wire format")
    return int.from_bytes(data[1:5], "big"), data[5:]
