"""How a log stores its columns, and the expressions that read them as ours are read.

Our own logs store them as the statements expect. An attached one may keep its numbers as numerics without a
fraction. It may pad its texts and compare them without case, and keep its times as another type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from eventlog.core.entry import COLUMNS, MAX_RECORD_ID
from eventlog.sql.common.dialect import Dialect, Storage


class Stored(NamedTuple):
    """One column of a log."""

    storage: Storage
    type: str = ""  # as the catalogue writes it
    exact: bool = True  # its texts compare by case and by blanks


NUMBERS = frozenset((Storage.INTEGER, Storage.NUMERIC))
TEXTS = frozenset((Storage.TEXT, Storage.PADDED))
TIMES = frozenset((Storage.TIMESTAMP, Storage.ZONED, Storage.DATE))

# What we make the columns of.
OURS: dict[str, Stored] = {name: Stored(Storage.TEXT) for name in COLUMNS} | {
    "record_id": Stored(Storage.INTEGER),
    "event_type": Stored(Storage.INTEGER),
    "event_time": Stored(Storage.TIMESTAMP),
}

# The types of every dialect without another meaning.
_TYPES = {
    Storage.INTEGER: r"(tiny|small|medium)?int(\(\d+\))?( unsigned)?|(big|small)int(\(\d+\))?|integer",
    Storage.NUMERIC: r"(numeric|decimal)\(\d+(, ?0)?\)|bigint(\(\d+\))? unsigned",
    Storage.TEXT: r"(tiny|medium|long)?text|citext|(character varying|n?varchar2?)(\(.+\))?|n?clob"
    r"|char(acter)?\(1\)",
    Storage.PADDED: r"(character|n?char)(\(.+\))?",
    Storage.TIMESTAMP: r"(timestamp|datetime)(\(\d+\))?( without time zone)?",
}


def storage_of(type_name: str, dialect: Dialect) -> Storage | None:
    """Return what a type of the catalogue means, None if no column of a log may have it."""
    patterns = (*dialect.values.storages.items(), *((pattern, of) for of, pattern in _TYPES.items()))
    return next((of for pattern, of in patterns if re.fullmatch(pattern, type_name, re.IGNORECASE)), None)


def readings(
    dialect: Dialect, names: Mapping[str, str], stored: Mapping[str, Stored], *, local_time: bool
) -> dict[str, str]:
    """Return the texts for statements that read a log's rows, whose names are qualified and quoted."""
    number, time, row = stored["record_id"].storage, stored["event_time"].storage, names["record_id"]
    status = _text(dialect, stored["status"], names["status"])
    utc = _utc(dialect, time, names["event_time"], local_time=local_time)
    usable = _usable(number, row)
    texts = {name: _text(dialect, stored[name], names[name]) for name in COLUMNS[4:]}
    return texts | {
        "record_id": row,
        "id": row if number is Storage.INTEGER else f"cast({row} as {dialect.values.integer})",
        "usable": usable,
        "letter": status,
        "is_new": f"{names['status']} = 'N'" + ("" if stored["status"].exact else f" and {status} = 'N'"),
        "event_type": names["event_type"],
        "status": names["status"],
        "event_time": names["event_time"],
        "event_time_utc": utc,
        "event_time_text": _put(dialect.values.time_text, utc),
        "time_is_plain": f"case when {utc} between timestamp '0001-01-01 00:00:00'"
        " and timestamp '9999-12-31 23:59:59.999999' then 1 else 0 end",
        "oldest": _put(dialect.values.time_text, "min(happened_at)"),
        "oldest_held": _put(dialect.values.time_text, "min(case when is_held = 1 then happened_at end)"),
        "oldest_moving": _put(dialect.values.time_text, "min(case when is_held = 0 then happened_at end)"),
        "log_now": dialect.values.local_now
        if local_time and time is not Storage.ZONED
        else dialect.values.utc_now,
    }


def indexed_text(name: str, stored: Stored) -> str:
    """Return what an index contains of a column of texts: the beginnings of long ones."""
    length = _LENGTH.search(stored.type)
    is_short = not stored.type or (length is not None and int(length[1]) <= _PREFIX)
    return name if is_short else f"{name}({_PREFIX})"


_LENGTH = re.compile(r"\((\d+)")
_PREFIX = 20  # characters


def _usable(number: Storage, record_id: str) -> str:
    """Return whether a row can be finished by its record_id."""
    if number is Storage.INTEGER:
        return f"{record_id} > 0"
    return f"{record_id} between 1 and {MAX_RECORD_ID} and {record_id} = floor({record_id})"


def _text(dialect: Dialect, stored: Stored, column: str) -> str:
    return column if stored.storage is Storage.TEXT and stored.exact else _put(dialect.values.text, column)


def _utc(dialect: Dialect, time: Storage, column: str, *, local_time: bool) -> str:
    if time is Storage.ZONED:
        return column
    moment = f"cast({column} as timestamp)" if time is Storage.DATE else column
    return _put(dialect.values.local_as_utc, moment) if local_time else moment


def _put(form: str, column: str) -> str:
    return form.replace("{column}", column)
