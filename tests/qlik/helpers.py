"""What the tests of this part share: sources made by hand, and cells as a CSV file holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Row, Sheet, SheetRow, Source
from eventlog.core.tables import Tables
from eventlog.qlik import messages, tables
from eventlog.qlik.message_settings import MessageSettings

NONE = Tables()
HEADERS = (
    "change_seq",
    "change_oper",
    "change_mask",
    "stream_position",
    "operation",
    "transaction_id",
    "timestamp",
)
SEQ = "2024010112000000"


def seq(number: int) -> str:
    return f"{SEQ}{number:019}"


def source(columns: Sequence[str], *rows: Sequence[Any], stem: str = "usr__ct") -> Source[Row]:
    return Source(f"{stem}.csv", stem, tuple(columns), [Row(i, tuple(r)) for i, r in enumerate(rows, 2)])


def ct(*data: str, prefix: str = "header__", headers: Sequence[str] = HEADERS) -> tuple[str, ...]:
    """Return the columns of a change table."""
    return (*(prefix + h for h in headers), *data)


def row(number: int, letter: str, mask: Any, *data: Any, **reported: Any) -> tuple[Any, ...]:
    """Return a row of a change table with the seven default headers."""
    names = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "B": "BEFOREIMAGE", "T": "TRUNCATE"}
    return (
        reported.get("seq", seq(number)),
        letter,
        mask,
        reported.get("stream", "0003;4"),
        reported.get("operation", names.get(letter)),
        reported.get("transaction", f"{0xAB:032X}"),
        reported.get("timestamp", "2024-01-01 12:00:00.000"),
        *data,
    )


def read_rows(*sources: Source[Row], known: Tables = NONE, **settings: Any) -> list[Change | Refused]:
    return list(tables.read(sources, known, tables.TableSettings(**settings)))


def write_rows(changes: Iterable[Change], known: Tables = NONE, **settings: Any) -> list[SheetRow | Refused]:
    return list(tables.write(changes, known, tables.TableSettings(**settings)))


def as_sources(rows: Iterable[SheetRow | Refused], *, csv: bool = False) -> list[Source[Row]]:
    """Return the written rows as sources, one for each change table; as typed cells, or as CSV holds them."""
    sheets: dict[Sheet, list[Row]] = {}
    for number, item in enumerate(rows, 2):
        assert isinstance(item, SheetRow), item
        cells = tuple(map(_csv, item.cells)) if csv else item.cells
        sheets.setdefault(item.sheet, []).append(Row(number, cells))
    return [
        Source(f"{s.name}.csv", s.name, tuple(c.name for c in s.columns), rows) for s, rows in sheets.items()
    ]


def _csv(cell: Any) -> str | None:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, bytes):
        return cell.hex().upper()
    return cell if cell is None or isinstance(cell, str) else repr(cell)


def read_messages(values: Iterable[Any], known: Tables = NONE, **settings: Any) -> list[Change | Refused]:
    objects = [Object(i, v) for i, v in enumerate(values, 1)]
    given = {"table": "" if len(known) == 1 else "t"} | settings  # of messages that name no table
    return list(messages.read([Source("t.jsonl", "t", (), objects)], known, MessageSettings(**given)))


def write_messages(changes: Iterable[Change], known: Tables = NONE, **settings: Any) -> list[Any]:
    return list(messages.write(changes, known, MessageSettings(**settings)))


def as_text(change: Change | Refused) -> str:
    """Return a change as text, for 1, 1.0 and true are equal; without what counting adds."""
    assert isinstance(change, Change), change
    kept = tuple(fact for fact in change.extra if fact[0] == "stream_position")
    return repr(change._replace(extra=kept))


def change(item: Change | Refused) -> Change:
    assert isinstance(item, Change), item
    return item


def reason(item: Change | Refused) -> str:
    assert isinstance(item, Refused), item
    return f"{item.where}: {item.reason}"
