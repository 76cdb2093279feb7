"""Parquet, through Arrow: batch by batch, typed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import IO, Any

from eventlog.codec import Cell, Row, SheetColumn
from eventlog.errors import InvalidDocument, Refused
from eventlog.extras import extra

_BATCH = 8192


def read(file: IO[bytes], name: str) -> tuple[tuple[str, ...], Iterator[Row | Refused]]:
    """The column names, and the rows."""
    arrow, parquet = _arrow()
    try:
        opened = parquet.ParquetFile(file)
    except (arrow.ArrowInvalid, OSError) as fault:
        raise InvalidDocument(f"{name}: {fault}") from fault
    return tuple(opened.schema_arrow.names), _rows(opened, name, arrow)


def _rows(opened: Any, name: str, arrow: Any) -> Iterator[Row | Refused]:
    number = 0
    try:
        for batch in opened.iter_batches(_BATCH):
            columns = [_cells(column, arrow) for column in batch.columns]
            for cells in zip(*columns, strict=True):
                number += 1
                yield Row(number, cells)
    except (arrow.ArrowInvalid, OSError) as fault:
        yield Refused(f"{name}:{number + 1}", f"the rest of the file cannot be read: {fault}")


def _cells(column: Any, arrow: Any) -> list[Cell]:
    """The values of a column; nanoseconds, which Python's datetime lacks, come as text."""
    if arrow.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(arrow.string())
    cells: list[Cell] = column.to_pylist()
    return cells


class Writer:
    """Rows as Parquet."""

    def __init__(self, file: IO[bytes], columns: Sequence[SheetColumn]) -> None:
        arrow, parquet = _arrow()
        types = {
            "int": arrow.int64(),
            "float": arrow.float64(),
            "bool": arrow.bool_(),
            "bytes": arrow.binary(),
            "timestamp": arrow.timestamp("us"),
        }
        self._arrow = arrow
        self._schema = arrow.schema([(c.name, types.get(c.type, arrow.string())) for c in columns])
        self._times = [c.type == "timestamp" for c in columns]
        self._writer = parquet.ParquetWriter(file, self._schema)
        self._rows: list[Sequence[Cell]] = []

    def write(self, cells: Sequence[Cell]) -> None:
        self._rows.append(cells)
        if len(self._rows) >= _BATCH:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = [
            [_time(cell) for cell in cells] if time else cells
            for cells, time in zip(zip(*self._rows, strict=True), self._times, strict=True)
        ]
        arrays = [
            self._arrow.array(cells, field.type) for cells, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))
        self._rows = []


def _time(cell: Cell) -> dt.datetime | None:
    return dt.datetime.fromisoformat(cell) if isinstance(cell, str) else cell


def _arrow() -> tuple[Any, Any]:
    with extra("parquet", "Parquet"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet
