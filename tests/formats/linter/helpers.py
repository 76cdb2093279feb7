"""Queues from lists of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Row, SheetRow, Source
from eventlog.core.tables import Tables
from eventlog.core.tablesfile import read as read_tables
from eventlog.formats.linter.columns import DISPATCH
from eventlog.formats.linter.format import FORMAT
from eventlog.formats.linter.linter_settings import LinterSettings

NAMES = tuple(column.name for column in DISPATCH)
WHEN = "3b9acaff4000"  # 2021-09-09 01:50:55.25
COMMIT, ROLLBACK = 4, 10

LAYOUT = read_tables(
    """
    [tables.usr]
    schema = "own"
    key = ["idu"]
    number = 7
    columns = { idu = "integer", fname = "varchar(10)" }
    [tables.usr.linter]
    columns = { idu = "integer", fname = "char(8)" }
    """
)
ROW_1 = bytes.fromhex("01000000") + b"Jack    "
ROW_2 = bytes.fromhex("01000000") + b"John    "


def queue_row(**cells: Any) -> tuple[Any, ...]:
    """Return a row of DISPATCH_QUEUE as a text file holds it."""
    cells = {"OPER_DATE": WHEN, "EXTDATA": 0, "DBNODE": "DEMO    ", "TRANSACT_ID": 5, **cells}
    cells.setdefault("LEN1", 0)
    cells.setdefault("LEN2", 0)
    cells.setdefault("DATA", "")
    cells.setdefault("CHANNEL", 3)
    return tuple(None if cells.get(name) is None else str(cells[name]) for name in NAMES)


def operation(typ: int, first: bytes, second: bytes = b"", **cells: Any) -> tuple[Any, ...]:
    """Return a row with the images in DATA, and what every operation has."""
    common: dict[str, Any] = {
        "TABNUM_SRC": 7,
        "ROWID_SRC": 1,
        "SYSLOG_ADDR": 100,
        "DST_OWNER": "OWN",
        "DST_TABLE": "USR",
    }
    lengths = {"LEN1": len(first), "LEN2": len(second), "DATA": (first + second + bytes(5)).hex()}
    return queue_row(**{"TYP": typ, **common, **lengths, **cells})


def end(typ: int = COMMIT, **cells: Any) -> tuple[Any, ...]:
    return queue_row(**{"TYP": typ, "SYSLOG_ADDR": 200, **cells})


def read_queue(
    rows: Iterable[tuple[Any, ...]],
    tables: Tables | None = None,
    *,
    columns: tuple[str, ...] = NAMES,
    **settings: Any,
) -> list[Change | Refused]:
    """Return all that the format answers to one source."""
    records = [Row(where, cells) for where, cells in enumerate(rows, 2)]
    source = Source("q.csv", "q", columns, records)
    return list(FORMAT.read([source], LAYOUT if tables is None else tables, LinterSettings(**settings)))


def write_queue(changes: list[Change], tables: Tables, **settings: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the queue that is written of these changes."""
    written = list(FORMAT.write(changes, tables, LinterSettings(**settings)))
    assert all(isinstance(row, SheetRow) for row in written), written
    return [row.cells for row in written if isinstance(row, SheetRow)]


def only(answers: Iterable[Change | Refused]) -> Change:
    """Return the one change, where nothing was refused."""
    (change,) = answers
    assert isinstance(change, Change), change
    return change


def reasons(answers: Iterable[Change | Refused]) -> list[str]:
    return [answer.reason for answer in answers if isinstance(answer, Refused)]
