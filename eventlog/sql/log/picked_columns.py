"""Rows of the log by column, without an object for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
TEXTS = ("table_name", "table_key", "column_name", "old_value", "new_value")


class PickedColumns(NamedTuple):
    """The picked rows by column, ascending by record_id; an event_type that is null is 0."""

    ids: Ints
    kinds: Ints
    timely: Flags  # whether each surely has a time that a document can name
    texts: dict[str, pa.Array]  # by the names of TEXTS

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.ids)

    def subset(self, chosen: Sequence[bool] | Flags) -> PickedColumns:
        """Return the chosen rows."""
        which = np.asarray(chosen, np.bool_)
        texts = {name: column.filter(pa.array(which)) for name, column in self.texts.items()}
        return PickedColumns(self.ids[which], self.kinds[which], self.timely[which], texts)

    def with_more(self, further: PickedColumns) -> PickedColumns:
        """Return these rows and, after them, others."""
        texts = {name: pa.concat_arrays([column, further.texts[name]]) for name, column in self.texts.items()}
        return PickedColumns(
            np.concatenate([self.ids, further.ids]),
            np.concatenate([self.kinds, further.kinds]),
            np.concatenate([self.timely, further.timely]),
            texts,
        )
