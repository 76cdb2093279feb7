"""A row of the event log, and what its numbers and letters mean."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from eventlog.core.change import Op
from eventlog.core.errors import InvalidValue, WrongRow
from eventlog.core.values import Kind, read_moment


class Letter(enum.StrEnum):
    """The statuses of a row."""

    NEW = "N"  # the only letter ever picked up
    SUCCESS = "S"
    WARNING = "W"
    ERROR = "E"
    FATAL = "F"


class EventType(NamedTuple):
    number: int
    name: str
    op: Op
    per_field: bool
    query_back: bool


EVENT_TYPES: dict[int, EventType] = {
    event_type.number: event_type
    for event_type in (
        EventType(1, "insert field", Op.INSERT, per_field=True, query_back=False),
        EventType(2, "update field", Op.UPDATE, per_field=True, query_back=False),
        EventType(3, "update field, remove all values", Op.UPDATE, per_field=True, query_back=False),
        EventType(4, "delete row", Op.DELETE, per_field=False, query_back=False),
        EventType(5, "insert row, query-back", Op.INSERT, per_field=False, query_back=True),
        EventType(6, "update row, query-back", Op.UPDATE, per_field=False, query_back=True),
        EventType(7, "insert field, query-back", Op.INSERT, per_field=True, query_back=True),
        EventType(8, "update field, query-back", Op.UPDATE, per_field=True, query_back=True),
    )
}

COLUMNS = (
    "record_id",
    "status",
    "event_type",
    "event_time",
    "perpetrator",
    "table_name",
    "table_key",
    "column_name",
    "old_value",
    "new_value",
)
# places in a row
RECORD_ID = COLUMNS.index("record_id")
STATUS = COLUMNS.index("status")
EVENT_TYPE = COLUMNS.index("event_type")
OBJECT = slice(COLUMNS.index("table_name"), COLUMNS.index("table_key") + 1)
DEFAULTED = frozenset(("status", "event_time", "perpetrator"))
MAX_RECORD_ID = 2**63 - 1
MAX_EXACT_DOUBLE = 2**53


class Entry(NamedTuple):
    """One row, as far as it can be understood without knowing its table."""

    record_id: int
    status: str
    event_type: int
    event_time: str  # ISO 8601 in UTC, without zone; trailing zeros of the fraction dropped, so texts compare
    perpetrator: str | None
    table_name: str
    table_key: str
    column_name: str | None = None
    old_value: str | None = None
    new_value: str | None = None

    @property
    def spelling(self) -> tuple[str, str]:
        """The names under which the row has its object."""
        return self.table_name, self.table_key

    @property
    def values(self) -> tuple[str | None, str | None, str | None]:
        """The column and its values."""
        return self.column_name, self.old_value, self.new_value


class PlacedEntry(NamedTuple):
    """A row that is an entry, its position for people, its bytes, and its object."""

    entry: Entry
    where: str
    raw: bytes
    object: tuple[str, str] = ("", "")


_DIGITS = re.compile(r"[+-]?[0-9]{1,20}")


Cell = str | int | float | Decimal | None  # of a row, as a database or a file gives it


def read_entry(cells: Sequence[Cell]) -> Entry:
    """Return the entry of the cells of a row; raise WrongRow with the reason if they make none."""
    record_id, status, event_type, event_time, perpetrator, table, key, column, old_value, new_value = cells
    number = read_record_id(record_id)
    kind = read_event_type(event_type)
    if event_time is None:
        raise WrongRow("event_time is null")
    if table is None or key is None:
        raise WrongRow(f"{'table_name' if table is None else 'table_key'} is null")
    if EVENT_TYPES[kind].per_field and column is None:
        raise WrongRow(f"column_name is null, but event type {kind} is per field")
    if EVENT_TYPES[kind].per_field and column == "":
        raise WrongRow(f"column_name is empty, but event type {kind} is per field")
    return Entry(
        number,
        cell_as_text(status),
        kind,
        read_event_time(str(event_time)),
        _text(perpetrator),
        str(table),
        str(key),
        _text(column),
        _text(old_value),
        _text(new_value),
    )


def record_id_of(cells: Sequence[Cell]) -> int:
    """Return the record_id of a row of a log in a database, whatever type its driver gives it."""
    return int(str(cells[RECORD_ID]))


def read_record_id(cell: Cell) -> int:
    """Return the record_id of a cell: positive and of 63 bits."""
    number = _integer("record_id", cell)
    if not 0 < number <= MAX_RECORD_ID:
        raise WrongRow(f"record_id is {number}, not between 1 and {MAX_RECORD_ID}")
    if isinstance(cell, float) and number > MAX_EXACT_DOUBLE:
        raise WrongRow(f"record_id is {number}, and a double holds integers exactly up to {MAX_EXACT_DOUBLE}")
    return number


def read_event_type(cell: Cell) -> int:
    """Return the event type of a cell: 1 to 8."""
    number = _integer("event_type", cell)
    if number not in EVENT_TYPES:
        raise WrongRow(f"event_type is {number}, not 1 to 8")
    return number


def read_integer(cell: Cell) -> Cell:
    """Return the integer that a number of any type is; what is none stays as it is."""
    if isinstance(cell, float | Decimal) and math.isfinite(cell) and cell == int(cell):
        return int(cell)
    return cell


def cell_as_text(cell: Cell) -> str:
    """Return a cell for people."""
    return "null" if cell is None else f"{cell}"


def read_event_time(text: str) -> str:
    """Return an event_time in the one form whose texts compare as times do; a date is its midnight."""
    try:
        moment = read_moment(Kind.DATE if len(text) == len("yyyy-mm-dd") else Kind.TIMESTAMP, text)
    except InvalidValue as fault:
        raise WrongRow(f"event_time: {fault}") from fault
    fraction = moment.fraction.rstrip("0").rstrip(".")
    return moment.at.isoformat() + fraction


def _integer(name: str, cell: Cell) -> int:
    if cell is None:
        raise WrongRow(f"{name} is null")
    number = cell if isinstance(cell, str) else read_integer(cell)
    if isinstance(number, int):
        return number
    if not isinstance(number, str):
        raise WrongRow(f"{name} is {number}, not an integer")
    if not _DIGITS.fullmatch(number):
        raise WrongRow(f"{name} is {number[:40]!r}, not an integer")
    return int(number)


def _text(cell: Cell) -> str | None:
    return None if cell is None else str(cell)
