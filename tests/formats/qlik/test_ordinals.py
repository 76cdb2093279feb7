"""Which metadata gives the ordinals that the bits of masks are."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from tests.formats.qlik.helpers import noted_messages, read_messages, reason, seq

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


def update(number: int = 1, change_mask: str | None = "02", **headers: Any) -> dict[str, Any]:
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
    "app.usr: no metadata message that was read describes its messages, so the bits of their masks are taken "
    "for the keys of data in their order. If one is in another topic or file, read that first"
)


def parts_of_files() -> list[list[dict[str, Any]]]:
    """Return the messages of four files, whose metadata come before, between and after their changes."""
    first, second = metadata(FIRST, "name", "age"), metadata(SECOND, "age", "name")
    return [
        [update(1), update(2, externalSchemaId=SECOND), first, update(3)],
        [update(4), second, update(5), first, update(6), second],
        [update(7), update(8, externalSchemaId="C" * 32), first, first, update(9)],
        [enveloped("DT", update(10, columnMask="01"), "C" * 32)],
    ]


@pytest.mark.parametrize("described", [METADATA, BARE])
@pytest.mark.parametrize(
    "message",
    [
        enveloped("DT", update(), FIRST),
        enveloped("DT", update(externalSchemaId=FIRST)),
        enveloped("DT", update(externalSchemaId=FIRST), SECOND),
        enveloped("DT", update(externalSchemaId="16777220"), FIRST),
        enveloped("DT", update()),
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


def with_ordinals(**ordinals: int) -> dict[str, Any]:
    """Return metadata whose columns have these ordinals."""
    described = metadata(FIRST, *ordinals)
    for name, ordinal in ordinals.items():
        described["tableStructure"]["tableColumns"][name]["ordinal"] = ordinal
    return described


def test_ordinals_may_have_gaps_and_places_in_masks_follow_their_order() -> None:
    (found,) = noted_messages([with_ordinals(age=7, name=2), update(change_mask="02")])
    assert changed(found) == ["age"]


@pytest.mark.parametrize(
    ("ordinals", "fault"),
    [
        ({"age": 2, "name": 2}, "columns age and name have the same ordinal, 2"),
        ({"age": 1, "name": 0}, "ordinal of column name is 0, but the first is 1"),
    ],
)
def test_ordinals_that_are_no_order_are_refused(ordinals: dict[str, int], fault: str) -> None:
    (refused,) = noted_messages([with_ordinals(**ordinals)])
    assert reason(refused) == f"t.jsonl:1: metadata message: {fault}"


NARROWER = metadata(FIRST, "name")
OF_ITEM = metadata(SECOND, "age", "name", table="item")
UNKNOWN = "names no metadata message that was read"


@pytest.mark.parametrize(
    ("described", "headers", "schema_id", "cause"),
    [
        ([BARE], {}, SECOND, f"messageSchemaId {SECOND} {UNKNOWN}"),
        ([BARE], {"externalSchemaId": "16777220"}, None, f"externalSchemaId 16777220 {UNKNOWN}"),
        (
            [BARE],
            {"externalSchemaId": "16777220"},
            SECOND,
            f"messageSchemaId {SECOND} and externalSchemaId 16777220 name no metadata message that was read",
        ),
        ([], {}, SECOND, f"messageSchemaId {SECOND} {UNKNOWN}"),
        (
            [BARE, OF_ITEM],
            {},
            SECOND,
            f"messageSchemaId {SECOND} names the metadata of app.item, not of app.usr",
        ),
        ([NARROWER], {}, FIRST, f"messageSchemaId {FIRST} names metadata without column age"),
        ([NARROWER], {}, None, "the newest metadata of app.usr lack column age"),
    ],
)
def test_a_structure_that_no_metadata_describe_is_that_of_the_keys_if_all_are_there(
    described: list[Any], headers: dict[str, Any], schema_id: str | None, cause: str
) -> None:
    """Refuse what columnMask does not prove: another structure's ordinals would lose a changed value."""
    whole = enveloped("DT", update(1, **headers), schema_id)
    notice, by_keys = noted_messages([*described, whole])
    assert (reason(notice), changed(by_keys)) == (BY_KEYS, ["name"])
    for masks in ({"columnMask": "05"}, {"columnMask": "01"}, {"columnMask": None}):
        shown = masks["columnMask"] or "null"
        (refused,) = read_messages([*described, enveloped("DT", update(2, **headers | masks), schema_id)])
        assert reason(refused) == (
            f"t.jsonl:{len(described) + 1}: {cause}, and columnMask {shown} does not prove that all columns "
            "are there: read the metadata message of its structure first"
        )


@pytest.mark.parametrize("operation", ["REFRESH", "UPDATE"])
def test_a_message_without_masks_needs_no_ordinals(operation: str) -> None:
    message = update(change_mask=None, columnMask=None, operation=operation)
    (found,) = noted_messages([BARE, enveloped("DT", message, SECOND)])
    assert isinstance(found, Change)
    assert found.after == {"age": "1", "name": "b"}


@pytest.mark.parametrize("order", ["auto", "little"])
def test_a_little_mask_of_all_columns_proves_that_they_are_there(order: str) -> None:
    message = update(change_mask="0100", columnMask="FF01")
    message["data"] = {f"c{number}": "1" for number in range(9)}
    (found,) = read_messages([BARE, enveloped("DT", message, SECOND)], mask_order=order)
    assert changed(found) == ["c0"]
    (refused,) = read_messages([BARE, enveloped("DT", message, SECOND)], mask_order="big")
    assert "does not prove that all columns are there" in reason(refused)


def test_ids_that_name_different_metadata_refuse_the_message() -> None:
    message = enveloped("DT", update(externalSchemaId=SECOND), FIRST)
    for second in (metadata(SECOND, "age", "name"), OF_ITEM):
        (refused,) = read_messages([BARE, second, message])
        ids = f"messageSchemaId {FIRST} and externalSchemaId {SECOND}"
        assert reason(refused) == f"t.jsonl:3: {ids} name different metadata messages"
    (found,) = read_messages([BARE, metadata(SECOND, "name", "age"), message])
    assert changed(found) == ["age"]


def test_metadata_without_a_column_still_have_the_key_of_their_table() -> None:
    described = metadata(FIRST, "name")
    described["tableStructure"]["tableColumns"]["name"]["primaryKeyPosition"] = 1
    (found,) = read_messages([described, update()])
    assert isinstance(found, Change)
    assert found.key == (("name", "b"),)


def test_a_key_that_metadata_do_not_state_is_that_of_the_tables_file() -> None:
    tables = tablesfile.read('[tables.usr]\nschema = "app"\nkey = ["name"]\n')
    for described in ([BARE], [metadata(FIRST, "name")], []):
        (found,) = read_messages([*described, update()], tables)
        assert isinstance(found, Change)
        assert found.key == (("name", "b"),)


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
    assert reader.awaits({**message, "messageSchemaId": SECOND}) == SECOND


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
