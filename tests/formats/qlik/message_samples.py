"""Messages as people published them, and what tests make of them."""

from __future__ import annotations

import copy
import json
from typing import Any

from eventlog.core import tablesfile
from eventlog.core.change import Change, Field, Op
from tests.formats.qlik.helpers import change, read_messages, seq, write_messages

TABLES = tablesfile.read(
    """
    [tables.usr]
    schema = "app"
    key = ["id"]
    columns = { id = "integer", name = "varchar(9)", age = "integer", photo = "blob" }
    """
)

# as the article "How to add tables name in Kafka" shows one
UPDATE: dict[str, Any] = {
    "magic": "atMSG",
    "type": "DT",
    "headers": None,
    "messageSchemaId": None,
    "messageSchema": None,
    "message": {
        "data": {"ID": "2", "NAME": "test Kafka", "tableName": "kit"},
        "beforeData": {"ID": "2", "NAME": "ok", "tableName": "kit"},
        "headers": {
            "operation": "UPDATE",
            "changeSequence": "20230911032325000000000000000000005",
            "timestamp": "2023-09-11T03:23:25.000",
            "streamPosition": "00000000.00bb2531.00000001.0000.02.0000:154.6963.16",
            "transactionId": "00000000000000000000000000060008",
            "changeMask": "02",
            "columnMask": "07",
            "transactionEventCounter": 1,
            "transactionLastEvent": True,
        },
    },
}

# of a task of 2018, as its user published it
SCHEMA_ID = "8FB9D3C10EA4B25751DF9CC8318F0A02"
REFRESH: dict[str, Any] = {
    "magic": "atMSG",
    "type": "DT",
    "headers": None,
    "messageSchemaId": SCHEMA_ID,
    "messageSchema": None,
    "message": {
        "data": {"emp_no": 14472, "salary": 49592, "from_date": "1993-11-25", "to_date": "1994-11-25"},
        "beforeData": None,
        "headers": {
            "operation": "REFRESH",
            "changeSequence": "",
            "timestamp": "",
            "streamPosition": "",
            "transactionId": "",
            "changeMask": None,
            "columnMask": None,
            "externalSchemaId": None,
        },
    },
}
TYPES = {"emp_no": ("int", "INT4", 10, 1), "salary": ("int", "INT4", 10, 0)} | {
    "from_date": ("string", "DATE", 0, 2),
    "to_date": ("string", "DATE", 0, 0),
}


def _field(name: str, *types: Any) -> dict[str, Any]:
    typed = [{"type": t} if isinstance(t, str) and t != "Data" else t for t in types]
    return {"name": name, "type": typed if len(typed) > 1 else typed[0]}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


_TEXTS = ("changeSequence", "timestamp", "streamPosition", "transactionId")
_OPERATION = {"type": "enum", "name": "operation", "symbols": ["INSERT", "UPDATE", "DELETE", "REFRESH"]}
DATA_SCHEMA = _record(
    "DataRecord",
    _field("data", _record("Data", *(_field(n, "null", t[0]) for n, t in TYPES.items()))),
    _field("beforeData", "null", "Data"),
    _field(
        "headers",
        _record(
            "Headers",
            _field("operation", _OPERATION),
            *(_field(name, "string") for name in _TEXTS),
            _field("changeMask", "null", "bytes"),
            _field("columnMask", "null", "bytes"),
        ),
    ),
)
_SIZES = (("ordinal", "int"), ("type", "string"), ("length", "int"), ("precision", "int"), ("scale", "int"))
_COLUMN = (*_SIZES, ("primaryKeyPosition", "int"), ("nullable", "boolean"))
_LINEAGE = (*((n, "string") for n in ("server", "task", "schema", "table")), ("tableVersion", "long"))
MESSAGE_SCHEMA = _record(
    "MetadataMessage",
    _field("schemaId", "string"),
    _field("lineage", _record("Lineage", *(_field(*f) for f in (*_LINEAGE, ("timestamp", "string"))))),
    _field(
        "tableStructure",
        _record(
            "TableStructure",
            _field(
                "tableColumns",
                _record(
                    "TableColumns", *(_field(n, _record(n, *(_field(*f) for f in _COLUMN))) for n in TYPES)
                ),
            ),
        ),
    ),
    _field("dataSchema", "string"),
)
METADATA: dict[str, Any] = {
    "magic": "atMSG",
    "type": "MD",
    "headers": None,
    "messageSchemaId": SCHEMA_ID,
    "messageSchema": json.dumps(MESSAGE_SCHEMA, separators=(",", ":")),
    "message": {
        "schemaId": SCHEMA_ID,
        "lineage": {
            "server": "attunity-01.example",
            "task": "mysql-to-kafka",
            "schema": "employees",
            "table": "salaries",
            "tableVersion": 1,
            "timestamp": "2018-04-13T20:13:58.289",
        },
        "tableStructure": {
            "tableColumns": {
                name: {
                    "ordinal": ordinal,
                    "type": data_type,
                    "length": length,
                    "precision": 0,
                    "scale": 0,
                    "primaryKeyPosition": position,
                    "nullable": False,
                }
                for ordinal, (name, (_, data_type, length, position)) in enumerate(TYPES.items(), 1)
            }
        },
        "dataSchema": json.dumps(DATA_SCHEMA, separators=(",", ":")),
    },
}


def altered(message: dict[str, Any], **headers: Any) -> dict[str, Any]:
    altered_message = copy.deepcopy(message)
    altered_message["message"]["headers"].update(headers)
    return altered_message


def body(**parts: Any) -> dict[str, Any]:
    message = copy.deepcopy(UPDATE)
    message["message"].update(parts)
    return message


def only(*values: Any, **settings: Any) -> Change:
    (answer,) = read_messages(values, **settings)
    return change(answer)


def update(*fields: Field, **reported: Any) -> Change:
    key = (("id", next(f.after for f in fields if f.column == "id")),)
    return Change(Op.UPDATE, "app", "usr", key, fields, seq(1), **reported)  # type: ignore[arg-type]


def data_messages(changes: list[Change], **settings: Any) -> list[dict[str, Any]]:
    written = write_messages(changes, settings.pop("tables", TABLES), **settings)
    return [m["message"] for m in written if m["type"] == "DT"]
