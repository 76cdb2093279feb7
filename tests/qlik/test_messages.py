"""Kafka messages: every rule of the manual's page, what real ones hold, and what bad ones cost."""

from __future__ import annotations

import copy
import json
from io import BytesIO
from typing import Any

import fastavro
import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Raw
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Placed, Source
from eventlog.qlik import avro, metadata
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.sequenced_messages import MessageSequencer
from eventlog.streams.ordered import ordered
from tests.qlik.helpers import NONE, change, read_messages, reason, seq, told, write_messages

KNOWN = tablesfile.read(
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
_TYPES = {"emp_no": ("int", "INT4", 10, 1), "salary": ("int", "INT4", 10, 0)} | {
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
    _field("data", _record("Data", *(_field(n, "null", t[0]) for n, t in _TYPES.items()))),
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
                    "TableColumns", *(_field(n, _record(n, *(_field(*f) for f in _COLUMN))) for n in _TYPES)
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
                for ordinal, (name, (_, data_type, length, position)) in enumerate(_TYPES.items(), 1)
            }
        },
        "dataSchema": json.dumps(DATA_SCHEMA, separators=(",", ":")),
    },
}


def altered(message: dict[str, Any], **headers: Any) -> dict[str, Any]:
    made = copy.deepcopy(message)
    made["message"]["headers"].update(headers)
    return made


def body(**parts: Any) -> dict[str, Any]:
    made = copy.deepcopy(UPDATE)
    made["message"].update(parts)
    return made


def only(*values: Any, **settings: Any) -> Change:
    (found,) = read_messages(values, **settings)
    return change(found)


def update(*fields: Field, **told: Any) -> Change:
    key = (("id", next(f.after for f in fields if f.column == "id")),)
    return Change(Op.UPDATE, "app", "usr", key, fields, seq(1), **told)  # type: ignore[arg-type]


def data_messages(changes: list[Change], **settings: Any) -> list[dict[str, Any]]:
    written = write_messages(changes, settings.pop("known", KNOWN), **settings)
    return [m["message"] for m in written if m["type"] == "DT"]


# --- the samples


def test_a_real_update_and_back() -> None:
    found = only(UPDATE)
    assert found == Change(
        Op.UPDATE,
        None,
        "",
        (),
        (Field("ID", "2", "2"), Field("NAME", "ok", "test Kafka"), Field("tableName", "kit", "kit")),
        "20230911032325000000000000000000005",
        "00000000000000000000000000060008",
        "2023-09-11T03:23:25Z",
        extra=(
            ("stream_position", "00000000.00bb2531.00000001.0000.02.0000:154.6963.16"),
            ("event_counter", 1),
            ("last_event", True),
        ),
    )
    (written,) = write_messages([found], metadata=False, table_names="off")
    assert json.dumps(written) == json.dumps(UPDATE)


def test_a_real_row_of_a_full_load_and_back() -> None:
    found = only(METADATA, REFRESH)
    assert found[:5] == (
        Op.SNAPSHOT,
        "employees",
        "salaries",
        (("emp_no", 14472), ("from_date", "1993-11-25")),
        tuple(Field(n, ABSENT, v) for n, v in REFRESH["message"]["data"].items()),
    )
    known = metadata.read(METADATA["message"], str(METADATA["messageSchema"]))
    (written,) = write_messages([found], published=(known,), external_schema_id=True, table_names="off")
    assert json.dumps(written) == json.dumps(REFRESH)


def test_a_real_metadata_message_and_back() -> None:
    known = metadata.read(METADATA["message"], str(METADATA["messageSchema"]))
    assert json.dumps(metadata.write(known)) == json.dumps(METADATA)


def test_avro_with_the_real_schemas() -> None:
    """Their schemas parse, our bytes decode with them, and theirs with us."""
    known = metadata.read(METADATA["message"], str(METADATA["messageSchema"]))
    found = only(METADATA, REFRESH)
    (ours,) = write_messages([found], published=(known,), encoding="avro", table_names="off")
    envelope: Any = fastavro.schemaless_reader(BytesIO(ours), avro.envelope(), None)
    assert (envelope["magic"], envelope["type"], envelope["messageSchemaId"]) == (b"atMSG", "DT", SCHEMA_ID)
    record: Any = fastavro.schemaless_reader(
        BytesIO(envelope["message"]), fastavro.parse_schema(DATA_SCHEMA), None
    )
    assert record["data"] == REFRESH["message"]["data"]
    assert only(metadata.write_avro(known), ours) == found
    assert ours.startswith(b"atMSG" + b"\x04DT" + b"\x00" + b"\x02\x40" + SCHEMA_ID.encode() + b"\x00")


