"""The speed of decoding a stream on one core, compared with the least that any reader must do.

The floor unpacks the same headers and cuts out each payload, and does nothing with them.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator

from eventlog.core.change import Change
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.gbase.columns import Text
from eventlog.gbase.format import FORMAT
from eventlog.gbase.records import COMMON, LAYOUTS, ROW_HEAD, ROW_SIZE, ROWS, BeginTx, CommTx, Number, RowHead
from eventlog.gbase.schema import read_schema
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.stream import RowRecord, Stream
from eventlog.gbase.writer import write_head, write_row, write_schema

ROUNDS = 5
TRANSACTIONS = 2_000
ROWS_EACH = 50
CHUNK = 1 << 20

MIXED = (
    "id serial, qty integer, price decimal(10,2), sold date, at datetime year to second, ok boolean, "
    "name varchar(40,0), memo lvarchar(200)"
)
PLAIN = (
    "id serial, a integer, b integer, c bigint, d smallint, code char(8), "
    "name varchar(40,0), city varchar(40,0)"
)


def mixed_row(at: int) -> tuple[object, ...]:
    """Return a row of the first table; values vary, so that no cache flatters."""
    minute, second = at // 60 % 60, at % 60
    moment = f"2025-{at % 12 + 1:02}-{at % 28 + 1:02}T10:{minute:02}:{second:02}"
    price = f"{at * 7919 % 10_000_000 / 100:.2f}"
    return at, at % 97, price, moment[:10], moment, at % 2 == 0, f"Beethoven, Ludwig {at}", f"edition {at}"


def plain_row(at: int) -> tuple[object, ...]:
    return at, at * 3, at * 5, at * 7_000_000, at % 1000, f"C{at % 9999}", f"Beethoven {at}", "Bonn"


TABLES: dict[str, tuple[str, Callable[[int], tuple[object, ...]]]] = {
    "eight columns, mixed": (MIXED, mixed_row),
    "eight columns, plain": (PLAIN, plain_row),
    "two columns": ("c1 integer, c2 varchar(20,0)", lambda at: (at, "abcabcabc")),
}


def make_stream(text: str, values: Callable[[int], tuple[object, ...]]) -> bytes:
    """Return transactions of inserts into one table."""
    schema = read_schema(text, Text())
    parts = [write_schema(1, schema)]
    sequence = 0
    for transaction in range(TRANSACTIONS):
        parts.append(write_head(BeginTx(sequence, transaction, 1_750_000_000, 1001)))
        for row in range(ROWS_EACH):
            sequence += 64
            image = schema.write(values(transaction * ROWS_EACH + row))  # type: ignore[arg-type]
            parts.append(write_row(Number.INSERT, RowHead(sequence, transaction, 1, 0), image))
        sequence += 64
        parts.append(write_head(CommTx(sequence, transaction, 1_750_000_001)))
    return b"".join(parts)


def run_floor(stream: bytes, variable: int) -> int:
    """Unpack every header and slice every payload."""
    at = rows = 0
    heads = {int(number): layout.struct for number, layout in LAYOUTS.items()}
    sizes = struct.Struct(f">{variable}I")
    while at < len(stream):
        header, payload, _, number = COMMON.unpack_from(stream, at)
        if number in ROWS:
            ROW_HEAD.unpack_from(stream, at + 16)
            sizes.unpack_from(stream, at + ROW_SIZE)
            rows += 1
        else:
            heads[number].unpack_from(stream, at + 16)
        stream[at + header : at + header + payload]
        at += header + payload
    return rows


def run_stream(stream: bytes) -> int:
    """Decode every row to its values, without changes."""
    reader = Stream()
    return sum(type(item) is RowRecord for piece in cut(stream) for item in reader.feed(piece))


def cut(stream: bytes) -> Iterator[bytes]:
    return (stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK))


def run_reader(stream: bytes) -> int:
    """Decode the stream to changes."""
    found = FORMAT.read([Source("bench", "bench", (), cut(stream))], Tables(), GbaseSettings())
    return sum(isinstance(change, Change) for change in found)


def best(work: Callable[[], int]) -> float:
    """Return the processor seconds of the fastest of some rounds."""
    return min(_timed(work) for _ in range(ROUNDS))


def _timed(work: Callable[[], int]) -> float:
    start = time.process_time()
    assert work() == TRANSACTIONS * ROWS_EACH
    return time.process_time() - start


def measure() -> Iterator[str]:
    """Yield a line of figures for each kind of table."""
    rows = TRANSACTIONS * ROWS_EACH
    yield f"{'table':24}{'rows/s':>10}{'MB/s':>7}{'of the floor':>14}{'values only':>13}{'floor rows/s':>14}"
    for name, (text, values) in TABLES.items():
        stream = make_stream(text, values)
        variable = read_schema(text, Text()).shape[2]
        floor = best(lambda: run_floor(stream, variable))  # noqa: B023
        only = best(lambda: run_stream(stream))  # noqa: B023
        whole = best(lambda: run_reader(stream))  # noqa: B023
        speed = f"{rows / whole:10,.0f}{len(stream) / whole / 1e6:7.1f}"
        yield f"{name:24}{speed}{floor / whole:14.0%}{floor / only:13.0%}{rows / floor:14,.0f}"


def main() -> None:
    for line in measure():
        print(line, flush=True)


if __name__ == "__main__":
    main()
