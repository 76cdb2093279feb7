"""Kafka messages: every rule of the manual's page, and what real ones hold."""

from __future__ import annotations

import copy
import json
from io import BytesIO
from typing import Any

import fastavro
import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import NotExpressible, Refused
from eventlog.formats import log
from eventlog.formats.qlik import avro, metadata, row_plans
from eventlog.formats.qlik.mask import WrongMaskOrder
from eventlog.formats.qlik.structure import DataColumn
from eventlog.formats.qlik.types import Spec
from tests.formats.qlik.helpers import NONE, as_text, read_messages, reason, seq, write_messages
from tests.formats.qlik.message_samples import (
    DATA_SCHEMA,
    METADATA,
    REFRESH,
    SCHEMA_ID,
    TABLES,
    TYPES,
    UPDATE,
    altered,
    body,
    data_messages,
    only,
    update,
)

pytestmark = pytest.mark.quick

# --- the samples


def test_a_real_update_and_back() -> None:
    found = only(UPDATE)
    assert found == Change(
        Op.UPDATE,
        None,
        "t",
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
    assert json.dumps(written) == json.dumps(altered(REFRESH, externalSchemaId=SCHEMA_ID))


def test_a_real_metadata_message_and_back() -> None:
    known = metadata.read(METADATA["message"], str(METADATA["messageSchema"]))
    assert json.dumps(metadata.write(known)) == json.dumps(METADATA)


def test_avro_with_the_real_schemas() -> None:
    """Parse their schemas, decode our bytes with them, and theirs with ours."""
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


@pytest.mark.parametrize(("mask", "order"), [("0B00", "auto"), ("000B", "big"), ("0B00", "little")])
def test_a_mask_without_column_mask_is_read_in_its_only_order(mask: str, order: str) -> None:
    """The number `0B00` has the bits of the ordinals 9, 10 and 12, and there are ten columns."""
    message = body(data={f"c{i}": 1 for i in range(1, 11)}, beforeData=None)
    found = only(altered(message, changeMask=mask, columnMask=None), mask_order=order)
    assert [f.column for f in found.fields if f.before is ABSENT] == ["c1", "c2", "c4"]


def test_a_mask_whose_table_may_have_more_columns_is_not_read_in_the_other_order() -> None:
    """The message lacks two of twelve columns, but not those with the ordinals 9, 10 and 12."""
    columns = ", ".join(f'c{i} = "integer"' for i in range(1, 13))
    tables = tablesfile.read(f'[tables.t]\nkey = ["c1"]\ncolumns = {{ {columns} }}\n')
    message = body(data={f"c{i}": 1 for i in (1, *range(4, 13))}, beforeData=None, table="t")
    (refused,) = read_messages([altered(message, changeMask="0B00", columnMask=None)], tables)
    assert "changeMask 0B00 in big byte order: bit 11 lies past the last column, 9" in reason(refused)


def test_lob_columns_are_never_in_the_change_mask() -> None:
    moved = update(Field("id", 1, 1), Field("name", "a", "b"), Field("age", 1, 1), Field("photo", b"a", b"b"))
    (message,) = data_messages([moved])
    assert message["headers"]["changeMask"] == "02"
    assert message["headers"]["columnMask"] == "0F"
    assert only(*write_messages([moved], TABLES)).fields == moved.fields


def test_a_clear_change_bit_says_nothing_of_a_lob() -> None:
    known = write_messages([update(Field("id", 1, 1), Field("photo", b"a", b"b"))], TABLES)[0]
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


WIDE = tablesfile.read(
    '[tables.t]\nkey = ["id"]\n[tables.t.columns]\nid = "integer"\na = "text"\nb = "text"\n'
)


def without_a(operation: str, column_mask: str, change_mask: str = "04", **parts: Any) -> dict[str, Any]:
    """Return a message of the table `t` whose data lack the column `a`."""
    parts = {"data": {"id": 1, "b": "new"}, "beforeData": None, "table": "t", **parts}
    return altered(body(**parts), operation=operation, columnMask=column_mask, changeMask=change_mask)


@pytest.mark.parametrize("order", ["auto", "big"])
def test_a_column_that_data_lack_is_not_captured_by_the_tables_file(order: str) -> None:
    """Take the ordinals from the tables file where columnMask has a bit past the columns of the message."""
    inserted = only(without_a("INSERT", "05", "05"), tables=WIDE, mask_order=order)
    assert (inserted.key, inserted.after) == ((("id", 1),), {"id": 1, "b": "new"})
    updated = only(without_a("UPDATE", "05"), tables=WIDE, mask_order=order)
    assert updated.fields == (Field("id", 1, 1), Field("b", ABSENT, "new"))
    supplied = only(without_a("INSERT", "04"), tables=WIDE, mask_order=order)  # id is null, not supplied
    assert supplied.after == {"b": "new"}


def test_a_column_that_a_task_leaves_out_moves_no_bit() -> None:
    """Read masks by the columns of the message where they fit: the tables file may have more columns."""
    replicated = only(without_a("UPDATE", "03", "02"), tables=WIDE)
    assert replicated.fields == (Field("id", 1, 1), Field("b", ABSENT, "new"))


@pytest.mark.parametrize("tables", [NONE, WIDE])
def test_a_column_that_data_lack_and_before_data_hold_is_not_captured_after(tables: Any) -> None:
    before = {"id": 1, "a": "x", "b": "old"}
    updated = only(without_a("UPDATE", "05", beforeData=before), tables=tables)
    assert updated.fields == (Field("id", 1, 1), Field("b", "old", "new"), Field("a", "x", ABSENT))


def test_a_column_that_data_lack_is_not_captured_by_the_metadata() -> None:
    whole = Change(
        Op.INSERT, None, "t", (("id", 1),),
        tuple(Field(name, ABSENT, value) for name, value in (("id", 1), ("a", "x"), ("b", "y"))), seq(1),
    )  # fmt: skip
    metadata_message, data_message = write_messages([whole], WIDE)
    del data_message["message"]["data"]["a"]
    message = altered(data_message, columnMask="05", changeMask="05")
    assert only(metadata_message, message).after == {"id": 1, "b": "y"}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            without_a("INSERT", "07", "05"),
            "changeMask 05 in big byte order: bit 2 lies past the last column, 1",
        ),
        (without_a("UPDATE", "05", "02"), "changeMask 02 in big byte order: bit 1 is of a column that the"),
    ],
)
def test_a_mask_with_the_bit_of_a_column_that_data_lack_is_refused(message: Any, reason: str) -> None:
    (refused,) = read_messages([message], WIDE)
    assert isinstance(refused, Refused)
    assert reason in refused.reason


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
    (written,) = data_messages([found], tables=NONE)
    assert (written["headers"]["changeMask"], written["headers"]["columnMask"]) == ("008080", "00FFFF")


