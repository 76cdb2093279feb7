"""What a format is: how it reads records into changes and writes changes as records.

A format never opens a file. It is handed sources, whose container (CSV, Parquet, a Kafka topic)
somebody else has taken off, and hands back records for whoever puts a container on. What it
cannot understand or cannot write comes out as Refused among the rest, in its place: a bad record
costs itself and nothing else.
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
    """What kind of records a format consists of, which decides the containers it may stand in."""

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
    """The columns of a source as a message tells them, and whether something else than commas parts them."""
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
    records: Iterable[T | Refused]  # Row, Object or bytes, as the format's shape says
    described: Any = None  # what the file beside it says, as `Beside.read` returns it

    def at(self, where: object) -> str:
        """The position that a message names."""
        return f"{self.name}:{where}"

    def refuse(self, record: Row | Object, reason: str) -> Refused:
        """The record left out, as it came."""
        return Refused(self.at(record.where), reason, self.raw(record))

    def raw(self, record: Row | Object) -> bytes:
        """The record as it came; one of a container without lines is kept as JSON."""
        if record.raw is not None:
            return record.raw
        value = record.value if isinstance(record, Object) else self._named(record)
        return json.dumps(value, default=_text).encode() + b"\n"

    def _named(self, row: Row) -> dict[str, Cell]:
        return dict(zip(self.columns, row.cells, strict=False))


def _text(cell: object) -> str:
    return cell.hex().upper() if isinstance(cell, bytes) else str(cell)


class SheetColumn(NamedTuple):
    name: str
    type: str  # int, float, bool, text, bytes, timestamp; for containers that want to know


class Description(NamedTuple):
    """The file beside a written one: its suffix, and its text for a name, a container and its rows."""

    suffix: str
    write: Callable[[str, str, int], str]


class Sheet(NamedTuple):
    """A table of written rows; a writer may fill several, and each becomes a file of its own."""

    name: str
    columns: tuple[SheetColumn, ...]
    description: Description | None = None


class SheetRow(NamedTuple):
    sheet: Sheet
    cells: tuple[Cell, ...]


_LEAST, _MOST = -(2**63), 2**63 - 1


def check_cells(columns: Iterable[SheetColumn], cells: Sequence[Cell]) -> None:
    """Refuse what the columns of CSV, Parquet and databases cannot hold: integers of more than 64 bits, and
    half a surrogate pair, for which UTF-8 has no bytes."""
    plain = [
        cell.isascii() if type(cell) is str else type(cell) is not int or _LEAST <= cell <= _MOST
        for cell in cells
    ]
    if all(plain):  # nearly always
        return
    for column, cell in zip(columns, cells, strict=True):
        if isinstance(cell, str):
            check_text(cell)
        elif column.type == "int" and isinstance(cell, int) and not _LEAST <= cell <= _MOST:
            raise NotExpressible(f"column {column.name}: an integer of more than 64 bits")


def check_text(text: str) -> None:
    """Refuse half a surrogate pair."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as fault:
        half, at = ord(text[fault.start]), fault.start + 1
        raise NotExpressible(f"half a surrogate pair, U+{half:04X} at character {at} of a text") from None


class Placed(NamedTuple):
    """A change, where it stood, and its records as they came."""

    change: Change
    where: str
    raw: bytes | None = None
    source: str = ""
    number: int = 0  # in the source; for a topic the offset
    beside: str = ""  # where the record stood that says what was before


Read = Callable[[Iterable[Source[Any]], Tables, Any], Iterator[Change | Refused]]
Write = Callable[[Iterable[Change], Tables, Any], Iterator[Any]]


class Memory(Protocol):
    """What a writer goes on from in its next run, and keeps up to date while it writes."""

    def dump(self) -> Any:
        """The same as JSON holds it."""


class Layout(NamedTuple):
    """How the rows of a file are laid out, as the file beside it says."""

    stem: str  # what the source is called, whatever the file's name is
    columns: tuple[str, ...]
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""


class CompanionFile(NamedTuple):
    """A file next to an input that describes it: its suffix, the setting that it fills, its reader."""

    suffix: str
    setting: str
    read: Callable[[str], Any]
    layout: Callable[[str], Layout]


@dataclass(frozen=True, slots=True)
class Format:
    """One format: its name on the command line, its shape, both directions, and their settings.

    `settings` is a frozen dataclass of `settings.setting` fields; an instance of it is the last
    argument of `read` and `write`. Writers yield SheetRow, JSON-ready dicts (or bytes messages) or
    bytes, as the shape says, and Refused.
    """

    name: str
    help: str
    shape: Shape
    settings: type
    read: Read
    write: Write
    folded: bool = False  # its rows are no changes by themselves: `pickup` folds them, and `read` refuses to
    companion: CompanionFile | None = None
    remember: Callable[[Any, Any], Memory] | None = None  # the memory of settings, or of what was dumped
    describes_others: Callable[[str], object] | None = None  # true for names of sources that describe others
    sheet: Sheet | None = None  # the one sheet of a format that stands there even without rows
