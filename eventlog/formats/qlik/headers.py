"""The headers of changes: the columns that change tables have for them, and the forms of their times."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from eventlog.core.errors import InvalidValue, Misuse, WrongRow, shortened
from eventlog.core.formats import NO_COLUMNS, SheetColumn
from eventlog.core.values import Kind, read_moment
from eventlog.formats.qlik import mask


class Header(NamedTuple):
    """A header column of a change table."""

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


@lru_cache(maxsize=1000)
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
        getters = [self.header(name) for name in names]
        return lambda cells: tuple(getter(cells) for getter in getters)

    def row(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Return a function that takes the data cells from the cells of a row."""
        first = len(self.headers)
        if self.places == tuple(range(first, self.columns)):
            return itemgetter(slice(first, None))
        places = self.places
        return lambda cells: tuple(cells[i] for i in places)


def read_heading(columns: tuple[str, ...], prefix: str) -> Heading:
    """Return the heading of a change table; names of headers match without case."""
    names_by_column = {(prefix + name).lower(): name for name in NAMES}
    headers: dict[str, int] = {}
    data: dict[str, int] = {}
    for place, column in enumerate(columns):
        name = names_by_column.get(column.lower())
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


# --- times

ISO: Final = "iso"
_EPOCHS = {"epoch": 0, "epoch-millis": 3, "epoch-micros": 6}  # digits of a second that its unit has
TIME_FORMATS: Final = (ISO, *_EPOCHS)
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?", re.ASCII)
_START = dt.datetime(1970, 1, 1)


@lru_cache(maxsize=1000)
def read_header_time(text: str, form: str) -> str:
    """Return a time in UTC, as changes contain it. A time without a zone is UTC."""
    try:
        if form == ISO:
            return iso_utc(text)
        at, fraction = _since_epoch(text, _EPOCHS[form])
    except (ValueError, OverflowError):
        raise InvalidValue(shortened(text, 40), f"a timestamp as {form}") from None
    except InvalidValue:
        expected = "a timestamp in ISO 8601 (header-time-format reads numbers since 1970)"
        raise InvalidValue(shortened(text, 40), expected) from None
    digits = fraction.rstrip("0")
    return at.isoformat() + (f".{digits}" if digits else "") + "Z"


def _since_epoch(text: str, digits: int) -> tuple[dt.datetime, str]:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    seconds = Decimal(text).scaleb(-digits)
    whole_seconds = seconds.to_integral_value(ROUND_FLOOR)
    return _START + dt.timedelta(seconds=int(whole_seconds)), f"{seconds - whole_seconds:f}".partition(".")[2]


def iso_utc(text: str) -> str:
    """Return a time in UTC without a zone in the form of the model."""
    moment = read_moment(Kind.TIMESTAMP, text)
    return moment.at.isoformat() + moment.fraction.rstrip("0").rstrip(".") + "Z"


@lru_cache(maxsize=1000)
def utc(time: str, digits: int = 0) -> str:
    """Return a time of the model as Replicate writes it: UTC without a zone, at least so many digits."""
    moment = read_moment(Kind.TIMESTAMP, time)
    fraction = moment.fraction[1:].rstrip("0").ljust(digits, "0")
    return moment.at.isoformat() + (f".{fraction}" if fraction else "")


def utc_millis(time: str) -> str:
    """Return a time of the model as Replicate writes it, with exactly three digits after the second."""
    seconds, _, fraction = utc(time, 3).partition(".")
    return f"{seconds}.{fraction[:3]}"