def test_the_other_byte_order_is_read_when_column_mask_proves_it() -> None:
    data = {f"c{i}": i for i in range(1, 17)}
    message = altered(body(data=data, beforeData=None), changeMask="010000", columnMask="FFFF00")
    assert [f.column for f in only(message).fields if f.before is ABSENT] == ["c1"]


@pytest.mark.parametrize("masks", [("AQAA", "//8A"), ("X'010000'", "X'FFFF00'"), ("01-00-00", "FF-FF-00")])
def test_masks_in_other_texts(masks: tuple[str, str]) -> None:
    """Read JSON of warehouses with Base64, which columnMask proves."""
    data = {f"c{i}": i for i in range(1, 17)}
    message = altered(body(data=data, beforeData=None), changeMask=masks[0], columnMask=masks[1])
    assert [f.column for f in only(message).fields if f.before is ABSENT] == ["c1"]


def test_masks_that_both_byte_orders_allow_need_the_setting_or_before_data() -> None:
    data = {f"c{i}": i for i in range(1, 16)}
    unsure = altered(body(data=data, beforeData=None, table="usr"), changeMask="0001", columnMask=None)
    with pytest.raises(WrongMaskOrder, match=r"t.jsonl:1: changeMask 0001 .* set mask-order"):
        read_messages([unsure])
    for order, changed in (("big", "c1"), ("little", "c9")):
        assert [f.column for f in only(unsure, mask_order=order).fields if f.before is ABSENT] == [changed]
        proven = altered(
            body(data=data, beforeData={**data, changed: 0}, table="usr"), changeMask="0001", columnMask=None
        )
        assert [f.column for f in only(proven).fields if f.before != f.after] == [changed]


