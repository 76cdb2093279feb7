"""Our messages in Avro, read and written again by Apache's own library; a process of its own, for its JVM.

Both make the same values of each message, and what Java writes of them are our bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jpype
import pyspark
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.formats.qlik import avro
from eventlog.transfer.sources import jdbc
from tests.formats.qlik.helpers import write_messages
from tests.formats.qlik.strategies import Case, cases

JARS = ("avro-1.", "jackson-core-", "jackson-databind-", "jackson-annotations-", "slf4j-api-")
ENVELOPE = """
{"type": "record", "name": "MessageEnvelope", "fields": [
  {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 5}},
  {"name": "type", "type": "string"},
  {"name": "headers", "type": ["null", {"type": "map", "values": "string"}]},
  {"name": "messageSchemaId", "type": ["null", "string"]},
  {"name": "messageSchema", "type": ["null", "string"]},
  {"name": "message", "type": "bytes"}]}
"""
message_count = 0


class Judge:
    """The judge: Apache's library."""

    def __init__(self) -> None:
        of = jpype.JClass
        self._decoders = of("org.apache.avro.io.DecoderFactory").get()
        self._encoders = of("org.apache.avro.io.EncoderFactory").get()
        self._reader = of("org.apache.avro.generic.GenericDatumReader")
        self._writer = of("org.apache.avro.generic.GenericDatumWriter")
        self._bytes = of("java.io.ByteArrayOutputStream")

    def schema(self, text: str) -> Any:
        return jpype.JClass("org.apache.avro.Schema").Parser().parse(text)

    def read(self, schema: Any, data: bytes) -> tuple[Any, bytes]:
        """Return a record, and its bytes as Java writes them."""
        decoder = self._decoders.binaryDecoder(jpype.JArray(jpype.JByte)(data), None)
        record = self._reader(schema).read(None, decoder)
        assert decoder.isEnd()
        target = self._bytes()
        encoder = self._encoders.binaryEncoder(target, None)
        self._writer(schema).write(record, encoder)
        encoder.flush()
        return record, bytes(target.toByteArray())


def plain(java_value: Any) -> Any:
    """Return a value of Java's as one of Python's."""
    if java_value is None:
        return None
    kind = str(java_value.getClass().getName())
    if kind.endswith("GenericData$Record"):
        fields = java_value.getSchema().getFields()
        return {str(field.name()): plain(java_value.get(field.pos())) for field in fields}
    if kind.endswith("GenericData$Fixed"):
        return bytes(java_value.bytes())
    if kind.endswith("HeapByteBuffer"):
        return bytes(java_value.array())
    if kind.endswith("HashMap"):
        return {str(entry.getKey()): plain(entry.getValue()) for entry in java_value.entrySet()}
    if kind in ("java.lang.Float", "java.lang.Double"):
        return float(java_value)
    if kind in ("java.lang.Integer", "java.lang.Long"):
        return int(java_value)
    if kind == "java.lang.Boolean":
        return bool(java_value)
    return str(java_value.toString())


def without_meaning(schema: Any) -> Any:
    """Return a schema whose values are the plain contents of the bytes."""
    if isinstance(schema, dict):
        return {name: without_meaning(part) for name, part in schema.items() if name != "logicalType"}
    return [without_meaning(part) for part in schema] if isinstance(schema, list) else schema


@settings(deadline=None, database=None)
@given(cases(tabular=False), st.sampled_from([True, False]))
def check(case: Case, logical: bool) -> None:
    global message_count
    judge = Judge()
    data_schema = ""
    for data in write_messages(case.changes, case.tables, encoding="avro", logical_types=logical):
        envelope, rewritten = judge.read(judge.schema(ENVELOPE), data)
        assert rewritten == data
        reported = plain(envelope)
        text = reported["messageSchema"] or data_schema
        record, rewritten = judge.read(judge.schema(text), reported["message"])
        assert rewritten == reported["message"]
        values = avro.decode(avro.foreign(json.dumps(without_meaning(json.loads(text)))), reported["message"])
        assert repr(plain(record)) == repr(values)  # NaN is not equal to itself
        data_schema = plain(record).get("dataSchema", data_schema)
        message_count += 1


if __name__ == "__main__":
    folder = Path(pyspark.__file__).parent / "jars"
    jdbc._start(jpype, [str(path) for name in JARS for path in folder.glob(f"{name}*.jar")])
    check()
    sys.stdout.write(f"RUN: {message_count} messages\n")
