"""Formats: how records are read into changes, and how changes are written as records.

A format never opens a file. It receives sources whose container (CSV, Parquet, a Kafka topic) was removed,
and returns records that get a container later. A record that it cannot understand or write becomes a Refused
in its place, so a bad record costs itself alone.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from eventlog.core.change import Change
from eventlog.core.errors import NotExpressible, Refused
from eventlog.core.tables import Tables

Cell = Any  # what a container can hold in one cell: CSV text, JSON values, Arrow's Python values
T = TypeVar("T")


class Shape(enum.Enum):
    """The kind of records of a format, which decides its containers."""

    ROWS = "rows"  # CSV, JSON Lines, Parquet, a database table
    OBJECTS = "objects"  # JSON Lines, one value a line; messages of a topic
    BYTES = "bytes"  # one stream


class Row(NamedTuple):
    """A row of a source with columns: its line or number there, its cells, and the record as it came."""

    where: int
    cells: tuple[Cell, ...]
    raw: bytes | None = None


class Object(NamedTuple):
    """One JSON value, or the bytes of one message, of a source."""

    where: int
    value: Any
    raw: bytes | None = None
    key: bytes | None = None  # of a message in a topic


NO_COLUMNS = "it is empty, or nothing in it is a row"
_SHOWN = 500  # characters of the names of columns in a message


def listed_columns(columns: Sequence[str]) -> str:
    """Return the columns of a source for a message, and whether something else than commas separates them."""
    if not columns:
        return f"none: {NO_COLUMNS}"
    names = ", ".join(columns)
    shown = names if len(names) <= _SHOWN else f"{names[:_SHOWN]}…"
    parted = len(columns) == 1 and re.search("[;\t|]", names)
    return f"{shown}; commas must part names and cells" if parted else shown


class Source(NamedTuple, Generic[T]):
    """One opened input."""

    name: str  # as the user named it, for messages
    stem: str  # the file's name without folder and extensions
    columns: tuple[str, ...]  # empty unless the records are rows
    records: Iterable[T | Refused]  # Row, Object or bytes, by the format's shape

    def at(self, where: object) -> str:
        """Return the position that a message names."""
        return f"{self.name}:{where}"

    def refuse(self, record: Row | Object, reason: str) -> Refused:
        """Return the record left out, as it came."""
        return Refused(self.at(record.where), reason, self.raw(record))

    def raw(self, record: Row | Object) -> bytes:
        """Return the record as it came; one of a container without lines is kept as JSON."""
        if record.raw is not None:
            return record.raw
        value = record.value if isinstance(record, Object) else self._cells_by_column(record)
        return json.dumps(value, default=_text).encode() + b"\n"

    def _cells_by_column(self, row: Row) -> dict[str, Cell]:
        return dict(zip(self.columns, row.cells, strict=False))


def _text(cell: object) -> str:
    return cell.hex().upper() if isinstance(cell, bytes) else str(cell)


class SheetColumn(NamedTuple):
    """A column of a sheet."""

    name: str
    type: str  # int, float, bool, text, bytes, timestamp; for containers that want to know


class Sheet(NamedTuple):
    """A table of written rows; a writer may fill several, and each becomes a file of its own."""

    name: str
    columns: tuple[SheetColumn, ...]


class SheetRow(NamedTuple):
    """A row of a sheet."""

    sheet: Sheet
    cells: tuple[Cell, ...]


_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1


def check_cells(columns: Iterable[SheetColumn], cells: Sequence[Cell]) -> None:
    """Refuse what the columns of CSV, Parquet and databases cannot hold: integers of more than 64 bits, and
    half a surrogate pair, for which UTF-8 has no bytes."""
    plain = [
        cell.isascii() if type(cell) is str else type(cell) is not int or _MIN_INT <= cell <= _MAX_INT
        for cell in cells
    ]
    if all(plain):  # nearly always
        return
    for column, cell in zip(columns, cells, strict=True):
        if isinstance(cell, str):
            check_text(cell)
        elif column.type == "int" and isinstance(cell, int) and not _MIN_INT <= cell <= _MAX_INT:
            raise NotExpressible(f"column {column.name}: an integer of more than 64 bits")


def check_text(text: str) -> None:
    """Refuse half a surrogate pair."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as fault:
        half, at = ord(text[fault.start]), fault.start + 1
        raise NotExpressible(f"half a surrogate pair, U+{half:04X} at character {at} of a text") from None


class Placed(NamedTuple):
    """A change, its place, and its records as they came."""

    change: Change
    where: str
    raw: bytes | None = None
    source: str = ""
    number: int = 0  # in the source; for a topic the offset
    image_where: str = ""  # the place of the record with the values before


Read = Callable[[Iterable[Source[Any]], Tables, Any], Iterator[Change | Refused]]
Write = Callable[[Iterable[Change], Tables, Any], Iterator[Any]]


class Memory(Protocol):
    """The state of a writer, from which its next run continues."""

    def dump(self) -> Any:
        """Return the state as JSON holds it."""


class Layout(NamedTuple):
    """The layout of the rows of a delimited file."""

    delimiter: str = ","
    quote: str = '"'
    null: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name on the command line, its shape, both directions, and their settings.

    `settings` is a frozen dataclass of `settings.setting` fields; an instance of it is the last argument of
    `read` and `write`. Writers yield SheetRow, JSON-ready dicts, messages or bytes, by the shape, and
    Refused.
    """

    name: str
    shape: Shape
    settings: type
    read: Read
    write: Write
    folded: bool = False  # its rows are no changes by themselves: `pickup` folds them, and `read` refuses to
    remember: Callable[[Any, Any], Memory] | None = None  # the memory of settings, or of what was dumped
    takes_no_key: bool = False  # it can write changes without a key; the others refuse each of them
    writes_utc: bool = False  # its records have the time of a change in UTC
    sheet: Sheet | None = None  # the sheet of a format that is written even without rows
