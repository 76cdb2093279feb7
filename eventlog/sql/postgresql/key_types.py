"""PostgreSQL: how the text of a key finds its row."""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.core import values
from eventlog.core.values import Kind
from eventlog.sql.common.expression import each
from eventlog.sql.common.key_types import (
    UUID_TEXT,
    WITHOUT_ZERO,
    KeyType,
    double,
    integer_of,
    moment,
    number,
    text_value,
    uuid_value,
)


def _state(text: str) -> str:
    return "true" if values.load(Kind.STATE, text) else "false"


def _hex_value(text: str) -> str:
    return "\\x" + values.load_base64(text).hex()


KEY_TYPES: Mapping[str, KeyType] = {
    "smallint": integer_of("smallint", 16),
    "integer": integer_of("integer", 32),
    "bigint": integer_of("bigint", 64),
    "numeric": KeyType("numeric", sent=number),
    "real": KeyType("real", sent=double),
    "double precision": KeyType("double precision", sent=double),
    **each("text, character varying", KeyType("text", sent=text_value, as_it_is=WITHOUT_ZERO)),
    "character": KeyType("text", "{c} {equals} cast({k} as pg_catalog.bpchar)", text_value, WITHOUT_ZERO),
    "uuid": KeyType("uuid", sent=uuid_value, as_it_is=UUID_TEXT),
    "boolean": KeyType("boolean", sent=_state),
    "bytea": KeyType("bytea", sent=_hex_value),
    "date": KeyType("date", sent=moment(Kind.DATE)),
    **each("timestamp, timestamp without time zone", KeyType("timestamp", sent=moment(Kind.TIMESTAMP))),
    "timestamp with time zone": KeyType(
        "timestamp", "{c} {equals} {k} at time zone 'UTC'", moment(Kind.TIMESTAMP)
    ),
    "time without time zone": KeyType("time", sent=moment(Kind.TIME)),
}
