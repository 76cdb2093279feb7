"""Messages of Debezium: read with and without schemas, written whole or refused."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventlog
from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.formats.debezium.format import read, write

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    """
[tables."public.person"]
key = ["id"]
columns = { id = "integer", name = "varchar(40)", born = "date", pay = "numeric(10,2)", at = "timestamp(6)" }
"""
)
ANNE = {"id": 1, "name": "Anne", "born": 7000, "pay": "JxA=", "at": 1700000000123456}
ANNE_FIELDS = (
    Field("id", after=1),
    Field("name", after="Anne"),
    Field("born", after="1989-03-02"),
    Field("pay", after="100.00"),
    Field("at", after="2023-11-14T22:13:20.123456"),
)
SOURCE = {"connector": "postgresql", "schema": "public", "table": "person", "ts_ms": 1700000000123, "lsn": 7}


def message(op: str, *, before: Any = None, after: Any = None, **source: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {**SOURCE, **source}}


def changes(
    *values: Any, tables: Tables = TABLES, key: Any = None, stem: str = "file", **options: Any
) -> list[Change | Refused]:
    raw_key = None if key is None else json.dumps(key).encode()
    records = [Object(number, value, key=raw_key) for number, value in enumerate(values, 1)]
    return list(read([Source("file", stem, (), records)], tables, DebeziumSettings(**options)))


def only(*values: Any, **options: Any) -> Change:
    (change,) = changes(*values, **options)
    assert isinstance(change, Change), change
    return change


def reason(*values: Any, **options: Any) -> str:
    refused = [item for item in changes(*values, **options) if isinstance(item, Refused)]
    assert len(refused) == 1
    return refused[0].reason


def written(change: Change, tables: Tables = TABLES, **options: Any) -> list[Any]:
    return list(write([change], tables, DebeziumSettings(**options)))


def test_a_message_without_a_schema_is_read_by_the_tables_file() -> None:
    change = only(message("c", after=ANNE, txId=55))
    assert change.fields == ANNE_FIELDS
    assert (change.op, change.schema, change.table, change.key) == (
        Op.INSERT,
        "public",
        "person",
        (("id", 1),),
    )
    assert (change.position, change.transaction, change.time) == ("7", "55", "2023-11-14T22:13:20.123")


@pytest.mark.parametrize(
    ("places", "position"),
    [
        ({"lsn": None, "commit_lsn": "27:9:4", "change_lsn": "27:9:2"}, "27:9:2"),
        ({"lsn": None, "commit_scn": "9", "scn": "7"}, "7"),
        ({"lsn": None, "scn": "7", "rs_id": "0x1.2.3", "ssn": 4}, "7:0x1.2.3:4"),
        ({"lsn": None, "file": "binlog.1", "pos": 4, "row": 2}, "binlog.1:4:2"),
    ],
)
def test_the_position_is_the_place_of_the_change_in_its_log(places: dict[str, Any], position: str) -> None:
    assert only(message("c", after=ANNE, **places)).position == position


def test_inserts_and_the_delete_of_a_moved_key_share_a_position_but_no_event_id() -> None:
    """Read the delete and the insert of a key change, and another row, as a COPY has it."""
    deleted, *inserted = {"id": 1}, ANNE | {"id": 2}, ANNE | {"id": 3}
    read = changes(message("d", before=deleted), *(message("c", after=row) for row in inserted))
    records = eventlog.records((item for item in read if isinstance(item, Change)), "xds", tables=TABLES)
    names = re.findall(' event-id="(.*?)"', "".join(record.value.decode() for record in records))
    deletion, *insertions = names
    assert deletion == "public.person:7"
    assert all(re.fullmatch(r"public\.person:7\.[0-9a-f]{16}", name) for name in insertions)
    assert len({*names}) == 3


@pytest.mark.parametrize(
    ("times", "time"),
    [
        ({"ts_us": 1700000000123456}, "2023-11-14T22:13:20.123456"),
        ({"ts_us": 1700000000123456, "ts_ns": 1700000000123456789}, "2023-11-14T22:13:20.123456789"),
    ],
)
def test_the_time_is_as_precise_as_the_message_states_it(times: dict[str, int], time: str) -> None:
    assert only(message("c", after=ANNE, **times)).time == time


SCHEMAS: dict[str, tuple[str, str | None, dict[str, str], Any, Any]] = {
    "days": ("int32", "io.debezium.time.Date", {}, -1, "1969-12-31"),
    "milliseconds of a day": ("int32", "io.debezium.time.Time", {}, 36_000_500, "10:00:00.5"),
    "microseconds of a day": ("int64", "io.debezium.time.MicroTime", {}, 1, "00:00:00.000001"),
    "a negative time": ("int64", "io.debezium.time.MicroTime", {}, -1, "-00:00:00.000001"),
    "nanoseconds": ("int64", "io.debezium.time.NanoTimestamp", {}, 1, "1970-01-01T00:00:00.000000001"),
    "Kafka Connect's timestamp": (
        "int64",
        "org.apache.kafka.connect.data.Timestamp",
        {},
        -1,
        "1969-12-31T23:59:59.999",
    ),
    "a moment with a zone": (
        "string",
        "io.debezium.time.ZonedTimestamp",
        {},
        "2024-01-01T10:00:00Z",
        "2024-01-01T10:00:00Z",
    ),
    "a negative decimal": ("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "2"}, "/w==", "-0.01"),
    "an integer of many digits": (
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        {"scale": "0"},
        "AQAAAAAAAAAA",
        2**64,
    ),
    "an integer of hundreds": (
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        {"scale": "-2"},
        "Bw==",
        700,
    ),
    "a decimal of any scale": (
        "struct",
        "io.debezium.data.VariableScaleDecimal",
        {},
        {"scale": 3, "value": "AQ=="},
        "0.001",
    ),
    "bits": ("bytes", "io.debezium.data.Bits", {"length": "5"}, "Eg==", "10010"),
    "bits of two bytes": ("bytes", "io.debezium.data.Bits", {"length": "12"}, "Eg8=", "111100010010"),
    "an interval": ("int64", "io.debezium.time.MicroDuration", {}, -1_500_000, "-PT1.5S"),
    "bytes": ("bytes", None, {}, "AP8=", b"\x00\xff"),
    "JSON": ("string", "io.debezium.data.Json", {}, '{"a": 1}', '{"a": 1}'),
    "no number": ("double", None, {}, "NaN", "NaN"),
    "a structure that has no type of ours": (
        "struct",
        "io.debezium.data.geometry.Point",
        {},
        {"x": 1, "y": 2},
        '{"x":1,"y":2}',
    ),
}


def with_schema(schema: dict[str, Any], cell: Any) -> dict[str, Any]:
    sides = [
        {"type": "struct", "field": side, "fields": [{**schema, "field": "value"}]}
        for side in ("before", "after")
    ]
    return {"schema": {"type": "struct", "fields": sides}, "payload": message("c", after={"value": cell})}


@pytest.mark.parametrize("case", SCHEMAS)
def test_a_schema_decides_what_a_value_is(case: str) -> None:
    base, name, parameters, cell, value = SCHEMAS[case]
    schema = {"type": base, "name": name, "parameters": parameters}
    assert only(with_schema(schema, cell), tables=Tables()).fields == (Field("value", after=value),)


def test_an_array_is_several_values() -> None:
    schema = {"type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}}
    assert only(with_schema(schema, [0, 1])).after == {"value": ("1970-01-01", "1970-01-02")}
    assert only(with_schema(schema, [])).after == {"value": None}
    assert only(with_schema(schema, [1])).after == {"value": "1970-01-02"}
    assert only(with_schema(schema, [None, 1])).after == {"value": "[null,1]"}


def test_each_message_is_read_by_its_own_schema() -> None:
    number, day = with_schema({"type": "int32"}, 1), with_schema({"name": "io.debezium.time.Date"}, 1)
    values = [change.after["value"] for change in changes(number, day, number) if isinstance(change, Change)]
    assert values == [1, "1970-01-02", 1]


def test_what_was_not_captured_is_absent_and_null_is_null() -> None:
    unavailable = "__debezium_unavailable_value"
    change = only(message("u", before={"id": 1}, after={**ANNE, "name": unavailable, "born": None}))
    assert "name" not in change.after
    assert change.after["born"] is None
    assert only(message("u", after={**ANNE, "name": "?"}), unavailable="?").after.keys() == ANNE.keys() - {
        "name"
    }


@pytest.mark.parametrize(
    "placeholder",
    [["__debezium_unavailable_value"], base64.b64encode(b"__debezium_unavailable_value").decode()],
    ids=["array", "bytes"],
)
def test_the_placeholder_may_be_an_array_or_bytes(placeholder: Any) -> None:
    assert "name" not in only(message("u", after={**ANNE, "name": placeholder})).after


def test_the_row_before_is_none_where_postgresql_has_only_the_key() -> None:
    nulls = dict.fromkeys(ANNE)
    assert only(message("d", before={**nulls, "id": 1})).fields == (Field("id", before=1),)
    assert only(message("d", before=ANNE)).before.keys() == ANNE.keys()


def test_a_snapshot_a_truncate_and_a_move_of_a_key() -> None:
    assert only(message("r", after=ANNE)).op is Op.SNAPSHOT
    assert only(message("r", before={"id": 2}, after=ANNE)).fields == ANNE_FIELDS
    assert only(message("t")).op is Op.TRUNCATE
    moved = only(message("u", before=ANNE, after={**ANNE, "id": 2}))
    assert (moved.key_before, moved.key) == ((("id", 1),), (("id", 2),))


def test_the_key_of_the_message_counts_more_than_that_of_the_tables_file() -> None:
    assert only(message("c", after=ANNE), key={"name": "Anne"}).key == (("name", "Anne"),)
    keyed = {"schema": {"fields": [{"field": "id", "type": "int32"}]}, "payload": {"id": 1}}
    assert only(message("d"), key=keyed, tables=Tables()).key == (("id", 1),)
    assert only(message("c", after=ANNE), tables=Tables()).key == ()


def test_a_tombstone_after_its_delete_is_no_second_delete() -> None:
    delete = message("d", before={"id": 1})
    assert only(delete, None).op is Op.DELETE
    assert only(delete, None, key={"id": 1}).op is Op.DELETE


def test_a_tombstone_whose_delete_is_gone_is_one() -> None:
    pair = {"key": {"id": 2}, "value": None}
    _, second = changes(
        {"key": {"id": 1}, "value": message("d", before={"id": 1})}, pair, stem="db.public.person"
    )
    assert isinstance(second, Change)
    assert (second.op, second.schema, second.table, second.key) == (
        Op.DELETE,
        "public",
        "person",
        (("id", 2),),
    )
    named = {"schema": {"type": "struct", "name": "db.public.person.Key", "fields": []}, "payload": {"id": 2}}
    assert only({"key": named, "value": None}) == second._replace(position="1")
    assert second.position == "2"  # the offset: a later one is another event
    assert "names no row" in reason(None)
    assert "names no schema and table" in reason(pair)


def test_a_topic_as_kcat_writes_it() -> None:
    value = json.dumps(message("c", after=ANNE))
    line = {"topic": "db.public.person", "partition": 0, "offset": 1, "key": '{"id":1}', "payload": value}
    assert only(line).fields == ANNE_FIELDS


def test_the_end_of_a_day_is_a_time_of_debezium_and_none_of_kafka_connect() -> None:
    tables = tablesfile.read('[tables.t]\nkey = ["a"]\ncolumns = { a = "int", at = "time(3)" }\n')
    change = Change(Op.INSERT, None, "t", (("a", 1),), (Field("at", ABSENT, "24:00:00"),))
    (message_of,) = written(change, tables)
    assert message_of["after"]["at"] == 86_400_000
    back = only(message("c", after={"a": 1, "at": 86_400_000}, table="t"), tables=tables)
    assert back.after["at"] == "24:00:00"
    (refused,) = written(change, tables, time_precision="connect")
    assert refused.reason == "'24:00:00' is after the last time of day that Kafka Connect has"


def test_times_and_decimals_without_schemas_follow_the_connector() -> None:
    tables = tablesfile.read(
        '[tables.t]\nkey = ["a"]\ncolumns = { a = "int", b = "datetime", c = "time", d = "decimal(4,1)" }'
    )
    row = {"a": 1, "b": 1500, "c": 1_500_000, "d": 1.5}
    mysql = only(message("c", after=row, connector="mysql", db="shop", schema=None, table="t"), tables=tables)
    assert (mysql.schema, mysql.after["b"], mysql.after["c"]) == (
        "shop",
        "1970-01-01T00:00:01.5",
        "00:00:01.5",
    )
    assert mysql.after["d"] == "1.5"
    mariadb = only(message("c", after=row, connector="mariadb", db="shop", table="t"), tables=tables)
    assert (mariadb.schema, mariadb.fields) == ("shop", mysql.fields)
    postgresql = only(message("c", after={"b": 1_500_000}, table="t"), tables=tables)
    assert postgresql.after == {"b": "1970-01-01T00:00:01.5"}
    options = {"time_precision": "connect", "decimals": "string"}
    connect = only(message("c", after={"b": 1500, "d": "1.50"}, table="t"), tables=tables, **options)
    assert connect.after == {"b": "1970-01-01T00:00:01.5", "d": "1.50"}


def of_sql_server(column_type: str, cell: int) -> Any:
    tables = tablesfile.read(f'[tables.t]\nkey = ["a"]\ncolumns = {{ a = "{column_type}" }}\n')
    return only(message("c", after={"a": cell}, connector="sqlserver", table="t"), tables=tables).after["a"]


def test_a_moment_of_sql_server_that_states_no_digits_has_seven() -> None:
    assert of_sql_server("datetime2", 1_500_000_000) == "1970-01-01T00:00:01.5"
    assert of_sql_server("datetime2(6)", 1_500_000) == "1970-01-01T00:00:01.5"


def test_a_time_of_sql_server_that_states_no_digits_has_seven() -> None:
    assert of_sql_server("time", 1_500_000_000) == "00:00:01.5"
    assert of_sql_server("time(3)", 1500) == "00:00:01.5"


@pytest.mark.parametrize(("digits", "cell"), [(3, 1500), (4, 1_500_000), (6, 1_500_000), (7, 1_500_000_000)])
def test_a_moment_without_a_schema_has_the_unit_of_its_digits(digits: int, cell: int) -> None:
    tables = tablesfile.read(f'[tables.t]\nkey = ["a"]\ncolumns = {{ a = "timestamp({digits})" }}\n')
    assert only(message("c", after={"a": cell}, table="t"), tables=tables).after == {
        "a": "1970-01-01T00:00:01.5"
    }


WRONG = {
    "flattened": ({"id": 1}, "ExtractNewRecordState"),
    "no object": (["x"], "must be a JSON object"),
    "another op": (message("x"), "op is 'x', not one of c, r, u, d, t"),
    "a message in the log": (message("m"), "op m is a message"),
    "no table": ({"op": "c", "after": {}, "source": {}}, "source names no table"),
    "no row after an update": (message("u", before=ANNE), "op u without the row after it"),
    "no row": (message("c"), "op c without the row after it"),
    "a row that is none": (message("c", after=[1]), "after must be an object or null"),
    "a date that is none": (message("c", after={"born": "x"}), "column born: 'x' is not an integer"),
    "a date beyond all years": (message("c", after={"born": 10**9}), "of the years 1 to 9999"),
    "a decimal that is none": (message("c", after={"pay": "#"}), "column pay: '#' is not Base64"),
    "a decimal of many digits": (message("c", after={"pay": "A" * 4000}), "at most 1500 bytes"),
    "a key that is no JSON": ({"topic": "t", "payload": "{"}, "no JSON"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    value, words = WRONG[case]
    assert words in reason(value)


def test_messages_about_no_row_are_counted() -> None:
    (notice,) = changes({"status": "BEGIN", "id": "7"}, {"ts_ms": 1}, {"ddl": "create table", "source": {}})
    assert isinstance(notice, Refused)
    assert not notice.fault
    assert notice.reason.startswith("3 messages describe transactions, heartbeats or DDL")


# --- writing


def test_a_message_as_a_person_would_write_it() -> None:
    change = only(message("c", after=ANNE, txId=55))
    assert written(change) == [
        {
            "before": None,
            "after": ANNE,
            "source": {
                "version": "1",
                "connector": "eventlog",
                "name": "eventlog",
                "ts_ms": 1700000000123,
                "snapshot": "false",
                "db": "",
                "schema": "public",
                "table": "person",
                "ts_us": 1700000000123000,
                "ts_ns": 1700000000123000000,
                "txId": "55",
                "position": "7",
                "user_name": None,
            },
            "transaction": None,
            "op": "c",
            "ts_ms": 1700000000123,
        }
    ]


def test_with_keys_each_delete_has_a_tombstone_and_a_moved_key_is_a_delete_and_an_insert() -> None:
    moved = only(message("u", before=ANNE, after={**ANNE, "id": 2}))
    delete, tombstone, insert = written(moved, message_keys=True)
    assert (delete["key"], delete["value"]["op"], delete["value"]["before"]) == ({"id": 1}, "d", {"id": 1})
    assert tombstone == {"key": {"id": 1}, "value": None}
    assert (insert["key"], insert["value"]["op"], insert["value"]["after"]) == (
        {"id": 2},
        "c",
        {**ANNE, "id": 2},
    )


def test_a_row_that_is_not_whole_is_refused_by_name() -> None:
    partial = Change(Op.UPDATE, "public", "person", (("id", 1),), (Field("name", "a", "b"),))
    (refused,) = written(partial)
    assert refused.reason == ("column born of the row after the change is not known, and would become null")
    assert json.loads(refused.raw)["op"] == "update"
    (refused,) = written(partial, Tables())
    assert "describe it in a tables file" in refused.reason
    (unknown,) = written(Change(Op.DELETE, None, "t"), Tables())
    assert "names neither a key nor values" in unknown.reason


def test_the_name_of_the_server_is_that_of_the_topic() -> None:
    change = only(message("c", after=ANNE))
    (line,) = written(change, topic_prefix="hr", message_schemas=True)
    assert line["payload"]["source"]["name"] == "hr"
    assert line["schema"]["name"] == "hr.public.person.Envelope"


@pytest.mark.parametrize("text", ["1e999999999", "1e900000", "-1e999999999", "NaN", "x"])
def test_a_number_beyond_all_measure_costs_itself_alone(text: str) -> None:
    fields = tuple(Field(name, after=text if name == "pay" else None) for name in ANNE if name != "id")
    (refused,) = written(Change(Op.INSERT, "public", "person", (("id", 1),), fields))
    assert isinstance(refused, Refused)


def test_a_part_of_the_row_before_is_no_row_before() -> None:
    change = only(message("u", before={"id": 1, "name": "A"}, after=ANNE))
    assert written(change)[0]["before"] is None
    assert written(only(message("u", before=ANNE, after=ANNE)))[0]["before"] == ANNE


ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**31), 2**31 - 1),
        "name": st.none() | st.text(),
        "born": st.none() | st.dates().map(lambda day: day.isoformat()),
        "pay": st.none() | st.decimals(-(10**8), 10**8, places=2).map(str),
        "at": st.none() | st.datetimes().map(lambda at: at.isoformat().removesuffix("000")),
    }
)


def plain(side: Any) -> Any:
    """Return a value without noughts that mean nothing."""
    if not isinstance(side, str) or "T" not in side or "." not in side:
        return "0.00" if side == "-0.00" else side
    return side.rstrip("0").rstrip(".")


@given(
    st.sampled_from([Op.INSERT, Op.SNAPSHOT, Op.UPDATE, Op.DELETE]), ROWS, ROWS, st.booleans(), st.booleans()
)
def test_what_is_written_is_read(op: Op, before: Any, after: Any, schemas: bool, keys: bool) -> None:
    before = {**before, "id": after["id"]}
    has_before, has_after = op in (Op.UPDATE, Op.DELETE), op is not Op.DELETE
    fields = [
        Field(name, before[name] if has_before else ABSENT, after[name] if has_after else ABSENT)
        for name in after
    ]
    change = Change(
        op, "public", "person", (("id", after["id"]),), tuple(fields), "7", "55", "2024-01-01T10:00:00.5"
    )
    messages = written(change, message_schemas=schemas, message_keys=keys)
    text: Sequence[Any] = [json.loads(json.dumps(line)) for line in messages]
    again = only(*text, tables=Tables() if schemas and keys else TABLES)
    sides = [(plain(field.before), plain(field.after)) for field in again.fields]
    if op is Op.DELETE and all(before[name] is None for name in before if name != "id"):
        assert again.fields == (Field("id", before=after["id"]),)
    else:
        assert sides == [(plain(field.before), plain(field.after)) for field in fields]
    assert again._replace(fields=(), extra=()) == change._replace(fields=())
