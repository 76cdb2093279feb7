"""Pending rows as vectors: the pick-up by column, and the rest of the inserts that a pick-up cut.

The rows of one insert of an object (one a field) may be among those of others. No index finds them, so one
bounded query reads the rows after the pick-up.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.core.entry import read_event_type
from eventlog.core.errors import WrongRow
from eventlog.core.identity import ObjectName
from eventlog.fold.by_column.objects import object_codes
from eventlog.sql.columns import TEXTS, Ints, PickedColumns, ResultColumns
from eventlog.sql.log.pending import Pending, PickUp, PickUpFilter

logger = logging.getLogger("eventlog.publisher")

LOOK_AHEAD = 1_000  # rows after a pick-up that are looked at; as many as its limit if that is more
MAX_BYTES = 64 << 20  # of the rows that complete inserts
_CLOSING = range(2, 9)  # event types of a row that ends an insert; others are none
_NUMBERS = ("record_id", "event_type")
_OBJECT = ("table_name", "table_key")
_PICKED = (*_NUMBERS, "time_is_plain")
_LAYOUT = ((*_PICKED, *TEXTS), _PICKED, TEXTS)  # of the statements that read whole rows


def pick_up(pending: Pending, choice: PickUpFilter) -> PickUp:
    """Read rows by column, and the rest of the inserts that their limit cut."""
    picked = _picked(pending.columns("columns_picked", choice, *_LAYOUT))
    if picked.size < choice.limit:
        return PickUp([], columns=picked)
    if np.isin(picked.kinds, list(choice.inserts)).any():
        picked = _with_more(pending, picked, _rest_of_inserts(pending, choice, picked))
    return PickUp([], True, picked)


def _rest_of_inserts(pending: Pending, choice: PickUpFilter, picked: PickedColumns) -> list[int]:
    further_choice = replace(choice, limit=max(choice.limit, LOOK_AHEAD))
    last = int(picked.ids[-1])
    further = pending.columns("further", further_choice, (*_NUMBERS, *_OBJECT), _NUMBERS, _OBJECT, after=last)
    texts = [pa.concat_arrays([picked.texts[name], further.texts[name]]) for name in _OBJECT]
    objects = object_codes(choice.tables, *texts).astype(np.int64)
    ids, kinds = (
        np.concatenate([column, further.numbers[name]])
        for name, column in zip(_NUMBERS, (picked.ids, picked.kinds), strict=True)
    )
    order = np.argsort(ids, kind="stable")
    return rest_of_inserts(
        pending, RowHeaders(ids[order], kinds[order], objects[order]), picked.size, choice.inserts
    )


def _with_more(pending: Pending, picked: PickedColumns, ids: Sequence[int]) -> PickedColumns:
    for further in pending.columns_by_id(ids, *_LAYOUT) if ids else ():
        picked = picked.with_more(_picked(further))
    return picked


def _picked(columns: ResultColumns) -> PickedColumns:
    ids = columns.numbers["record_id"]
    timely = columns.numbers["time_is_plain"] == 1
    picked = PickedColumns(ids, columns.numbers["event_type"], timely, dict(columns.texts))
    if (ids[1:] >= ids[:-1]).all():
        return picked
    order = np.argsort(ids, kind="stable")
    take = pa.array(order)
    texts = {name: column.take(take) for name, column in picked.texts.items()}
    return PickedColumns(ids[order], picked.kinds[order], timely[order], texts)


class RowHeaders(NamedTuple):
    """The rows of a look in their order, as far as they show which insert each belongs to."""

    ids: Ints
    kinds: Ints  # their event types, 0 for none
    objects: Ints  # a number for each object


def headers_of(rows: Iterable[Sequence[Any]], choice: PickUpFilter) -> RowHeaders:
    """Return the headers of rows, from record_id, event_type, table_name and table_key of each."""
    numbers: dict[ObjectName, int] = {}
    headers = [
        (int(record_id), _kind(event_type), numbers.setdefault(choice.object_of(*name), len(numbers)))
        for record_id, event_type, *name in rows
    ]
    return RowHeaders(*(np.array(column, np.int64) for column in zip(*headers, strict=True)))


def _kind(event_type: Any) -> int:
    """Return the event type of a row; 0 where it is none, and the row takes no part."""
    try:
        return read_event_type(event_type)
    except WrongRow:
        return 0


def rest_of_inserts(pending: Pending, rows: RowHeaders, picked: int, inserts: Collection[int]) -> list[int]:
    """Return the ids of rows after the first `picked` ones that belong to inserts begun in those."""
    deciding = np.flatnonzero(np.isin(rows.kinds, [*inserts, *_CLOSING]))
    order = deciding[np.argsort(rows.objects[deciding], kind="stable")]
    is_insert = np.isin(rows.kinds[order], list(inserts))
    is_first = np.diff(rows.objects[order], prepend=rows.objects[order[:1]] - 1) != 0
    runs = np.cumsum(is_first | ~is_insert)  # a row that ends an insert begins the next run
    cut = runs[is_insert & (order < picked)]
    ids: list[int] = rows.ids[np.sort(order[is_insert & (order >= picked) & np.isin(runs, cut)])].tolist()
    completing = ids[: bisect_right(list(accumulate(pending.sizes(ids))), MAX_BYTES)]
    is_cut_again = (
        len(rows.ids) - picked >= max(picked, LOOK_AHEAD) and len(rows.ids) - 1 in order[np.isin(runs, cut)]
    )
    if is_cut_again or len(completing) < len(ids):
        last = completing[-1] if completing else int(rows.ids[picked - 1])
        logger.warning("an insert is cut after row %s: its other rows become an event of their own", last)
    return completing
