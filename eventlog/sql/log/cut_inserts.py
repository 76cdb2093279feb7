"""The rest of the inserts that a pick-up cut, from one bounded look at the rows after it.

The rows of one insert of an object (one a field) may be among those of others, and no index finds them.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from eventlog.core.entry import read_event_type
from eventlog.core.errors import WrongRow
from eventlog.core.identity import ObjectName
from eventlog.sql.columns import Ints
from eventlog.sql.log.pending import Pending, PickUpFilter

logger = logging.getLogger("eventlog.publisher")

LOOK_AHEAD = 1_000  # rows after a pick-up that are looked at; as many as its limit if that is more
MAX_BYTES = 64 << 20  # of the rows that complete inserts
_CLOSING = range(2, 9)  # event types of a row that ends an insert; others are none


class Outline(NamedTuple):
    """The rows of a look in their order, as far as they show which insert each belongs to."""

    ids: Ints
    kinds: Ints  # their event types, 0 for none
    objects: Ints  # a number for each object


def outline_of(rows: Iterable[Sequence[Any]], choice: PickUpFilter) -> Outline:
    """Return the outline of rows: record_id, event_type, table_name and table_key of each."""
    numbers: dict[ObjectName, int] = {}
    outline = [
        (int(row[0]), _kind(row[1]), numbers.setdefault(choice.object_of(*row[2:]), len(numbers)))
        for row in rows
    ]
    return Outline(*(np.array(column, np.int64) for column in zip(*outline, strict=True)))


def _kind(event_type: Any) -> int:
    """Return the event type of a row; 0 where it is none, and the row takes no part."""
    try:
        return read_event_type(event_type)
    except WrongRow:
        return 0


def rest_of_inserts(pending: Pending, rows: Outline, picked: int, inserts: Collection[int]) -> list[int]:
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
