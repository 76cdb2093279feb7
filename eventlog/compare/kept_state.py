"""The new state kept in a Parquet file, to be the old one of the next comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.core import tablekey
from eventlog.core.tables import Table
from eventlog.files.output_files import place_at


class KeptState:
    """Writes the rows that pass through it; the file takes its place when the block ends well."""

    def __init__(self, name: str, table: Table) -> None:
        self._table = table
        columns = (*table.key, *(column.name for column in table.data))
        self._form = pa.schema([(column, pa.string()) for column in columns])
        self._target = place_at(name)
        self._writer = pq.ParquetWriter(self._target.stream, self._form)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._writer.close()
            if kind is None:
                self._target.complete()
        finally:
            self._target.discard()

    def passing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the same batches, each once it is written."""
        for rows in batches:
            pairs = [tablekey.read(key) for key in rows.column("key").to_pylist()]
            values = zip(*([text for _, text in key] for key in pairs), strict=True)
            keys = [pa.array(column, pa.string()) for column in values]
            self._writer.write_batch(pa.record_batch([*keys, *rows.columns[2:]], schema=self._form))
            yield rows