# --- masks


def test_change_mask_counts_ordinals_of_the_metadata_message() -> None:
    names = [f"c{i}" for i in range(1, 11)]
    message = body(data=dict.fromkeys(names, 1), beforeData=None)
    found = only(altered(message, changeMask="000B", columnMask="03FF"))
    assert [f.column for f in found.fields if f.before is ABSENT] == ["c1", "c2", "c4"]


def test_lob_columns_are_never_in_the_change_mask() -> None:
    moved = update(Field("id", 1, 1), Field("name", "a", "b"), Field("age", 1, 1), Field("photo", b"a", b"b"))
    (message,) = data_messages([moved])
    assert message["headers"]["changeMask"] == "02"
    assert message["headers"]["columnMask"] == "0F"
    assert only(*write_messages([moved], KNOWN)).fields == moved.fields


def test_a_clear_change_bit_says_nothing_of_a_lob() -> None:
    known = write_messages([update(Field("id", 1, 1), Field("photo", b"a", b"b"))], KNOWN)[0]
    message = body(
        data={"id": 1, "name": "a", "age": 2, "photo": "00FF"}, beforeData=None, schema="app", table="usr"
    )
    message["messageSchemaId"] = known["messageSchemaId"]
    found = only(known, altered(message, changeMask="02", columnMask="0F"))
    assert found.fields == (
        Field("id", 1, 1),
        Field("name", ABSENT, "a"),
        Field("age", 2, 2),
        Field("photo", ABSENT, b"\0\xff"),
    )


def test_column_mask_tells_a_null_from_what_was_not_captured() -> None:
    message = altered(
        body(data={"a": 1, "b": None, "c": None}, beforeData=None), changeMask="05", columnMask="05"
    )
    assert only(message).fields == (Field("a", ABSENT, 1), Field("c", ABSENT, None))


def test_supplied_and_not_changed_without_before_data_was_the_same_before() -> None:
    message = altered(body(beforeData=None), changeMask="02", columnMask="07")
    assert only(message).fields[0] == Field("ID", "2", "2")


@pytest.mark.parametrize("before", [{"id": 1, "a": "x"}, {"a": "x", "id": 1}, {"a": "x"}])
@pytest.mark.parametrize("mask", [None, "01"])
def test_what_before_data_alone_holds_was_there_before(before: dict[str, Any], mask: str | None) -> None:
    message = altered(body(data={"id": 1}, beforeData=before), changeMask=None, columnMask=mask)
    found = only(message)
    assert found.fields[1:] == (Field("a", "x", ABSENT),)
    assert found.after == {"id": 1}


def test_columns_of_before_data_beside_an_insert_change_nothing() -> None:
    message = altered(body(data={"id": 1}, beforeData={"id": 1, "a": "x"}), operation="INSERT")
    found = only(altered(message, changeMask="01", columnMask="01"))
    assert found.fields == (Field("id", ABSENT, 1),)


def test_a_multi_byte_mask_is_one_number() -> None:
    data = {f"c{i}": i for i in range(1, 17)}
    before = {**data, "c8": 0, "c16": 0}
    message = altered(body(data=data, beforeData=before), changeMask="008080", columnMask="00FFFF")
    found = only(message)
    assert [f.column for f in found.fields if f.before != f.after] == ["c8", "c16"]
    (written,) = data_messages([found], known=NONE)
    assert (written["headers"]["changeMask"], written["headers"]["columnMask"]) == ("008080", "00FFFF")


def test_the_other_byte_order_is_read_when_column_mask_proves_it() -> None:
    data = {f"c{i}": i for i in range(1, 17)}
    message = altered(body(data=data, beforeData=None), changeMask="010000", columnMask="FFFF00")
    assert [f.column for f in only(message).fields if f.before is ABSENT] == ["c1"]


