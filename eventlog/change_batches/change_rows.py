"""A change as a row of columns, among them its line of JSON."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches.batch import OPS, ChangeBatch
from eventlog.change_batches.lines import Pieces
from eventlog.change_batches.neutral_lines import NeutralLines
from eventlog.change_batches.values import Texts

ROW: Final = pa.struct(
    [(name, pa.string()) for name in ("op", "schema", "table", "position", "transaction", "time", "change")]
)


class ChangeRows(NeutralLines):
    """The form of changes as rows, each with its line."""

    def frame(self, batch: ChangeBatch, body: Pieces) -> Texts:
        """Return the rows with these lists of fields."""
        lines, odd = super().frame(batch, body)
        count, table = len(lines), batch.table
        cells = [
            pa.array([op.value for op in OPS]).take(pa.array(batch.ops)),
            pa.array([table.schema] * count, pa.string()),
            pa.array([table.name] * count),
            batch.positions,
            batch.transactions,
            batch.times,
            pc.ascii_rtrim(lines, "\n"),
        ]
        return Texts(pa.StructArray.from_arrays(cells, fields=[*ROW]), odd)
