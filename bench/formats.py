"""The formats of changes on one core, each compared with the least that any reader or writer must do.

For Qlik that is the JSON or Avro library alone, on the same bytes. For GBase the floor unpacks the same
headers and cuts out each payload, and does nothing with them.
"""

from __future__ import annotations

import gc
import json
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Row, SheetRow, Source
from eventlog.core.tables import Tables
from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.format import FORMAT as GBASE
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.records import (
    COMMON,
    LAYOUTS,
    ROW_HEAD_SIZE,
    ROW_PACKING,
    ROWS,
    BeginTx,
    CommTx,
    Number,
    RowHead,
)
from eventlog.formats.gbase.schema import read_schema
from eventlog.formats.gbase.writer import write_head, write_row, write_schema
from eventlog.formats.qlik import avro, change_tables, messages
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.formats.qlik.message_settings import MessageSettings

COUNT = 20_000
ROUNDS = 3
TRANSACTIONS = 400  # of a stream
ROWS_EACH = 50
CHUNK = 1 << 20
TABLES = tablesfile.read(
    """
    [tables.usr]
    schema = "indirect"
    key = ["idu"]
    columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", mail = "varchar(99)",
        born = "date", changed = "timestamp(6)", salary = "numeric(10,2)", level = "smallint",
        active = "boolean", score = "double precision", note = "varchar(200)", mgr = "integer" }
    """.replace("\n        ", " ")
)


class Result(NamedTuple):
    name: str
    rate: float  # a second
    floor: float

    def __str__(self) -> str:
        share = self.rate / self.floor
        return f"{self.name:34} {self.rate:11,.0f}/s   floor {self.floor:11,.0f}/s   {share:6.1%}"


def changes(change_count: int) -> list[Change]:
    """Yield changes: of ten, seven are updates, two are inserts, one is a delete."""
    return [_change(i) for i in range(1, change_count + 1)]


def _change(i: int) -> Change:
    row = {
        "idu": i,
        "fname": f"Given {i}",
        "lname": f"Family {i}",
        "mail": f"user{i}@example.org",
        "born": f"19{i % 90 + 10}-0{i % 9 + 1}-15",
        "changed": "2024-03-18T10:47:26.661087",
        "salary": f"{i}.50",
        "level": i % 100,
        "active": i % 2 == 0,
        "score": i / 7,
        "note": None if i % 3 else "a note of some length, as notes are",
        "mgr": i // 10,
    }
    op = (Op.INSERT, Op.INSERT, Op.DELETE)[i % 10] if i % 10 < 3 else Op.UPDATE
    if op is Op.UPDATE:
        new = {**row, "lname": f"Other {i}", "level": i % 100 + 1}
        fields = tuple(Field(c, v, new[c]) for c, v in row.items())  # type: ignore[arg-type]
    elif op is Op.DELETE:
        fields = tuple(Field(c, v) for c, v in row.items())  # type: ignore[arg-type]
    else:
        fields = tuple(Field(c, ABSENT, v) for c, v in row.items())  # type: ignore[arg-type]
    return Change(
        op,
        "indirect",
        "usr",
        (("idu", i),),
        fields,
        f"2024031810472600{i:019}",
        f"{i // 4:032X}",
        "2024-03-18T10:47:26.661Z",
    )


def main() -> None:
    """Print one line for each direction of each form."""
    all_changes = changes(COUNT)
    for name, floor, ours, records in (
        *_json(all_changes),
        *_avro(all_changes),
        *_rows(all_changes),
        *_streams(),
    ):
        print(Result(name, records / _best(ours), records / _best(floor)))


Case = tuple[str, Callable[[], object], Callable[[], object], int]


def _json(all_changes: list[Change]) -> Iterator[Case]:
    written = _all(messages.write(all_changes, TABLES, MessageSettings()))
    lines = [json.dumps(message) for message in written]
    yield (
        "messages, JSON, read",
        lambda: _drain(map(json.loads, lines)),
        lambda: _drain(_read_messages(map(json.loads, lines))),
        COUNT,
    )
    yield (
        "messages, JSON, written",
        lambda: _drain(map(json.dumps, written)),
        lambda: _drain(map(json.dumps, messages.write(all_changes, TABLES, MessageSettings()))),
        COUNT,
    )


def _avro(all_changes: list[Change]) -> Iterator[Case]:
    settings = MessageSettings(encoding="avro")
    written = _all(messages.write(all_changes, TABLES, settings))
    outer = [avro.decode(avro.envelope(), data) for data in written]
    meta = avro.decode(avro.foreign(outer[0]["messageSchema"]), outer[0]["message"])
    schema = avro.foreign(meta["dataSchema"])
    inner = [avro.decode(schema, envelope["message"]) for envelope in outer[1:]]

    def floor_read() -> None:
        for data in written[1:]:
            avro.decode(schema, avro.decode(avro.envelope(), data)["message"])

    def floor_write() -> None:
        for envelope, record in zip(outer[1:], inner, strict=True):
            avro.encode(avro.envelope(), {**envelope, "message": avro.encode(schema, record)})

    yield "messages, Avro, read", floor_read, lambda: _drain(_read_messages(written)), COUNT
    yield (
        "messages, Avro, written",
        floor_write,
        lambda: _drain(messages.write(all_changes, TABLES, settings)),
        COUNT,
    )


