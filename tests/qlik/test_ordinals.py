"""Which metadata gives the ordinals that the bits of masks are."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from eventlog.core.change import ABSENT, Change, Field
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from tests.qlik.helpers import noted_messages, read_messages, reason, seq

pytestmark = pytest.mark.quick

FIRST, SECOND = "A" * 32, "B" * 32


def metadata(schema_id: str, *names: str, table: str = "usr") -> dict[str, Any]:
    """Return a metadata message without an envelope, in exactly the fields of the manual."""
    facts = {"type": "STRING", "length": 9, "precision": 0, "scale": 0, "primaryKeyPosition": 0}
    return {
        "schemaId": schema_id,
        "lineage": {
            "server": "S",
            "task": "T",
            "schema": "app",
            "table": table,
            "tableVersion": 1,
            "timestamp": "2018-04-13T20:13:58.289",
        },
        "tableStructure": {
            "tableColumns": {name: {"ordinal": at, **facts} for at, name in enumerate(names, 1)}
        },
        "dataSchema": "",
    }


def enveloped(kind: str, message: Any, schema_id: str | None = None) -> dict[str, Any]:
    return {
        "magic": "atMSG",
        "type": kind,
        "headers": None,
        "messageSchemaId": schema_id,
        "messageSchema": None,
        "message": message,
    }


def update(number: int = 1, change_mask: str = "02", **headers: Any) -> dict[str, Any]:
    """Return an update of `age` and `name`, in the order of its keys; its changeMask is for the second."""
    table = headers.pop("table", "usr")
    return {
        "schema": "app",
        "table": table,
        "data": {"age": "1", "name": "b"},
        "beforeData": None,
        "headers": {
            "operation": "UPDATE",
            "changeSequence": seq(number),
            "timestamp": "2024-01-01T12:00:00.000",
            "streamPosition": "1",
            "transactionId": "0" * 32,
            "changeMask": change_mask,
            "columnMask": "03",
            **headers,
        },
    }


def changed(item: Change | Refused) -> list[str]:
    """Return the columns that changed."""
    assert isinstance(item, Change), item
    return [field.column for field in item.fields if field.before is ABSENT]


BARE = metadata(FIRST, "name", "age")
METADATA = enveloped("MD", BARE, FIRST)
BY_KEYS = (
    "app.usr: no metadata message of it was read, so the bits of its masks are taken for the keys of data in "
    "their order. If its metadata are in another topic or file, read that first"
)


@pytest.mark.parametrize("described", [METADATA, BARE])
@pytest.mark.parametrize(
    "message",
    [
        enveloped("DT", update(), FIRST),
        enveloped("DT", update(externalSchemaId=FIRST)),
        enveloped("DT", update(externalSchemaId=FIRST), SECOND),
        enveloped("DT", update()),
        enveloped("DT", update(externalSchemaId="16777220")),
        update(externalSchemaId=FIRST),
        update(),
    ],
)
def test_the_ordinals_are_those_of_the_metadata(described: dict[str, Any], message: dict[str, Any]) -> None:
    (found,) = noted_messages([described, message])
    assert changed(found) == ["age"]


def test_the_newest_metadata_of_the_table_count_where_no_id_names_one() -> None:
    inputs = [
        metadata(FIRST, "name", "age"),
        update(1),
        metadata(SECOND, "age", "name"),
        update(2),
        metadata("C" * 32, "name", "age", table="item"),
        update(3),
        metadata(FIRST, "name", "age"),
        update(4),
    ]
    assert [changed(found) for found in read_messages(inputs)] == [["age"], ["name"], ["name"], ["age"]]


def test_an_id_of_another_table_does_not_count() -> None:
    described = [metadata(FIRST, "name", "age"), metadata(SECOND, "age", "name", table="item")]
    (found,) = read_messages([*described, enveloped("DT", update(externalSchemaId=SECOND), SECOND)])
    assert changed(found) == ["age"]


def test_metadata_that_lack_a_column_do_not_count() -> None:
    notice, found = noted_messages([metadata(FIRST, "name"), update()])
    assert (reason(notice), changed(found)) == (BY_KEYS, ["name"])


def test_a_message_without_a_schema_is_of_the_only_table_of_its_name() -> None:
    message = {**update(), "schema": None}
    other = metadata(SECOND, "name", "age")
    other["lineage"]["schema"] = "other"
    (found,) = noted_messages([BARE, message])
    assert changed(found) == ["age"]
    notice, found = noted_messages([BARE, other, message])
    assert (reason(notice), changed(found)) == (BY_KEYS.replace("app.", ""), ["name"])


def test_a_message_waits_for_the_metadata_that_its_headers_name() -> None:
    reader = MessageReader(Tables(), MessageSettings())
    message = enveloped("DT", update(externalSchemaId=FIRST))
    assert reader.awaits(message) == FIRST
    reader.read(METADATA)
    assert reader.awaits(message) is None


def test_without_metadata_the_order_of_the_keys_counts_and_is_reported_once() -> None:
    notice, first, second = noted_messages([metadata(FIRST, "a", table="item"), update(1), update(2)])
    assert [changed(first), changed(second)] == [["name"], ["name"]]
    assert reason(notice) == BY_KEYS
    assert isinstance(notice, Refused)
    assert not notice.fault


def test_a_mask_of_all_columns_needs_no_order() -> None:
    message = update(change_mask="03")
    message["headers"]["operation"] = "INSERT"
    (found,) = noted_messages([message])
    assert changed(found) == ["age", "name"]


@pytest.mark.parametrize(
    ("described", "before", "change_mask", "fault"),
    [
        ([], {"age": "1", "name": "a"}, "01", "age as changed, and its value is the same"),
        ([BARE], {"age": "1", "name": "a"}, "02", "age as changed, and its value is the same"),
        ([BARE], {"age": "1", "name": "a"}, "00", "name as unchanged, and beforeData has another value"),
        ([], {"age": 2, "name": "b"}, "00", "age as unchanged, and beforeData has another value"),
    ],
)
def test_a_mask_that_contradicts_the_values_is_refused(
    described: list[Any], before: dict[str, Any], change_mask: str, fault: str
) -> None:
    message = {**update(change_mask=change_mask), "beforeData": before}
    refused = read_messages([*described, message])[0]
    assert f"changeMask marks column {fault}" in reason(refused)
    assert "mask-order" in reason(refused)


def test_a_mask_does_not_contradict_what_it_leaves_open() -> None:
    """A LOB is in no mask, and neither is what may be one; a null may be a value that was not captured."""
    message = {**update(change_mask="02"), "beforeData": {"age": "1", "name": "a"}}
    lob = copy.deepcopy(BARE)
    lob["tableStructure"]["tableColumns"]["age"]["type"] = "CLOB"
    message["beforeData"]["age"] = "0"
    nulls = update(2, change_mask="01")
    nulls["data"]["name"], nulls["beforeData"] = None, {"age": "1", "name": None}
    found = [item for item in read_messages([message, lob, message, nulls]) if isinstance(item, Change)]
    assert found[0].fields == (Field("age", "0", "1"), Field("name", "a", "b"))