def test_insert_and_delete_masks() -> None:
    fields = (Field("id", ABSENT, 1), Field("name", ABSENT, None))
    inserted = Change(Op.INSERT, "app", "usr", (("id", 1),), fields, seq(1))
    deleted = Change(Op.DELETE, "app", "usr", (("id", 1),), (Field("id", 1), Field("age", 5)), seq(2))
    masks = [
        (m["headers"]["changeMask"], m["headers"]["columnMask"]) for m in data_messages([inserted, deleted])
    ]
    assert masks == [("03", "03"), ("01", "05")]


# --- operations


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("INSERT", Op.INSERT),
        ("UPDATE", Op.UPDATE),
        ("DELETE", Op.DELETE),
        ("REFRESH", Op.SNAPSHOT),
        ("READ", Op.SNAPSHOT),
    ],
)
def test_operations(name: str, op: Op) -> None:
    assert only(altered(UPDATE, operation=name)).op is op


def test_refresh_carries_no_facts_of_change_capture() -> None:
    row = {"id": 1, "name": None, "age": None, "photo": None}
    fields = tuple(Field(name, ABSENT, value) for name, value in row.items())
    time = "2024-01-01T00:00:00Z"
    loaded = Change(Op.SNAPSHOT, "app", "usr", (("id", 1),), fields, "17", "39", time)
    (message,) = data_messages([loaded])
    assert message["headers"] == {
        "operation": "REFRESH",
        "changeSequence": "",
        "timestamp": "",
        "streamPosition": "",
        "transactionId": "",
        "changeMask": None,
        "columnMask": None,
        "transactionEventCounter": None,
        "transactionLastEvent": None,
    }


def test_before_data_only_on_update() -> None:
    moved = update(Field("id", 1, 1), Field("name", "a", "b"))
    messages = data_messages([moved, moved._replace(op=Op.INSERT), moved._replace(op=Op.DELETE)])
    assert [m["beforeData"] is not None for m in messages] == [True, False, False]
    (without,) = data_messages([moved], before_images=False)
    assert without["beforeData"] is None


@pytest.mark.parametrize("part", ["data", "beforeData"])
def test_the_row_of_a_delete_is_read_from_either_part(part: str) -> None:
    empty: dict[str, Any] = {"data": None, "beforeData": None}
    message = altered(
        body(**{**empty, part: {"ID": "2", "NAME": "x"}}),
        operation="DELETE",
        changeMask="01",
        columnMask="03",
    )
    found = only(message)
    assert (found.key, found.fields) == ((("ID", "2"),), (Field("ID", "2"), Field("NAME", "x")))


def test_the_row_of_a_delete_is_written_as_data() -> None:
    gone = Change(Op.DELETE, "app", "usr", (("id", 1),), (Field("id", 1), Field("name", "x")), seq(1))
    (message,) = data_messages([gone])
    assert message["data"] == {"id": 1, "name": "x", "age": None, "photo": None}


def test_a_truncate_has_no_message() -> None:
    (fault,) = write_messages([Change(Op.TRUNCATE, "app", "usr", position=seq(1))], KNOWN)
    assert "a truncate has no message" in reason(fault)


def test_a_transaction_is_counted_without_what_has_no_message() -> None:
    """Else nobody who waits for its last event, or for all of its events, would ever have it."""
    first = Change(Op.INSERT, "app", "usr", (("id", 1),), (Field("id", ABSENT, 1),), seq(1), "tx")
    empty = Change(Op.TRUNCATE, "app", "usr", position=seq(2), transaction="tx")
    raw = Change(Op.INSERT, "app", "usr", position=seq(3), transaction="tx", raw=Raw(None, b"x"))
    written = write_messages([empty, first, raw, first._replace(position=seq(4)), empty], KNOWN)
    headers = [one["message"]["headers"] for one in written if isinstance(one, dict) and one["type"] == "DT"]
    assert [(h["transactionEventCounter"], h["transactionLastEvent"]) for h in headers] == [
        (1, False),
        (2, True),
    ]
    assert sum(isinstance(one, Refused) for one in written) == 3


def _with_misfits(*, told: bool, **settings: Any) -> list[Any]:
    """Messages of a transaction of five changes, of which the first, the third and the last hold no id."""
    ids: list[Any] = ["one", 2, "three", 4, "five"]
    changes = [
        Change(
            *(Op.INSERT, "app", "usr", (("id", value),), (Field("id", ABSENT, value),), seq(number), "tx"),
            extra=(("event_counter", number), ("last_event", number == len(ids))) if told else (),
        )
        for number, value in enumerate(ids, 1)
    ]
    return write_messages(changes, KNOWN, **settings)


