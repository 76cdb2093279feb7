"""The columns of the queues: one entry each, read from any container's cell and written back.

LINTER manual, "Replication: the dispatch queue" and "the receiving queue". The receiving queue has
REPL_DATE and RESERVE besides; what more it has the manual does not show, so columns go by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

from eventlog.core.errors import InvalidValue
from eventlog.core.formats import Cell, Sheet, SheetColumn

DATA_SIZE: Final = 3400
_LARGE: Final = 1 << 80
_SHORT: Final = 20  # digits of most numbers, at most
_DIGITS = re.compile(r" *[+-]?[0-9]{1,24} *")


class QueueRow(NamedTuple):
    """One row of a queue: an operation, or a part of one."""

    oper_date: bytes = b""
    extdata: int = 0  # 0 for the first part of an operation, 1 for the second, ...
    dbnode: str = ""
    transact_id: int = 0
    syslog_addr: int | None = None  # high 4 bytes: the journal file; low 4 bytes: the address in it
    typ: int = 0
    blobatr: int = 0  # low byte: the attribute; high byte: the type of the BLOB
    channel: int | None = None
    tabnum_src: int | None = None
    rowid_src: int | None = None
    len1: int = 0
    len2: int = 0
    dst_server: str = ""
    dst_owner: str = ""
    dst_table: str = ""
    data: bytes = b""
    repl_date: bytes = b""


_row: Callable[[Sequence[Any]], QueueRow] = partial(tuple.__new__, QueueRow)  # a third of its constructor


class QueueColumn(NamedTuple):
    """A column of the queue: how its cells are read, and its type for containers."""

    name: str
    type: str
    read: Callable[[Cell], Any]
    required: bool = False  # in every queue
    filled: bool = False  # in every row


def _integer(bits: int, low: int | None = None) -> Callable[[Cell], int]:
    minimum = -(1 << (bits - 1)) if low is None else low
    maximum = (1 << bits) - 1 if low is None else (1 << (bits - 1)) - 1  # a raw word may come unsigned

    def read(cell: Cell) -> int:
        is_plain = type(cell) is str and len(cell) <= _SHORT and cell.isascii() and cell.isdecimal()
        number = int(cell) if is_plain else _whole_number(cell)
        if not minimum <= number <= maximum:
            raise InvalidValue(number, f"between {minimum} and {maximum}")
        return number

    return read


def _whole_number(cell: Cell) -> int:
    try:
        if isinstance(cell, str):
            is_whole = _DIGITS.fullmatch(cell) is not None
        elif isinstance(cell, float | Decimal):
            is_whole = _is_whole(cell)
        else:
            is_whole = isinstance(cell, int) and not isinstance(cell, bool)
        if is_whole:
            return int(cell)
    except ValueError:  # of a signalling NaN
        pass
    raise InvalidValue(_short(cell), "an integer")


def _is_whole(cell: float | Decimal) -> bool:
    """Return whether a number is an integer.

    Nullable columns of some Parquet files, and NUMERIC columns of a copied queue, contain floats and
    decimals.
    """
    return math.isfinite(cell) and -_LARGE < cell < _LARGE and cell % 1 == 0


def _text(cell: Cell) -> str:
    if not isinstance(cell, str):
        raise InvalidValue(_short(cell), "text")
    return cell.rstrip(" ")


def _bytes(max_bytes: int, exact: bool = False) -> Callable[[Cell], bytes]:
    expected = f"{'' if exact else 'at most '}{max_bytes} bytes, as hex where the container has only text"

    def read(cell: Cell) -> bytes:
        try:
            if not isinstance(cell, str):
                data = bytes(memoryview(cell))
            elif len(cell) > 2 * max_bytes + 2:
                raise ValueError
            else:
                data = bytes.fromhex(cell.removeprefix("0x"))
        except (ValueError, TypeError):
            raise InvalidValue(_short(cell), expected) from None
        if len(data) > max_bytes or (exact and len(data) != max_bytes):
            raise InvalidValue(f"{len(data)} bytes", expected)
        return data

    return read


def _short(cell: object) -> str:
    text = cell if isinstance(cell, str) else repr(cell)[:60]
    return text if len(text) <= 40 else text[:37] + "..."


_DATE = _bytes(6, exact=True)
_SMALL, _INT, _BIG, _LENGTH = _integer(16), _integer(32), _integer(64), _integer(32, low=0)

DISPATCH: Final = (
    QueueColumn("OPER_DATE", "bytes", _DATE),
    QueueColumn("EXTDATA", "int", _integer(16, low=0), filled=True),
    QueueColumn("DBNODE", "text", _text),
    QueueColumn("TRANSACT_ID", "int", _BIG, required=True, filled=True),
    QueueColumn("SYSLOG_ADDR", "int", _BIG),
    QueueColumn("TYP", "int", _SMALL, required=True, filled=True),
    QueueColumn("BLOBATR", "int", _SMALL),
    QueueColumn("CHANNEL", "int", _INT),
    QueueColumn("TABNUM_SRC", "int", _INT),
    QueueColumn("ROWID_SRC", "int", _INT),
    QueueColumn("LEN1", "int", _LENGTH, required=True, filled=True),
    QueueColumn("LEN2", "int", _LENGTH, required=True, filled=True),
    QueueColumn("DST_SERVER", "text", _text),
    QueueColumn("DST_OWNER", "text", _text),
    QueueColumn("DST_TABLE", "text", _text),
    QueueColumn("DATA", "bytes", _bytes(DATA_SIZE), required=True),
)
RECEIVING: Final = (*DISPATCH[:1], QueueColumn("REPL_DATE", "bytes", _DATE), *DISPATCH[1:])
_EMPTY: Final[QueueRow] = QueueRow()
SHEET: Final = Sheet("DISPATCH_QUEUE", tuple(SheetColumn(column.name, column.type) for column in DISPATCH))


class QueueRowReader:
    """Reads the rows of a source with these columns; unknown columns are ignored."""

    def __init__(self, columns: Sequence[str]) -> None:
        places = {name.upper(): at for at, name in enumerate(columns)}
        self._columns = [
            (places[name], QueueRow._fields.index(name.lower()), name, read, filled)
            for name, _, read, _, filled in RECEIVING
            if name in places
        ]
        self.missing = [column.name for column in RECEIVING if column.required and column.name not in places]

    def read(self, cells: Sequence[Cell]) -> tuple[QueueRow, dict[str, str]]:
        """Return the part in a row, and the columns that cannot be understood, each with its fault."""
        values = [*_EMPTY]
        faults: dict[str, str] = {}
        for place, at, name, read, filled in self._columns:
            try:
                cell = cells[place]
                if cell is not None:
                    values[at] = read(cell)
                elif filled:
                    faults[name] = f"{name} is null"
            except IndexError:
                faults[name] = f"the row has only {len(cells)} cells"
            except InvalidValue as fault:
                faults[name] = f"{name}: {fault}"
        return _row(values), faults


def write_cells(part: QueueRow) -> tuple[Cell, ...]:
    """Return the cells of a part, in the order of DISPATCH_QUEUE; no bytes are a null."""
    cells = (getattr(part, column.name.lower()) for column in DISPATCH)
    return tuple(None if cell == b"" else cell for cell in cells)
