"""The pick-up by column: the same rows as `Pending.pick_up` has, without an object for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlog.sql.columns import OddBytes, ResultColumns
from eventlog.sql.log.blocked_range import BlockedRange
from eventlog.sql.log.inserts import Ends
from eventlog.sql.log.lookahead import Lookahead, hashes
from eventlog.sql.log.pending import Pending, PickUp, Selection
from eventlog.sql.log.whole_inserts import Flags, Ints, Outline

MANY_ALONG = 20  # further rows are many where there is one to so many that were picked up

NUMBERS = ("record_id", "event_type")
TEXTS = ("table_name", "table_key", "column_name", "old_value", "new_value")
_PICKED = (*NUMBERS, "time_is_plain")
_COLUMNS = (*_PICKED, *TEXTS)
LAYOUT = (_COLUMNS, _PICKED, TEXTS)  # of the statements that read whole rows
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


def behind(pending: Pending, choice: Selection, stretch: BlockedRange, after: int) -> Outline | None:
    """The rows behind one, as `hashes` numbers objects; None likewise."""
    try:
        rows = _further(pending, choice, stretch, after)
    except OddBytes:
        return None
    objects = _objects(choice, *(rows.texts[name] for name in _OBJECT))
    return _outline(rows, objects.numbers).renamed(hashes(objects.names()))


def complete(
    pending: Pending, choice: Selection, stretch: BlockedRange, ends: Ends | None, found: ResultColumns
) -> PickUp:
    """Return the rows that were found with what completes them."""
    picked = _picked(found)
    if choice.upto is None and picked.size < choice.limit:
        return PickUp([], columns=picked)
    near = _further(pending, choice, stretch, int(picked.ids[-1]))
    both = [pa.concat_arrays([picked.texts[name], near.texts[name]]) for name in _OBJECT]
    objects = _objects(choice, *both)
    kept, more, reach, cut = Lookahead(pending, choice, stretch, ends).complete(
        Outline(picked.ids, picked.kinds, objects.numbers[: picked.size]),
        _outline(near, objects.numbers[picked.size :]),
        objects.names,
    )
    name = choice.object_of(*(picked.texts[name][0].as_py() for name in _OBJECT)) if cut else None
    rows = picked if kept.all() else picked.some(kept)
    many = len(more) * MANY_ALONG > picked.size
    ahead = int(near.numbers["record_id"].max()) if many and near.size else None
    return PickUp([], True, reach, name, _with_more(pending, rows, more), ahead)


def _further(pending: Pending, choice: Selection, stretch: BlockedRange, after: int) -> ResultColumns:
    """What names the events of the rows behind one."""
    lane = stretch.rest(after)
    return pending.columns("further", choice, lane, (*NUMBERS, *_OBJECT), NUMBERS, _OBJECT)


def _with_more(pending: Pending, picked: PickedColumns, ids: Sequence[int]) -> PickedColumns:
    """The rows and, behind them, others by their ids."""
    for more in pending.columns_by_id(ids, *LAYOUT) if ids else ():
        picked = picked.with_more(_picked(more))
    return picked


class _Objects(NamedTuple):
    """The objects of rows."""

    numbers: Ints  # one for each row's
    names: Callable[[], list[str]]  # their names, by number


def _objects(choice: Selection, tables: pa.Array, keys: pa.Array) -> _Objects:
    """Which objects rows name, whose rows come by column."""
    assert choice.objects is not None
    named = choice.objects.canonical(tables, keys).dictionary_encode()
    return _Objects(named.indices.to_numpy().astype(np.int64), named.dictionary.to_pylist)


def _outline(rows: ResultColumns, objects: Ints) -> Outline:
    found = Outline(rows.numbers["record_id"], rows.numbers["event_type"], objects)
    return found if _ascend(found.ids) else found.some(np.argsort(found.ids))


def _picked(found: ResultColumns) -> PickedColumns:
    ids = found.numbers["record_id"]
    timely = found.numbers["time_is_plain"] == 1
    picked = PickedColumns(ids, found.numbers["event_type"], timely, dict(found.texts))
    if _ascend(ids):
        return picked
    order = np.argsort(ids, kind="stable")
    take = pa.array(order)
    texts = {name: column.take(take) for name, column in picked.texts.items()}
    return PickedColumns(ids[order], picked.kinds[order], timely[order], texts)


def _ascend(ids: Ints) -> bool:
    return bool((ids[1:] >= ids[:-1]).all())