@pytest.mark.parametrize("told", [True, False], ids=["told", "counted"])
def test_a_transaction_is_counted_without_values_that_do_not_fit(told: bool) -> None:
    written = _with_misfits(told=told)
    messages = [one for one in written if isinstance(one, dict)]
    assert [one["type"] for one in messages] == ["MD", "DT", "DT"]
    headers = [one["message"]["headers"] for one in messages[1:]]
    assert [(h["transactionEventCounter"], h["transactionLastEvent"]) for h in headers] == [
        (1, False),
        (2, True),
    ]
    assert [h["changeSequence"] for h in headers] == [seq(2), seq(4)]
    assert sum(isinstance(one, Refused) for one in written) == 3
    whole = read_messages(messages, KNOWN, whole_transactions=True)
    assert [change(one).key for one in whole] == [(("id", 2),), (("id", 4),)]


# --- names, schemas, headers


@pytest.mark.parametrize("names", ["message", "headers", "off"])
def test_schema_and_table_in_the_message(names: str) -> None:
    moved = update(Field("id", 1, 1), Field("name", "a", "b"))
    (message,) = data_messages([moved], table_names=names)
    assert list(message)[:2] == (["schema", "table"] if names == "message" else ["data", "beforeData"])
    assert list(message["headers"])[:2] == (
        ["schema", "table"] if names == "headers" else ["operation", "changeSequence"]
    )
    data = [m for m in write_messages([moved], KNOWN, table_names=names) if m["type"] == "DT"]
    named = {"message": "usr", "headers": "usr", "off": "topic"}[names]
    assert only(*data, table="topic").table == named


def test_a_table_that_no_message_names() -> None:
    assert only(UPDATE, known=KNOWN)[1:3] == ("app", "usr"), "the only one of the tables file"
    assert only(UPDATE, known=KNOWN, table="kit")[1:3] == (None, "kit")
    assert only(METADATA, REFRESH, table="kit").table == "salaries", "the metadata message knows better"


def test_a_change_of_structure_raises_the_version_and_comes_first() -> None:
    one = Change(Op.INSERT, None, "t", (("a", 1),), (Field("a", ABSENT, 1),), seq(1))
    two = one._replace(fields=(*one.fields, Field("b", ABSENT, "x")), position=seq(2))
    written = write_messages([one, one._replace(position=seq(3)), two])
    assert [m["type"] for m in written] == ["MD", "DT", "DT", "MD", "DT"]
    first, second = written[0], written[3]
    assert [m["message"]["lineage"]["tableVersion"] for m in (first, second)] == [1, 2]
    assert first["messageSchemaId"] != second["messageSchemaId"]
    assert [m["messageSchemaId"] for m in written[1:3]] == [first["messageSchemaId"]] * 2
    assert written[4]["messageSchemaId"] == second["messageSchemaId"] == second["message"]["schemaId"]
    assert len(second["messageSchemaId"]) == 32


def test_what_was_published_before_a_restart_is_not_published_again() -> None:
    one = Change(Op.INSERT, None, "t", (("a", 1),), (Field("a", ABSENT, 1),), seq(1))
    (known,) = (metadata.read(m["message"]) for m in write_messages([one]) if m["type"] == "MD")
    assert [m["type"] for m in write_messages([one], published=(known,))] == ["DT"]
    wider = one._replace(fields=(*one.fields, Field("b", ABSENT, 1)))
    assert write_messages([wider], published=(known,))[0]["message"]["lineage"]["tableVersion"] == 2


def test_the_metadata_message() -> None:
    loaded = Change(Op.INSERT, "app", "usr", (("id", 1),), (Field("id", ABSENT, 1),), seq(1))
    message = write_messages([loaded], KNOWN, server="S", task="T", now="2018-04-13T20:13:58.289")[0][
        "message"
    ]
    assert list(message) == ["schemaId", "lineage", "tableStructure", "dataSchema"]
    assert message["lineage"] == {
        "server": "S",
        "task": "T",
        "schema": "app",
        "table": "usr",
        "tableVersion": 1,
        "timestamp": "2018-04-13T20:13:58.289",
    }
    columns = message["tableStructure"]["tableColumns"]
    assert [(n, c["ordinal"], c["type"], c["primaryKeyPosition"]) for n, c in columns.items()] == [
        ("id", 1, "INT4", 1),
        ("name", 2, "STRING", 0),
        ("age", 3, "INT4", 0),
        ("photo", 4, "BLOB", 0),
    ]
    fields = json.loads(message["dataSchema"])["fields"]
    assert [f["name"] for f in fields] == ["schema", "table", "data", "beforeData", "headers"]


