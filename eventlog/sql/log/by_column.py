"""The pick-up by column: the same rows as `Snapshot.pick_up` returns one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventlog.sql.columns import ResultColumns
from eventlog.sql.log.further_columns import NUMBERS, OBJECT, ascend, objects_of, outline_of, read_further
from eventlog.sql.log.inserts import Ends
from eventlog.sql.log.lookahead import Lookahead
from eventlog.sql.log.pending import Pending, PickUp, Selection
from eventlog.sql.log.picked_columns import TEXTS, PickedColumns
from eventlog.sql.log.whole_inserts import Outline

MANY_ALONG = 20  # further rows are many where there is one to so many that were picked up

_PICKED = (*NUMBERS, "time_is_plain")
LAYOUT = ((*_PICKED, *TEXTS), _PICKED, TEXTS)  # of the statements that read whole rows


def complete(pending: Pending, choice: Selection, ends: Ends | None, columns: ResultColumns) -> PickUp:
    """Return rows that were read by column with what completes them."""
    picked = _picked(columns)
    if choice.upto is None and picked.size < choice.limit:
        return PickUp([], columns=picked)
    further = read_further(pending, choice, int(picked.ids[-1]))
    texts = [pa.concat_arrays([picked.texts[name], further.texts[name]]) for name in OBJECT]
    objects = objects_of(choice, *texts)
    picked_up, further_ids, reach, cut = Lookahead(pending, choice, ends).complete(
        Outline(picked.ids, picked.kinds, objects.numbers[: picked.size]),
        outline_of(further, objects.numbers[picked.size :]),
        objects.names,
    )
    name = choice.object_of(*(picked.texts[name][0].as_py() for name in OBJECT)) if cut else None
    rows = picked if picked_up.all() else picked.some(picked_up)
    many = len(further_ids) * MANY_ALONG > picked.size
    ahead = int(further.numbers["record_id"].max()) if many and further.size else None
    return PickUp([], True, reach, name, _with_more(pending, rows, further_ids), ahead)


def _with_more(pending: Pending, picked: PickedColumns, ids: Sequence[int]) -> PickedColumns:
    """Return the rows, followed by others with these ids."""
    for further in pending.columns_by_id(ids, *LAYOUT) if ids else ():
        picked = picked.with_more(_picked(further))
    return picked


def _picked(columns: ResultColumns) -> PickedColumns:
    ids = columns.numbers["record_id"]
    timely = columns.numbers["time_is_plain"] == 1
    picked = PickedColumns(ids, columns.numbers["event_type"], timely, dict(columns.texts))
    if ascend(ids):
        return picked
    order = np.argsort(ids, kind="stable")
    take = pa.array(order)
    texts = {name: column.take(take) for name, column in picked.texts.items()}
    return PickedColumns(ids[order], picked.kinds[order], timely[order], texts)
