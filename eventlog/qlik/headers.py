"""The header columns of change tables: their names, widths and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from eventlog.core.errors import Misuse, WrongRow
from eventlog.core.formats import NO_COLUMNS, SheetColumn
from eventlog.qlik import mask


class Header(NamedTuple):
    name: str
    type: str  # of codec.SheetColumn
    width: int = 0  # characters or bytes


# "Reading Change Tables", the table of default header columns; partition_name only with partitioning
HEADERS = (
    Header("change_seq", "text", 35),
    Header("change_oper", "text", 1),
    Header("change_mask", "bytes", 128),
    Header("stream_position", "text", 128),
    Header("operation", "text", 12),
    Header("transaction_id", "text", 32),
    Header("timestamp", "timestamp"),
    Header("partition_name", "text", 32),
)
NAMES = tuple(h.name for h in HEADERS)
DEFAULT = NAMES[:-1]

LETTERS = {"INSERT": "I", "UPDATE": "U", "DELETE": "D", "BEFOREIMAGE": "B", "TRUNCATE": "T"}
OPERATIONS = {letter: name for name, letter in LETTERS.items()}


def letter_of(oper: object, operation: object) -> str:
    """Return the letter of a row: its operation wins, for the letter of a TRUNCATE row is not documented."""
    if operation is not None:
        name = str(operation).strip().upper().replace("-", "").replace(" ", "").replace("_", "")
        letter = LETTERS.get(name)
        if letter is None:
            raise WrongRow(f"operation {str(operation)[:40]!r} is none of {', '.join(LETTERS)}")
    else:
        letter = str(oper).strip().upper() if oper is not None else ""
        if letter not in OPERATIONS:
            raise WrongRow(f"change_oper {oper!r} is none of I, U, D, B")
    if oper is not None and letter != "T" and str(oper).strip().upper() != letter:
        raise WrongRow(f"change_oper {oper!r} contradicts operation {operation!r}")
    return letter


@dataclass(frozen=True, slots=True)
class Heading:
    """The columns of one change table, by kind."""

    headers: dict[str, int]
    data: tuple[str, ...]
    places: tuple[int, ...]
    columns: int

    @property
    def full_load(self) -> bool:
        """Return whether the rows are of a full load, whose files have no header columns."""
        return not self.headers

    @property
    def sequenced(self) -> bool:
        """Return whether rows have a change_seq, which is empty in rows of a full load."""
        return "change_seq" in self.headers or self.full_load

    @property
    def layout(self) -> mask.MaskLayout:
        return mask.MaskLayout(mask.join(self.headers.values()), self.columns)

    def header(self, *names: str) -> Callable[[Sequence[Any]], Any]:
        """Return a function that takes headers from the cells of a row; null for a column that is switched
        off.
        """
        if all(name in self.headers for name in names):
            return itemgetter(*(self.headers[name] for name in names))
        if len(names) == 1:
            return lambda cells: None
        single = [self.header(name) for name in names]
        return lambda cells: tuple(take(cells) for take in single)

    def row(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Return a function that takes the data cells from the cells of a row."""
        first = len(self.headers)
        if self.places == tuple(range(first, self.columns)):
            return itemgetter(slice(first, None))
        places = self.places
        return lambda cells: tuple(cells[i] for i in places)


def read_heading(columns: tuple[str, ...], prefix: str) -> Heading:
    """Return the heading of a change table; names of headers match without case."""
    known = {(prefix + name).lower(): name for name in NAMES}
    headers: dict[str, int] = {}
    data: dict[str, int] = {}
    for place, column in enumerate(columns):
        name = known.get(column.lower())
        group, key = (data, column) if name is None else (headers, name)
        if key in group:
            raise Misuse(f"column {column!r} is twice in the header line")
        group[key] = place
    if not columns:
        raise Misuse(f"the change table has no columns: {NO_COLUMNS}")
    if "change_oper" not in headers and "operation" not in headers:
        raise Misuse(f"no column {prefix}change_oper or {prefix}operation: is the header prefix {prefix!r}?")
    return Heading(headers, tuple(data), tuple(data.values()), len(columns))


def sheet_columns(names: Sequence[str], prefix: str) -> tuple[SheetColumn, ...]:
    """Return the header columns of a written change table."""
    return tuple(SheetColumn(prefix + h.name, h.type) for h in HEADERS if h.name in names)
