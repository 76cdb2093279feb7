"""The rows of a table after changes, for a format whose library replaces rows but merges none."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.transfer.targets.lake.lake_place import RowChanges
from eventlog.transfer.targets.lake.lake_settings import DELETED


def merged(rows: pa.Table, changes: RowChanges) -> pa.Table:
    """Return rows after changes: those that stay as they are, those that are changed, and the new ones.

    With the column of deleted rows, these stay and are marked.
    """
    keeps_deleted = DELETED in rows.column_names
    done = changes.rows["w"].to_pylist()
    effect_of = {
        key: at for at, key in enumerate(_keys(changes.rows, [f"c{place}" for place in changes.key]))
    }
    effects = [effect_of.get(key) for key in _keys(rows, list(changes.key.values()))]
    unchanged = rows.filter(pa.array([effect is None for effect in effects], pa.bool_()))
    pairs: list[tuple[int | None, int]] = [
        (row, effect)
        for row, effect in enumerate(effects)
        if effect is not None and (done[effect] or keeps_deleted)
    ]
    met = set(effects)
    pairs += [(None, effect) for effect, write in enumerate(done) if write == "w" and effect not in met]
    old_rows = rows.take(pa.array([row for row, _ in pairs], pa.int64()))
    changed_rows = changes.rows.take(pa.array([effect for _, effect in pairs], pa.int64()))
    columns = _changed(old_rows, changed_rows, changes)
    if keeps_deleted:
        columns[DELETED] = pc.equal(changed_rows["w"], "")
        if changes.is_emptied:
            unchanged = unchanged.drop_columns(DELETED).append_column(DELETED, _all_true(unchanged.num_rows))
            unchanged = unchanged.select(rows.column_names)
    changed = pa.table([columns[name] for name in rows.column_names], schema=rows.schema)
    return pa.concat_tables([unchanged.cast(rows.schema), changed])


def _keys(rows: pa.Table, names: Sequence[str]) -> list[tuple[object, ...]]:
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def _changed(old_rows: pa.Table, changed_rows: pa.Table, changes: RowChanges) -> dict[str, pa.ChunkedArray]:
    """Return the columns of changed rows: what is supplied, and else what they had."""
    columns = {name: old_rows[name] for name in old_rows.column_names}
    for place, name in changes.key.items():
        columns[name] = changed_rows[f"c{place}"]
    is_written = pc.not_equal(changed_rows["w"], "")
    was_deleted = pc.fill_null(columns[DELETED], False) if DELETED in columns else False
    for place, name in changes.supplied.items():
        is_supplied = pc.and_(is_written, pc.or_(changed_rows[f"s{place}"], was_deleted))
        columns[name] = _either(is_supplied, changed_rows[f"c{place}"], columns[name])
    return columns


def _either(is_new: pa.ChunkedArray, values: pa.ChunkedArray, former: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values where they are new, and else the former ones; Arrow chooses a uuid by its bytes only."""
    storage = getattr(former.type, "storage_type", former.type)
    return pc.if_else(is_new, values.cast(storage), former.cast(storage)).cast(former.type)


def _all_true(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(True), count)
