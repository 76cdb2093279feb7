"""The description of a captured table in the catalogue: columns, their types, the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from eventlog.core.errors import EventlogError, Misuse
from eventlog.formats.gbase.columns import ColumnType, Text, column_type
from eventlog.formats.gbase.declared_types import read_declared
from eventlog.formats.gbase.session import Connection, rows

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_TABLE = re.compile(r"(?:([^.:]+):)?([^.:]+)\.([^.:]+)")
_KEY_PARTS: Final = 16

# Informix Guide to SQL: Reference, "SYSCOLUMNS": the low byte of coltype
_SIMPLE: Final = {
    1: "smallint",
    2: "integer",
    3: "float",
    4: "smallfloat",
    6: "serial",
    7: "date",
    17: "int8",
    18: "serial8",
    45: "boolean",
    52: "bigint",
    53: "bigserial",
}
_SIZED: Final = {0: "char", 15: "nchar", 43: "lvarchar"}
_EXACT: Final = {5: "decimal", 8: "money"}
_VARIABLE: Final = {13: "varchar", 16: "nvarchar"}  # length: 256 * least + most
_OPAQUE: Final = (40, 41)  # a type of another name
_QUALIFIED: Final = {10: "datetime", 14: "interval"}
_UNITS: Final = {0: "year", 2: "month", 4: "day", 6: "hour", 8: "minute", 10: "second"}
_NO_SCALE: Final = 255
# types whose values no stream contains, at most a handle of them
_LARGE: Final = frozenset(("blob", "clob"))


class NotThere(EventlogError):
    """{0}: there is no such table, or the user may not read the catalogue"""


class NotCapturable(EventlogError):
    """{0}: {1}"""


class TableName(NamedTuple):
    """The name of a table."""

    database: str
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.database}:{self.owner}.{self.name}"


class CapturedColumn(NamedTuple):
    name: str
    declared: str
    type: ColumnType


class CapturableTable(NamedTuple):
    """A table with what can be captured of it."""

    table: TableName
    columns: tuple[CapturedColumn, ...]
    key: tuple[str, ...]
    uncapturable: tuple[str, ...]  # columns that no stream carries


def read_table_name(text: str, database: str) -> TableName:
    """Return the table in `database:owner.table`; `owner.table` is in the database of the address."""
    match = _TABLE.fullmatch(text)
    table_name = TableName(match[1] or database, match[2], match[3]) if match else TableName("", "", "")
    if not all(_NAME.fullmatch(name) for name in table_name):
        raise Misuse(f"{text!r} is not a table as database:owner.table, of letters, digits and underscores")
    return table_name


def declaration(code: int, length: int, extended: str | None) -> str:
    """Return the SQL type of a column, such as `decimal(8,2)`; empty for a type that is not known here."""
    base, length = code & 0xFF, length & 0xFFFF
    if base in _SIMPLE:
        return _SIMPLE[base]
    if base in _SIZED:
        return f"{_SIZED[base]}({max(length, 1)})"
    if base in _VARIABLE:
        return f"{_VARIABLE[base]}({max(length & 0xFF, 1)},{length >> 8})"
    if base in _EXACT:
        precision, scale = length >> 8, length & 0xFF
        return (
            f"{_EXACT[base]}({precision})" if scale == _NO_SCALE else f"{_EXACT[base]}({precision},{scale})"
        )
    if base in _QUALIFIED:
        return _qualified_type(_QUALIFIED[base], length)
    name = (extended or "").strip().lower() if base in _OPAQUE else ""
    return f"lvarchar({max(length, 1)})" if name == "lvarchar" else name


def _qualified_type(name: str, length: int) -> str:
    """Return a type such as `datetime year to second`.

    `length` is digits * 256 + first unit * 16 + last unit; a fraction of n digits is the unit 10 + n.
    """
    digits, first, last = length >> 8, length >> 4 & 0xF, length & 0xF
    leading = digits - (last - first)
    begin = _UNITS.get(first, "fraction")
    end = _UNITS.get(last) or f"fraction({last - 10})"
    width = f"({leading})" if name == "interval" and first in _UNITS and leading > 0 else ""
    return f"{name} {begin}{width} to {end}"


_COLUMNS = """\
select c.colno, c.colname, c.coltype, c.collength, x.name
from {owner}.syscolumns c, {owner}.systables t, outer {owner}.sysxtdtypes x
where t.tabname = ?
and t.owner = ?
and c.tabid = t.tabid
and x.extended_id = c.extended_id
order by c.colno"""

_KEY = """\
select {parts}
from {owner}.sysconstraints k, {owner}.sysindexes i, {owner}.systables t
where t.tabname = ?
and t.owner = ?
and k.tabid = t.tabid
and k.constrtype = 'P'
and i.tabid = k.tabid
and i.idxname = k.idxname"""


def describe(connection: Connection, table_name: TableName, form: Text, owner: str) -> CapturableTable:
    """Return the catalogue's description of a table; `owner` owns the tables of the catalogue."""
    arguments = (table_name.name, table_name.owner)
    columns: list[CapturedColumn] = []
    uncapturable: list[str] = []
    numbers: dict[int, str] = {}
    for number, name, code, length, extended in rows(connection, _COLUMNS.format(owner=owner), arguments):
        column = str(name).strip()
        numbers[int(str(number))] = column
        declared = declaration(int(str(code)), int(str(length)), None if extended is None else str(extended))
        stream_type = None if declared in _LARGE else column_type(read_declared(declared), form)
        if stream_type is None or not _NAME.fullmatch(column):
            uncapturable.append(column)
        else:
            columns.append(CapturedColumn(column, declared, stream_type))
    if not numbers:
        raise NotThere(str(table_name))
    if not columns:
        names = ", ".join(uncapturable)
        raise NotCapturable(str(table_name), f"no stream carries any of its columns ({names})")
    key = tuple(_key(connection, arguments, numbers, owner))
    key = () if set(key) & set(uncapturable) else key
    return CapturableTable(table_name, tuple(columns), key, tuple(uncapturable))


def _key(
    connection: Connection, arguments: tuple[str, str], numbers: dict[int, str], owner: str
) -> Iterator[str]:
    """Yield the columns of the primary key; a column that is sorted downwards has a negative number."""
    parts = ", ".join(f"i.part{number}" for number in range(1, _KEY_PARTS + 1))
    for row in rows(connection, _KEY.format(parts=parts, owner=owner), arguments):
        yield from (numbers[abs(int(str(part)))] for part in row if part)
