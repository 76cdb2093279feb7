"""Metadata messages: the structure of a table, under the id that its data messages name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eventlog.core.errors import EventlogError, NotExpressible
from eventlog.formats.qlik import avro
from eventlog.formats.qlik.structure import DataColumn, Structure, check_width
from eventlog.formats.qlik.types import DATA_TYPES, Spec

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_SPEC = Spec("STRING")


class InvalidMetadata(EventlogError):
    """metadata message: {0}"""


@dataclass(frozen=True)
class Metadata:
    """One metadata message."""

    schema_id: str
    structure: Structure
    version: int
    data_schema: str  # Avro schemas as JSON text
    message_schema: str | None = None
    server: str = ""
    task: str = ""
    timestamp: str = ""


def read(message: Mapping[str, Any], message_schema: str | None = None) -> Metadata:
    """Return the content of a metadata message's payload."""
    try:
        lineage = message["lineage"]
        described = message["tableStructure"]["tableColumns"]
        structure = Structure(
            str(lineage["schema"]) or None,
            str(lineage["table"]),
            tuple(_read_column(name, described[name]) for name in _in_order(described)),
        )
        check_width(structure)
        return Metadata(
            str(message["schemaId"]),
            structure,
            int(lineage["tableVersion"]),
            str(message["dataSchema"]),
            message_schema,
            str(lineage["server"]),
            str(lineage["task"]),
            str(lineage["timestamp"]),
        )
    except KeyError as fault:
        raise InvalidMetadata(f"{fault} is missing") from fault
    except (TypeError, ValueError, ArithmeticError, AttributeError) as fault:
        raise InvalidMetadata(f"it has not the form of one: {fault}") from fault


def _in_order(described: Mapping[str, Any]) -> list[str]:
    """Return the columns in the order of their ordinals, which may have gaps. Masks follow this order."""
    names: dict[int, str] = {}
    for name, column in described.items():
        ordinal = int(column["ordinal"])
        if ordinal < 1:
            raise InvalidMetadata(f"ordinal of column {name} is {ordinal}, but the first is 1")
        if ordinal in names:
            raise InvalidMetadata(f"columns {names[ordinal]} and {name} have the same ordinal, {ordinal}")
        names[ordinal] = name
    return [names[ordinal] for ordinal in sorted(names)]


def _read_column(name: str, column: Mapping[str, Any]) -> DataColumn:
    data_type = str(column["type"])
    is_known = data_type in DATA_TYPES
    sizes = (int(column.get(size, 0)) for size in ("length", "precision", "scale"))
    return DataColumn(
        name,
        Spec(data_type, *sizes) if is_known else None,
        int(column.get("primaryKeyPosition", 0)),
        bool(column.get("nullable", True)),
        declared=True,
    )


_AVRO = {
    "boolean": "BOOLEAN",
    "int": "INT4",
    "long": "INT8",
    "float": "REAL4",
    "double": "REAL8",
    "bytes": "BYTES",
    "string": "STRING",
}
_LOGICAL = {
    "date": "DATE",
    "time-millis": "TIME",
    "timestamp-micros": "DATETIME",
    "decimal": "NUMERIC",
}


_REGISTRY = "registry:"  # before the id of a schema


def read_registered(number: int, schema: str) -> Metadata:
    """Return the metadata of a table from the schema of its data messages in a registry.

    The names of the table and its schema are the end of the namespace.
    """
    record = avro.foreign(schema)
    data = next((f["type"] for f in record.get("fields", ()) if f["name"] == "data"), None)
    if isinstance(data, list):
        data = next((branch for branch in data if isinstance(branch, dict)), None)
    if not isinstance(data, dict) or "fields" not in data:
        raise InvalidMetadata(f"schema {number} of the registry has no record `data`")
    fixed: dict[str, Any] = {}
    columns = tuple(DataColumn(f["name"], _spec(f["type"], fixed), declared=True) for f in data["fields"])
    names = str(record.get("name", "")).split(".")
    schema_name, table = names[-3:-1] if len(names) > 3 else ("", "")
    structure = Structure(schema_name or None, table, columns)
    return Metadata(f"{_REGISTRY}{number}", structure, 1, schema)