def test_masks_that_prove_no_order_are_refused_with_what_the_others_proved() -> None:
    data = {f"c{i}": i for i in range(1, 16)}
    unsure = altered(body(data=data, beforeData=None, table="usr"), changeMask="0001", columnMask=None)
    little = altered(unsure, columnMask="FF7F")
    imaged = copy.deepcopy(unsure)
    imaged["message"]["beforeData"] = {**data, "c9": 0}
    with pytest.raises(
        WrongMaskOrder, match="prove one; none before it prove big, 2 little: set mask-order to l"
    ):
        read_messages([little, imaged, unsure])
    big = altered(unsure, changeMask="0080")  # little would set a bit past the last column
    other = altered(body(table="item"), changeMask="02", columnMask="07")  # of one byte
    with pytest.raises(WrongMaskOrder, match="1 before it proves big, none little: set mask-order to big"):
        read_messages([big, other, unsure])


def test_masks_that_contradict_the_setting_end_the_reading() -> None:
    data = {f"c{i}": i for i in range(1, 17)}
    message = altered(body(data=data, beforeData=None), changeMask="010000", columnMask="FFFF00")
    with pytest.raises(WrongMaskOrder, match=r"FFFF00 is possible in little .* mask-order is big"):
        read_messages([message], mask_order="big")


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
    (fault,) = write_messages([Change(Op.TRUNCATE, "app", "usr", position=seq(1))], TABLES)
    assert "a truncate has no message" in reason(fault)


# --- names, schemas, headers


def test_a_tables_file_that_names_columns_in_another_case_costs_no_value() -> None:
    tables = tablesfile.read('[tables.t]\nkey = ["id"]\ncolumns = { id = "text", name = "text" }\n')
    found = only(UPDATE, tables=tables)
    assert found.fields == (
        Field("id", "2", "2"),
        Field("name", "ok", "test Kafka"),
        *only(UPDATE).fields[2:],
    )
    shorter = altered(body(data={"ID": "2", "NAME": "b"}), changeMask="02", columnMask="03")
    found = only(shorter, tables=tables)
    assert found.fields == (
        Field("id", "2", "2"),
        Field("name", "ok", "b"),
        Field("tableName", "kit", ABSENT),
    )


@pytest.mark.parametrize("names", ["message", "headers", "off"])
def test_schema_and_table_in_the_message(names: str) -> None:
    moved = update(Field("id", 1, 1), Field("name", "a", "b"), Field("age", 1, 1), Field("photo", b"a", b"a"))
    (message,) = data_messages([moved], table_names=names)
    assert list(message)[:2] == (["schema", "table"] if names == "message" else ["data", "beforeData"])
    assert list(message["headers"])[:2] == (
        ["schema", "table"] if names == "headers" else ["operation", "changeSequence"]
    )
    data = [m for m in write_messages([moved], TABLES, table_names=names) if m["type"] == "DT"]
    named = {"message": "usr", "headers": "usr", "off": "topic"}[names]
    assert only(*data, table="topic").table == named


def test_a_table_that_no_message_names() -> None:
    assert only(UPDATE, tables=TABLES)[1:3] == ("app", "usr"), "the only one of the tables file"
    assert only(UPDATE, tables=TABLES, table="kit")[1:3] == (None, "kit")
    assert only(METADATA, REFRESH, table="kit").table == "salaries", "the metadata message knows better"


def test_a_change_of_structure_raises_the_version_and_comes_first() -> None:
    one = Change(Op.INSERT, None, "t", (("a", 1),), (Field("a", ABSENT, 1),), seq(1))
    two = one._replace(fields=(*one.fields, Field("b", ABSENT, "x")), position=seq(3))
    written = write_messages([one, one._replace(position=seq(2)), two])
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
    message = write_messages([loaded], TABLES, replicate_server="S", task="T", now="2018-04-13T20:13:58.289")[
        0
    ]["message"]
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
    meta, message = write_messages([moved], TABLES, external_schema_id=True)
    assert message["message"]["headers"]["externalSchemaId"] == meta["messageSchemaId"]
    loaded = moved._replace(op=Op.SNAPSHOT, fields=(Field("id", ABSENT, 1),))
    _, refresh = write_messages([loaded], TABLES, external_schema_id=True)
    assert refresh["message"]["headers"]["externalSchemaId"] == meta["messageSchemaId"]
    names = list(message["message"]["headers"])
    assert names.index("externalSchemaId") == names.index("columnMask") + 1
    assert (
        only(*write_messages([moved], TABLES, external_schema_id=True, encoding="avro")).fields
        == moved.fields
    )


def test_an_unknown_schema_id_is_no_fault_in_json() -> None:
    message = {**UPDATE, "messageSchemaId": "0" * 32}
    assert only(message).fields == only(UPDATE).fields