def _rows(all_changes: list[Change]) -> Iterator[Case]:
    rows = change_tables.write(all_changes, TABLES, TableSettings())
    written = [item for item in rows if isinstance(item, SheetRow)]
    names = tuple(column.name for column in written[0].sheet.columns)
    objects = [_object(names, item.cells) for item in written]
    lines = [json.dumps(item) for item in objects]

    def read() -> Iterator[object]:
        rows = map(Row, count(), (tuple(json.loads(line).values()) for line in lines))
        return change_tables.read([Source("bench", "usr__ct", names, rows)], TABLES, TableSettings())

    def write() -> Iterator[str]:
        for item in change_tables.write(all_changes, TABLES, TableSettings()):
            assert isinstance(item, SheetRow)
            yield json.dumps(_object(names, item.cells))

    yield (
        "change table rows, JSON, read",
        lambda: _drain(map(json.loads, lines)),
        lambda: _drain(read()),
        len(lines),
    )
    yield (
        "change table rows, JSON, written",
        lambda: _drain(map(json.dumps, objects)),
        lambda: _drain(write()),
        len(lines),
    )


# --- streams of GBase

MIXED = (
    "id serial, qty integer, price decimal(10,2), sold date, at datetime year to second, ok boolean, "
    "name varchar(40,0), memo lvarchar(200)"
)


def mixed_row(at: int) -> tuple[object, ...]:
    """Return a row of the first table; values vary, so that no cache flatters."""
    minute, second = at // 60 % 60, at % 60
    moment = f"2025-{at % 12 + 1:02}-{at % 28 + 1:02}T10:{minute:02}:{second:02}"
    price = f"{at * 7919 % 10_000_000 / 100:.2f}"
    return at, at % 97, price, moment[:10], moment, at % 2 == 0, f"Beethoven, Ludwig {at}", f"edition {at}"


STREAMS: dict[str, tuple[str, Callable[[int], tuple[object, ...]]]] = {
    "stream, eight columns": (MIXED, mixed_row),
    "stream, two columns": ("c1 integer, c2 varchar(20,0)", lambda at: (at, "abcabcabc")),
}


def make_stream(text: str, values: Callable[[int], tuple[object, ...]]) -> bytes:
    """Return transactions of inserts into one table."""
    schema = read_schema(text, Text())
    parts = [write_schema(1, schema)]
    for transaction in range(TRANSACTIONS):
        first = transaction * 64 * (ROWS_EACH + 1)
        parts.append(write_head(BeginTx(first, transaction, 1_750_000_000, 1001)))
        for row in range(1, ROWS_EACH + 1):
            image = schema.write(values(transaction * ROWS_EACH + row - 1))  # type: ignore[arg-type]
            parts.append(write_row(Number.INSERT, RowHead(first + 64 * row, transaction, 1, 0), image))
        parts.append(write_head(CommTx(first + 64 * ROWS_EACH + 1, transaction, 1_750_000_001)))
    return b"".join(parts)


def _streams() -> Iterator[Case]:
    for name, (text, values) in STREAMS.items():
        stream = make_stream(text, values)
        variable = read_schema(text, Text()).shape[2]
        yield (
            name,
            partial(_unpacked, stream, variable),
            partial(_read_stream, stream),
            TRANSACTIONS * ROWS_EACH,
        )


def _read_stream(stream: bytes) -> None:
    _drain(GBASE.read([_cut(stream)], Tables(), GbaseSettings()))


def _cut(stream: bytes) -> Source[bytes]:
    pieces = (stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK))
    return Source("bench", "bench", (), pieces)


def _unpacked(stream: bytes, variable: int) -> None:
    """Unpack every header and slice every payload."""
    at = 0
    heads = {int(number): layout.packing for number, layout in LAYOUTS.items()}
    sizes = struct.Struct(f">{variable}I")
    while at < len(stream):
        header, payload, _, number = COMMON.unpack_from(stream, at)
        if number in ROWS:
            ROW_PACKING.unpack_from(stream, at + 16)
            sizes.unpack_from(stream, at + ROW_HEAD_SIZE)
        else:
            heads[number].unpack_from(stream, at + 16)
        stream[at + header : at + header + payload]
        at += header + payload


def _object(names: tuple[str, ...], cells: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row as JSON Lines hold it."""
    row = dict(zip(names, cells, strict=True))
    row["header__change_mask"] = cells[2].hex().upper()
    return row


def _read_messages(values: Iterable[Any]) -> Iterator[object]:
    objects = map(Object, count(), values)
    return messages.read([Source("bench", "bench", (), objects)], TABLES, MessageSettings())


def _all(written: Iterable[Any]) -> list[Any]:
    records = list(written)
    assert not any(isinstance(item, Refused) for item in records)
    return records


def _drain(items: Iterable[object]) -> None:
    next(islice(items, 10**9, None), None)


def _best(run: Callable[[], object]) -> float:
    """Return the processor seconds of the fastest of some rounds, because the others were disturbed."""
    taken = []
    gc.collect()
    gc.freeze()  # the bench's own data, which no converter holds
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


if __name__ == "__main__":
    main()
