"""Python rows gathered into Arrow batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

SIZE = 4096  # rows of one batch


def gather(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int = SIZE) -> Iterator[pa.RecordBatch]:
    """The rows as batches of this schema."""
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        arrays = [
            pa.array(cells, field.type) for cells, field in zip(zip(*chunk, strict=True), schema, strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)