def test_external_schema_id_only_when_enabled() -> None:
    moved = update(Field("id", 1, 1), Field("name", "a", "b"))
    (without,) = data_messages([moved])
    assert "externalSchemaId" not in without["headers"]
    meta, message = write_messages([moved], KNOWN, external_schema_id=True)
    assert message["message"]["headers"]["externalSchemaId"] == meta["messageSchemaId"]
    names = list(message["message"]["headers"])
    assert names.index("externalSchemaId") == names.index("columnMask") + 1
    assert (
        only(*write_messages([moved], KNOWN, external_schema_id=True, encoding="avro")).fields == moved.fields
    )


def test_an_unknown_schema_id_is_no_fault_in_json() -> None:
    message = {**UPDATE, "messageSchemaId": "0" * 32}
    assert only(message).fields == only(UPDATE).fields


def test_metadata_types_the_values() -> None:
    message = copy.deepcopy(REFRESH)
    message["message"]["data"]["from_date"] = "soon"
    (fault,) = read_messages([METADATA, message])
    assert "column from_date: 'soon' is not a date" in reason(fault)


# --- transactions


def _event(transaction: str, counter: int | None, last: bool | None, number: int) -> dict[str, Any]:
    return altered(
        UPDATE,
        transactionId=transaction,
        transactionEventCounter=counter,
        transactionLastEvent=last,
        changeSequence=seq(number),
    )


def _whole(*events: dict[str, Any]) -> list[str | None]:
    found = read_messages(events, whole_transactions=True)
    return [c.position if isinstance(c, Change) else c.reason for c in found]


def test_transactions_come_out_whole_in_the_order_of_their_counters() -> None:
    events = [
        _event("A", 2, False, 2),
        _event("B", 1, True, 9),
        _event("A", 1, False, 1),
        _event("A", 3, True, 3),
    ]
    assert _whole(*events) == [seq(9), seq(1), seq(2), seq(3)]


def test_an_id_is_used_again() -> None:
    assert _whole(_event("A", 1, True, 1), _event("A", 1, False, 2), _event("A", 2, True, 3)) == [
        seq(1),
        seq(2),
        seq(3),
    ]


def test_what_is_sent_again_after_a_failure_comes_out_once() -> None:
    events = [_event("A", 1, False, 1), _event("A", 1, False, 1), _event("A", 2, True, 2)]
    assert _whole(*events) == [seq(1), seq(2)]


def test_without_counters_the_time_of_the_sequence_tells_transactions_apart() -> None:
    later = altered(_event("A", None, None, 3), changeSequence="2024010113000000" + f"{3:019}")
    assert _whole(_event("A", None, None, 1), _event("A", None, None, 2), later) == [
        seq(1),
        seq(2),
        later["message"]["headers"]["changeSequence"],
    ]


def test_a_transaction_that_lacks_messages_is_refused() -> None:
    assert "a gap" in str(_whole(_event("A", 1, False, 1), _event("A", 3, True, 3))[0])
    assert "not complete" in str(_whole(_event("A", 1, False, 1))[0])


def test_until() -> None:
    events = [_event("A", 1, True, n) for n in (1, 2, 3)]
    assert len(read_messages(events, until=seq(2))) == 2


# --- variants


def test_messages_without_an_envelope() -> None:
    assert only(UPDATE["message"]) == only(UPDATE)


@pytest.mark.parametrize("prefix", ["headers_", ""])
def test_flattened_messages(prefix: str) -> None:
    parts: Any = UPDATE["message"]
    flat = {prefix + n: v for n, v in parts["headers"].items()}
    flat |= {f"data_{n}": v for n, v in parts["data"].items()}
    flat |= {f"beforeData_{n}": v for n, v in parts["beforeData"].items()}
    assert only(flat) == only(UPDATE)
    half = {prefix + n: v for n, v in parts["headers"].items()} | {
        "data": parts["data"],
        "beforeData": parts["beforeData"],
    }
    assert only(half) == only(UPDATE)