def number_of(schema_id: str) -> int | None:
    """Return the registry's number in the id of a schema; None for the id of a metadata message."""
    _, registry, number = schema_id.partition(_REGISTRY)
    return int(number) if registry and number.isascii() and number.isdigit() else None


def names_of(schema: str) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(str(field["name"]) for field in avro.foreign(schema).get("fields", ()))


def _spec(avro_type: Any, fixed: dict[str, Any]) -> Spec | None:
    """Return the data type of an Avro type; `fixed` has those that later columns may use by their names."""
    branches = avro_type if isinstance(avro_type, list) else [avro_type]
    value_type = next((b for b in branches if b != "null" and b != {"type": "null"}), "null")
    details = value_type if isinstance(value_type, dict) else fixed.get(value_type, {"type": value_type})
    if details["type"] == "fixed":
        fixed[details["name"]] = details
    name = _LOGICAL.get(str(details.get("logicalType"))) or _AVRO.get(str(details.get("type")))
    return Spec(name, 0, int(details.get("precision", 0)), int(details.get("scale", 0))) if name else None


def payload(metadata: Metadata) -> dict[str, Any]:
    """Return the payload of a metadata message."""
    structure = metadata.structure
    return {
        "schemaId": metadata.schema_id,
        "lineage": {
            "server": metadata.server,
            "task": metadata.task,
            "schema": structure.schema or "",
            "table": structure.table,
            "tableVersion": metadata.version,
            "timestamp": metadata.timestamp,
        },
        "tableStructure": {
            "tableColumns": {c.name: _column(i, c) for i, c in enumerate(structure.columns, 1)}
        },
        "dataSchema": metadata.data_schema,
    }


def dump(metadata: Metadata) -> str:
    """Return the payload of a metadata message as a text, in which an unknown type stays unknown."""
    message = payload(metadata)
    for column in metadata.structure.columns:
        if column.spec is None:
            message["tableStructure"]["tableColumns"][column.name]["type"] = ""
    return json.dumps(message)


def _column(ordinal: int, column: DataColumn) -> dict[str, Any]:
    spec = column.spec or _NO_SPEC
    return {
        "ordinal": ordinal,
        "type": spec.name,
        "length": spec.length,
        "precision": spec.precision,
        "scale": spec.scale,
        "primaryKeyPosition": column.key_position,
        "nullable": column.nullable,
    }


def write(metadata: Metadata) -> dict[str, Any]:
    """Return the envelope of a metadata message, in JSON."""
    schema = metadata.message_schema or message_schema(metadata.structure)
    return {
        "magic": "atMSG",
        "type": "MD",
        "headers": None,
        "messageSchemaId": metadata.schema_id,
        "messageSchema": schema,
        "message": payload(metadata),
    }


def write_avro(metadata: Metadata) -> bytes:
    """Return the envelope of a metadata message, in Avro."""
    envelope = write(metadata)
    schema = avro.foreign(envelope["messageSchema"])
    message = avro.encode(schema, envelope["message"])
    return avro.encode(avro.envelope(), {**envelope, "magic": avro.MAGIC, "message": message})


def message_schema(structure: Structure) -> str:
    """Return the Avro schema of the metadata message itself."""
    return avro.dump_schema(avro.metadata_schema(structure.names))


def schema_id_of(structure: Structure, version: int) -> str:
    """Return the id of a structure, a hash of it and its version: it depends on no writer and no time."""
    columns = [[c.name, *_column(place, c).values()] for place, c in enumerate(structure.columns, 1)]
    seed = json.dumps([structure.schema, structure.table, version, columns])
    return hashlib.sha256(seed.encode()).hexdigest()[:32].upper()


def check_names(structure: Structure) -> None:
    """Raise NotExpressible for a column whose name Avro does not allow (letters, digits, underscores)."""
    for name in structure.names:
        if not _NAME.fullmatch(name):
            raise NotExpressible(f"column {name!r} of {structure} is no name of Avro: [A-Za-z_][A-Za-z0-9_]*")
