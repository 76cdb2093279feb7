"""How a log stores its columns, and the expressions that read them as ours are read.

Our own logs store them as the statements expect. An attached one may keep its numbers as numeric, double or
text, pad its texts, compare them without case, and keep its times as dates or texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from eventlog.core.entry import COLUMNS, MAX_EXACT_DOUBLE, MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.storage import Storage


class Unordered(EventlogError):
    """event_time is {0}: {1} needs a time that orders; alter it to a timestamp"""


class Stored(NamedTuple):
    """One column of a log."""

    storage: Storage
    type: str = ""  # as the catalogue writes it
    exact: bool = True  # its texts compare by case and by blanks

    @property
    def is_text(self) -> bool:
        return self.storage in _TEXTS

    @property
    def most(self) -> int:
        """The largest integer up to which the type holds each one exactly."""
        return _MOST.get(self.storage, MAX_RECORD_ID)

    def why_unusable(self, record_id: str | None) -> str:
        """Return why a row with this record_id cannot be finished."""
        number = "null" if record_id is None else repr(record_id[:40]) if self.is_text else record_id
        return f"record_id is {number}, not a whole number from 1 to {self.most}: it changes only by hand"


_TEXTS = frozenset((Storage.TEXT, Storage.PADDED))
_NUMBERS = frozenset((Storage.INTEGER, Storage.NUMERIC, Storage.DOUBLE, Storage.SINGLE))
_MOST = {Storage.DOUBLE: MAX_EXACT_DOUBLE, Storage.SINGLE: 2**24}

# What we make the columns of, and what they may be of to be read.
OURS: dict[str, Stored] = {name: Stored(Storage.TEXT) for name in COLUMNS} | {
    "record_id": Stored(Storage.INTEGER),
    "event_type": Stored(Storage.INTEGER),
    "event_time": Stored(Storage.TIMESTAMP),
}
_WITH_TEXT = frozenset(Storage) - {Storage.BINARY}
READABLE: dict[str, frozenset[Storage]] = dict.fromkeys(COLUMNS, _WITH_TEXT) | {
    "record_id": _NUMBERS | _TEXTS,
    "event_type": _NUMBERS | _TEXTS,
    "status": _TEXTS,
    "event_time": frozenset((Storage.DATE, Storage.TIMESTAMP, Storage.ZONED)) | _TEXTS,
}
REMEDIES: dict[str, str] = dict.fromkeys(COLUMNS, "text") | {
    "record_id": "a 64-bit integer",
    "status": "char(1)",
    "event_type": "an integer",
    "event_time": "a timestamp",
}


def demand_time(stored: Mapping[str, Stored], what: str) -> None:
    """Raise Unordered if the stored event_time does not allow what is asked for."""
    if stored["event_time"].is_text:
        raise Unordered(stored["event_time"].type, what)


def readings(
    dialect: Dialect, names: Mapping[str, str], stored: Mapping[str, Stored], *, local_time: bool
) -> dict[str, str]:
    """Return the texts for statements that read a log's rows, whose names are qualified and quoted."""
    number, kind, letter, time = (
        stored[name] for name in ("record_id", "event_type", "status", "event_time")
    )
    row = names["record_id"]
    record_id = _number(dialect, number, row)
    usable = _usable(number, record_id)
    status = _text(dialect, letter, names["status"])
    utc = _utc(dialect, time, names["event_time"], local_time=local_time)
    texts = {name: _text(dialect, stored[name], names[name]) for name in COLUMNS[4:]}
    return texts | {
        "record_id": record_id,
        "id": record_id if number.storage is Storage.INTEGER else f"cast({record_id} as {dialect.integer})",
        "record_id_text": row if number.storage is Storage.TEXT else _put(dialect.text, row),
        "usable": usable,
        "letter": status,
        "is_new": f"{names['status']} = 'N'" + ("" if letter.exact else f" and {status} = 'N'"),
        "event_type": _number(dialect, kind, names["event_type"]),
        "event_type_shown": f"trim({names['event_type']})" if kind.is_text else names["event_type"],
        "status": names["status"],
        "event_time": names["event_time"],
        "event_time_utc": utc,
        "event_time_text": _time_text(dialect, time, utc),
        "time_is_plain": f"case when {_is_plain(dialect, time, utc)} then 1 else 0 end",
        "oldest": _time_text(dialect, time, f"min(case when {usable} then {utc} end)"),
        "log_now": dialect.local_now if local_time and time.storage is not Storage.ZONED else dialect.utc_now,
    }


def indexed_number(dialect: Dialect, name: str, stored: Stored) -> str:
    """Return what an index contains of a column of numbers."""
    if stored.is_text and dialect.indexes_expressions:
        return _number(dialect, stored, name)
    return indexed_text(name, stored)


def indexed_text(name: str, stored: Stored) -> str:
    """Return what an index contains of a column of texts: the beginnings of long ones."""
    length = _LENGTH.search(stored.type)
    whole = not stored.is_text or not stored.type or (length is not None and int(length[1]) <= _PREFIX)
    return name if whole else f"{name}({_PREFIX})"


_LENGTH = re.compile(r"\((\d+)")
_PREFIX = 20  # characters, which hold any record_id


def _usable(stored: Stored, record_id: str) -> str:
    """Return whether a row can be finished by its record_id."""
    if stored.storage is Storage.INTEGER:
        return f"{record_id} > 0"
    whole = "" if stored.is_text else f" and {record_id} = floor({record_id})"
    return f"{record_id} > 0 and {record_id} <= {stored.most}{whole}"


def _number(dialect: Dialect, stored: Stored, column: str) -> str:
    return _put(dialect.number_of_text, column) if stored.is_text else column


def _text(dialect: Dialect, stored: Stored, column: str) -> str:
    return column if stored.storage is Storage.TEXT and stored.exact else _put(dialect.text, column)


def _utc(dialect: Dialect, stored: Stored, column: str, *, local_time: bool) -> str:
    if stored.is_text:
        return _text(dialect, stored, column)
    if stored.storage is Storage.ZONED:
        return _put(dialect.zoned_as_utc, column)
    time = f"cast({column} as {dialect.timestamp})" if stored.storage is Storage.DATE else column
    return _put(dialect.local_as_utc, time) if local_time else time


def _time_text(dialect: Dialect, stored: Stored, time: str) -> str:
    return time if stored.is_text else _put(dialect.time_text, time)


def _is_plain(dialect: Dialect, stored: Stored, time: str) -> str:
    """Return whether a time is certainly one that a document can contain."""
    if stored.is_text:
        return _put(dialect.plain_time, time)
    return f"{time} between timestamp '0001-01-01 00:00:00' and timestamp '9999-12-31 23:59:59.999999'"


def _put(form: str, column: str) -> str:
    return form.replace("{column}", column)
