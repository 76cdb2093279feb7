"""Oracle: how the text of a key finds its row."""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.core import values
from eventlog.core.errors import InvalidValue
from eventlog.core.values import Kind
from eventlog.sql.common.expression import each
from eventlog.sql.common.key_types import WITHOUT_ZERO, KeyType, double, moment, number, text_value


def _hex_digits(text: str) -> str:
    return values.load_base64(text).hex()


def _never_sought(text: str) -> str:
    raise InvalidValue(text[:40], "a value of a type that can be looked for")


_MOMENT = "to_timestamp({k}, 'YYYY-MM-DD HH24:MI:SSXFF', 'NLS_NUMERIC_CHARACTERS=''.,''')"
KEY_TYPES: Mapping[str, KeyType] = {
    **each("number, float", KeyType("number", sent=number)),
    "binary_float": KeyType("varchar2(40)", "{c} = to_binary_float({k})", double),
    "binary_double": KeyType("varchar2(40)", "{c} = to_binary_double({k})", double),
    **each("varchar2, nvarchar2", KeyType("varchar2(4000)", sent=text_value, as_it_is=WITHOUT_ZERO)),
    **each(
        "char, nchar", KeyType("varchar2(4000)", "{c} = rpad({k}, length({c}))", text_value, WITHOUT_ZERO)
    ),
    "date": KeyType("varchar2(40)", f"{{c}} = cast({_MOMENT} as date)", moment(Kind.TIMESTAMP)),
    "timestamp": KeyType("varchar2(40)", f"{{c}} = {_MOMENT}", moment(Kind.TIMESTAMP)),
    # as hexadecimal digits: 2000 bytes, the most that a query has of a raw, are 4000 of them
    "raw": KeyType("varchar2(4000)", "{c} = hextoraw({k})", _hex_digits),
    **each(
        "clob, nclob", KeyType("varchar2(4000)", "sys.dbms_lob.compare({c}, to_clob({k})) = 0", text_value)
    ),
    **each("blob, xmltype, json, vector", KeyType("varchar2(1)", "1 = 0", _never_sought)),
}