def test_the_form_of_2016() -> None:
    old = {
        "schema": "s",
        "table": "t",
        "op": "U",
        "data": [{"ID": "2"}, {"N": "b"}],
        "bu_data": [{"ID": "2"}, {"N": "a"}],
    }
    found = only(old)
    assert found[:5] == (Op.UPDATE, "s", "t", (), (Field("ID", "2", "2"), Field("N", "a", "b")))


# --- bad messages


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ([], "a message is an object, not list"),
        ({}, "no operation in headers.operation"),
        ({**UPDATE, "magic": "atMSQ"}, "wrong magic 'atMSQ'"),
        ({**UPDATE, "type": "XX"}, "type 'XX' is neither MD nor DT"),
        ({**UPDATE, "message": None}, "the envelope holds no message object"),
        (body(data=None, beforeData=None), "neither data nor beforeData"),
        (body(data={"a": [1], "b": 1, "c": 1}), "column a: a value of type list"),
        (altered(UPDATE, operation="MERGE"), "operation 'MERGE' is none of"),
        (altered(UPDATE, changeSequence="2023"), "is not 35 digits"),
        (altered(UPDATE, changeSequence=5), "it has not the form of one"),
        (altered(UPDATE, changeMask="2"), "is not an even number of hexadecimal digits"),
        (
            altered(UPDATE, changeMask="08"),
            "changeMask 08 in big byte order: bit 3 lies past the last column, 2",
        ),
        (altered(UPDATE, columnMask=[]), "it has not the form of one"),
        ({**UPDATE, "messageSchemaId": []}, "messageSchemaId is list, not text"),
        ({**UPDATE, "messageSchemaId": {"id": 1}}, "messageSchemaId is dict, not text"),
        ({**METADATA, "messageSchema": 5}, "messageSchema is int, not text"),
        (body(data={}), "UPDATE without data"),
        (altered(UPDATE, transactionId=[1]), "transactionId '[1]' is no text"),
        (altered(UPDATE, streamPosition={"at": 1}), "streamPosition \"{'at': 1}\" is no text"),
        (body(schema=[], table={}), "it has not the form of one"),
        (altered(UPDATE, timestamp="soon"), "'soon' is not a timestamp"),
        (altered(UPDATE, transactionEventCounter="1"), "transactionEventCounter '1'"),
        ({**METADATA, "message": {}}, "metadata message: 'lineage' is missing"),
        (
            {**METADATA, "message": {"lineage": 1, "tableStructure": 2}},
            "metadata message: it has not the form of one",
        ),
    ],
)
def test_a_bad_message_costs_itself_alone(message: Any, words: str) -> None:
    found = read_messages([UPDATE, message, UPDATE])
    assert [isinstance(c, Refused) for c in found] == [False, True, False]
    assert reason(found[1]).startswith("t.jsonl:2: ")
    assert words in reason(found[1])


def test_an_id_that_came_as_a_number_is_text() -> None:
    found = only(altered(UPDATE, transactionId=27, streamPosition=154))
    assert found.transaction == "27"
    assert found.fact("stream_position") == "154"


def _avro() -> list[bytes]:
    moved = update(Field("id", 1, 1), Field("name", "a", "b"))
    return write_messages([moved, moved._replace(position=seq(2))], KNOWN, encoding="avro")


def test_truncated_avro_is_refused_wherever_it_is_cut() -> None:
    meta, message, last = _avro()
    cuts = [message[:n] for n in range(len(message))]
    found = read_messages([meta, *cuts, last])
    assert [isinstance(c, Refused) for c in found] == [True] * len(cuts) + [False]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"atMSQ" + b"\0" * 9, "wrong magic b'atMSQ'"),
        (b"", "wrong magic b''"),
        (b"\0\0\0\0\7x", "schema 7 is in a registry"),
    ],
)
def test_bytes_that_are_no_envelope(data: bytes, words: str) -> None:
    (fault,) = read_messages([data])
    assert words in reason(fault)


def test_bytes_behind_the_message_are_refused() -> None:
    meta, message, _ = _avro()
    (fault,) = read_messages([meta, message + b"\0"])
    assert "1 bytes behind the Avro record" in reason(fault)


