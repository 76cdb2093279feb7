"""A change as a row of columns, among them its line of JSON."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches.batch import OPS, ChangeBatch
from eventlog.change_batches.lines import Pieces
from eventlog.change_batches.neutral_lines import NeutralLines
from eventlog.change_batches.values import Texts


class ChangeRows(NeutralLines):
    """The form of changes as rows, each with its line."""

    def frame(self, batch: ChangeBatch, body: Pieces) -> Texts:
        """Return the rows with these lists of fields."""
        lines, odd = super().frame(batch, body)
        count, table = len(lines), batch.table
        cells = {
            "op": pa.array([op.value for op in OPS]).take(pa.array(batch.ops)),
            "schema": pa.array([table.schema] * count, pa.string()),
            "table": pa.array([table.name] * count),
            "position": batch.positions,
            "transaction": batch.transactions,
            "time": batch.times,
            "change": pc.ascii_rtrim(lines, "\n"),
        }
        return Texts(pa.StructArray.from_arrays([*cells.values()], [*cells]), odd)
