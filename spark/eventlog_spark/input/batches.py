"""Python rows gathered into Arrow batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

SIZE = 4096  # rows of one batch,
BYTES = 16 << 20  # or fewer, whose texts have so many bytes


def gather(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int = SIZE) -> Iterator[pa.RecordBatch]:
    """The rows as batches of this schema."""
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        arrays = [
            pa.array(cells, field.type) for cells, field in zip(zip(*chunk, strict=True), schema, strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)


def bounded(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same, of rows that may hold long texts."""
    held: list[Sequence[Any]] = []
    size = 0
    for row in rows:
        held.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if len(held) >= SIZE or size >= BYTES:
            yield from gather(held, schema)
            held, size = [], 0
    yield from gather(held, schema)
