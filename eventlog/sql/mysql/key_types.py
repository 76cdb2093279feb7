"""MySQL and MariaDB: how the text of a key finds its row."""

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


def _bit(text: str) -> str:
    return "1" if values.load(Kind.STATE, text) else "0"


def _base64_value(text: str) -> str:
    return values.dump_base64(values.load_base64(text))


_CHARACTERS = KeyType(
    "longtext", "{c} = convert({k} using {charset}) collate {collation}", text_value, WITHOUT_ZERO
)
KEY_TYPES: Mapping[str, KeyType] = {
    **each("tinyint, smallint, mediumint, int, bigint", integer_of("bigint", 64)),
    "bigint unsigned": integer_of("bigint unsigned", 65),
    **each("tinyint(1), bit(1)", KeyType("integer", sent=_bit)),
    "decimal": KeyType("decimal(65,30)", sent=number),
    "float": KeyType("double", "{c} = cast({k} as float)", double),
    "double": KeyType("double", sent=double),
    **each("char, varchar, tinytext, text, mediumtext, longtext, enum", _CHARACTERS),
    **each("binary, varbinary", KeyType("longtext", "{c} = from_base64({k})", _base64_value)),
    "uuid": KeyType("longtext", "{c} = cast({k} as uuid)", uuid_value, UUID_TEXT),
    "date": KeyType("date", sent=moment(Kind.DATE)),
    **each("datetime, timestamp", KeyType("datetime(6)", sent=moment(Kind.TIMESTAMP))),
    "time": KeyType("time(6)", sent=moment(Kind.TIME)),
}