def test_an_unknown_schema_id_is_a_fault_in_avro() -> None:
    meta, message, last = _avro()
    found = read_messages([message, meta, last])
    assert "is unknown: no metadata message before this one has it" in reason(found[0])
    assert isinstance(found[1], Change)


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "[" * 100_000,
        '{"type": "array", "items": "null"}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}',
        '{"type": "fixed", "name": "F", "size": 1000000000}',
        '{"type": "map", "values": "null"}',
        '{"type": "record"}',
        "7",
    ],
)
def test_a_foreign_schema_that_no_message_has(schema: str) -> None:
    with pytest.raises(avro.InvalidAvro):
        avro.foreign(schema)


def test_column_names_that_avro_does_not_allow() -> None:
    (fault,) = write_messages(
        [Change(Op.INSERT, None, "t", (), (Field("a-b", ABSENT, 1),), seq(1))], encoding="avro"
    )
    assert "column 'a-b' of t is no name of Avro" in reason(fault)


# --- a registry


class Registry:
    """Keeps schemas under numbers, as one does."""

    def __init__(self) -> None:
        self.schemas: list[str] = []

    def register(self, table: str, schema: str) -> int:
        self.schemas.append(schema)
        return len(self.schemas) - 1

    def schema_of(self, number: int) -> str:
        return self.schemas[number]


def test_the_wire_format_of_confluent() -> None:
    registry = Registry()
    moved = update(Field("id", 1, 1), Field("name", "a", "b"), transaction="A" * 32)
    (written,) = write_messages(
        [moved], KNOWN, encoding="avro", framing="confluent", register=registry.register
    )
    assert written.startswith(b"\0\0\0\0\0")
    found = only(written, schema_of=registry.schema_of, known=KNOWN)
    assert told(found) == told(moved._replace(key=found.key))
    assert found.table == "usr"


def test_a_schema_of_a_registry_names_the_table() -> None:
    schema = {**DATA_SCHEMA, "namespace": "com.attunity.queue.msg.task.employees.salaries"}
    structure = metadata.registered(1, json.dumps(schema)).structure
    assert (structure.schema, structure.table, structure.names) == ("employees", "salaries", tuple(_TYPES))


@pytest.mark.parametrize(
    ("sql_type", "value"),
    [
        ("integer", float("inf")),
        ("integer", 1.5),
        ("integer", "1e5"),
        ("real", 1e300),
        ("real", "abc"),
        ("double precision", 10**400),
        ("numeric(5,2)", "1,5"),
        ("boolean", 2),
        ("varbinary(9)", "0"),
        ("date", "2024-2-1"),
        ("timestamp", "2024-02-01"),
        ("varchar(9)", 1),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(sql_type: str, value: object) -> None:
    known = tablesfile.read(f'[tables.t]\ncolumns = {{ c = "{sql_type}" }}\n')
    message = body(data={"c": value}, beforeData=None, table="t")
    (fault,) = read_messages([altered(message, changeMask=None, columnMask=None)], known)
    assert "column c: " in reason(fault)


def test_messages_of_two_tasks_in_one_topic_follow_each_other() -> None:
    """Their metadata name the tasks; what names none is of the first."""
    rows = {
        task: write_messages(
            [made._replace(position=seq(n)) for n in numbers], task=task, now="2024-01-01T00:00:00"
        )
        for task, numbers in (("hr", (1, 3)), ("fin", (2, 4)))
        for made in [Change(Op.INSERT, "app", task, (("id", 1),), (Field("id", ABSENT, 1),), None, "AB")]
    }
    plain = write_messages(
        [Change(Op.INSERT, "app", "x", (("id", 1),), (Field("id", ABSENT, 1),), seq(5), "AB")], metadata=False
    )
    mixed = [*rows["hr"][:2], *rows["fin"][:2], *plain, *rows["hr"][2:], *rows["fin"][2:]]
    objects = [Object(n, value, b"") for n, value in enumerate(mixed, 1)]
    source: Source[Object] = Source("t.jsonl", "t", (), objects)
    found = list(ordered(MessageSequencer(NONE, MessageSettings()), [("", [source])]))
    assert [item.change.table for item in found if isinstance(item, Placed)] == [
        "hr",
        "hr",
        "x",
        "fin",
        "fin",
    ]
    assert [item.where for item in found if isinstance(item, Refused)] == ["hr, fin"]
