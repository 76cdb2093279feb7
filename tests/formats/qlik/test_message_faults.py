"""What a bad message costs, in JSON and in Avro: itself."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.formats.qlik import avro
from tests.formats.qlik.helpers import read_messages, reason, seq, write_messages
from tests.formats.qlik.message_samples import METADATA, TABLES, UPDATE, altered, body, only, update

pytestmark = pytest.mark.quick


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
    return write_messages([moved, moved._replace(position=seq(2))], TABLES, encoding="avro")


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
    assert "1 bytes after the Avro record" in reason(fault)


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
        '{"type": "fixed", "name": "F", "size": 8}',
        '{"type": "fixed", "name": "F", "size": 1001, "logicalType": "decimal", "precision": 9}',
        '{"type": "fixed", "name": "F", "size": -1, "logicalType": "decimal", "precision": 9}',
        '{"type": "fixed", "name": "F", "size": "8", "logicalType": "decimal", "precision": 9}',
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
