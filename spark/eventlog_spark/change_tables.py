"""DataFrames of change tables as one sequence.

Rows of a change table are in no order, so those without a change_seq come first. Spark sorts the rows as they
are, and Python reads each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.formats.qlik.sequenced_rows import RowSequencer, SequencedRow
from eventlog_spark.messages import check_single_values
from eventlog_spark.ranges import ITEM, RangeJoin, in_ranges
from eventlog_spark.result_rows import Changes


def changes_of_tables(
    frames: Mapping[str, Any], tables: Tables, settings: TableSettings, form: Changes, partitions: int
) -> Any:
    """Return the changes of change tables, by their names, read in so many tasks."""
    sequencer = RowSequencer(tables, settings)
    for name, frame in frames.items():
        check_single_values(frame)
        source: Source[Row] = Source(name, name, tuple(frame.columns), [])
        for wrong in sequencer.parse(source):
            raise Misuse(wrong.reason if isinstance(wrong, Refused) else name)
    records = [_records(frame, at, sequencer, settings) for at, frame in enumerate(frames.values())]
    together = reduce(lambda frame, addition: frame.unionByName(addition, allowMissingColumns=True), records)
    cells = [f"t{at}" for at in range(len(frames))]
    ordered = in_ranges(together, partitions, *cells).select("source", "number", *cells)
    return RangeJoin(sequencer, partial(_sorted_rows, sequencer), tables, form).rows(ordered)


def _records(frame: Any, at: int, sequencer: RowSequencer, settings: TableSettings) -> Any:
    """Return the rows of one table as they are, with their places."""
    names = [name.lower() for name in frame.columns]
    columns = [f"c{place}" for place in range(len(names))]
    header = f"{settings.header_prefix}change_seq".lower()
    seq = f.lit("")
    if header in names:
        text = f.col(columns[names.index(header)]).cast("string")
        seq = f.when(text.rlike(rf"\A(?:{sequence.PATTERN})\z"), text).otherwise("")
    table = sequencer.table_of(at)
    places = {
        "kind": f.lit(ITEM),
        "seq": seq,
        "without_sequence": seq == "",
        "table": f.lit(table),
        "source": f.lit(at),
        "number": f.monotonically_increasing_id(),
        "splittable": f.lit(sequencer.has_sequence(at)),
    }
    named = (value.alias(name) for name, value in places.items())
    return frame.toDF(*columns).select(*named, f.struct(*columns).alias(f"t{at}"))


def _sorted_rows(
    sequencer: RowSequencer, batches: Iterable[pa.RecordBatch]
) -> Iterator[SequencedRow | Refused]:
    """Yield the sorted rows of all tables."""
    for batch in batches:
        sources = batch.column("source").to_pylist()
        rows = {at: _rows_of(batch, at) for at in set(sources)}
        for at, number in zip(sources, batch.column("number").to_pylist(), strict=True):
            yield from sequencer.rows(at, [next(rows[at])._replace(where=number + 1)])


def _rows_of(batch: pa.RecordBatch, at: int) -> Iterator[Row]:
    """Yield the rows of one table among those of a batch."""
    cells = batch.column(f"t{at}").filter(pc.equal(batch.column("source"), at))
    names = [field.name for field in cells.type]
    return iter(rows_of(PlacedBatch(0, pa.RecordBatch.from_arrays(cells.flatten(), names=names))))
