"""The pick-up by column: the same rows as `Pending.pick_up` has, without an object for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlog.sql.columns import OddBytes, ResultColumns
from eventlog.sql.log.inserts import CLOSING, Ends, Row
from eventlog.sql.log.pending import Pending, PickUp, Selection, as_row
from eventlog.sql.log.stretch import LOWEST, Stretch
from eventlog.sql.stored import Storage

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Canonical = Callable[[pa.Array, pa.Array], pa.Array]  # a text for each object, of table_names and keys

NUMBERS = ("record_id", "event_type")
TEXTS = ("table_name", "table_key", "column_name", "old_value", "new_value")
_PICKED = (*NUMBERS, "time_is_plain")
_COLUMNS = (*_PICKED, *TEXTS)
_OBJECT = ("table_name", "table_key")


class PickedColumns(NamedTuple):
    """Rows of the log, ascending by record_id; an event_type that is null is 0."""

    ids: Ints
    kinds: Ints
    timely: Flags  # whether each surely has a time that a document can name
    texts: dict[str, pa.Array]  # by the names of TEXTS

    @property
    def size(self) -> int:
        """How many rows they are."""
        return len(self.ids)

    def some(self, chosen: Sequence[bool] | npt.NDArray[np.bool_]) -> PickedColumns:
        """The rows of which that is true."""
        which = np.asarray(chosen, np.bool_)
        texts = {name: column.filter(pa.array(which)) for name, column in self.texts.items()}
        return PickedColumns(self.ids[which], self.kinds[which], self.timely[which], texts)

    def with_more(self, more: PickedColumns) -> PickedColumns:
        """These rows and, behind them, others."""
        texts = {name: pa.concat_arrays([column, more.texts[name]]) for name, column in self.texts.items()}
        return PickedColumns(
            np.concatenate([self.ids, more.ids]),
            np.concatenate([self.kinds, more.kinds]),
            np.concatenate([self.timely, more.timely]),
            texts,
        )


def is_possible(pending: Pending, choice: Selection, stretch: Stretch) -> bool:
    """Whether the log's numbers are integers, in the one order, and nothing at its head is skipped."""
    stored = pending.queries.log.stored
    plain = all(stored[name].storage is Storage.INTEGER for name in NUMBERS)
    return plain and not choice.future and next(iter(stretch.gaps(LOWEST)), None) is None


def pick_up(
    pending: Pending, choice: Selection, canonical: Canonical, stretch: Stretch, ends: Ends | None
) -> PickUp | None:
    """The pending rows that may go now, and the further rows of their objects; None where they must be
    read one by one."""
    if not is_possible(pending, choice, stretch):
        return None
    try:
        return _pick_up(pending, choice, canonical, stretch, Ends() if ends is None else ends)
    except OddBytes:
        return None


def _pick_up(
    pending: Pending, choice: Selection, canonical: Canonical, stretch: Stretch, ends: Ends
) -> PickUp:
    lane = stretch.rest(LOWEST)
    picked = _picked(pending.columns("columns_picked", choice, lane, _COLUMNS, _PICKED, TEXTS))
    if picked.size < choice.limit:
        return PickUp([], columns=picked)
    last = int(picked.ids[-1])
    behind = pending.columns("further", choice, stretch.rest(last), (*NUMBERS, *_OBJECT), NUMBERS, _OBJECT)
    near, kinds = behind.numbers["record_id"], behind.numbers["event_type"]
    objects = canonical(*(pa.concat_arrays([picked.texts[n], behind.texts[n]]) for n in _OBJECT))
    numbers = objects.dictionary_encode().indices.to_numpy().astype(np.int64)
    known, met = numbers[: picked.size], numbers[picked.size :]
    along = np.flatnonzero(np.isin(met, known))
    if len(along):
        along = along[: pending.fitting(near[along].tolist(), choice)]
    if _any_open(
        np.concatenate([known, met[along]]),
        np.concatenate([picked.kinds, kinds[along]]),
        np.concatenate([picked.ids, near[along]]),
        choice,
        ends,
    ):
        kept, more, reach, cut = pending.complete(choice, _rows(picked, choice), stretch, ends)
        return PickUp([], True, reach, cut, _with_more(pending, picked.some(kept), more))
    return PickUp([], True, last, columns=_with_more(pending, picked, near[along].tolist()))


def _with_more(pending: Pending, picked: PickedColumns, ids: Sequence[int]) -> PickedColumns:
    """The rows and, behind them, others by their ids."""
    for more in pending.columns_by_id(ids, _COLUMNS, _PICKED, TEXTS) if ids else ():
        picked = picked.with_more(_picked(more))
    return picked


def _any_open(objects: Ints, kinds: Ints, ids: Ints, choice: Selection, ends: Ends) -> bool:
    """Whether the last row of an object that tells of inserts is one, and more of them may follow."""
    telling = np.flatnonzero(np.isin(kinds, [*choice.inserts, *CLOSING]))
    if not np.isin(kinds, list(choice.inserts)).any():
        return False
    reverse = telling[::-1]
    _, first = np.unique(objects[reverse], return_index=True)
    last = reverse[first]
    open_ids = ids[last[np.isin(kinds[last], list(choice.inserts))]]
    return any(record_id not in ends for record_id in open_ids.tolist())


def _picked(found: ResultColumns) -> PickedColumns:
    ids = found.numbers["record_id"]
    timely = found.numbers["time_is_plain"] == 1
    picked = PickedColumns(ids, found.numbers["event_type"], timely, dict(found.texts))
    if (ids[1:] >= ids[:-1]).all():
        return picked
    order = np.argsort(ids, kind="stable")
    take = pa.array(order)
    texts = {name: column.take(take) for name, column in picked.texts.items()}
    return PickedColumns(ids[order], picked.kinds[order], timely[order], texts)


def _rows(picked: PickedColumns, choice: Selection) -> list[Row]:
    """What each row says of its event."""
    named = zip(*(picked.texts[name].to_pylist() for name in _OBJECT), strict=True)
    told = zip(picked.ids.tolist(), picked.kinds.tolist(), named, strict=True)
    return [as_row(choice, record_id, kind, *name) for record_id, kind, name in told]
