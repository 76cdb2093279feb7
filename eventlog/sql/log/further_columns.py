"""The rows after a pick-up, by column: which event each row belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.sql.columns import OddBytes, ResultColumns
from eventlog.sql.log.pending import Pending, Selection
from eventlog.sql.log.whole_inserts import Ints, Outline, hashes

NUMBERS = ("record_id", "event_type")
OBJECT = ("table_name", "table_key")


class RowObjects(NamedTuple):
    """The objects that rows name."""

    numbers: Ints  # the number of each row's object
    names: Callable[[], list[str]]  # the names of the objects, by number


def outline_after(pending: Pending, choice: Selection, after: int) -> Outline | None:
    """Return the rows after one row, with the `hashes` of their objects; None if texts are not in UTF-8."""
    try:
        rows = read_further(pending, choice, after)
    except OddBytes:
        return None
    objects = objects_of(choice, *(rows.texts[name] for name in OBJECT))
    return outline_of(rows, objects.numbers).renamed(hashes(objects.names()))


def read_further(pending: Pending, choice: Selection, after: int) -> ResultColumns:
    """Read what names the events of the rows after one row."""
    choice = replace(choice, upto=None)
    return pending.columns("further", choice, (*NUMBERS, *OBJECT), NUMBERS, OBJECT, after=after)


def objects_of(choice: Selection, tables: pa.Array, keys: pa.Array) -> RowObjects:
    """Return the objects that rows name by these table_names and table_keys."""
    assert choice.objects is not None
    names = choice.objects.canonical(tables, keys).dictionary_encode()
    return RowObjects(names.indices.to_numpy().astype(np.int64), names.dictionary.to_pylist)


def outline_of(rows: ResultColumns, objects: Ints) -> Outline:
    """Return the rows' outline, ascending by record_id."""
    outline = Outline(rows.numbers["record_id"], rows.numbers["event_type"], objects)
    return outline if ascend(outline.ids) else outline.some(np.argsort(outline.ids))


def ascend(ids: Ints) -> bool:
    """Return whether no id is smaller than the one before it."""
    return bool((ids[1:] >= ids[:-1]).all())