def test_metadata_types_the_values() -> None:
    message = copy.deepcopy(REFRESH)
    message["message"]["data"]["from_date"] = "soon"
    (fault,) = read_messages([METADATA, message])
    assert "column from_date: 'soon' is not a date" in reason(fault)


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
        [moved], TABLES, encoding="avro", framing="confluent", register=registry.register
    )
    assert written.startswith(b"\0\0\0\0\0")
    found = only(written, schema_of=registry.schema_of, tables=TABLES)
    assert as_text(found) == as_text(moved)


def test_a_schema_of_a_registry_names_the_table() -> None:
    schema = {**DATA_SCHEMA, "namespace": "com.attunity.queue.msg.task.employees.salaries"}
    structure = metadata.read_registered(1, json.dumps(schema)).structure
    assert (structure.schema, structure.table, structure.names) == ("employees", "salaries", tuple(TYPES))


PRICE = {"name": "Price", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
DECIMALS = {
    "type": "record",
    "name": "DataRecord",
    "namespace": "com.attunity.queue.msg.task.shop.item",
    "fields": [
        {
            "name": "data",
            "type": {
                "type": "record",
                "name": "Data",
                "fields": [
                    {"name": "id", "type": ["null", "int"]},
                    {"name": "net", "type": ["null", {"type": "fixed", **PRICE}]},
                    {"name": "gross", "type": ["null", "Price"]},
                    {"name": "stock", "type": ["null", {"type": "bytes", **PRICE}]},
                ],
            },
        },
        {"name": "beforeData", "type": ["null", "Data"], "default": None},
        DATA_SCHEMA["fields"][2],
    ],
}


def decimals_message(stock: str) -> bytes:
    """Return an INSERT of an item in the bytes of Avro's specification, framed as a registry's."""
    values = f"02 02 02 00003039 02 FFFFFFF9 02 {stock}"  # id 1, net 123.45, gross -0.07
    seq_text = seq(1).encode().hex()
    headers = f"00 46 {seq_text} 00 00 00 00 00"  # INSERT, changeSequence, empty texts, no masks
    return bytes.fromhex(f"00 00000000 {values} 00 {headers}")


def test_a_decimal_in_fixed_is_read_like_one_in_bytes() -> None:
    """Take the second column's type from its name, as Avro has it."""
    found = only(decimals_message("04 3039"), schema_of=lambda number: json.dumps(DECIMALS))
    assert found.after == {"id": 1, "net": "123.45", "gross": "-0.07", "stock": "123.45"}
    columns = metadata.read_registered(0, json.dumps(DECIMALS)).structure.columns
    assert [c.spec for c in columns[1:]] == [Spec("NUMERIC", 0, 9, 2)] * 3


def test_a_decimal_keeps_digits_that_its_schema_does_not_declare() -> None:
    found = only(decimals_message("0A 174876E801"), schema_of=lambda number: json.dumps(DECIMALS))
    assert found.after["stock"] == "1000000000.01"


def test_a_decimal_without_end_is_refused() -> None:
    message = decimals_message("D20F" + "7F" * 1001)
    (refused,) = read_messages([message], schema_of=lambda number: json.dumps(DECIMALS))
    assert "a decimal of 1001 bytes and scale 2: at most 1000 are read" in reason(refused)
    wide = json.loads(json.dumps(DECIMALS).replace('"scale": 2', '"scale": 1000000000'))
    (refused,) = read_messages([decimals_message("04 3039")], schema_of=lambda number: json.dumps(wide))
    assert isinstance(refused, Refused)


# --- which table a message is of


DBO = {"schema": "dbo", "table": "usr", "data": {"idu": 1}, "headers": {"operation": "INSERT"}}


@pytest.mark.parametrize(
    ("described", "key"),
    [
        ('[tables.usr]\nkey = ["idu"]\n', (("idu", 1),)),
        ('[tables.usr]\nschema = "indirect"\nkey = ["idu"]\n', ()),
        ('[tables.usr]\nkey = ["no"]\n[tables."dbo.usr"]\nschema = "dbo"\nkey = ["idu"]\n', (("idu", 1),)),
        ('[tables.usr]\nkey = ["idu"]\n[tables."a.usr"]\nschema = "a"\nkey = ["idu"]\n', ()),
    ],
)
def test_a_table_without_schema_describes_the_only_one_of_its_name(described: str, key: object) -> None:
    assert only(DBO, tables=tablesfile.read(described)).key == key


def test_a_table_of_another_schema_is_named_where_a_key_is_needed() -> None:
    tables = tablesfile.read('[tables.usr]\nschema = "indirect"\nkey = ["idu"]\n')
    change = only(DBO, tables=tables)
    (refused,) = log.FORMAT.write([change], tables, log.LogSettings())
    assert isinstance(refused, Refused)
    assert "[tables.usr] key" in refused.reason
    assert "it describes indirect.usr, which is of another schema" in refused.reason


def test_a_message_without_a_table_is_refused_and_says_what_to_name() -> None:
    (refused,) = read_messages([UPDATE], table="")
    assert "names no table" in reason(refused)
    assert "--table" in reason(refused)


def test_the_headers_of_an_envelope_name_the_table() -> None:
    change = only(UPDATE | {"headers": {"schema": "dbo", "table": "usr"}}, table="")
    assert (change.schema, change.table) == ("dbo", "usr")


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("INT1", 128),
        ("INT4", 1 << 40),
        ("UINT2", -1),
        ("INT8", str(1 << 63)),
        ("DATE", "2024-02-30"),
        ("DATETIME", "2024-02-30 10:00:00"),
        ("DATETIME", "2024-02-29 24:00:00"),
        ("TIME", "25:00:00"),
        ("TIME", "12:60:00"),
        ("TIME", "12:00:60"),
        ("TIME", "24:00:00.5"),
        ("TIME", "24:00:01"),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_refused(type_name: str, value: object) -> None:
    plan = row_plans.loading([DataColumn("c", Spec(type_name))])
    with pytest.raises(NotExpressible, match=r"column c: .*not"):
        plan([value])


@pytest.mark.parametrize("text", ["24:00:00", "24:00:00.000", "23:59:59.999"])
def test_the_end_of_a_day_is_a_time(text: str) -> None:
    assert row_plans.loading([DataColumn("c", Spec("TIME"))])([text]) == [text]


@pytest.mark.parametrize(
    ("type_name", "number", "words"),
    [
        ("INT4", "1e999", "'Infinity' is not an integer (INT4)"),
        ("INT8", "-1e999", "'-Infinity' is not an integer (INT8)"),
        ("INT1", "NaN", "'NaN' is not an integer (INT1)"),
        ("REAL4", "1e300", "'1e+300' is not a number within REAL4"),
        ("REAL8", "1" + "0" * 400, f"'1{'0' * 59}' is not a number within REAL8"),
    ],
)
def test_a_number_that_its_type_cannot_hold_is_refused_in_our_words(
    type_name: str, number: str, words: str
) -> None:
    with pytest.raises(NotExpressible) as caught:
        row_plans.loading([DataColumn("c", Spec(type_name))])([json.loads(number)])
    assert str(caught.value) == f"column c: {words}"


def test_the_external_schema_id_is_kept_and_written_again() -> None:
    reported = copy.deepcopy(UPDATE)
    reported["message"]["headers"]["externalSchemaId"] = "16777220"
    change = only(reported)
    assert change.fact("external_schema_id") == "16777220"
    (written,) = write_messages([change], metadata=False, table_names="off")
    headers = written["message"]["headers"]
    assert headers["externalSchemaId"] == "16777220"
    assert list(headers).index("externalSchemaId") == list(headers).index("columnMask") + 1


def test_metadata_of_a_capture_have_the_types_of_its_schema_record() -> None:
    times = "at datetime year to second, hour datetime hour to minute"
    columns = f"id serial, price decimal(9,2), {times}, note varchar(20,0)"
    known = tablesfile.read('[tables.usr]\nschema = "app"\nkey = ["id"]\ncolumns = { id = "integer" }\n')
    moments = {"at": "2024-05-01T10:00:00", "hour": "07:05"}
    values: dict[str, Any] = {"id": 1, "price": "1.50", **moments, "note": None}
    fields = tuple(Field(name, ABSENT, value) for name, value in values.items())
    change = Change(Op.INSERT, "app", "usr", (("id", 1),), fields, seq(1), extra=(("columns", columns),))
    first, data = write_messages([change], known)
    stated = first["message"]["tableStructure"]["tableColumns"]
    types = {name: (column["type"], column["length"]) for name, column in stated.items()}
    assert types == {
        "id": ("INT4", 10),
        "price": ("NUMERIC", 0),
        "at": ("DATETIME", 0),
        "hour": ("STRING", 0),
        "note": ("STRING", 80),
    }
    assert data["message"]["data"]["hour"] == "07:05"
