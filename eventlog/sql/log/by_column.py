"""The pick-up by column: the same rows as `Snapshot.pick_up` returns one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from eventlog.sql.columns import TEXTS, PickedColumns, ResultColumns
from eventlog.sql.log.cut_inserts import LOOK_AHEAD, Outline, rest_of_inserts
from eventlog.sql.log.pending import Pending, PickUp, PickUpFilter

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
    assert choice.objects is not None
    further_choice = replace(choice, limit=max(choice.limit, LOOK_AHEAD))
    last = int(picked.ids[-1])
    further = pending.columns("further", further_choice, (*_NUMBERS, *_OBJECT), _NUMBERS, _OBJECT, after=last)
    texts = [pa.concat_arrays([picked.texts[name], further.texts[name]]) for name in _OBJECT]
    objects = choice.objects.canonical(*texts).dictionary_encode().indices.to_numpy().astype(np.int64)
    ids, kinds = (
        np.concatenate([column, further.numbers[name]])
        for name, column in zip(_NUMBERS, (picked.ids, picked.kinds), strict=True)
    )
    order = np.argsort(ids, kind="stable")
    return rest_of_inserts(
        pending, Outline(ids[order], kinds[order], objects[order]), picked.size, choice.inserts
    )


def _with_more(pending: Pending, picked: PickedColumns, ids: Sequence[int]) -> PickedColumns:
    """Return the rows, followed by others with these ids."""
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
