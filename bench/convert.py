"""A log of files as documents: by column, compared with the same row by row.

Judge ratios within one run: machines differ, and so do minutes on one machine.

    eventlog bench convert [rows]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from eventlog.core import tablesfile
from eventlog.core.entry import COLUMNS
from eventlog.core.errors import Refused
from eventlog.core.formats import Shape
from eventlog.files.inputs import open_sources
from eventlog.fold import Rules
from eventlog.log_files.by_column import BulkPickup
from eventlog.log_files.by_row import Pickup
from eventlog.log_files.current import CurrentFiles
from eventlog.xds.documents import write
from eventlog.xds.settings import XdsSettings

ROWS = 300_000
SLOWLY = 100_000  # rows at most that are taken row by row
STEP = 100_000  # rows that are made together
CLOCK = "2025-01-01 00:00:00"
TABLES = tablesfile.read(
    '[tables.usr]\nschema = "indirect"\nkey = ["idu"]\n'
    'columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", mail = "varchar(64)" }\n'
)


def log(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield three rows of type 2 for each object, as a trigger logs them."""
    names = ("fname", "lname", "mail")
    for start in range(0, rows, STEP):
        numbers = range(start, min(start + STEP, rows))
        columns: list[list[object]] = [
            [n + 1 for n in numbers],
            ["N" for _ in numbers],
            [2 for _ in numbers],
            ["2025-03-23 10:57:19" for _ in numbers],
            [None for _ in numbers],
            ["usr" for _ in numbers],
            [f"idu={n // 3 + 1}" for n in numbers],
            [names[n % 3] for n in numbers],
            [f"Jack{n}" for n in numbers],
            [f"John & Sons {n}" for n in numbers],
        ]
        types = [pa.int64(), pa.string(), pa.int64(), *[pa.string()] * 7]
        arrays = [pa.array(cells, kind) for cells, kind in zip(columns, types, strict=True)]
        yield pa.record_batch(arrays, names=list(COLUMNS))


def make(folder: Path, rows: int) -> dict[str, Path]:
    """Return the same log as CSV and as Parquet, in a folder that is made where it is missing."""
    folder.mkdir(exist_ok=True)
    paths = {"csv": folder / "log.csv", "parquet": folder / "log.parquet"}
    schema = next(log(1)).schema
    with (
        pv.CSVWriter(paths["csv"], schema, write_options=pv.WriteOptions(quoting_style="needed")) as text,
        pq.ParquetWriter(paths["parquet"], schema) as packed,
    ):
        for batch in log(rows):
            text.write_batch(batch)
            packed.write_batch(batch)
    return paths


def by_row(path: Path, container: str) -> int:
    """Return the bytes of its documents, row by row."""
    with CurrentFiles() as current:
        pickup = Pickup(TABLES, Rules(), current, CLOCK, None, lambda refused: None)
        sources = (s for s in open_sources([str(path)], Shape.ROWS, container) if not isinstance(s, Refused))
        return _size(write((event.change for event in pickup.events(sources)), TABLES, XdsSettings()))


def by_column(path: Path, container: str) -> int:
    """Return the bytes of its documents, by column."""
    with CurrentFiles() as current:
        pickup = BulkPickup(TABLES, Rules(), XdsSettings(), current, CLOCK, lambda refused: None)
        return _size(pickup.documents([(str(path), container)], lambda size: None))


def _size(records: Iterable[bytes | Refused]) -> int:
    return sum(len(record) for record in records if not isinstance(record, Refused))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    few = min(rows, SLOWLY)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        some = make(folder / "some", few)
        for container, path in make(folder / "all", rows).items():
            size, slow = measured(by_row, some[container], container)
            again, _ = measured(by_column, some[container], container)
            assert size == again
            _, fast = measured(by_column, path, container)
            row, column = few / slow, rows / fast
            print(
                f"{container:<8} row by row {row:>9,.0f} rows a CPU second   by column {column:>9,.0f}   "
                f"{column / row:.1f} x"
            )


def measured(way: Callable[[Path, str], int], path: Path, container: str) -> tuple[int, float]:
    """Return the bytes of the documents, and the CPU seconds that they take."""
    begun = time.process_time()
    return way(path, container), time.process_time() - begun


if __name__ == "__main__":
    main()
