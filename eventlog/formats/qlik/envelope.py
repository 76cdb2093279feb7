"""The outer part of a data message: the envelope, or one of the variants without it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError


class InvalidMessage(EventlogError):
    """{0}"""


class UnnamedTable(EventlogError):
    """the message names no table, and its metadata are not known: name the table with --table"""


class Body(NamedTuple):
    """A data message, whatever it came in."""

    headers: Mapping[str, Any]
    data: Mapping[str, Any] | None
    before: Mapping[str, Any] | None
    schema: Any = None
    table: Any = None
    schema_id: str | None = None


_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})+")
_MAX_TEXT = 1 << 28
_OF_METADATA = frozenset(("schemaId", "lineage", "tableStructure", "dataSchema"))


def binary(value: Any) -> Any:
    """Return the bytes of an Avro message that JSON Lines contain as hex text; else the value."""
    if type(value) is str and len(value) <= _MAX_TEXT and _HEX.fullmatch(value):
        return bytes.fromhex(value)
    return value


Envelope = tuple[str, str | None, str | None, Any]  # type, messageSchemaId, messageSchema, message


def read(value: Any) -> Envelope:
    """Return the envelope of a JSON value; what has none is metadata by its fields, else a data message."""
    if type(value) is not dict:
        raise InvalidMessage(f"a message is an object, not {type(value).__name__}")
    if "magic" not in value:
        return "MD" if is_bare_metadata(value) else "DT", None, None, value
    if value["magic"] != "atMSG":
        raise InvalidMessage(f"wrong magic {str(value['magic'])[:40]!r}, not atMSG")
    get = value.get
    schema_id, schema = get("messageSchemaId"), get("messageSchema")
    for name, text in (("messageSchemaId", schema_id), ("messageSchema", schema)):
        if text is not None and type(text) is not str:
            raise InvalidMessage(f"{name} is {type(text).__name__}, not text")
    return str(get("type")), schema_id, schema, get("message")


def is_bare_metadata(value: Mapping[str, Any]) -> bool:
    """Return whether a JSON value has exactly the fields of metadata, which have no envelope then."""
    return value.keys() == _OF_METADATA


def ids_of(value: Mapping[str, Any]) -> list[str]:
    """Return the ids by which a data message in JSON names its metadata; none if it is no data message."""
    message: Any = value
    if "magic" in value:
        message = value.get("message") if value.get("type") == "DT" else None
    if type(message) is not dict:
        return []
    headers = message.get("headers")
    flat = message.get("headers_externalSchemaId", message.get("externalSchemaId"))
    external = headers.get("externalSchemaId") if type(headers) is dict else flat
    ids = value.get("messageSchemaId") if message is not value else None, external
    return [str(named) for named in ids if named]


def body(message: Any, schema_id: str | None) -> Body:
    """Return the parts of a data message."""
    if not isinstance(message, dict):
        raise InvalidMessage("the envelope holds no message object")
    get = message.get
    headers, data, before = get("headers"), get("data"), get("beforeData")
    if (
        type(headers) is dict
        and (type(data) is dict or data is None)
        and (type(before) is dict or before is None)
    ):
        return Body(headers, data, before, get("schema"), get("table"), schema_id)
    if isinstance(data, list) or isinstance(get("bu_data"), list):
        return _of_2016(message)
    return _flat(message, schema_id)


def named_outside(inner: Body, headers: Any) -> Body:
    """Return the body with the table that the headers of its envelope name, if it names none itself."""
    if inner.table or not isinstance(headers, Mapping) or not headers.get("table"):
        return inner
    return inner._replace(schema=headers.get("schema"), table=headers["table"])


_LETTERS = {"F": "REFRESH", "I": "INSERT", "U": "UPDATE", "D": "DELETE"}


def _of_2016(message: Mapping[str, Any]) -> Body:
    """Return the first form: rows as lists of single columns, all values text."""
    op = str(message.get("op", message.get("operation", ""))).upper()
    headers = {**message, "operation": _LETTERS.get(op, op)}
    return Body(
        headers,
        _merge_columns(message.get("data")),
        _merge_columns(message.get("bu_data")),
        message.get("schema"),
        message.get("table"),
    )


def _merge_columns(columns: Any) -> dict[str, Any] | None:
    if columns is None:
        return None
    if not isinstance(columns, Sequence) or not all(isinstance(c, dict) for c in columns):
        raise InvalidMessage("data is neither an object nor a list of columns")
    return {name: value for column in columns for name, value in column.items()} or None


_PREFIXES = {"headers_": "headers", "data_": "data", "beforeData_": "before"}


def _flat(message: Mapping[str, Any], schema_id: str | None) -> Body:
    """Return the flattened forms: `headers_operation` or `operation`, `data_ID` or `data`."""
    parts: dict[str, dict[str, Any]] = {"headers": {}, "data": {}, "before": {}}
    for name, value in message.items():
        prefix = next((p for p in _PREFIXES if name.startswith(p)), None)
        if prefix:
            parts[_PREFIXES[prefix]][name.removeprefix(prefix)] = value
        elif name in ("data", "beforeData"):
            parts["before" if name == "beforeData" else name].update(_object(name, value))
        else:
            parts["headers"].setdefault(name, value)
    if "operation" not in parts["headers"]:
        raise InvalidMessage("no operation in headers.operation, headers_operation or operation")
    headers = parts["headers"]
    return Body(
        headers,
        parts["data"] or None,
        parts["before"] or None,
        headers.get("schema"),
        headers.get("table"),
        schema_id,
    )


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidMessage(f"{name} is {type(value).__name__}, not an object")
    return value
