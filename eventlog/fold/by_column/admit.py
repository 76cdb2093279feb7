"""Which rows can be believed, by column: what is surely an entry, and which record_ids several rows have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.entry import EVENT_TYPES
from eventlog.fold.admit import why_repeated
from eventlog.fold.by_column.vectors import Flags, Ints, flags

_PER_FIELD = [number for number, event_type in EVENT_TYPES.items() if event_type.per_field]


def named(kinds: Ints, table_names: pa.Array, table_keys: pa.Array, column_names: pa.Array) -> Flags:
    """Return which rows of these event types name all that an entry of their type names."""
    has_column = flags(pc.greater(pc.binary_length(column_names), 0))
    has_object = flags(table_names.is_valid()) & flags(table_keys.is_valid())
    return has_object & (~np.isin(kinds, _PER_FIELD) | has_column)


class Repeats(NamedTuple):
    """The record_ids that several rows have, ascending, and how many have each: none of them is believed."""

    ids: Ints
    times: Ints

    @classmethod
    def among(cls, ids: Ints) -> Repeats:
        """Return the repeats among the record_ids of all rows."""
        values, counts = np.unique(ids, return_counts=True)
        return cls(values[counts > 1], counts[counts > 1])

    @classmethod
    def joined(cls, parts: Iterable[Repeats]) -> Repeats:
        """Return the repeats of several ranges of record_ids, in their order."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def find(self, ids: Ints) -> Flags:
        """Return which of these record_ids several rows have."""
        return np.isin(ids, self.ids)

    def reasons(self, ids: Ints) -> list[str]:
        """Return why rows with these repeated record_ids are refused."""
        times = self.times[np.searchsorted(self.ids, ids)]
        return list(map(why_repeated, ids.tolist(), times.tolist()))
